"""From a reference for each chunk to one for each file."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from virtualzarr_refs.chunk_grid import ChunkGrid, ChunkIndex, RectilinearGrid, RegularGrid, Shape
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.inner_chunks import ABSENT, InnerChunks
from virtualzarr_refs.manifest import MISSING, Manifest
from virtualzarr_refs.metadata import ArrayMetadata, Skipped
from virtualzarr_refs.sharding import IndexLocation, ShardCodec, is_sharded
from virtualzarr_refs.shards.cells import Cells


def to_shards(group: VirtualGroup, *, index_location: IndexLocation = "end", strict: bool = False) -> VirtualGroup:
    """Use files as shards: one reference for each array and file, instead of one for each chunk.

    An array whose files form a grid becomes one with the codec ``sharding_indexed``, which every reader of Zarr v3
    knows: its chunks are the files, its inner chunks are what were its chunks, in the same pipeline. The value of a
    shard is the byte ranges of its inner chunks and an index that is made up; bytes of a file that the array does not
    hold are never part of it.

    Parameters
    ----------
    group : VirtualGroup
        Any. To put files together, do it first: the shards of files of different length form a rectilinear grid.
    index_location : {"end", "start"}
        Where indexes stand.
    strict : bool
        Raise for an array that cannot be turned into shards. By default it stays as it is, and `VirtualGroup.skipped`
        says why; arrays with no more than one chunk in each file stay as they are in any case.

    Returns
    -------
    VirtualGroup
        The same values.

    Raises
    ------
    UnsupportedError
        If `strict`, and an array cannot be turned into shards.
    ValueError
        If `index_location` is neither "end" nor "start".
    """
    if index_location not in ("end", "start"):
        raise ValueError(f'an index stands at the "end" or at the "start", not {index_location!r}')
    kept: list[Skipped] = []

    def change(path: str, array: VirtualArray) -> VirtualArray:
        try:
            plan = plan_shards(array)
        except UnsupportedError as error:
            if strict:
                raise error.at(node=path) from None
            kept.append(Skipped(path, f"its chunks are no shards: {error.message}", loses_data=False))
            return array
        return array if plan is None else plan.array(index_location)

    changed = group.map_arrays(change)
    return replace(changed, metadata=replace(changed.metadata, skipped=(*changed.metadata.skipped, *kept)))


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """An array that can be turned into shards.

    Parameters
    ----------
    metadata : ArrayMetadata
        As they are.
    chunks : Manifest
        As they are.
    cells : Cells
        Of its chunks.
    chunk_shape : tuple of int
        That all of its chunks decode to, in elements.
    """

    metadata: ArrayMetadata
    chunks: Manifest
    cells: Cells
    chunk_shape: Shape

    def array(self, index_location: IndexLocation = "end", *, spare: Shape | None = None) -> VirtualArray:
        """The array, turned into shards.

        Parameters
        ----------
        index_location : {"end", "start"}
            Where indexes stand.
        spare : tuple of int, optional
            Along each axis, how many inner chunks more than there are the only shard has; they lie beyond the array.
        """
        grid = self._grid(spare or (0,) * len(self.chunk_shape))
        codec = ShardCodec(self.chunk_shape, self.metadata.codecs, index_location)
        metadata = replace(self.metadata, chunk_grid=grid, codecs=(codec.to_json(),))
        return VirtualArray(metadata, self._manifest(grid, codec))

    def _grid(self, spare: Shape) -> ChunkGrid:
        """Regular if all cells but the last have one length along each axis; that one then lacks inner chunks."""
        edges: list[int | tuple[int, ...]] = []
        for axis, length in enumerate(self.chunk_shape):
            first, *others = self.cells.lengths(axis)
            is_regular = all(other == first for other in others[:-1]) and (not others or others[-1] <= first)
            counts = [first + spare[axis], *others]
            edges.append(counts[0] * length if is_regular else tuple(count * length for count in counts))
        shape = self.metadata.shape
        regular = tuple(edge for edge in edges if isinstance(edge, int))
        return RegularGrid(shape, regular) if len(regular) == len(edges) else RectilinearGrid(shape, tuple(edges))

    def _manifest(self, grid: ChunkGrid, codec: ShardCodec) -> Manifest:
        url_id = self.cells.url_id
        offset, length = np.zeros(url_id.shape, np.uint64), np.zeros(url_id.shape, np.uint64)
        inner_chunks: dict[int, InnerChunks] = {}
        for position, index in self._present():
            inner = self._inner_chunks(index, codec.inner_grid(grid.encoded_shape(index)))
            offset[index], length[index] = inner.span.offset, inner.span.length
            inner_chunks[position] = inner
        return Manifest(self.chunks.urls, url_id, offset, length, inner_chunks=inner_chunks)

    def _present(self) -> Iterator[tuple[int, ChunkIndex]]:
        url_id = self.cells.url_id
        indexes = itertools.product(*map(range, url_id.shape))
        return ((i, index) for i, index in enumerate(indexes) if url_id[index] != MISSING)

    def _inner_chunks(self, index: ChunkIndex, inner_grid: Shape) -> InnerChunks:
        manifest, box = self.chunks, self.cells.box(index)
        is_missing = manifest.url_id[box] == MISSING
        place = tuple(slice(count) for count in is_missing.shape)
        offset, length = np.full(inner_grid, ABSENT), np.full(inner_grid, ABSENT)
        offset[place] = np.where(is_missing, ABSENT, manifest.offset[box])
        length[place] = np.where(is_missing, ABSENT, manifest.length[box])
        return InnerChunks(offset.reshape(-1), length.reshape(-1))


def plan_shards(array: VirtualArray, *, least: int = 2) -> ShardPlan | None:
    """How an array can be turned into shards; None if there is nothing to gain.

    Parameters
    ----------
    array : VirtualArray
        Any.
    least : int
        Chunks in one file from which on it is worth it.

    Raises
    ------
    UnsupportedError
        If it cannot be; the message says why.
    """
    if array.manifest.size < least or not array.shape or is_sharded(array.metadata):
        return None
    manifest = array.manifest.loaded()
    if not manifest.virtual_positions().size:
        return None
    if manifest.inline:
        raise UnsupportedError("some of its chunks lie in no file")
    if manifest.variant is not None:
        raise UnsupportedError("its chunks are encoded in different ways")
    cells = Cells.of(manifest)
    if math.prod(cells.largest) < least:
        return None
    return ShardPlan(array.metadata, manifest, cells, _chunk_shape(array.metadata.chunk_grid))


def _chunk_shape(grid: ChunkGrid) -> Shape:
    if isinstance(grid, RegularGrid):
        return grid.chunk_shape
    return tuple(_only_length(axis, edge) for axis, edge in enumerate(grid.edges))


def _only_length(axis: int, edge: int | tuple[int, ...]) -> int:
    if isinstance(edge, int):
        return edge
    lengths = sorted(set(edge))
    if len(lengths) > 1:
        raise UnsupportedError(
            f"its chunks have lengths of {lengths[0]} to {lengths[-1]} elements along axis {axis}, and the inner "
            "chunks of shards are all alike"
        )
    return lengths[0]
