"""A manifest that is loaded piece by piece: only the partitions that are asked for are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import ChunkIndex, Shape
from virtualzarr_refs.chunk_manifest import ChunkManifest
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.inner_chunks import InnerChunks
from virtualzarr_refs.manifest import MISSING, Chunk, Manifest
from virtualzarr_refs.manifest_joining import concatenate, select

MAX_LOADED = 1 << 31
"""Chunks of a grid that columns are made for."""

_SAME_NUMBERS = np.arange(1 << 16, dtype=np.uint16)

type Runs = tuple[tuple[int, int], ...]
"""Numbers, as ranges: the first of each, and the one after its last."""


class Partitions(Protocol):
    """Where the partitions of one array come from."""

    @property
    def urls(self) -> tuple[str, ...]:
        """The sources of all partitions."""
        ...

    @property
    def count(self) -> int | None:
        """Number of chunks that are there, if it is known without loading any partition."""
        ...

    def load(self, number: int, size: int) -> Manifest:
        """A partition as a manifest of one axis of `size` chunks."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PartitionedManifest:
    """A manifest in partitions of equally many chunks, in C order of the grid; see `ChunkManifest`.

    Parameters
    ----------
    grid_shape : tuple of int
        Number of chunks along each axis.
    partition_size : int
        Chunks of each partition but the last.
    partitions : Partitions
        Loads them.
    runs : tuple of (int, int)
        Which partitions have chunks, ascending.
    has_variants, has_inline, has_shards : bool
        Whether chunks are encoded in different ways; whether there may be inline chunks; whether there may be shards
        made up of byte ranges.
    """

    grid_shape: Shape
    partition_size: int
    partitions: Partitions
    runs: Runs
    has_variants: bool = False
    has_inline: bool = True
    has_shards: bool = False

    def __post_init__(self) -> None:
        bounds = [bound for run in self.runs for bound in run]
        last = -(-self.size // self.partition_size)
        if bounds != sorted(set(bounds)) or any(not 0 <= bound <= last for bound in bounds):
            raise ValueError("the partitions of a manifest lie outside its grid, or are out of order")

    @property
    def size(self) -> int:
        """Number of chunks of the grid, missing ones included."""
        return math.prod(self.grid_shape)

    @property
    def urls(self) -> tuple[str, ...]:
        """The sources."""
        return self.partitions.urls

    @property
    def count(self) -> int:
        """Number of chunks that are there."""
        known = self.partitions.count
        return sum(part.count for _, part in self._parts()) if known is None else known

    @property
    def is_missing(self) -> bool:
        """Whether no chunk is there at all."""
        return not self.runs or all(part.is_missing for _, part in self._parts())

    @property
    def is_full(self) -> bool:
        """Whether no chunk is missing."""
        return self.count == self.size

    @property
    def nbytes(self) -> int:
        """Stored bytes of all chunks."""
        return sum(part.nbytes for _, part in self._parts())

    def chunk(self, index: ChunkIndex) -> Chunk:
        """The chunk at `index`; raises IndexError if that lies outside the grid."""
        part, place = self._find(index)
        return part.chunk((place,))

    def variant_of(self, index: ChunkIndex) -> int | None:
        """The variant that the chunk at `index` uses, or None where the array has only one."""
        if not self.has_variants:
            return None
        part, place = self._find(index)
        return part.variant_of((place,)) or 0

    def take(self, positions: NDArray[np.intp]) -> Manifest:
        """The chunks at some positions; see `ChunkManifest.take`."""
        numbers = positions // self.partition_size
        columns = _Columns.empty((positions.size,), has_variants=self.has_variants)
        for number in np.unique(numbers).tolist():
            where = np.flatnonzero(numbers == number)
            columns.put(where, self._load(number).take(positions[where] - number * self.partition_size))
        return columns.manifest()

    def blocks(self, size: int) -> Iterator[tuple[int, Manifest]]:
        """The grid in blocks; see `ChunkManifest.blocks`."""
        for number in self._numbers_of_blocks(size):
            block = self._span(number * size, min((number + 1) * size, self.size))
            if not block.is_missing:
                yield number * size, block

    def indexes(self, prefix: ChunkIndex = ()) -> Iterator[ChunkIndex]:
        """The indexes of the chunks that are there and start with `prefix`, in C order."""
        for positions in self._positions(prefix):
            columns = np.unravel_index(positions, self.grid_shape or (1,))[: len(self.grid_shape)]
            yield from zip(*(column.tolist() for column in columns), strict=True) if columns else [()] * positions.size

    def next_numbers(self, prefix: ChunkIndex = ()) -> NDArray[np.intp]:
        """What follows `prefix` in the indexes of the chunks that are there: each number once, ascending."""
        first, size = self._block(prefix)
        step = max(size // self.grid_shape[len(prefix)], 1) if size else 1
        found = [np.unique((positions - first) // step) for positions in self._positions(prefix)]
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.intp)

    def rename_urls(self, rename: Callable[[str], str]) -> Self:
        """The same manifest with every url put through `rename`, when it is loaded."""
        return replace(self, partitions=_Renamed(self.partitions, rename))

    def equals(self, other: ChunkManifest) -> bool:
        """Whether both hold the same chunks."""
        return self.loaded().equals(other.loaded())

    def loaded(self) -> Manifest:
        """The same manifest, all of it in memory.

        Raises
        ------
        UnsupportedError
            If the grid is too large for that.
        """
        if not self.runs:
            return Manifest.missing(self.grid_shape)
        if self.size > MAX_LOADED:
            raise UnsupportedError(f"a grid of {self.grid_shape} chunks is too large for memory; take a part of it")
        columns = _Columns.empty((self.size,), has_variants=self.has_variants)
        for start, part in self._parts():
            columns.put(slice(start, start + part.size), part, start)
        return columns.manifest(self.grid_shape)

    def _find(self, index: ChunkIndex) -> tuple[Manifest, int]:
        if len(index) != len(self.grid_shape) or not all(map(_is_inside, index, self.grid_shape)):
            raise IndexError(f"{index} is no chunk index of a grid of {self.grid_shape}")
        number, place = divmod(_position(index, self.grid_shape), self.partition_size)
        return self._load(number), place

    def _load(self, number: int) -> Manifest:
        size = min(self.partition_size, self.size - number * self.partition_size)
        if not any(start <= number < stop for start, stop in self.runs):
            return Manifest.missing((size,))
        return self.partitions.load(number, size)

    def _parts(self) -> Iterator[tuple[int, Manifest]]:
        return ((n * self.partition_size, self._load(n)) for start, stop in self.runs for n in range(start, stop))

    def _numbers_of_blocks(self, size: int) -> Iterator[int]:
        """Numbers of the blocks of `size` chunks that share chunks with partitions that are there."""
        following = 0
        for start, stop in self.runs:
            first = max(start * self.partition_size // size, following)
            following = -(-min(stop * self.partition_size, self.size) // size)
            yield from range(first, following)

    def _span(self, start: int, stop: int) -> Manifest:
        """The chunks at the positions from `start` to `stop`."""
        own = self.partition_size
        parts: list[Manifest] = []
        for number in range(start // own, -(-stop // own)):
            part, first = self._load(number), number * own
            inside = slice(max(start - first, 0), min(stop - first, part.size))
            parts.append(part if inside == slice(0, part.size) else select(part, [inside]))
        if len(parts) == 1:
            return parts[0]
        return concatenate(parts, 0, [_SAME_NUMBERS] * len(parts) if self.has_variants else None)

    def _positions(self, prefix: ChunkIndex) -> Iterator[NDArray[np.intp]]:
        """Positions of the chunks that are there and whose index starts with `prefix`, a partition at a time."""
        first, size = self._block(prefix)
        own = self.partition_size
        for start, stop in self.runs:
            for number in range(max(start, first // own), min(stop, -(-(first + size) // own))):
                positions = self._load(number).positions() + number * own
                inside = positions[(positions >= first) & (positions < first + size)]
                if inside.size:
                    yield inside

    def _block(self, prefix: ChunkIndex) -> tuple[int, int]:
        """Position of the first index that starts with `prefix`, and number of indexes that do."""
        outer, inner = self.grid_shape[: len(prefix)], self.grid_shape[len(prefix) :]
        if len(prefix) > len(outer) or not all(map(_is_inside, prefix, outer)):
            raise IndexError(f"no chunk index of a grid of {self.grid_shape} starts with {prefix}")
        size = math.prod(inner)
        return _position(prefix, outer) * size, size

    def __repr__(self) -> str:
        count = sum(stop - start for start, stop in self.runs)
        return f"PartitionedManifest(grid_shape={self.grid_shape}, {count} partitions)"


@dataclass(slots=True)
class _Columns:
    """Columns that manifests are put into, each with urls of its own."""

    url_id: NDArray[np.uint32]
    offset: NDArray[np.uint64]
    length: NDArray[np.uint32 | np.uint64]
    variant: NDArray[np.uint16] | None
    urls: dict[str, int]
    inline: dict[int, bytes]
    inner_chunks: dict[int, InnerChunks]

    @classmethod
    def empty(cls, shape: Shape, *, has_variants: bool) -> Self:
        """Columns without a chunk."""
        variant = np.zeros(shape, np.uint16) if has_variants else None
        return cls(np.full(shape, MISSING), np.zeros(shape, np.uint64), np.zeros(shape, np.uint32), variant, {}, {}, {})

    def put(self, where: slice | NDArray[np.intp], part: Manifest, start: int = 0) -> None:
        """Put chunks somewhere; `start` is what their positions begin at."""
        self.url_id[where] = self._numbers(part)
        self.offset[where] = part.offset
        if part.length.dtype.itemsize > self.length.dtype.itemsize:
            self.length = self.length.astype(np.uint64)
        self.length[where] = part.length
        if self.variant is not None and part.variant is not None:
            self.variant[where] = part.variant
        self.inline.update((start + position, data) for position, data in part.inline.items())
        self.inner_chunks.update((start + position, inner) for position, inner in part.inner_chunks.items())

    def _numbers(self, part: Manifest) -> NDArray[np.uint32]:
        """The url ids of a manifest in the table of all."""
        numbers = np.array([*(self.urls.setdefault(url, len(self.urls)) for url in part.urls), MISSING], np.uint32)
        return numbers[np.minimum(part.url_id, np.uint32(len(part.urls)))]

    def manifest(self, grid_shape: Shape | None = None) -> Manifest:
        """All of it."""
        shape = self.url_id.shape if grid_shape is None else grid_shape
        variant = None if self.variant is None else self.variant.reshape(shape)
        return Manifest(
            tuple(self.urls),
            self.url_id.reshape(shape),
            self.offset.reshape(shape),
            self.length.reshape(shape),
            variant,
            self.inline,
            self.inner_chunks,
        )


@dataclass(frozen=True, slots=True)
class _Renamed:
    """Partitions whose urls are put through a function."""

    partitions: Partitions
    rename: Callable[[str], str]

    @property
    def urls(self) -> tuple[str, ...]:
        """See `Partitions.urls`."""
        return tuple(map(self.rename, self.partitions.urls))

    @property
    def count(self) -> int | None:
        """See `Partitions.count`."""
        return self.partitions.count

    def load(self, number: int, size: int) -> Manifest:
        """See `Partitions.load`."""
        return self.partitions.load(number, size).rename_urls(self.rename)


def runs_of(numbers: Iterable[int]) -> Runs:
    """Ascending numbers as ranges."""
    values = np.fromiter(numbers, np.intp)
    if not values.size:
        return ()
    is_break = np.diff(values) != 1
    starts, stops = values[np.append(True, is_break)], values[np.append(is_break, True)] + 1
    return tuple(zip(starts.tolist(), stops.tolist(), strict=True))


def _is_inside(number: int, count: int) -> bool:
    return 0 <= number < count


def _position(index: ChunkIndex, grid_shape: Shape) -> int:
    """Position in C order, of any grid, however large."""
    position = 0
    for number, count in zip(index, grid_shape, strict=True):
        position = position * count + number
    return position
