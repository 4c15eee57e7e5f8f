"""Version 1 B-trees, the only chunk index of layouts before version 4.

All nodes of a level are read and parsed at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scanners.hdf5.chunks import ChunkTable
from scanners.hdf5.index.blocks import Addresses, check_kind, require, uint, unpack, widen
from scanners.hdf5.index.order import Bounds, Indexes, empty_indexes, precedes
from scanners.hdf5.index.request import IndexRequest, chunk_table


def node_head(offset_size: int) -> np.dtype[Any]:
    """III.A.1 "Disk Format: Level 1A1 - Version 1 B-trees": what a node begins with."""
    address = uint(offset_size)
    return np.dtype([
        ("signature", "S4"), ("node_type", "u1"), ("level", "u1"), ("entries_used", "<u2"),
        ("left_sibling", address), ("right_sibling", address),
    ])  # fmt: skip


def node_entry(offset_size: int, rank: int) -> np.dtype[Any]:
    """III.A.1, "key for node type 1", and the address of the child that follows it.

    Offsets are in elements; the last one is in bytes, inside an element, and not 0 only in the last key of a node.
    """
    return np.dtype([
        ("size", "<u4"), ("mask", "<u4"), ("offsets", "<u8", (rank + 1,)), ("child", uint(offset_size)),
    ])  # fmt: skip


CHUNK_NODE = {"signature": b"TREE", "node_type": 1}


def read_btree1(request: IndexRequest) -> ChunkTable:
    """Read the tree that the layout message points to.

    Raises
    ------
    FormatError
        If it is damaged.
    """
    tree = _Tree(request)
    level = tree.root()
    while level.number > 0:
        level = tree.below(level)
    return tree.chunks(level)


@dataclass(frozen=True, slots=True)
class _Level:
    """The entries of all nodes of one level, from left to right.

    Parameters
    ----------
    number : int
        0 where the children are chunks.
    entries : ndarray of `node_entry`
        The entries in use.
    key : ndarray of uint64, shape (entries, rank + 1)
        Index of the first chunk beneath each, and 0.
    bounds : Bounds
        Of the nodes beneath each.
    """

    number: int
    entries: NDArray[Any]
    key: Indexes
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class _Tree:
    request: IndexRequest

    def root(self) -> _Level:
        addresses = np.array([self.request.layout.address], np.uint64)
        return self._level(addresses, None, Bounds.everything(self.request.rank + 1))

    def below(self, level: _Level) -> _Level:
        children = self._children(level)
        return self._level(children, level.number - 1, level.bounds)

    def chunks(self, leaves: _Level) -> ChunkTable:
        entries = leaves.entries
        return chunk_table(self.request, leaves.key[:, :-1], entries["mask"], self._children(leaves), entries["size"])

    def _children(self, level: _Level) -> Addresses:
        return widen(level.entries["child"], self.request.file.offset_size)

    def _level(self, addresses: Addresses, number: int | None, bounds: Bounds) -> _Level:
        file, capacity = self.request.file, 2 * self.request.btree1_k
        head, entry = node_head(file.offset_size), node_entry(file.offset_size, self.request.rank)
        # After the last entry comes one more key.
        rows = file.rows(addresses, head.itemsize + capacity * entry.itemsize + entry.itemsize - file.offset_size)
        heads = unpack(rows, head)[:, 0]
        number = int(heads["level"][0]) if number is None else number
        check_kind(heads, CHUNK_NODE | {"level": number})
        used = heads["entries_used"].astype(np.intp)
        require((used <= capacity).all(), "a node has more entries than it has room for")
        require((used > 0).all() or (number == 0 and len(used) == 1), "a node has no entries")
        return self._parse(rows, head.itemsize, used, number, bounds)

    def _parse(
        self, rows: NDArray[np.uint8], start: int, used: NDArray[np.intp], number: int, bounds: Bounds
    ) -> _Level:
        entry = node_entry(self.request.file.offset_size, self.request.rank)
        capacity = (rows.shape[1] - start) // entry.itemsize
        in_use = np.arange(capacity) < used[:, None]
        entries = unpack(rows, entry, start, capacity)[in_use]
        key = self._index(entries["offsets"])
        last_key = self._last_keys(rows, start, used)
        if len(key):
            last = np.cumsum(used) - 1
            ascends = precedes(key[:-1], key[1:])
            require(ascends.all() and precedes(key[last], last_key).all(), "its chunks are out of order")
            bounds.require_within(key[last - used + 1], key[last])
        return _Level(number, entries, key, self._bounds(key, last_key, used, bounds) if number else bounds)

    def _bounds(self, key: Indexes, last_key: Indexes, used: NDArray[np.intp], bounds: Bounds) -> Bounds:
        """Each child lies between two neighbouring keys, or the last two."""
        high = np.concatenate([key[1:], last_key[-1:]])
        high[np.cumsum(used) - 1] = last_key
        return bounds.narrowed(np.repeat(np.arange(len(used)), used), key, high)

    def _index(self, offsets: NDArray[np.uint64]) -> Indexes:
        index = empty_indexes(*offsets.shape)
        for axis, step in enumerate(self._steps.tolist()):
            index[:, axis] = offsets[:, axis] // np.uint64(step) if step > 1 else offsets[:, axis]
            on_grid = step == 1 or (index[:, axis] * np.uint64(step) == offsets[:, axis]).all()
            require(on_grid, "a chunk lies beside the grid")
        require(not index[:, -1].any(), "a chunk starts inside an element")
        return index

    @property
    def _steps(self) -> NDArray[np.uint64]:
        return np.array([*self.request.grid.chunk_shape, 1], np.uint64)

    def _last_keys(self, rows: NDArray[np.uint8], start: int, used: NDArray[np.intp]) -> Indexes:
        """The key after the last entry of each node; it bounds the node and names no chunk."""
        rank, stride = self.request.rank, node_entry(self.request.file.offset_size, self.request.rank).itemsize
        at = start + used * stride + 8
        columns = at[:, None] + np.arange(8 * (rank + 1))
        return np.take_along_axis(rows, columns, axis=1).view("<u8") // self._steps
