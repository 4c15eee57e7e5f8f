"""Checking all arrays of a hierarchy."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import zarr
from numpy.typing import NDArray

from virtualzarr_refs.checking.array_check import DECODING_ERRORS, ArrayCheck
from virtualzarr_refs.checking.boxes import Box
from virtualzarr_refs.checking.ranges import broken_chunks, look_at
from virtualzarr_refs.checking.report import ArrayReport, CheckReport, SourceReport
from virtualzarr_refs.checking.truths import Truths
from virtualzarr_refs.errors import DecodeError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import index_of
from virtualzarr_refs.references.recognition import Openable, is_reference_set, open_hierarchy
from virtualzarr_refs.scanning import Region, absolute_url
from virtualzarr_refs.shards.plain import without_shards
from virtualzarr_refs.sources import Backend, SourcePool
from virtualzarr_refs.store import VirtualStore


def check(
    refs: Openable,
    *,
    sample: int | None = None,
    seed: int = 0,
    storage_options: Mapping[str, Any] | None = None,
    backend: Backend = "auto",
    allow: Iterable[str] | None = None,
    progress: bool | None = None,
) -> CheckReport:
    """Compare what a reference set gives with what its files hold.

    Sources and byte ranges are checked for all chunks. Values are read through zarr and compared, element by element
    and bit for bit, with what the library of the source's format reads at the array's path. Chunks that are missing
    in the set are compared too: they must be missing, or full of fill values, in the file.

    Parameters
    ----------
    refs : str, path, mapping or VirtualGroup
        A reference set; or an archive file, which is scanned and checked; or a hierarchy.
    sample : int, optional
        Number of chunks of each array to read, drawn at random from the whole grid; all by default.
    seed : int
        Of the drawing: the same chunks are drawn for the same seed.
    storage_options : mapping, optional
        Options of the filesystem.
    backend : {"auto", "local", "fsspec", "obstore"}
        What reads the sources.
    allow : iterable of str, optional
        Where references may point; see `virtualzarr_refs.open_refs`.
    progress : bool, optional
        Show a bar; by default only on a terminal.

    Returns
    -------
    CheckReport
        Whether all is well, and for each array the numbers of chunks and the first difference. An array whose
        chunks lie in several sources is only decoded, and says so.

    Raises
    ------
    ReferenceSetError, FormatError, SourceError
        If the set or the file cannot be opened at all.
    ValueError
        If `sample` is less than one.
    """
    if sample is not None and sample < 1:
        raise ValueError(f"a sample has at least one chunk of each array, not {sample}")
    group = without_shards(open_hierarchy(refs, storage_options=storage_options, backend=backend, allow=allow))
    with SourcePool(storage_options=storage_options, backend=backend) as pool:
        sources = look_at(group.urls, pool, group.sources)
    present = dict.fromkeys([*_scanned(refs), *(url for url, source in sources.items() if source.size is not None)])
    shown = sys.stderr.isatty() if progress is None else progress
    draw = _Draw(sample, np.random.default_rng(seed))
    with (
        closing(group.to_store(storage_options=storage_options, backend=backend, on_change="ignore")) as store,
        Truths(present, storage_options, backend) as truths,
        _bar(group, draw, shown=shown) as advance,
    ):
        run = _Run(store, sources, truths, draw, advance)
        reports = tuple(run.array(path, array) for path, array in group.walk_arrays())
    return CheckReport(reports, tuple(sources.values()), group.skipped, sample)


def _scanned(refs: Openable) -> list[str]:
    """The file that a hierarchy was just scanned from; what it keeps inline does not name it."""
    is_file = isinstance(refs, str | os.PathLike) and not is_reference_set(cast("str", refs))
    return [absolute_url(cast("str", refs))] if is_file else []


@dataclass(frozen=True, slots=True)
class _Draw:
    """Which chunks of an array are checked."""

    sample: int | None
    random: np.random.Generator

    def count(self, array: VirtualArray) -> int:
        size = array.manifest.size
        return size if self.sample is None else min(self.sample, size)

    def boxes(self, array: VirtualArray) -> list[Box]:
        """The chunks to check, in C order: one box of all, or a box for each."""
        grid_shape, count = array.manifest.grid_shape, self.count(array)
        if count == array.manifest.size:
            return [Box((0,) * len(grid_shape), grid_shape)] if count else []
        positions = np.sort(self.random.choice(array.manifest.size, count, replace=False))
        return [Box.of(index_of(int(position), grid_shape)) for position in positions]


@dataclass(frozen=True, slots=True)
class _Run:
    """What the checks of all arrays share."""

    store: VirtualStore
    sources: Mapping[str, SourceReport]
    truths: Truths
    draw: _Draw
    advance: Callable[[int], None]

    def array(self, path: str, array: VirtualArray) -> ArrayReport:
        found = self.truths.find(path, array)
        broken = broken_chunks(array.manifest.loaded(), self.sources)
        one = ArrayCheck(path, array, self._reader(path, array), found, broken, self.advance)
        return one.run(self.draw.boxes(array))

    def _reader(self, path: str, array: VirtualArray) -> Callable[[Region], NDArray[Any]]:
        """Reads regions with zarr, which has to be asked for what it cannot open, too."""
        try:
            opened = zarr.open_array(self.store, path=path, mode="r", zarr_format=3)
        except DECODING_ERRORS as error:
            return _refusing(error)
        return lambda region: np.asarray(opened[region]).astype(array.dtype, copy=False)


def _refusing(error: Exception) -> Callable[[Region], NDArray[Any]]:
    def read(_: Region) -> NDArray[Any]:
        raise DecodeError(f"zarr cannot open the array: {error}") from error

    return read


@contextmanager
def _bar(group: VirtualGroup, draw: _Draw, *, shown: bool) -> Generator[Callable[[int], None]]:
    """Draw a bar on the standard error stream, which moves with every call."""
    if not shown:
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415  only needed on a terminal
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("checking", total=sum(draw.count(array) for _, array in group.walk_arrays()))
        yield lambda count: progress.advance(task, count)
