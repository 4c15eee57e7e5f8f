"""Fixed arrays: the index of datasets that cannot grow without limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scanners.hdf5.chunks import ChunkTable
from scanners.hdf5.index.blocks import CHECKSUM, Addresses, check_kind, check_sums, require, uint, unpack, widen
from scanners.hdf5.index.entries import NumberedEntries, entry_table
from scanners.hdf5.index.numbering import chunk_capacity
from scanners.hdf5.index.request import IndexRequest


def header_table(offset_size: int, length_size: int) -> np.dtype[Any]:
    """VII.C "The Fixed Array Index": header. A checksum follows, as in all blocks here."""
    return np.dtype([
        ("signature", "S4"), ("version", "u1"), ("client", "u1"), ("entry_size", "u1"), ("page_bits", "u1"),
        ("max_entries", uint(length_size)), ("data_block", uint(offset_size)), ("checksum", "<u4"),
    ])  # fmt: skip


def data_block_table(offset_size: int) -> np.dtype[Any]:
    """VII.C, data block: what it begins with. Then come the entries or, of paged ones, one bit for each page."""
    return np.dtype([("signature", "S4"), ("version", "u1"), ("client", "u1"), ("header", uint(offset_size))])


def read_fixed_array(request: IndexRequest) -> ChunkTable:
    """Read the fixed array that the layout message points to.

    Raises
    ------
    FormatError
        If it is damaged.
    """
    entry, client = entry_table(request), int(request.is_filtered)
    header = _read_header(request, entry.itemsize, client)
    address = widen(header["data_block"], request.file.offset_size)
    if int(address[0]) == request.file.undefined:
        return NumberedEntries(request).table()
    array = _FixedArray(request, entry, address, chunk_capacity(request), 1 << int(header["page_bits"][0]))
    return array.pages() if array.count > array.page_entries else array.whole()


def _read_header(request: IndexRequest, entry_size: int, client: int) -> Any:  # noqa: ANN401  one structured record
    file = request.file
    table = header_table(file.offset_size, file.length_size)
    rows = file.rows(request.root, table.itemsize)
    header = unpack(rows, table)[:, 0]
    check_kind(header, {"signature": b"FAHD", "version": 0, "client": client, "entry_size": entry_size})
    check_sums(rows)
    count = int(widen(header["max_entries"], file.length_size)[0])
    require(count == chunk_capacity(request), "it has another number of entries than the dataset has chunks")
    require(int(header["page_bits"][0]) < 64, "its pages are too large")
    return header


@dataclass(frozen=True, slots=True)
class _FixedArray:
    """A data block and how its entries are laid out."""

    request: IndexRequest
    entry: np.dtype[Any]
    address: Addresses
    count: int
    page_entries: int

    def whole(self) -> ChunkTable:
        """Read a data block that holds its entries itself."""
        head = data_block_table(self.request.file.offset_size).itemsize
        rows = self._data_block(head + self.count * self.entry.itemsize + CHECKSUM)
        found = NumberedEntries(self.request)
        found.add(np.zeros(1, np.int64), unpack(rows, self.entry, head, self.count))
        return found.table()

    def pages(self) -> ChunkTable:
        """Read a data block that is followed by pages of entries, of which a bit each says whether it was written."""
        page_count = -(-self.count // self.page_entries)
        head = data_block_table(self.request.file.offset_size).itemsize
        length = head + -(-page_count // 8) + CHECKSUM
        rows = self._data_block(length)
        written = np.unpackbits(rows[0, head : length - CHECKSUM], count=page_count).nonzero()[0]
        page_bytes = self.page_entries * self.entry.itemsize + CHECKSUM
        start = self.address + np.uint64(length) + written.astype(np.uint64) * np.uint64(page_bytes)
        is_last = written == page_count - 1  # which may be shorter
        last_entries = self.count - (page_count - 1) * self.page_entries
        last_bytes = last_entries * self.entry.itemsize + CHECKSUM
        pages = self.request.file.read([(start[~is_last], page_bytes), (start[is_last], last_bytes)])
        found = NumberedEntries(self.request)
        for page, number in zip(pages, (written[~is_last], written[is_last]), strict=True):
            check_sums(page)
            entries = unpack(page, self.entry, 0, (page.shape[1] - CHECKSUM) // self.entry.itemsize)
            found.add(number * self.page_entries, entries)
        return found.table()

    def _data_block(self, length: int) -> Any:  # noqa: ANN401  rows of bytes
        rows = self.request.file.rows(self.address, length)
        head = unpack(rows, data_block_table(self.request.file.offset_size))[:, 0]
        check_kind(head, {"signature": b"FADB", "version": 0, "client": int(self.request.is_filtered)})
        owner = widen(head["header"], self.request.file.offset_size)
        require(int(owner[0]) == self.request.layout.address, "a data block belongs to another index")
        check_sums(rows)
        return rows
