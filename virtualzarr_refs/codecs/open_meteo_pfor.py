"""Streams of integers as Open-Meteo packs them: blocks of up to 128 values of a common bit width, with exceptions.

The headers of all blocks are walked first, one after another. The walk must end exactly where the bytes do, which is
also what makes damaged input safe: whatever is read afterwards is known to lie inside, or in the zeros behind. The
values of all blocks are then unpacked together, and with them those of other streams of the same length.

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

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.errors import DecodeError

type Unsigned = NDArray[np.unsignedinteger[Any]]
type Places = NDArray[np.intp]

BLOCK = 128
"""Values of every block but the last of a stream."""

PADDING = bytes(8 * (BLOCK + 2))
"""Zeros behind the data: more than the longest block has, so that words are read without looking where it ends."""

VBYTE_SHORT = 177
"""Numbers below are one byte in a list of exceptions."""

TRUNCATED = "a chunk's bytes end before its values do; the file is damaged"
INVALID = "a chunk's bytes are no stream of packed integers; the file is damaged"


@dataclass(slots=True)
class Headers:
    """Where headers lie of blocks that have one size, in the order of the walk.

    Parameters
    ----------
    size : int
        Values of each block.
    places : list of int
        Of the headers, in bytes.
    listed : list of tuple
        Exceptions that the walk had to read: number of the block, index of the value, high bits, bit width of the
        low ones.
    read : list of int
        Numbers of the blocks whose exceptions those are.
    """

    size: int
    places: list[int] = field(default_factory=list[int])
    listed: list[tuple[int, int, int, int]] = field(default_factory=list[tuple[int, int, int, int]])
    read: list[int] = field(default_factory=list[int])


class Walk:
    """Reads numbers and block headers in the order in which they lie.

    Parameters
    ----------
    data : bytes
        What they lie in, with `PADDING` behind.
    word : int
        Bits of the integers: 8, 16, 32 or 64.
    lead : int
        Bytes that stand before every header.
    """

    __slots__ = ("data", "lead", "ones", "position", "word")

    def __init__(self, data: bytes, word: int, lead: int = 0) -> None:
        self.data = data
        self.word = word
        self.lead = lead
        self.position = 0
        self.ones = _ones_in_bitmaps(data) if len(data) > _MANY else None

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

    def blocks(self, count: int, headers: Headers) -> None:
        """Find where `count` blocks begin.

        Raises
        ------
        DecodeError
            If a header cannot be, or lies behind the end of the data.
        """
        # What is looked up once is faster.
        data, lead, position, add = self.data, self.lead, self.position + self.lead, headers.places.append
        steps, bitmap_steps = _steps(self.word, headers.size)
        bitmap_size, from_bytes = headers.size + 7 >> 3, int.from_bytes
        ones = self.ones if headers.size == BLOCK else None
        try:
            for _ in range(count):
                add(position)
                head = data[position]
                step = steps[head]
                if step > 0:
                    position += lead + step
                elif step < 0:
                    number = data[position + 1]
                    first = position - step
                    # Below 128 is what most are, and they are read together later.
                    is_short = data[first : first + number].isascii()
                    position = lead + (first + 2 * number if is_short else self._listed(first, number, headers))
                else:
                    bitmap = position + 2
                    number = ones[bitmap] if ones else from_bytes(data[bitmap : bitmap + bitmap_size]).bit_count()
                    position += lead + (number * data[position + 1] + 7 >> 3) + bitmap_steps[head]
        except (IndexError, KeyError):
            raise DecodeError(TRUNCATED if position >= len(data) else INVALID) from None
        self.position = position - lead

    def finish(self, stop: int) -> None:
        """Make sure that a stream has ended.

        Raises
        ------
        DecodeError
            If there are more or fewer bytes.
        """
        if self.position != stop:
            raise DecodeError(TRUNCATED if self.position > stop else INVALID)

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

    def _listed(self, first: int, count: int, headers: Headers) -> int:
        """Read exceptions of any length, and return where they end."""
        self.position = first
        values = self._exceptions(count)
        indexes = self.data[self.position : self.position + count]
        if len(indexes) < count:
            raise DecodeError(TRUNCATED)
        if max(indexes) >= headers.size:
            raise DecodeError(INVALID)
        block = len(headers.places) - 1
        width = self.data[headers.places[-1]] & 63
        headers.listed += [(block, index, value, width) for index, value in zip(indexes, values, strict=True)]
        headers.read.append(block)
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


_MANY = 8192
"""Bytes from which on it is faster to count the ones of all possible bitmaps at once."""


def _ones_in_bitmaps(data: bytes) -> bytes:
    """For each byte, how many bits are set in the 16 bytes from there on."""
    ones = np.bitwise_count(np.frombuffer(data, np.uint8))
    for distance in (1, 2, 4, 8):
        ones = ones[:-distance] + ones[distance:]
    return ones.tobytes()


@cache
def _steps(word: int, size: int) -> tuple[tuple[int, ...], dict[int, int]]:
    """For each header the bytes up to the next one, and those without its exceptions where it has a bitmap.

    Of a list of exceptions, the bytes up to it, negative; 0 for a bitmap, and for what is no header.
    """

    def step(head: int) -> int:
        kind, width = divmod(head, 64)
        width = 64 if kind % 3 == 0 and width == 63 and word == 64 else width
        if kind == 2 or width > word:
            return 0
        values = size * width + 7 >> 3
        return (1 + values, -2 - values, 0, 1 + (width + 7 >> 3))[kind]

    bitmaps = {128 + width: 2 + (size + 7 >> 3) + (size * width + 7 >> 3) for width in range(min(word, 63) + 1)}
    return tuple(map(step, range(256))), bitmaps


def unpack(data: bytes, word: int, headers: Headers) -> Unsigned:
    """The values of blocks, one row each.

    Parameters
    ----------
    data : bytes
        What was walked.
    word : int
        Bits of the integers.
    headers : Headers
        Of the blocks.

    Raises
    ------
    DecodeError
        If an exception cannot be.
    """
    raw, places = np.frombuffer(data, np.uint8), np.array(headers.places, np.intp)
    is_read = np.zeros(places.size, np.bool_)
    is_read[headers.read] = True
    values = _Blocks(raw, word, headers.size, places, is_read).unpack()
    if headers.listed:
        _put_listed(values, headers.listed)
    return values


def _put_listed(out: Unsigned, listed: list[tuple[int, int, int, int]]) -> None:
    """Put in place the exceptions that were read in the walk."""
    rows, columns, values, shifts = zip(*listed, strict=True)
    exceptions = [value << shift for value, shift in zip(values, shifts, strict=True)]
    if max(exceptions) >> 8 * out.itemsize:
        raise DecodeError(INVALID)
    out[np.array(rows), np.array(columns)] |= np.array(exceptions, out.dtype)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Blocks of one size that were walked; positions are in bytes."""

    raw: NDArray[np.uint8]
    word: int
    size: int
    places: Places
    is_read: NDArray[np.bool_]
    """Whether the walk has read their exceptions."""

    def unpack(self) -> Unsigned:
        kinds, widths = np.divmod(self.raw[self.places], np.uint8(64))
        if self.word == 64:
            widths[(widths == 63) & (kinds % 3 == 0)] = 64
        listed, bitmaps, constants = (np.flatnonzero(kinds == kind) for kind in (1, 2, 3))
        starts = self.places + 1
        starts[listed] += 1
        marked = self._bitmaps(starts[bitmaps])
        starts[bitmaps] = marked.stops
        values = self._values(starts, np.where(kinds == 3, 0, widths))
        if constants.size:
            values[constants] = self._numbers(8 * starts[constants], _MASKS[widths[constants]])[:, None]
        if bitmaps.size:
            self._put_bitmaps(values, bitmaps, marked, widths[bitmaps])
        short = listed[~self.is_read[listed]]
        if short.size:
            self._put_short(values, short, starts[short], widths[short])
        return values

    def _values(self, starts: Places, widths: NDArray[np.uint8]) -> Unsigned:
        """The values without exceptions."""
        if self.size == BLOCK and self.word in (16, 32):
            return self._vertical(starts, widths)
        bits = np.multiply.outer(widths, np.arange(self.size))
        bits += 8 * starts[:, None]
        values = self._numbers(bits, _MASKS[widths[:, None]])
        return values.astype(f"u{self.word // 8}", copy=False)

    def _vertical(self, starts: Places, widths: NDArray[np.uint8]) -> Unsigned:
        """The values of full blocks in lanes: 16 bytes hold a word of each lane, moved and shifted as one."""
        length = int(widths.max(initial=1)) + 1
        blocks = np.ndarray((self.raw.size - 16 * length + 1,), f"V{16 * length}", self.raw, strides=(1,))[starts]
        units = blocks.view("c16")
        layout = _layout(self.word)
        places = layout.places.take(widths, axis=0)
        places += np.arange(0, units.size, length)[:, None]
        low = units.take(places).view("<u8")
        low >>= layout.down.take(widths, axis=0)
        low &= layout.low.take(widths, axis=0)
        places += 1
        high = units.take(places).view("<u8")
        high <<= layout.up.take(widths, axis=0)
        high &= layout.high.take(widths, axis=0)
        low |= high
        return low.view(f"<u{self.word // 8}")

    def _bitmaps(self, starts: Places) -> _Bitmaps:
        span = self.size + 7 >> 3
        bits = self.raw[starts[:, None] + np.arange(1, 1 + span)]
        if self.size & 7 and (bits[:, -1] >> (self.size & 7)).any():
            raise DecodeError(INVALID)
        counts = np.bitwise_count(bits).sum(axis=1, dtype=np.intp)
        widths = self.raw[starts]
        first = starts + 1 + span
        return _Bitmaps(bits, counts, widths, first, first + (counts * widths + 7 >> 3))

    def _put_bitmaps(self, out: Unsigned, rows: Places, marked: _Bitmaps, shifts: NDArray[np.uint8]) -> None:
        if int((marked.widths.astype(np.intp) + shifts).max()) > self.word:
            raise DecodeError(INVALID)
        counts, widths = marked.counts, marked.widths.astype(np.intp)
        bits = np.arange(int(counts.sum()))
        bits *= np.repeat(widths, counts)
        bits += np.repeat(8 * marked.first - (np.cumsum(counts) - counts) * widths, counts)
        numbers = self._numbers(bits, np.repeat(_MASKS[widths], counts))
        numbers <<= np.repeat(shifts, counts)
        exceptions = np.zeros((rows.size, 8 * marked.bits.shape[1]), out.dtype)
        places = np.flatnonzero(np.unpackbits(marked.bits, bitorder="little").view(np.bool_))
        exceptions.reshape(-1)[places] = numbers  # several times as fast as an array of bool for an index
        out[rows] |= exceptions[:, : self.size]

    def _put_short(self, out: Unsigned, rows: Places, starts: Places, shifts: NDArray[np.uint8]) -> None:
        """Put in place exceptions of one byte each."""
        counts = self.raw[starts - 1].astype(np.intp)
        which = np.repeat(np.arange(rows.size), counts)
        value_at = (starts + (self.size * shifts.astype(np.intp) + 7 >> 3))[which] + _numbers(counts)
        exceptions, columns = self.raw[value_at].astype(np.uint64), self.raw[value_at + counts[which]]
        if (columns >= self.size).any() or (exceptions >> (self.word - shifts)[which]).any():
            raise DecodeError(INVALID)
        out[rows[which], columns] |= (exceptions << shifts[which]).astype(out.dtype)

    def _numbers(self, bits: Places, masks: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The numbers that begin at these bits of the data; the masks say how many bits they have."""
        words = self.raw[: self.raw.size // 8 * 8].view("<u8")
        place = bits >> 6
        shift = (bits & 63).view(np.uint64)
        numbers = words.take(place)
        numbers >>= shift
        place += 1
        high = words.take(place)
        high <<= 64 - shift  # by 64 bits, NumPy shifts to zero
        numbers |= high
        numbers &= masks
        return numbers


@dataclass(frozen=True, slots=True)
class _Bitmaps:
    """Of blocks with bitmaps: the bitmaps; count, bit width and place of exceptions; where these end."""

    bits: NDArray[np.uint8]
    counts: Places
    widths: NDArray[np.uint8]
    first: Places
    stops: Places


def _numbers(counts: Places) -> Places:
    """0, 1, 2 and so on up to each of the counts, one after another."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


_MASKS = np.array([(1 << width) - 1 for width in range(65)], np.uint64)


@dataclass(frozen=True, slots=True)
class _Layout:
    """For every bit width, and every row of a block, a value from each lane.

    The 16 bytes that the row begins in; bits to shift them down and the next 16 up; masks of what is then wanted.
    """

    places: Places
    down: NDArray[np.uint64]
    up: NDArray[np.uint64]
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]


@cache
def _layout(word: int) -> _Layout:
    widths, rows = np.arange(word + 1)[:, None], np.arange(word)
    place, down = np.divmod(widths * rows, word)
    kept = np.minimum(widths, word - down)
    low = (1 << kept.astype(np.uint64)) - 1
    high = ((1 << widths.astype(np.uint64)) - 1) ^ low
    ones = sum(1 << bit for bit in range(0, 64, word))
    up = np.where(high, kept, 0)
    halves = (np.repeat(table.astype(np.uint64), 2, axis=1) for table in (down, up, low * ones, high * ones))
    return _Layout(place, *halves)
