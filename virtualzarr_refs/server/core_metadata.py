"""Arrays as they are shown to readers that know nothing but the core of Zarr v3: regular grids, ``bytes``, ``zstd``."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np

from virtualzarr_refs.chunk_grid import JSON, ChunkGrid, ChunkKeyEncoding, RegularGrid, Shape
from virtualzarr_refs.metadata import ArrayMetadata

LEVEL = 1
"""Of zstd: fast, since chunks are encoded while somebody waits."""

MAX_CHUNK = 32 * 1024 * 1024
"""Bytes of a chunk, decoded, above which it is cut into smaller ones."""


def core_metadata(metadata: ArrayMetadata) -> ArrayMetadata:
    """The same array with codecs and a grid that every reader has; its data type stays."""
    chunk_shape = _bounded(regular_chunk_shape(metadata.chunk_grid), metadata.dtype.itemsize)
    return replace(
        metadata,
        chunk_grid=RegularGrid(metadata.shape, chunk_shape),
        chunk_key_encoding=ChunkKeyEncoding(),
        codecs=(_array_to_bytes(metadata), {"name": "zstd", "configuration": {"level": LEVEL, "checksum": False}}),
    )


def regular_chunk_shape(grid: ChunkGrid) -> Shape:
    """Along each axis the length of the chunks that hold most of it."""
    if isinstance(grid, RegularGrid):
        return grid.chunk_shape
    return tuple(edge if isinstance(edge, int) else _prevalent(edge) for edge in grid.edges)


def _prevalent(lengths: tuple[int, ...]) -> int:
    counts = Counter(lengths)
    return max(counts, key=lambda length: (counts[length] * length, length), default=1)


def _bounded(chunk_shape: Shape, itemsize: int) -> Shape:
    """A chunk shape of at most `MAX_CHUNK` bytes: the longest axes are halved until it is."""
    lengths = [*chunk_shape]
    while math.prod(lengths) * itemsize > MAX_CHUNK and max(lengths) > 1:
        longest = lengths.index(max(lengths))
        lengths[longest] = -(-lengths[longest] // 2)
    return tuple(lengths)


def _array_to_bytes(metadata: ArrayMetadata) -> dict[str, JSON]:
    if metadata.dtype == np.dtype(object):
        return {"name": "vlen-utf8"}
    if metadata.dtype.itemsize == 1:
        return {"name": "bytes"}
    return {"name": "bytes", "configuration": {"endian": "little"}}
