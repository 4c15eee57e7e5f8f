"""What Open-Meteo's own library reads from a file, to compare with what its references give.

omfiles is no dependency: it is used where the user has installed it. Nothing here knows the layout of the format.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import FormatError, UnsupportedError
from virtualzarr_refs.scanning import TrueArray
from virtualzarr_refs.sources import Source
from virtualzarr_refs.sources.location import local_path

_ROUNDED = "pfor_delta_2d_int16_logarithmic"
"""The compression whose values depend on how a library rounds powers of ten, in their last bit."""


@contextmanager
def open_omfiles(source: Source) -> Generator[Any]:
    """Open a file with omfiles, for the time of a block.

    Raises
    ------
    UnsupportedError
        If omfiles is not installed.
    FormatError
        If it cannot open the file.
    """
    try:
        import omfiles  # pyright: ignore[reportMissingImports]  # noqa: PLC0415  optional
    except ModuleNotFoundError as error:
        raise UnsupportedError("omfiles is not installed; pip install omfiles to compare with it") from error
    with _local_copy(source) as path:
        with _library_errors("omfiles cannot open the file"):
            reader = omfiles.OmFileReader.from_path(path)
        try:
            yield reader
        finally:
            reader.close()


@contextmanager
def _local_copy(source: Source) -> Generator[str]:
    """The path of the file, or of a copy of a remote one."""
    path = local_path(source.url)
    if path is not None:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy.om")  # noqa: PTH118  omfiles takes a string
        with open(copy, "wb") as file:  # noqa: PTH123  same
            file.write(source.read([ByteRange(0, source.identity().size)])[0])
        yield copy


@dataclass(frozen=True, slots=True)
class OpenMeteoTruth:
    """An open file.

    Parameters
    ----------
    reader : omfiles.OmFileReader
        The root of its tree.
    nameless : str
        What an array is called that is the whole of its file and has no name.
    """

    reader: Any
    nameless: str

    def find(self, path: str) -> TrueArray | None:
        """The array at `path`, or None.

        Raises
        ------
        UnsupportedError
            If libraries round its values in different ways.
        """
        with _library_errors("omfiles cannot read the tree of variables"):
            reader = next((reader for place, reader in self._arrays() if place == path), None)
        if reader is None:
            return None
        if reader.compression_name == _ROUNDED:
            raise UnsupportedError("its values are powers of ten, which libraries round in different ways")
        return TrueArray(tuple(map(int, reader.shape)), np.dtype(reader.dtype), partial(_read, reader))

    def _arrays(self) -> Iterator[tuple[str, Any]]:
        if self.reader.is_array:
            name = self.reader.name or self.nameless
            yield name, self.reader
            yield from _beneath(self.reader, "")
        else:
            yield from _beneath(self.reader, "")


def _beneath(reader: Any, prefix: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401  omfiles has no types
    """Every array beneath a variable; what lies within an array is shown beside it."""
    for number in range(reader.num_children):
        child = reader.get_child_by_index(number)
        if child.is_array:
            yield prefix + child.name, child
            yield from _beneath(child, prefix)
        elif child.is_group:
            yield from _beneath(child, f"{prefix}{child.name}/")


def _read(reader: Any, selection: tuple[slice, ...]) -> NDArray[Any]:  # noqa: ANN401  same
    shape = tuple(len(range(*part.indices(size))) for part, size in zip(selection, reader.shape, strict=True))
    with _library_errors("omfiles cannot read the values"):
        return np.asarray(reader.read_array(selection or ...)).reshape(shape)


@contextmanager
def _library_errors(message: str) -> Generator[None]:
    try:
        yield
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        raise FormatError(f"{message}: {error}") from error
