"""Extensible arrays: the index of datasets that can grow without limit along one axis.

The first entries lie in the index block; it points to data blocks of entries, and to secondary blocks, which point to
further data blocks, each pair of secondary blocks to twice as many and twice as large ones. Data blocks that are too
large consist of pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from scanners.hdf5.index.entries import NumberedEntries, entry_table
from scanners.hdf5.index.request import IndexRequest


def header_table(offset_size: int, length_size: int) -> np.dtype[Any]:
    """VII.D "The Extensible Array Index": header."""
    length = uint(length_size)
    return np.dtype([
        ("signature", "S4"), ("version", "u1"), ("client", "u1"), ("entry_size", "u1"), ("max_entries_bits", "u1"),
        ("index_block_entries", "u1"), ("data_block_min_entries", "u1"), ("secondary_block_min_pointers", "u1"),
        ("page_bits", "u1"), ("secondary_blocks", length), ("secondary_block_size", length), ("data_blocks", length),
        ("data_block_size", length), ("max_index_set", length), ("entries", length),
        ("index_block", uint(offset_size)), ("checksum", "<u4"),
    ])  # fmt: skip


def block_table(offset_size: int, position_width: int | None = None) -> np.dtype[Any]:
    """VII.D, index, data and secondary blocks: what they begin with. All but the first then say what comes before."""
    fields: list[Any] = [("signature", "S4"), ("version", "u1"), ("client", "u1"), ("header", uint(offset_size))]
    if position_width is not None:
        fields.append(("position", uint(position_width)))
    return np.dtype(fields)


@dataclass(frozen=True, slots=True)
class _Tier:
    """What one secondary block stands for; the first tiers have none and are pointed to by the index block.

    Parameters
    ----------
    first : int
        Entries before it, those of the index block not counted.
    blocks : int
        Data blocks.
    entries : int
        Entries of each.
    blocks_before : int
        Data blocks of the tiers before.
    """

    first: int
    blocks: int
    entries: int
    blocks_before: int


@dataclass(frozen=True, slots=True)
class _Shape:
    """The parameters of an array, all from its header, and what follows from them."""

    max_bits: int
    index_entries: int
    min_entries: int
    min_pointers: int
    page_entries: int

    @classmethod
    def of(cls, header: Any) -> _Shape:  # noqa: ANN401  one structured record
        names = ("max_entries_bits", "index_block_entries", "data_block_min_entries", "secondary_block_min_pointers")
        bits, index_entries, min_entries, min_pointers = (int(header[name][0]) for name in names)
        page_bits = int(header["page_bits"][0])
        powers = all(n > 0 and n & (n - 1) == 0 for n in (min_entries, min_pointers))
        require(powers and min_pointers > 1, "numbers of entries and pointers are no powers of two")
        require(min_entries.bit_length() <= bits <= 64 and page_bits < 64, "its limits are impossible")
        return cls(bits, index_entries, min_entries, min_pointers, 1 << page_bits)

    @property
    def position_width(self) -> int:
        """Bytes of the number of entries before a block."""
        return (self.max_bits + 7) // 8

    @property
    def tiers(self) -> list[_Tier]:
        """Tier n has 2^(n/2) data blocks of 2^((n+1)/2) times the smallest number of entries, both rounded down."""
        tiers: list[_Tier] = []
        first = before = 0
        for n in range(2 + self.max_bits - self.min_entries.bit_length()):
            tier = _Tier(first, 1 << n // 2, (1 << (n + 1) // 2) * self.min_entries, before)
            tiers.append(tier)
            first += tier.blocks * tier.entries
            before += tier.blocks
        return tiers

    @property
    def direct_tiers(self) -> int:
        """Tiers whose data blocks the index block points to."""
        return 2 * (self.min_pointers.bit_length() - 1)

    def pages(self, tier: _Tier) -> int:
        """Pages of a data block; 0 where it holds its entries itself."""
        return tier.entries // self.page_entries if tier.entries > self.page_entries else 0


def read_extensible_array(request: IndexRequest) -> ChunkTable:
    """Read the extensible array that the layout message points to.

    Raises
    ------
    FormatError
        If it is damaged.
    """
    file = request.file
    table = header_table(file.offset_size, file.length_size)
    rows = file.rows(request.root, table.itemsize)
    header = unpack(rows, table)[:, 0]
    client, entry_size = int(request.is_filtered), entry_table(request).itemsize
    check_kind(header, {"signature": b"EAHD", "version": 0, "client": client, "entry_size": entry_size})
    check_sums(rows)
    address = widen(header["index_block"], file.offset_size)
    found = NumberedEntries(request)
    if int(address[0]) != file.undefined:
        _ExtensibleArray(request, _Shape.of(header), entry_table(request), found).read(address)
    return found.table()


@dataclass(frozen=True, slots=True)
class _DataBlocks:
    """Data blocks of one tier that are there.

    Parameters
    ----------
    tier : _Tier
        Which one.
    address : ndarray of uint64
        Where they lie.
    number : ndarray of int64
        Which of the tier's data blocks they are.
    written : ndarray of bool, shape (blocks, pages)
        Which of their pages were written.
    """

    tier: _Tier
    address: Addresses
    number: NDArray[np.int64]
    written: NDArray[np.bool_]

    @property
    def first(self) -> NDArray[np.int64]:
        """Entries before each, those of the index block not counted."""
        return self.tier.first + self.number * self.tier.entries

    @property
    def first_as_written(self) -> NDArray[np.int64]:
        """What libhdf5 writes instead where the index block points to them: it also counts blocks of other tiers."""
        return self.first + self.tier.blocks_before * self.tier.entries


@dataclass(frozen=True, slots=True)
class _ExtensibleArray:
    request: IndexRequest
    shape: _Shape
    entry: np.dtype[Any]
    found: NumberedEntries

    def read(self, index_block: Addresses) -> None:
        """Gather all entries, in at most four reads."""
        shape, offset_size = self.shape, self.request.file.offset_size
        tiers, direct = shape.tiers, min(shape.direct_tiers, len(shape.tiers))
        head = block_table(offset_size).itemsize
        pointers = sum(tier.blocks for tier in tiers[:direct]) + len(tiers) - direct
        entries_end = head + shape.index_entries * self.entry.itemsize
        rows = self.request.file.rows(index_block, entries_end + pointers * offset_size + CHECKSUM)
        self._check(rows, b"EAIB")
        self.found.add(np.zeros(1, np.int64), unpack(rows, self.entry, head, shape.index_entries))
        address = widen(unpack(rows, uint(offset_size), entries_end, pointers)[0], offset_size)
        blocks = self._direct_blocks(tiers[:direct], address)
        blocks += self._secondary_blocks(tiers[direct:], address[pointers - (len(tiers) - direct) :])
        self._data_blocks(blocks)

    def _direct_blocks(self, tiers: list[_Tier], address: Addresses) -> list[_DataBlocks]:
        found: list[_DataBlocks] = []
        for tier in tiers:
            # libhdf5 has no bitmap for these, so none of them may be paged.
            require(not self.shape.pages(tier), "a data block of the index block has pages")
            found.append(self._present(tier, address[: tier.blocks], np.empty((tier.blocks, 0), np.bool_)))
            address = address[tier.blocks :]
        return found

    def _present(self, tier: _Tier, address: Addresses, written: NDArray[np.bool_]) -> _DataBlocks:
        number = np.flatnonzero(address != np.uint64(self.request.file.undefined))
        return _DataBlocks(tier, address[number], number, written[number])

    def _secondary_blocks(self, tiers: list[_Tier], address: Addresses) -> list[_DataBlocks]:
        """A secondary block holds a bit for each page of its data blocks, then their addresses."""
        there = np.flatnonzero(address != np.uint64(self.request.file.undefined)).tolist()
        present = [tiers[i] for i in there]
        lengths = [self._secondary_length(tier) for tier in present]
        groups = [(address[i : i + 1], length) for i, length in zip(there, lengths, strict=True)]
        rows = self.request.file.read(groups)
        return [self._secondary_block(tier, row) for tier, row in zip(present, rows, strict=True)]

    def _secondary_length(self, tier: _Tier) -> int:
        head = block_table(self.request.file.offset_size, self.shape.position_width).itemsize
        bitmap = tier.blocks * -(-self.shape.pages(tier) // 8)
        return head + bitmap + tier.blocks * self.request.file.offset_size + CHECKSUM

    def _secondary_block(self, tier: _Tier, rows: Bytes) -> _DataBlocks:
        self._check(rows, b"EASB", [np.array([tier.first], np.int64)])
        offset_size, pages = self.request.file.offset_size, self.shape.pages(tier)
        head = block_table(offset_size, self.shape.position_width).itemsize
        end = rows.shape[1] - CHECKSUM - tier.blocks * offset_size
        bits = np.unpackbits(rows[0, head:end], count=tier.blocks * pages)
        written = bits.reshape(tier.blocks, pages).astype(np.bool_)
        address = widen(unpack(rows, uint(offset_size), end, tier.blocks)[0], offset_size)
        return self._present(tier, address, written)

    def _data_blocks(self, blocks: list[_DataBlocks]) -> None:
        """Read all data blocks, and those of their pages that were written."""
        heads = self.request.file.read([(some.address, self._data_block_length(some.tier)) for some in blocks])
        pages = self.request.file.read([self._pages(some) for some in blocks])
        for some, rows, page_rows in zip(blocks, heads, pages, strict=True):
            self._check(rows, b"EADB", [some.first, some.first_as_written])
            if self.shape.pages(some.tier):
                check_sums(page_rows)
                block, page = np.nonzero(some.written)
                first = some.first[block] + page * self.shape.page_entries
                self._add(first, page_rows, 0, self.shape.page_entries)
            else:
                self._add(some.first, rows, self._head_size, some.tier.entries)

    @property
    def _head_size(self) -> int:
        return block_table(self.request.file.offset_size, self.shape.position_width).itemsize

    def _data_block_length(self, tier: _Tier) -> int:
        entries = 0 if self.shape.pages(tier) else tier.entries
        return self._head_size + entries * self.entry.itemsize + CHECKSUM

    def _pages(self, some: _DataBlocks) -> tuple[Addresses, int]:
        """Addresses of the pages that were written, and bytes of each."""
        length = self.shape.page_entries * self.entry.itemsize + CHECKSUM
        block, page = np.nonzero(some.written)
        start = some.address[block] + np.uint64(self._head_size + CHECKSUM)
        return start + page.astype(np.uint64) * np.uint64(length), length

    def _add(self, first: NDArray[np.int64], rows: Bytes, at: int, count: int) -> None:
        self.found.add(self.shape.index_entries + first, unpack(rows, self.entry, at, count))

    def _check(self, rows: Bytes, signature: bytes, positions: Sequence[NDArray[np.int64]] = ()) -> None:
        """Make sure that blocks are what they should be, belong to this array, and to one of these places in it."""
        offset_size, width = self.request.file.offset_size, self.shape.position_width
        table = block_table(offset_size, width if positions else None)
        heads = unpack(rows, table)[:, 0]
        check_kind(heads, {"signature": signature, "version": 0, "client": int(self.request.is_filtered)})
        owner = widen(heads["header"], offset_size)
        require((owner == np.uint64(self.request.layout.address)).all(), "a block belongs to another index")
        if positions:
            position = widen(heads["position"], width)
            right = [position == expected.astype(np.uint64) for expected in positions]
            require(np.logical_or.reduce(right).all(), "a block belongs to another place")
        check_sums(rows)
