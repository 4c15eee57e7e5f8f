"""Blocks of a chunk index: found by address, checked, and unpacked many at once.

HDF5 File Format Specification 3.0, III "Disk Format: Level 1 - File Infrastructure" and VII "Appendix: Dataset Chunk
Indexing". Tables of the layouts are NumPy types, made for the widths of addresses and lengths in the superblock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numcodecs.checksum32 import jenkins_lookup3
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import FormatError
from virtualzarr_refs.sources import Source

CHECKSUM = 4
"""Bytes of the checksum (Jenkins' lookup3) at the end of every block but those of version 1 B-trees."""

type Bytes = NDArray[np.uint8]
type Addresses = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The file that an index lies in.

    Parameters
    ----------
    source : Source
        Its bytes.
    base : int
        Base address of the superblock, in bytes from the start of the file.
    offset_size, length_size : int
        Widths of addresses and lengths, in bytes.
    max_gap : int
        Bytes between two blocks that are read too, rather than read the blocks apart.

    Raises
    ------
    FormatError
        If addresses or lengths are wider than 8 bytes, which no file of today needs.
    """

    source: Source
    base: int
    offset_size: int
    length_size: int
    max_gap: int = 4096

    def __post_init__(self) -> None:
        require({self.offset_size, self.length_size} <= {1, 2, 4, 8}, "addresses or lengths have an odd width")

    @property
    def room(self) -> int:
        """Bytes of the file from the base address on."""
        return self.source.identity().size - self.base

    @property
    def undefined(self) -> int:
        """The address of what is not there: all its bits are set."""
        return (1 << 8 * self.offset_size) - 1

    def rows(self, addresses: Addresses, length: int) -> Bytes:
        """Read blocks of one length, all at once.

        Parameters
        ----------
        addresses : ndarray of uint64
            Where they start. No two blocks may share a byte, so these are also bounded in number.
        length : int
            Of each, in bytes.

        Returns
        -------
        ndarray of uint8, shape (blocks, length)

        Raises
        ------
        FormatError
            If one lies beyond the end of the file, or two overlap.
        """
        return self.read([(addresses, length)])[0]

    def read(self, groups: Iterable[tuple[Addresses, int]]) -> list[Bytes]:
        """Read several groups of blocks at once; see `rows`."""
        runs = [self._runs(addresses, length) for addresses, length in groups]
        buffers = iter(self.source.read([run for some in runs for run in some.ranges]))
        return [some.rows([next(buffers) for _ in some.ranges]) for some in runs]

    def _runs(self, addresses: Addresses, length: int) -> _Runs:
        """Blocks that lie near each other are read in one piece."""
        if not len(addresses):
            return _Runs([], np.empty(0, np.int64), length)
        room = self.room - length
        require(room >= 0 and int(addresses.max()) <= room, "a block lies beyond the end of the file")
        order = np.argsort(addresses)
        ordered = addresses[order].astype(np.int64)
        steps = np.diff(ordered)
        require((steps >= length).all(), "two blocks overlap")
        is_first = np.concatenate([[True], steps > length + self.max_gap])
        starts, lasts = ordered[is_first], ordered[np.concatenate([is_first[1:], [True]])]
        lengths = lasts + length - starts
        # Where each block starts once the runs have been joined.
        position = np.empty_like(ordered)
        position[order] = ordered + (np.cumsum(lengths) - lengths - starts)[np.cumsum(is_first) - 1]
        pairs = zip((starts + self.base).tolist(), lengths.tolist(), strict=True)
        return _Runs([ByteRange(*pair) for pair in pairs], position, length)


@dataclass(frozen=True, slots=True)
class _Runs:
    """Blocks of one length: the ranges that hold them, and where each starts in the bytes of those, joined."""

    ranges: list[ByteRange]
    position: NDArray[np.int64]
    length: int

    def rows(self, buffers: list[memoryview]) -> Bytes:
        """The blocks, one in each row."""
        if not buffers:
            return np.empty((0, self.length), np.uint8)
        joined = np.frombuffer(buffers[0] if len(buffers) == 1 else b"".join(buffers), np.uint8)
        if len(self.position) == 1:
            return joined[None]
        return sliding_window_view(joined, self.length)[self.position]


def require(condition: object, problem: str, *, offset: int | None = None) -> None:
    """Raise FormatError unless `condition` holds."""
    if not condition:
        raise FormatError(f"the chunk index is damaged: {problem}", offset=offset)


def uint(width: int) -> np.dtype[Any]:
    """The type of an unsigned integer of any width: NumPy's own, or its bytes; see `widen`."""
    return np.dtype(f"<u{width}") if width in (1, 2, 4, 8) else np.dtype(("u1", (width,)))


def widen(column: NDArray[Any], width: int) -> NDArray[np.uint64]:
    """A column of `uint(width)` as 64-bit integers."""
    if width in (1, 2, 4, 8):
        return np.ascontiguousarray(column, np.uint64)
    padded = np.zeros((*column.shape[:-1], 8), np.uint8)
    padded[..., :width] = column
    return padded.view("<u8")[..., 0].astype(np.uint64, copy=False)


def unpack(rows: Bytes, table: np.dtype[Any], at: int = 0, count: int = 1) -> NDArray[Any]:
    """Read `count` records of a table from each row, from byte `at` on, without a copy.

    Returns
    -------
    ndarray of shape (rows, count)
    """
    return rows[:, at : at + count * table.itemsize].view(table)


def check_kind(heads: NDArray[Any], expected: dict[str, Any]) -> None:
    """Make sure that every block has the signature, version, … that it must have."""
    for name, value in expected.items():
        require((heads[name] == value).all(), f"the {name.replace('_', ' ')} of a block is not {value!r}")


def check_sums(rows: Bytes, lengths: NDArray[np.intp] | None = None) -> None:
    """Compare the checksum at the end of each row.

    Parameters
    ----------
    rows : ndarray of uint8, shape (blocks, length)
        The blocks.
    lengths : ndarray of intp, optional
        Bytes of each that are used, checksum included; by default all.
    """
    view = memoryview(rows.reshape(-1))
    start = np.arange(len(rows)) * rows.shape[1]
    end = start + (rows.shape[1] if lengths is None else lengths) - CHECKSUM
    stored = rows.reshape(-1)[end[:, None] + np.arange(CHECKSUM)].view("<u4")[:, 0]
    pairs = zip(start.tolist(), end.tolist(), strict=True)
    sums = np.array([jenkins_lookup3(view[first:last]) for first, last in pairs], np.uint32)
    require((sums == stored).all(), "the checksum of a block does not match its bytes")
