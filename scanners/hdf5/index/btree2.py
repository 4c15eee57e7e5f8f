"""Version 2 B-trees: the index of datasets that can grow along several axes.

All nodes of a level are read and parsed at once. Internal nodes hold chunks too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scanners.hdf5.chunks import ChunkTable
from scanners.hdf5.index.blocks import (
    CHECKSUM,
    Addresses,
    Bytes,
    check_kind,
    check_sums,
    require,
    uint,
    unpack,
    widen,
)
from scanners.hdf5.index.entries import entries_table, entry_table
from scanners.hdf5.index.order import Bounds, Indexes, columns, empty_indexes, positions_within, precedes
from scanners.hdf5.index.request import IndexRequest

MAX_DEPTH = 40
"""Levels of nodes. As nodes have at least two children, no tree that fits into a file is deeper."""


def header_table(offset_size: int, length_size: int) -> np.dtype[Any]:
    """III.A.2 "Disk Format: Level 1A2 - Version 2 B-trees": header."""
    return np.dtype([
        ("signature", "S4"), ("version", "u1"), ("record_type", "u1"), ("node_size", "<u4"), ("record_size", "<u2"),
        ("depth", "<u2"), ("split_percent", "u1"), ("merge_percent", "u1"), ("root", uint(offset_size)),
        ("root_records", "<u2"), ("records", uint(length_size)), ("checksum", "<u4"),
    ])  # fmt: skip


NODE_HEAD = np.dtype([("signature", "S4"), ("version", "u1"), ("record_type", "u1")])
"""III.A.2, internal and leaf nodes: what they begin with. Then come records, pointers to children, a checksum."""


def record_table(request: IndexRequest) -> np.dtype[Any]:
    """III.A.2, record types 10 (chunks without filters) and 11 (with): indexes count chunks, not elements."""
    entry = entry_table(request)
    fields: list[Any] = [(name, entry[name]) for name in entry.names or ()]
    return np.dtype([*fields, ("index", "<u8", (request.rank,))])


def read_btree2(request: IndexRequest) -> ChunkTable:
    """Read the tree that the layout message points to.

    Raises
    ------
    FormatError
        If it is damaged.
    """
    file = request.file
    table = header_table(file.offset_size, file.length_size)
    rows = file.rows(request.root, table.itemsize)
    header = unpack(rows, table)[:, 0]
    record = record_table(request)
    expected = {"signature": b"BTHD", "version": 0, "record_type": 10 + request.is_filtered}
    check_kind(header, expected | {"record_size": record.itemsize})
    check_sums(rows)
    index, found = _Tree(request, record, header).records()
    require(len(found) == widen(header["records"], file.length_size)[0], "records are missing or too many")
    return entries_table(request, index, found)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """How nodes at one height above the leaves are laid out.

    Parameters
    ----------
    max_records : int
        Records that a node can hold.
    max_beneath : int
        Records that a node and all those beneath it can hold.
    pointer : numpy.dtype, optional
        Table of a pointer to a child; None in leaves.
    """

    max_records: int
    max_beneath: int
    pointer: np.dtype[Any] | None = None

    def above(self, node_size: int, record_size: int, address: np.dtype[Any], count: np.dtype[Any]) -> _Sizes:
        """The layout one level higher: the counts in pointers are as wide as the largest that may occur."""
        fields: list[Any] = [("address", address), ("records", count)]
        if self.pointer is not None:
            fields.append(("records_beneath", uint(_width(self.max_beneath))))
        pointer = np.dtype(fields)
        room = node_size - NODE_HEAD.itemsize - CHECKSUM
        most = (room - pointer.itemsize) // (record_size + pointer.itemsize)
        require(most > 0, "its nodes are too small")
        beneath = (most + 1) * self.max_beneath + most
        require(beneath < 1 << 64, "it is too deep")
        return _Sizes(most, beneath, pointer)


def _width(limit: int) -> int:
    """Bytes that numbers up to a limit take."""
    return (limit.bit_length() + 7) // 8


@dataclass(frozen=True, slots=True)
class _Nodes:
    """The nodes of one level: where they lie, how many records they have, and which may lie beneath them."""

    address: Addresses
    count: NDArray[np.intp]
    bounds: Bounds


@dataclass(frozen=True)
class _Tree:
    request: IndexRequest
    record: np.dtype[Any]
    header: Any
    indexes: list[Indexes] = field(default_factory=list[Indexes])
    parts: list[NDArray[Any]] = field(default_factory=list[NDArray[Any]])

    @cached_property
    def node_size(self) -> int:
        return int(self.header["node_size"][0])

    def records(self) -> tuple[Indexes, NDArray[Any]]:
        """Every chunk's index and record, level by level."""
        root, offset_size = widen(self.header["root"], self.request.file.offset_size), self.request.file.offset_size
        if int(root[0]) == (1 << 8 * offset_size) - 1:
            return empty_indexes(0, self.request.rank), np.empty(0, self.record)
        count = self.header["root_records"].astype(np.intp)
        nodes = _Nodes(root, count, Bounds.everything(self.request.rank))
        for sizes in reversed(self._sizes()):
            nodes = self._level(nodes, sizes)
        return np.concatenate(self.indexes), np.concatenate(self.parts)

    def _sizes(self) -> list[_Sizes]:
        """The layout of nodes, leaves first."""
        depth, size = int(self.header["depth"][0]), self.record.itemsize
        require(depth <= MAX_DEPTH, "it is too deep")
        most = (self.node_size - NODE_HEAD.itemsize - CHECKSUM) // size
        require(most > 0, "its nodes are too small")
        sizes = [_Sizes(most, most)]
        address, count = uint(self.request.file.offset_size), uint(_width(most))
        for _ in range(depth):
            sizes.append(sizes[-1].above(self.node_size, size, address, count))
        return sizes

    def _level(self, nodes: _Nodes, sizes: _Sizes) -> _Nodes:
        """Keep the records of a level and find the nodes below."""
        require((nodes.count <= sizes.max_records).all(), "a node has more records than it has room for")
        rows = self.request.file.rows(nodes.address, self.node_size)
        signature = b"BTLF" if sizes.pointer is None else b"BTIN"
        expected = {"signature": signature, "version": 0, "record_type": 10 + self.request.is_filtered}
        check_kind(unpack(rows, NODE_HEAD)[:, 0], expected)
        pointers = (nodes.count + 1) * (0 if sizes.pointer is None else sizes.pointer.itemsize)
        ends = NODE_HEAD.itemsize + nodes.count * self.record.itemsize
        check_sums(rows, ends + pointers + CHECKSUM)
        in_use = np.arange(sizes.max_records) < nodes.count[:, None]
        records = unpack(rows, self.record, NODE_HEAD.itemsize, sizes.max_records)[in_use]
        index = columns(records["index"])
        self.indexes.append(index)
        self.parts.append(records)
        self._check_order(index, nodes)
        return nodes if sizes.pointer is None else self._children(rows, ends, sizes.pointer, index, nodes)

    def _check_order(self, index: Indexes, nodes: _Nodes) -> None:
        is_root = len(nodes.count) == 1
        require(is_root or (nodes.count > 0).all(), "a node has no records")
        if not len(index):
            return
        last = np.cumsum(nodes.count) - 1
        ascends = precedes(index[:-1], index[1:])
        ascends[last[:-1]] = True  # between nodes lies a record of the level above
        require(ascends.all(), "its chunks are out of order")
        nodes.bounds.require_within(index[last - nodes.count + 1], index[last])

    def _children(
        self, rows: Bytes, ends: NDArray[np.intp], pointer: np.dtype[Any], index: Indexes, nodes: _Nodes
    ) -> _Nodes:
        """The children of internal nodes, of which each has one more than records."""
        count = nodes.count + 1
        parent = np.repeat(np.arange(len(count)), count)
        start = ends[parent] + positions_within(count) * pointer.itemsize
        columns = start[:, None] + np.arange(pointer.itemsize)
        found = rows[parent[:, None], columns].view(pointer)[:, 0]
        address = widen(found["address"], self.request.file.offset_size)
        number = widen(found["records"], _width_of(pointer["records"])).astype(np.intp)
        return _Nodes(address, number, self._bounds(index, nodes, parent))

    def _bounds(self, index: Indexes, nodes: _Nodes, parent: NDArray[np.intp]) -> Bounds:
        """Each child lies between two neighbouring records of its parent, or a record and the parent's own bound."""
        low, high = nodes.bounds.low[parent], nodes.bounds.high[parent]
        is_first, is_last = np.ones(len(parent), np.bool_), np.ones(len(parent), np.bool_)
        is_first[1:] = parent[1:] != parent[:-1]
        is_last[:-1] = is_first[1:]
        low[~is_first] = index
        high[~is_last] = index
        return Bounds(low, high)


def _width_of(table: np.dtype[Any]) -> int:
    return table.itemsize
