"""Streams of integers as Open-Meteo packs them: blocks of up to 128 values of a common bit width, with exceptions.

The headers of all blocks are walked first, one after another. The walk must consume exactly the bytes that there are,
which is also what makes damaged input safe: whatever is read afterwards is known to lie inside. The values of all
blocks of one bit width are then unpacked together.

A header is one byte: a kind, two bits, and a bit width.

====  ========  ==================================================================================================
kind            what follows
====  ========  ==================================================================================================
0     plain     the values
1     listed    a count of exceptions, the values, the exceptions, the index of each
2     bitmap    bit width of exceptions, a bit for each value that tells whether it is one, exceptions, the values
3     constant  one value, in whole bytes
====  ========  ==================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.errors import DecodeError

type Unsigned = NDArray[np.unsignedinteger[Any]]
type Places = NDArray[np.intp]

BLOCK = 128
"""Values of every block but the last of a stream."""

LANES = {8: 1, 16: 8, 32: 4, 64: 1}
"""For bits of a word: words that take turns in a full block; a short block always has one lane."""

_PADDING = 8 * (BLOCK + 2)
"""Zero bytes behind the data: more than the longest block has, so that words are read without looking where it ends."""

VBYTE_SHORT = 177
"""Numbers below are one byte in a list of exceptions."""

TRUNCATED = "a chunk's bytes end before its values do; the file is damaged"
INVALID = "a chunk's bytes are no stream of packed integers; the file is damaged"


class Walk:
    """Reads numbers and block headers in the order in which they lie.

    Parameters
    ----------
    data : bytes
        What they lie in.
    word : int
        Bits of the integers: 8, 16, 32 or 64.
    lead : int
        Bytes that stand before every header.
    """

    __slots__ = ("data", "heads", "lead", "listed", "position", "stops", "word")

    def __init__(self, data: bytes, word: int, lead: int = 0) -> None:
        self.data = data
        self.word = word
        self.lead = lead
        self.position = 0
        self.heads: list[int] = []
        self.stops: list[int] = []
        self.listed: list[tuple[int, int, int, int]] = []

    def _byte(self) -> int:
        """The next byte; IndexError if there is none."""
        self.position += 1
        return self.data[self.position - 1]

    def _number(self, size: int) -> int:
        """An integer of `size` bytes, the lowest first."""
        self.position += size
        return int.from_bytes(self.data[self.position - size : self.position], "little")

    def first(self) -> int:
        """The first value of a stream.

        Raises
        ------
        DecodeError
            If it lies behind the end of the data.
        """
        try:
            return self._varint()
        except IndexError:
            raise DecodeError(TRUNCATED) from None

    def _varint(self) -> int:
        """A number whose leading bits say how long it is."""
        first = self._byte()
        if self.word == 8 or first < 0x80:
            return first
        if first < 0xC0:
            return (first & 0x3F) << 8 | self._byte()
        if first < 0xE0:
            return (first & 0x1F) << 16 | self._number(2)
        if first < 0xF0:
            return (first & 0x0F) << 24 | self._big(3)
        return self._long_varint(first) & ((1 << self.word) - 1)

    def blocks(self, count: int, size: int) -> None:
        """Find where `count` blocks of `size` values begin.

        Raises
        ------
        DecodeError
            If a header cannot be, or lies behind the end of the data.
        """
        data, heads, position, lead = self.data, self.heads, self.position, self.lead
        steps = _steps(self.word, size)
        try:
            for _ in range(count):
                position += lead
                heads.append(position)
                step = steps[data[position]]
                position = position + step if step > 0 else self._exceptional(position, step, size)
        except IndexError:
            raise DecodeError(TRUNCATED) from None
        self.position = position

    def finish(self) -> None:
        """Make sure that this is where the data ends.

        Raises
        ------
        DecodeError
            If there are more or fewer bytes.
        """
        if self.position != len(self.data):
            raise DecodeError(TRUNCATED if self.position > len(self.data) else INVALID)

    def _big(self, size: int) -> int:
        self.position += size
        return int.from_bytes(self.data[self.position - size : self.position], "big")

    def _long_varint(self, first: int) -> int:
        if first < 0xF8 or self.word < 64:
            return (first & 7) << 32 | self._number(4)
        if first < 0xFC:
            return ((first & 3) << 8 | self._byte()) << 32 | self._number(4)
        if first < 0xFE:
            return ((first & 1) << 16 | self._number(2)) << 32 | self._number(4)
        return self._big(7) if first == 0xFE else self._number(8)

    def _exceptional(self, position: int, step: int, size: int) -> int:
        """Where a block ends in which the step to the next one is not known from its header."""
        data = self.data
        if step < 0:
            count = data[position + 1]
            first = position - step
            numbers = data[first : first + count]
            if numbers.isascii() or max(numbers) < VBYTE_SHORT:  # below 128 is what most are, and is found faster
                return first + 2 * count  # their values are read together later
            return self._listed(first, count, size, data[position] & 63)
        kind, width = divmod(data[position], 64)
        if kind != 2:
            raise DecodeError(INVALID)
        return self._bitmap(position + 1, size, width)

    def _bitmap(self, position: int, size: int, width: int) -> int:
        exception_width = self.data[position]
        start = position + 1 + (size + 7 >> 3)
        bitmap = int.from_bytes(self.data[position + 1 : start], "little")
        if bitmap >> size or width + exception_width > self.word:
            raise DecodeError(INVALID)
        return start + (bitmap.bit_count() * exception_width + 7 >> 3) + (size * width + 7 >> 3)

    def _listed(self, position: int, count: int, size: int, width: int) -> int:
        self.position = position
        values = self._exceptions(count)
        indexes = self.data[self.position : self.position + count]
        if len(indexes) < count:
            raise DecodeError(TRUNCATED)
        if max(indexes) >= size:
            raise DecodeError(INVALID)
        block = len(self.heads) - 1
        self.listed += [(block, index, value, width) for index, value in zip(indexes, values, strict=True)]
        return self.position + count

    def _exceptions(self, count: int) -> list[int]:
        if count and self.data[self.position] == 255:
            self.position += 1
            return [self._number(self.word >> 3) for _ in range(count)]
        return [self._exception() for _ in range(count)]

    def _exception(self) -> int:
        first = self._byte()
        if first < VBYTE_SHORT:
            return first
        if first < 241:
            return ((first - 177) << 8) + self._byte() + 177
        if first < 249:
            return self._number(2) + ((first - 241) << 16) + 16561
        if first == 255:
            raise DecodeError(INVALID)
        return self._number(first - 246)


@cache
def _steps(word: int, size: int) -> tuple[int, ...]:
    """For each header, the bytes up to the next one; less than 1 where more than the header has to be looked at.

    Of a list of exceptions, the bytes up to it, negative.
    """

    def step(head: int) -> int:
        kind, width = divmod(head, 64)
        width = 64 if kind % 3 == 0 and width == 63 and word == 64 else width
        if kind == 2 or width > word:
            return 0
        values = size * width + 7 >> 3
        return (1 + values, -2 - values, 0, 1 + (width + 7 >> 3))[kind]

    return tuple(map(step, range(256)))


def unpack(walk: Walk, count: int) -> Unsigned:
    """The values of all blocks of a walk, of which only the last has fewer than 128.

    Parameters
    ----------
    walk : Walk
        Finished.
    count : int
        Number of values.
    """
    full, rest = divmod(count, BLOCK)
    blocks = _Blocks.of(walk)
    values = np.empty((full + bool(rest), BLOCK), blocks.dtype)
    blocks.unpack(values[:full], 0, LANES[walk.word])
    if rest:
        blocks.unpack(values[full:, :rest], full, 1)
    blocks.put_long(values)
    return values.reshape(-1)[:count]


def unpack_short(walk: Walk, size: int) -> Unsigned:
    """The values of blocks that all have the same `size`, below 128; one row a block."""
    blocks = _Blocks.of(walk)
    values = np.empty((len(walk.heads), size), blocks.dtype)
    blocks.unpack(values, 0, 1)
    blocks.put_long(values)
    return values


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Blocks that were walked; positions are in bytes."""

    word: int
    raw: NDArray[np.uint8]
    heads: Places
    stops: Places
    listed: list[tuple[int, int, int, int]]

    @classmethod
    def of(cls, walk: Walk) -> _Blocks:
        raw = np.frombuffer(walk.data + bytes(_PADDING), np.uint8)
        heads = np.array(walk.heads, np.intp)
        stops = np.array(walk.stops, np.intp) if walk.stops else np.append(heads[1:] - walk.lead, walk.position)
        return cls(walk.word, raw, heads, stops, walk.listed)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"u{self.word // 8}")

    def unpack(self, out: Unsigned, first: int, lanes: int) -> None:
        """Fill one row of `out` from each block from the `first` on, without what was read in the walk."""
        count, size = out.shape
        heads, stops = self.heads[first : first + count], self.stops[first : first + count]
        kinds, widths = np.divmod(self.raw[heads], np.uint8(64))
        if self.word == 64:
            widths[(widths == 63) & (kinds % 3 == 0)] = 64
        lengths = size * widths.astype(np.intp) + 7 >> 3
        listed, bitmaps, constants = (np.flatnonzero(kinds == kind) for kind in (1, 2, 3))
        starts = heads + 1
        starts[listed] += 1
        starts[bitmaps] = stops[bitmaps] - lengths[bitmaps]
        self._put_values(out, starts, np.where(kinds == 3, 0, widths), lanes)
        if constants.size:
            out[constants] = self._narrow(starts[constants], np.zeros_like(constants), widths[constants])[:, None]
        if bitmaps.size:
            self._put_bitmaps(out, bitmaps, heads[bitmaps] + 1, widths[bitmaps])
        if listed.size:
            behind = starts[listed] + lengths[listed]
            counts = self.raw[heads[listed] + 1].astype(np.intp)
            counts[stops[listed] - behind != 2 * counts] = 0  # these have longer ones, which the walk has read
            self._put_short(out, listed, behind, counts, widths[listed])

    def _put_values(self, out: Unsigned, starts: Places, widths: NDArray[np.uint8], lanes: int) -> None:
        for width in np.flatnonzero(np.bincount(widths)).tolist():
            rows = np.flatnonzero(widths == width)
            out[rows] = self._of_width(width, starts[rows], out.shape[1], lanes) if width else 0

    def _of_width(self, width: int, starts: Places, size: int, lanes: int) -> Unsigned:
        """The values of blocks of one bit width: value ``i`` lies in row ``i // lanes`` of lane ``i % lanes``."""
        item = self.word // 8
        rows = -(-size // lanes)
        words = -(-rows * width // self.word) + 1
        length = words * lanes * item
        blocks = np.ndarray((self.raw.size - length,), f"V{length}", self.raw, strides=(1,))[starts]
        packed = blocks.view(f"<u{item}").reshape(-1, words, lanes)
        places, down, up = _layout(width, rows, self.word)
        low, high = packed.take(places, axis=1), packed.take(places + 1, axis=1)
        low >>= down
        high <<= up
        low |= high
        low &= np.array((1 << width) - 1, low.dtype)
        return low.reshape(-1, rows * lanes)[:, :size]

    def _put_bitmaps(self, out: Unsigned, rows: Places, starts: Places, shifts: NDArray[np.uint8]) -> None:
        size = out.shape[1]
        span = size + 7 >> 3
        bitmaps = self.raw[starts[:, None] + np.arange(1, 1 + span)]
        bits = np.unpackbits(bitmaps, axis=1, count=size, bitorder="little").view(np.bool_)
        which, columns = np.divmod(np.flatnonzero(bits), size)
        numbers = _numbers(np.bincount(which, minlength=rows.size))
        exceptions = self._narrow((starts + 1 + span)[which], numbers, self.raw[starts][which])
        out[rows[which], columns] |= (exceptions << shifts[which]).astype(out.dtype)

    def _put_short(
        self, out: Unsigned, rows: Places, starts: Places, counts: Places, shifts: NDArray[np.uint8]
    ) -> None:
        """Put in place exceptions of one byte each."""
        which = np.repeat(np.arange(rows.size), counts)
        value_at = starts[which] + _numbers(counts)
        exceptions = self.raw[value_at].astype(np.uint64) << shifts[which]
        self._put(out, rows[which], self.raw[value_at + counts[which]], exceptions)

    def put_long(self, out: Unsigned) -> None:
        """Put in place the exceptions that were read in the walk."""
        if self.listed:
            rows, columns, values, shifts = zip(*self.listed, strict=True)
            exceptions = [value << shift for value, shift in zip(values, shifts, strict=True)]
            if max(exceptions) >> self.word:
                raise DecodeError(INVALID)
            self._put(out, np.array(rows), np.array(columns), np.array(exceptions, np.uint64))

    def _put(self, out: Unsigned, rows: Places, columns: NDArray[Any], exceptions: NDArray[np.uint64]) -> None:
        """Set the high bits of values."""
        if exceptions.size and (columns.max() >= out.shape[1] or int(exceptions.max()) >> self.word):
            raise DecodeError(INVALID)
        out[rows, columns] |= exceptions.astype(out.dtype)

    def _narrow(self, starts: Places, numbers: Places, widths: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """Of runs of values without gaps, which begin at `starts`, those of these `numbers`, as 64-bit words."""
        byte, shift = np.divmod(numbers * widths, 8)
        byte += starts
        words = np.ndarray((self.raw.size - 7,), "<u8", self.raw, strides=(1,))
        shift = shift.astype(np.uint64)
        low = words[byte] >> shift
        high = self.raw[byte + 8].astype(np.uint64) << (64 - shift)
        return (low | high) & _MASKS[widths]


def _numbers(counts: Places) -> Places:
    """0, 1, 2 and so on up to each of the counts, one after another."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


_MASKS = np.array([(1 << width) - 1 for width in range(65)], np.uint64)


@cache
def _layout(width: int, rows: int, word: int) -> tuple[Places, Unsigned, Unsigned]:
    """For each row of a block: the word that its values begin in, the bits to shift that word down and the next up."""
    place, shift = np.divmod(np.arange(rows) * width, word)
    dtype = np.dtype(f"u{word // 8}")
    # NumPy shifts by all bits of a word to zero, unlike the processor.
    return place, shift.astype(dtype)[:, None], (word - shift).astype(dtype)[:, None]
