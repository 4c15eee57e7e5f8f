"""From shards that are made up of byte ranges back to chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from virtualzarr_refs.chunk_grid import ChunkGrid, RegularGrid, Shape
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.inner_chunks import ABSENT
from virtualzarr_refs.manifest import MISSING, Manifest, index_of
from virtualzarr_refs.sharding import ShardCodec


def without_shards(group: VirtualGroup) -> VirtualGroup:
    """The group with chunks of their own instead of shards, where shards are made up of byte ranges."""
    if not any(array.manifest.has_shards for _, array in group.walk_arrays()):
        return group
    return group.map_arrays(lambda _, array: plain_array(array) or array)


def plain_array(array: VirtualArray) -> VirtualArray | None:
    """An array with the inner chunks of its shards as chunks; None if it has no shards, or others.

    Parameters
    ----------
    array : VirtualArray
        Any.
    """
    if not array.manifest.has_shards:
        return None
    manifest = array.manifest.loaded()
    if len(manifest.inner_chunks) < manifest.count:
        return None
    codec = ShardCodec.of(array.metadata)
    grid = RegularGrid(array.shape, codec.chunk_shape)
    metadata = replace(array.metadata, chunk_grid=grid, codecs=codec.codecs)
    return VirtualArray(metadata, _spread(manifest, array.metadata.chunk_grid, codec, grid.grid_shape))


def _spread(manifest: Manifest, shards: ChunkGrid, codec: ShardCodec, shape: Shape) -> Manifest:
    url_id = np.full(shape, MISSING, np.uint32)
    offset, length = np.zeros(shape, np.uint64), np.zeros(shape, np.uint64)
    starts = [_starts(shards, axis, codec.chunk_shape[axis]) for axis in range(len(shape))]
    for position, inner in manifest.inner_chunks.items():
        index = index_of(position, manifest.grid_shape)
        inner_grid = codec.inner_grid(shards.encoded_shape(index))
        box = tuple(slice(s[i], s[i] + n) for s, i, n in zip(starts, index, inner_grid, strict=True))
        inside = tuple(slice(n) for n in url_id[box].shape)  # what lies beyond the array is no chunk
        own_offset = inner.offset.reshape(inner_grid)[inside]
        is_there = own_offset != ABSENT
        url_id[box] = np.where(is_there, manifest.url_id[index], MISSING)
        offset[box] = np.where(is_there, own_offset, 0)
        length[box] = np.where(is_there, inner.length.reshape(inner_grid)[inside], 0)
    return Manifest(manifest.urls, url_id, offset, length)


def _starts(grid: ChunkGrid, axis: int, length: int) -> Sequence[int]:
    """Where each shard begins along an axis, in inner chunks."""
    edge = grid.chunk_shape[axis] if isinstance(grid, RegularGrid) else grid.edges[axis]
    if isinstance(edge, int):
        return range(0, grid.grid_shape[axis] * (edge // length), edge // length)
    return list(accumulate((size // length for size in edge[:-1]), initial=0))
