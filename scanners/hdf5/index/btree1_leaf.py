"""Version 1 B-trees of a single node, the index of most datasets: so small that NumPy's calls would cost the most."""

from __future__ import annotations

import struct
from functools import lru_cache
from itertools import pairwise

import numpy as np

from scanners.hdf5.chunks import ChunkTable
from scanners.hdf5.header import HeaderReader
from scanners.hdf5.index.blocks import require
from scanners.hdf5.index.request import IndexRequest, chunk_table
from virtualzarr_refs.chunk_grid import Shape

_WIDTHS = {2: "H", 4: "I", 8: "Q"}


def read_leaf(request: IndexRequest, headers: HeaderReader) -> ChunkTable:
    """Read the only node of a tree; see `btree1` for its layout.

    Raises
    ------
    FormatError
        If it is damaged, or not the only one.
    """
    width, rank = headers.offset_size, request.rank
    require(width in _WIDTHS and request.layout.chunk_shape == request.grid.chunk_shape, "it is of an unusual kind")
    start, entry, key = 8 + 2 * width, _entry(rank, width), _key(rank)
    address = request.layout.address
    head = headers.piece(address, start)
    require(head[:6] == b"TREE\1\0" and len(head) == start, "it is no single node")
    used = int.from_bytes(head[6:8], "little")
    require(used <= 2 * request.btree1_k, "a node has more entries than it has room for")
    node = headers.piece(address + start, used * entry.size + key.size)
    require(len(node) == used * entry.size + key.size, "a node lies beyond the end of the file")
    rows = list(entry.iter_unpack(node[: used * entry.size]))
    _check_keys([*(row[2:-1] for row in rows), key.unpack_from(node, used * entry.size)[2:]], request.grid.chunk_shape)
    columns = np.array(rows, np.uint64).reshape(used, rank + 4)
    index = columns[:, 2:-2] // np.array(request.grid.chunk_shape, np.uint64)
    return chunk_table(request, index, columns[:, 1], columns[:, -1], columns[:, 0])


def _check_keys(keys: list[tuple[int, ...]], chunk_shape: Shape) -> None:
    """Keys are offsets in elements, and one in bytes, inside an element; only the last may be between chunks."""
    steps = (*chunk_shape, 1)
    for offsets in keys[:-1]:
        beside = any(offset % step for offset, step in zip(offsets, steps, strict=True))
        require(not beside and not offsets[-1], "a chunk lies beside the grid")
    indexes = [tuple(offset // step for offset, step in zip(offsets, steps, strict=True)) for offsets in keys]
    require(all(low < high for low, high in pairwise(indexes)), "its chunks are out of order")


@lru_cache
def _entry(rank: int, width: int) -> struct.Struct:
    return struct.Struct(f"<II{rank + 1}Q{_WIDTHS[width]}")


@lru_cache
def _key(rank: int) -> struct.Struct:
    return struct.Struct(f"<II{rank + 1}Q")
