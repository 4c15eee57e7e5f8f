"""Entries of indexes that are not B-trees of version 1: an address and, with filters, a size and a filter mask."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scanners.hdf5.chunks import ChunkTable
from scanners.hdf5.index.blocks import uint, widen
from scanners.hdf5.index.numbering import chunk_indexes
from scanners.hdf5.index.request import IndexRequest, chunk_table


def size_width(request: IndexRequest) -> int:
    """Width of the size of a filtered chunk, in bytes.

    VII.C "The Fixed Array Index" and the like: what the chunk's bytes take, and one byte more, for filters may make
    it larger. From version 5 of the layout message on it is the width of lengths.
    """
    if request.layout.version >= 5:
        return request.file.length_size
    return min(8, 1 + (max(1, request.chunk_bytes).bit_length() + 7) // 8)


def entry_table(request: IndexRequest) -> np.dtype[Any]:
    """VII.C.2, VII.D.5: an entry of a fixed or extensible array, which is also what records of B-trees begin with."""
    address = ("address", uint(request.file.offset_size))
    if not request.is_filtered:
        return np.dtype([address])
    return np.dtype([address, ("size", uint(size_width(request))), ("mask", "<u4")])


@dataclass(slots=True)
class NumberedEntries:
    """Entries of an array over the numbers of chunks, gathered block by block."""

    request: IndexRequest
    numbers: list[NDArray[np.int64]] = field(default_factory=list[NDArray[np.int64]])
    entries: list[NDArray[Any]] = field(default_factory=list[NDArray[Any]])

    def add(self, first: NDArray[np.int64], entries: NDArray[Any]) -> None:
        """Add blocks of entries.

        Parameters
        ----------
        first : ndarray of int64, shape (blocks,)
            Numbers of the chunks that their first entries stand for.
        entries : ndarray of `entry_table`, shape (blocks, entries)
            The entries.
        """
        there = widen(entries["address"], self._width) != np.uint64(self.request.file.undefined)
        numbers = first[:, None] + np.arange(entries.shape[1])
        is_full = there.all()  # then there is nothing to pick
        self.numbers.append(numbers.reshape(-1) if is_full else numbers[there])
        self.entries.append(entries.reshape(-1) if is_full else entries[there])

    @property
    def _width(self) -> int:
        return self.request.file.offset_size

    def table(self) -> ChunkTable:
        """The chunks that are there."""
        numbers = np.concatenate([np.empty(0, np.int64), *self.numbers])
        entries = np.concatenate([np.empty(0, entry_table(self.request)), *self.entries])
        index = chunk_indexes(self.request, numbers)
        return entries_table(self.request, index, entries)


def entries_table(request: IndexRequest, index: NDArray[Any], entries: NDArray[Any]) -> ChunkTable:
    """The table of chunks at these indexes."""
    address = widen(entries["address"], request.file.offset_size)
    if not request.is_filtered:
        size = np.full(len(index), request.chunk_bytes, np.uint64)
        return chunk_table(request, index, np.zeros(len(index), np.uint32), address, size)
    return chunk_table(request, index, entries["mask"], address, widen(entries["size"], size_width(request)))
