"""Where the chunks of one array lie."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import ChunkIndex, Shape
from virtualzarr_refs.inner_chunks import InnerChunks

MISSING = np.uint32(0xFFFFFFFF)
"""The url id of a chunk that lies in no source; it is inline, or else missing."""


@dataclass(frozen=True, slots=True)
class VirtualChunk:
    """Bytes of a source.

    Parameters
    ----------
    url : str
        The source.
    byte_range : ByteRange
        Where in it.
    """

    url: str
    byte_range: ByteRange


@dataclass(frozen=True, slots=True)
class InlineChunk:
    """Bytes kept in the manifest itself."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ShardChunk:
    """Chunks of one source that make up a shard, together with an index that is made up.

    Parameters
    ----------
    url : str
        The source.
    inner_chunks : InnerChunks
        Where in it.
    """

    url: str
    inner_chunks: InnerChunks


type Chunk = VirtualChunk | InlineChunk | ShardChunk | None


@dataclass(frozen=True, slots=True, eq=False)
class Manifest:
    """A mapping from chunk index to chunk, kept as columns over the grid in C order.

    Parameters
    ----------
    urls : tuple of str
        The sources.
    url_id : ndarray of uint32
        Which of them each chunk lies in, or `MISSING`. Its shape is the grid's.
    offset, length : ndarray of uint64
        Where in the source, in bytes. Lengths may be uint32, which makes a large manifest a third smaller.
    variant : ndarray of uint16, optional
        Which variant of the ``virtualzarr_refs.mixed`` codec each chunk uses.
    inline : mapping of int to bytes
        Chunks kept here, by position in C order.
    inner_chunks : mapping of int to InnerChunks
        For chunks that are shards made up of byte ranges, by position in C order; `offset` and `length` then say what
        stretch of the source these ranges lie in.

    Raises
    ------
    ValueError
        If the columns differ in shape, or name a url or position that is not there.
    """

    urls: tuple[str, ...]
    url_id: NDArray[np.uint32]
    offset: NDArray[np.uint64]
    length: NDArray[np.uint32 | np.uint64]
    variant: NDArray[np.uint16] | None = None
    inline: Mapping[int, bytes] = field(default_factory=dict[int, bytes])
    inner_chunks: Mapping[int, InnerChunks] = field(default_factory=dict[int, InnerChunks])

    def __post_init__(self) -> None:
        variant = self.url_id if self.variant is None else self.variant
        shapes = [self.url_id.shape, self.offset.shape, self.length.shape, variant.shape]
        if shapes.count(shapes[0]) < len(shapes):
            raise ValueError(f"the columns differ in shape: {shapes}")
        if self.inline and any(not 0 <= position < self.size for position in self.inline):
            raise ValueError("an inline chunk lies outside the grid")
        if any(not 0 <= p < self.size or self.url_id.flat[p] == MISSING for p in self.inner_chunks):
            raise ValueError("a shard lies outside the grid, or in no source")
        if _is_constant(self.url_id):
            is_known = (number := self._constant_url()) == MISSING or number < len(self.urls)
        else:
            is_known = not np.any((self.url_id != MISSING) & (self.url_id >= len(self.urls)))
        if not is_known:
            raise ValueError("a chunk names a url that is not in the table")

    @classmethod
    def missing(cls, grid_shape: Shape) -> Self:
        """A manifest in which every chunk is missing; takes no memory, however large the grid."""
        nothing = np.broadcast_to(np.uint64(0), grid_shape)
        return cls((), np.broadcast_to(MISSING, grid_shape), nothing, nothing)

    @classmethod
    def from_inline(cls, grid_shape: Shape, chunks: Mapping[int, bytes]) -> Self:
        """A manifest whose only chunks are inline, given by position in C order."""
        return replace(cls.missing(grid_shape), inline=dict(chunks))

    @classmethod
    def from_chunks(cls, grid_shape: Shape, chunks: Mapping[ChunkIndex, VirtualChunk | InlineChunk | None]) -> Self:
        """A manifest of chunk objects, none of them a shard; for small grids and tests."""
        urls = sorted({chunk.url for chunk in chunks.values() if isinstance(chunk, VirtualChunk)})
        ids = {url: np.uint32(i) for i, url in enumerate(urls)}
        url_id = np.full(grid_shape, MISSING, np.uint32)
        offset, length = np.zeros(grid_shape, np.uint64), np.zeros(grid_shape, np.uint64)
        inline: dict[int, bytes] = {}
        for index, chunk in chunks.items():
            if isinstance(chunk, VirtualChunk):
                url_id[index] = ids[chunk.url]
                offset[index], length[index] = chunk.byte_range.offset, chunk.byte_range.length
            elif isinstance(chunk, InlineChunk):
                inline[_position(index, grid_shape)] = chunk.data
        return cls(tuple(urls), url_id, offset, length, inline=inline)

    @property
    def grid_shape(self) -> Shape:
        """Number of chunks along each axis."""
        return self.url_id.shape

    @property
    def size(self) -> int:
        """Number of chunks of the grid, missing ones included."""
        return math.prod(self.grid_shape)

    @property
    def has_variants(self) -> bool:
        """Whether chunks are encoded in different ways."""
        return self.variant is not None

    @property
    def has_inline(self) -> bool:
        """Whether there are inline chunks."""
        return bool(self.inline)

    @property
    def has_shards(self) -> bool:
        """Whether there are shards made up of byte ranges."""
        return bool(self.inner_chunks)

    @property
    def is_missing(self) -> bool:
        """Whether no chunk is there at all."""
        return not self.inline and not self._has_virtual

    @property
    def is_full(self) -> bool:
        """Whether no chunk is missing."""
        if not self.inline:
            ids = np.asarray(self._constant_url()) if _is_constant(self.url_id) else self.url_id
            return not self.size or bool(ids.max() != MISSING)
        return self.count == self.size

    def chunk(self, index: ChunkIndex) -> Chunk:
        """The chunk at `index`.

        Raises
        ------
        IndexError
            If the index lies outside the grid.
        """
        if len(index) != len(self.grid_shape) or any(i < 0 for i in index):
            raise IndexError(f"{index} is no chunk index of a grid of {self.grid_shape}")
        url_id = self.url_id[index]
        if url_id != MISSING:
            if self.inner_chunks and (inner := self.inner_chunks.get(_position(index, self.grid_shape))):
                return ShardChunk(self.urls[url_id], inner)
            byte_range = ByteRange(int(self.offset[index]), int(self.length[index]))
            return VirtualChunk(self.urls[url_id], byte_range)
        if self.inline:
            data = self.inline.get(_position(index, self.grid_shape))
            return None if data is None else InlineChunk(data)
        return None

    def variant_of(self, index: ChunkIndex) -> int | None:
        """The variant that the chunk at `index` uses, or None where the array has only one."""
        return None if self.variant is None else int(self.variant[index])

    def virtual_positions(self) -> NDArray[np.intp]:
        """Positions, in C order, of the chunks that lie in a source."""
        if not self._has_virtual:
            return np.empty(0, np.intp)
        return np.flatnonzero(self.url_id.reshape(-1) != MISSING)

    def positions(self, prefix: ChunkIndex = ()) -> NDArray[np.intp]:
        """Positions, in C order, of the chunks that are there and whose index starts with `prefix`.

        Raises
        ------
        IndexError
            If no index in the grid starts with `prefix`.
        """
        first, size = self._block(prefix)
        inline = self._inline_positions(first, size)
        if not self._has_virtual:
            return inline
        virtual = first + np.flatnonzero(np.reshape(self.url_id[prefix], -1) != MISSING)
        return np.union1d(virtual, inline) if inline.size else virtual

    def indexes(self, prefix: ChunkIndex = ()) -> Iterator[ChunkIndex]:
        """The indexes of the chunks that are there and start with `prefix`, in C order; see `positions`."""
        positions = self.positions(prefix)
        if not self.grid_shape:
            yield from (() for _ in positions)
            return
        for start in range(0, positions.size, _BLOCK):
            columns = np.unravel_index(positions[start : start + _BLOCK], self.grid_shape)
            yield from zip(*(column.tolist() for column in columns), strict=True)

    def next_numbers(self, prefix: ChunkIndex = ()) -> NDArray[np.intp]:
        """What follows `prefix` in the indexes of the chunks that are there: each number once, ascending.

        Raises
        ------
        IndexError
            If no index in the grid starts with `prefix`, or nothing can follow it.
        """
        first, size = self._block(prefix)
        count = self.grid_shape[len(prefix)]
        if size == 0:
            return np.empty(0, np.intp)
        inline = np.unique((self._inline_positions(first, size) - first) // (size // count))
        if not self._has_virtual:
            return inline
        below = self.url_id[prefix]
        # MISSING is the largest number there is, and a minimum needs no array of its own as a comparison does.
        virtual = np.flatnonzero(below.min(axis=tuple(range(1, below.ndim))) != MISSING)
        return np.union1d(virtual, inline)

    @property
    def count(self) -> int:
        """Number of chunks that are there."""
        return int(self.virtual_positions().size) + len(self.inline)

    @property
    def nbytes(self) -> int:
        """Stored bytes of all chunks."""
        positions = self.virtual_positions()
        virtual = int(_take(self.length, positions).sum())
        gaps = sum(inner.span.length - inner.nbytes for inner in self.inner_chunks.values())
        return virtual - gaps + sum(map(len, self.inline.values()))

    def rename_urls(self, rename: Callable[[str], str]) -> Self:
        """The same manifest with every url put through `rename`."""
        return replace(self, urls=tuple(map(rename, self.urls)))

    def loaded(self) -> Self:
        """The manifest itself; see `ChunkManifest.loaded`."""
        return self

    def take(self, positions: NDArray[np.intp]) -> Manifest:
        """The chunks at some positions; see `ChunkManifest.take`."""
        variant = None if self.variant is None else _take(self.variant, positions)
        url_id, offset, length = (_take(column, positions) for column in (self.url_id, self.offset, self.length))
        return Manifest(self.urls, url_id, cast("NDArray[np.uint64]", offset), length, variant)

    def blocks(self, size: int) -> Iterator[tuple[int, Manifest]]:
        """The grid in blocks; see `ChunkManifest.blocks`."""
        inline = self._inline_positions(0, self.size)
        occupied = np.union1d(self._virtual_blocks(size), inline // size)
        url_id, offset, length = self.url_id.reshape(-1), self.offset.reshape(-1), self.length.reshape(-1)
        variant = None if self.variant is None else self.variant.reshape(-1)
        for start in (occupied * size).tolist():
            block = slice(start, start + size)
            here = inline[slice(*np.searchsorted(inline, (block.start, block.stop)))].tolist()
            data = {position - start: self.inline[position] for position in here}
            variants = None if variant is None else variant[block]
            inner = {p - start: chunks for p, chunks in self.inner_chunks.items() if start <= p < block.stop}
            yield start, Manifest(self.urls, url_id[block], offset[block], length[block], variants, data, inner)

    def _virtual_blocks(self, size: int) -> NDArray[np.intp]:
        """Numbers of the blocks of `size` positions with chunks that lie in a source."""
        if not self._has_virtual:
            return np.empty(0, np.intp)
        if _is_constant(self.url_id):
            return np.arange(-(-self.size // size))
        return np.flatnonzero(np.minimum.reduceat(self.url_id.reshape(-1), range(0, self.size, size)) != MISSING)

    def equals(self, other: Manifest) -> bool:
        """Whether both hold the same chunks, whatever the order of their url tables."""
        if self.grid_shape != other.grid_shape or dict(self.inline) != dict(other.inline):
            return False
        mine, theirs = self.virtual_positions(), other.virtual_positions()
        if not np.array_equal(mine, theirs) or self.inner_chunks.keys() != other.inner_chunks.keys():
            return False
        if not all(inner.equals(other.inner_chunks[position]) for position, inner in self.inner_chunks.items()):
            return False
        return all(np.array_equal(a, b) for a, b in zip(self._used(mine), other._used(mine), strict=True))

    def _used(self, positions: NDArray[np.intp]) -> Sequence[NDArray[Any]]:
        names = np.array((*self.urls, ""), dtype=object)
        variant = np.broadcast_to(np.uint16(0), self.grid_shape) if self.variant is None else self.variant
        columns = (self.offset, self.length, variant)
        return [names[_take(self.url_id, positions)], *(_take(column, positions) for column in columns)]

    @property
    def _has_virtual(self) -> bool:
        if _is_constant(self.url_id):
            return bool(self._constant_url() != MISSING)
        return self.size > 0 and bool(self.url_id.min() != MISSING)

    def _constant_url(self) -> np.uint32:
        return self.url_id[(0,) * self.url_id.ndim] if self.size else MISSING

    def _block(self, prefix: ChunkIndex) -> tuple[int, int]:
        """Position of the first index that starts with `prefix`, and number of indexes that do."""
        outer, inner = self.grid_shape[: len(prefix)], self.grid_shape[len(prefix) :]
        if len(prefix) > len(outer) or not all(0 <= i < n for i, n in zip(prefix, outer, strict=True)):
            raise IndexError(f"no chunk index of a grid of {self.grid_shape} starts with {prefix}")
        size = math.prod(inner)
        return _position(prefix, outer) * size, size

    def _inline_positions(self, first: int, size: int) -> NDArray[np.intp]:
        positions = np.sort(np.fromiter(self.inline, np.intp, len(self.inline)))
        return positions[(positions >= first) & (positions < first + size)]

    def __reduce__(self) -> tuple[object, ...]:
        columns = (self.url_id, self.offset, self.length, self.variant)
        return _restore, (type(self), self.urls, tuple(map(_pack, columns)), self.inline, self.inner_chunks)

    def __repr__(self) -> str:
        return f"Manifest(grid_shape={self.grid_shape}, {len(self.urls)} urls, {len(self.inline)} inline chunks)"


_BLOCK = 1 << 16
"""Chunks whose indexes are worked out at once."""


def index_of(position: int, grid_shape: Shape) -> ChunkIndex:
    """The chunk index at a position in C order."""
    return tuple(int(i) for i in np.unravel_index(position, grid_shape)) if grid_shape else ()


def _position(index: ChunkIndex, grid_shape: Shape) -> int:
    return int(np.ravel_multi_index(index, grid_shape)) if grid_shape else 0


def _is_constant(column: NDArray[Any]) -> bool:
    """Whether a column is one value broadcast over its grid, which must not be spread out in memory."""
    return not any(column.strides) and column.ndim > 0


def _take(column: NDArray[Any], positions: NDArray[np.intp]) -> NDArray[Any]:
    """The values of a column at positions in C order."""
    if _is_constant(column):
        return np.full(positions.size, column[(0,) * column.ndim] if column.size else 0, column.dtype)
    return column.reshape(-1)[positions]


def _pack(column: NDArray[Any] | None) -> NDArray[Any] | tuple[np.generic, Shape] | None:
    """What of a column goes into a pickle, which would spread out a constant."""
    if column is None or not _is_constant(column) or not column.size:
        return column
    return column[(0,) * column.ndim], column.shape


def _unpack(column: NDArray[Any] | tuple[np.generic, Shape] | None) -> NDArray[Any] | None:
    return np.broadcast_to(*column) if isinstance(column, tuple) else column


def _restore(
    kind: type[Manifest],
    urls: tuple[str, ...],
    columns: Sequence[NDArray[Any] | tuple[np.generic, Shape] | None],
    inline: Mapping[int, bytes],
    inner_chunks: Mapping[int, InnerChunks],
) -> Manifest:
    url_id, offset, length, variant = map(_unpack, columns)
    return kind(urls, cast("Any", url_id), cast("Any", offset), cast("Any", length), variant, inline, inner_chunks)
