"""What the NetCDF library reads from a file, to compare with what its references give.

Plain netCDF4-python: nothing here knows the layout of the format.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import FormatError, UnsupportedError
from virtualzarr_refs.scanning import TrueArray
from virtualzarr_refs.sources import Source
from virtualzarr_refs.sources.location import local_path

if TYPE_CHECKING:
    import netCDF4

_LIBRARY = Lock()
"""The NetCDF library is not safe to call from two threads."""

_UNKNOWN_COUNTS = (2**32 - 1, 2**64 - 1)
"""How the library reads a number of records that the writer did not know."""


@contextmanager
def open_netcdf4(source: Source) -> Generator[netCDF4.Dataset]:
    """Open a file with netCDF4-python, for the time of a block.

    Raises
    ------
    UnsupportedError
        If netCDF4-python is not installed.
    FormatError
        If it cannot open the file.
    """
    try:
        import netCDF4  # noqa: PLC0415  optional
    except ModuleNotFoundError as error:
        raise UnsupportedError("netCDF4 is not installed; pip install netCDF4 to compare with it") from error
    path = local_path(source.url)
    with _library_errors("the NetCDF library cannot open the file"):
        if path is not None:
            dataset = netCDF4.Dataset(path)
        else:
            content = source.read([ByteRange(0, source.identity().size)])[0]
            dataset = netCDF4.Dataset("in memory", memory=bytes(content))
        dataset.set_auto_maskandscale(False)
        dataset.set_auto_chartostring(False)
    try:
        yield dataset
    finally:
        with _LIBRARY:
            dataset.close()


@dataclass(frozen=True, slots=True)
class NetCDF3Truth:
    """An open file.

    Parameters
    ----------
    dataset : netCDF4.Dataset
        The file.
    """

    dataset: netCDF4.Dataset

    def find(self, path: str) -> TrueArray | None:
        """The variable at `path`, or None.

        Raises
        ------
        UnsupportedError
            If the header does not say how many records it has, which the library does not know how to find out.
        """
        variable = self.dataset.variables.get(path)
        if variable is None:
            return None
        shape = tuple(map(int, variable.shape))
        if shape and shape[0] in _UNKNOWN_COUNTS:
            raise UnsupportedError("the header leaves the number of records open; the NetCDF library needs it")
        return TrueArray(shape, np.dtype(variable.dtype), partial(_read, variable))


def _read(variable: netCDF4.Variable[Any], selection: tuple[slice, ...]) -> NDArray[Any]:
    with _library_errors("the NetCDF library cannot read the values"):
        return np.asarray(variable[selection or ...])


@contextmanager
def _library_errors(message: str) -> Generator[None]:
    try:
        with _LIBRARY:
            yield
    except (OSError, RuntimeError, ValueError, IndexError, AttributeError) as error:
        raise FormatError(f"{message}: {error}") from error
