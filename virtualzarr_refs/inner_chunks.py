"""Where the chunks inside one shard lie, in the file that is used as the shard."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.byte_range import ByteRange

type Column = NDArray[np.uint64]

ABSENT = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
"""Offset and length of a chunk that is not there (Zarr v3 codec ``sharding_indexed``, "Empty chunks")."""

_INDEX = np.dtype([("offset", "<u8"), ("length", "<u8")])


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """How inner chunks lie in the value of their shard: in order of their places in the source, without gaps.

    Parameters
    ----------
    offset : ndarray of uint64
        Where each run of neighbours begins in the source, in bytes.
    ends : ndarray of uint64
        Where each run ends in the value.
    places : ndarray of uint64
        Where each chunk begins in the value, in C order; `ABSENT` for one that is not there.
    """

    offset: Column
    ends: Column
    places: Column

    @property
    def length(self) -> int:
        """Bytes of all chunks."""
        return int(self.ends[-1]) if self.ends.size else 0


@dataclass(frozen=True, eq=False)
class InnerChunks:
    """Byte ranges in one source, one for each inner chunk of a shard in C order.

    Parameters
    ----------
    offset, length : ndarray of uint64
        In bytes of the source; both `ABSENT` for a chunk that is not there.

    Raises
    ------
    ValueError
        If the columns do not fit together, or a range ends beyond 2^63 bytes.
    """

    offset: Column
    length: Column
    _indexes: dict[tuple[bool, bool], bytes] = field(
        default_factory=dict[tuple[bool, bool], bytes], init=False, repr=False
    )

    def __post_init__(self) -> None:
        if self.offset.ndim != 1 or self.offset.shape != self.length.shape:
            raise ValueError(f"the columns differ in shape: {self.offset.shape}, {self.length.shape}")
        limit = np.uint64(1 << 62)
        beyond = (self.offset >= limit) | (self.length >= limit)
        if np.any(beyond & ((self.offset != ABSENT) | (self.length != ABSENT))):
            raise ValueError("an inner chunk lies beyond the end of any file")
        if self.length[self._present].sum(dtype=np.float64) >= limit:
            raise ValueError("the inner chunks of a shard have more bytes than any file")

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read pairs of little-endian numbers, as an index of the codec ``sharding_indexed`` without checksum has them.

        Raises
        ------
        ValueError
            If the bytes are no such pairs.
        """
        pairs = np.frombuffer(data, _INDEX)
        return cls(pairs["offset"].astype(np.uint64), pairs["length"].astype(np.uint64))

    def to_bytes(self) -> bytes:
        """What `from_bytes` reads; offsets count from the start of the source."""
        return _pairs(self.offset, self.length)

    @property
    def size(self) -> int:
        """Number of chunks, those that are not there included."""
        return self.offset.size

    @property
    def nbytes(self) -> int:
        """Stored bytes of all chunks."""
        return int(self.length[self._present].sum())

    @property
    def span(self) -> ByteRange:
        """The shortest range of the source that has all chunks."""
        present = self._present
        if not present.any():
            return ByteRange(0, 0)
        start = int(self.offset[present].min())
        return ByteRange(start, int((self.offset[present] + self.length[present]).max()) - start)

    @cached_property
    def layout(self) -> Layout:
        """How the chunks lie in the value of the shard."""
        present = np.flatnonzero(self._present)
        order = present[np.argsort(self.offset[present], kind="stable")]
        offset, length = self.offset[order], self.length[order]
        ends = np.cumsum(length, dtype=np.uint64)
        places = np.full(self.size, ABSENT)
        places[order] = ends - length
        is_last = np.ones(order.size, np.bool_)
        is_last[:-1] = offset[1:] != offset[:-1] + length[:-1]
        is_first = np.roll(is_last, 1)
        return Layout(offset[is_first], ends[is_last], places)

    def index(self, *, is_first: bool, has_checksum: bool) -> bytes:
        """The index of the shard's value: places in the value, not in the source.

        Parameters
        ----------
        is_first : bool
            Whether it stands before the chunks.
        has_checksum : bool
            Whether a CRC-32C follows it.
        """
        key = (is_first, has_checksum)
        if key not in self._indexes:
            shift = self.size * _INDEX.itemsize + 4 * has_checksum if is_first else 0
            places = self.layout.places
            moved = np.where(places == ABSENT, ABSENT, places + np.uint64(shift)) if shift else places
            encoded = _pairs(moved, self.length)
            self._indexes[key] = encoded + checksum(encoded) if has_checksum else encoded
        return self._indexes[key]

    def moved(self, by: int) -> InnerChunks:
        """The same chunks so many bytes further on in another source."""
        offset = np.where(self._present, self.offset + np.int64(by).astype(np.uint64), ABSENT)
        return InnerChunks(offset, self.length)

    def equals(self, other: InnerChunks) -> bool:
        """Whether both hold the same ranges."""
        return np.array_equal(self.offset, other.offset) and np.array_equal(self.length, other.length)

    @property
    def _present(self) -> NDArray[np.bool_]:
        return self.offset != ABSENT

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.offset, self.length)


def checksum(data: bytes) -> bytes:
    """The CRC-32C of bytes, little-endian, as the codec ``crc32c`` puts it behind them."""
    import google_crc32c  # noqa: PLC0415  only needed for shards

    return cast("Any", google_crc32c).value(data).to_bytes(4, "little")


def _pairs(offset: Column, length: Column) -> bytes:
    pairs = np.empty(offset.size, _INDEX)
    pairs["offset"], pairs["length"] = offset, length
    return pairs.tobytes()
