"""The steps of decoding a chunk, compiled by numba: the same as in `open_meteo_numpy`, some ten times faster.

Used where numba is installed. Every read is preceded by a check that what is read lies inside the data, or in the
zeros behind it; a position of -1 says that the data ends too early, one of -2 that it cannot be.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from virtualzarr_refs.codecs.open_meteo_pfor import BLOCK, INVALID, LANES, TRUNCATED, Unsigned, Walk
from virtualzarr_refs.errors import DecodeError

type Bytes = NDArray[np.uint8]

_compile: Any = njit(cache=True, nogil=True, error_model="numpy")

_PADDING = 8 * (BLOCK + 2)
_LEAD = 16
"""Bytes before the values of blocks: room for a first one that keeps them aligned for the processor."""

_SHORT, _TWO, _THREE = 177, 241, 249
_ONE = np.uint64(1)


def delta_stream(data: bytes, count: int, stored: np.dtype[Any]) -> Unsigned:
    """See `open_meteo_numpy.delta_stream`."""
    walk = Walk(data, 8 * stored.itemsize)
    first = walk.first()
    values = _blocks(walk, count - 1)[_LEAD // stored.itemsize - 1 :][:count]
    _accumulate(values, np.uint64(first), stored.kind == "i")
    return values


def xor_stream(data: bytes, count: int) -> Unsigned:
    """See `open_meteo_numpy.xor_stream`."""
    values = _blocks(Walk(data, 32, lead=1), count)[_LEAD // 4 :][:count]
    _accumulate_bits(values)
    return values


def accumulate_rows(combine: np.ufunc, rows: Unsigned) -> None:
    """See `open_meteo_numpy.accumulate_rows`."""
    (_add_rows if combine is np.add else _xor_rows)(rows)


def linear(integers: NDArray[Any], dtype: np.dtype[Any], scale: float, offset: float) -> NDArray[Any]:
    """See `open_meteo_numpy.linear`."""
    values = np.empty(integers.shape, dtype)
    highest = np.iinfo(integers.dtype).max
    _scale(integers.reshape(-1), values.reshape(-1), dtype.type(scale), dtype.type(offset), highest)
    return values


def _blocks(walk: Walk, count: int) -> Unsigned:
    """The values of all blocks, behind `_LEAD` bytes and before room up to the end of a block."""
    if count > len(walk.data) * BLOCK:
        raise DecodeError(TRUNCATED)
    word = walk.word
    values = np.empty(_LEAD * 8 // word + -(-count // BLOCK) * BLOCK, f"u{word // 8}")
    packed = np.frombuffer(walk.data + bytes(_PADDING), np.uint8)
    out = values[_LEAD * 8 // word :]
    stop = _unpack(packed, len(walk.data), walk.position, out, count, word, LANES[word], walk.lead)
    if stop != len(walk.data):
        raise DecodeError(TRUNCATED if stop == -1 else INVALID)
    return values


@_compile
def _unpack(data: Bytes, size: int, position: int, out: Unsigned, count: int, word: int, lanes: int, lead: int) -> int:
    """Unpack all blocks, and return where they end."""
    for start in range(0, count, 128):
        if position + lead >= size:
            return -1
        shift = data[position]
        number = min(128, count - start)
        block = out[start : start + 128]
        position = _block(data, size, position + lead, block, number, word, lanes if number == 128 else 1)
        if position < 0:
            return position
        if lead:
            _reverse(block, number, shift)
    return position


@_compile
def _block(data: Bytes, size: int, position: int, out: Unsigned, number: int, word: int, lanes: int) -> int:
    """Unpack a block whose header is inside the data."""
    kind, width = data[position] >> 6, np.int64(data[position] & 63)
    if word == 64 and width == 63 and kind in (0, 3):
        width = 64
    if width > word:
        return -2
    if kind == 0:
        return _values(data, size, position + 1, out, number, width, word, lanes)
    if kind == 3:
        return _constant(data, size, position + 1, out, number, width)
    if kind == 2:
        return _bitmap(data, size, position + 1, out, number, width, word, lanes)
    return _listed(data, size, position + 1, out, number, width, word, lanes)


@_compile
def _values(
    data: Bytes, size: int, position: int, out: Unsigned, number: int, width: int, word: int, lanes: int
) -> int:
    length = (number * width + 7) >> 3
    if position + length > size:
        return -1
    if width == 0:
        for i in range(number):
            out[i] = 0
    elif lanes > 1:
        _lanes(data, position, out.view(np.uint64), width, word)
    else:
        for i in range(number):
            out[i] = _bits(data, position, i * width, width)
    return position + length


def _load(_: object, data: Any, position: Any) -> Any:  # noqa: ANN401, ARG001  numba's types
    """The 64-bit word that begins at a byte, on whatever address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, types.int64), generate


_load_word: Any = intrinsic(_load)


@_compile
def _bits(data: Bytes, position: int, start: int, width: int) -> np.uint64:
    """A number of `width` bits, at least one, that begins at a bit behind a byte."""
    place, shift = position + (start >> 3), np.uint64(start & 7)
    value = _load_word(data, place) >> shift
    if width > 57 and shift:
        value |= _load_word(data, place + 8) << (np.uint64(64) - shift)
    return value & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - width))


@_compile
def _lanes(data: Bytes, position: int, out: Unsigned, width: int, word: int) -> None:
    """A full block of several lanes: 128 bits hold a word of each, and all are shifted at once."""
    ones = np.uint64(0x0001000100010001) if word == 16 else np.uint64(0x0000000100000001)
    mask = ones * np.uint64((1 << width) - 1)
    power = 4 if word == 16 else 5
    for row in range(word):
        place, shift = position + 16 * (row * width >> power), row * width & (word - 1)
        kept = min(width, word - shift)
        low_mask = ones * np.uint64((1 << kept) - 1)
        for half in range(0, 16, 8):
            value = (_load_word(data, place + half) >> np.uint64(shift)) & low_mask
            if kept < width:
                value |= (_load_word(data, place + 16 + half) << np.uint64(kept)) & (mask ^ low_mask)
            out[2 * row + (half >> 3)] = value


@_compile
def _constant(data: Bytes, size: int, position: int, out: Unsigned, number: int, width: int) -> int:
    length = (width + 7) >> 3
    if position + length > size:
        return -1
    value = _bits(data, position, 0, width) if width else np.uint64(0)
    for i in range(number):
        out[i] = value
    return position + length


@_compile
def _bitmap(
    data: Bytes, size: int, position: int, out: Unsigned, number: int, width: int, word: int, lanes: int
) -> int:
    first = position + 1 + ((number + 7) >> 3)
    if first > size:
        return -1
    bits = np.int64(data[position])
    low = _bits(data, position + 1, 0, min(number, 64))
    high = _bits(data, position + 9, 0, number - 64) if number > 64 else np.uint64(0)
    count = _ones(low) + _ones(high)
    if width + bits > word or (number & 7 and data[first - 1] >> (number & 7)):
        return -2
    stop = _values(data, size, first + ((count * bits + 7) >> 3), out, number, width, word, lanes)
    if stop < 0 or bits == 0:
        return stop
    found = 0
    for half in range(2):
        left = high if half else low
        while left:
            place = 64 * half + _ones((left & (np.uint64(0) - left)) - _ONE)
            out[place] |= _bits(data, first, found * bits, bits) << np.uint64(width)
            left &= left - _ONE
            found += 1
    return stop


@_compile
def _ones(bits: np.uint64) -> int:
    """Number of bits that are set."""
    bits -= (bits >> np.uint64(1)) & np.uint64(0x5555555555555555)
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@_compile
def _listed(
    data: Bytes, size: int, position: int, out: Unsigned, number: int, width: int, word: int, lanes: int
) -> int:
    if position >= size:
        return -1
    count = np.int64(data[position])
    first = _values(data, size, position + 1, out, number, width, word, lanes)
    if first < 0:
        return first
    behind = _behind_numbers(data, size, first, count, word)
    if behind < 0 or behind + count > size:
        return min(behind, -1)
    limit = np.uint64(0) if width == word else np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - word + width)
    is_raw = count > 0 and data[first] == 255
    first += is_raw
    for i in range(count):
        value, first = _raw(data, first, word >> 3) if is_raw else _number(data, first)
        index = data[behind + i]
        if index >= number or value > limit:
            return -2
        if value:
            out[index] |= value << np.uint64(width)
    return behind + count


@_compile
def _behind_numbers(data: Bytes, size: int, position: int, count: int, word: int) -> int:
    """Where a list of numbers ends, or -1 or -2."""
    if count and position < size and data[position] == 255:
        position += 1 + count * (word >> 3)
        return position if position <= size else -1
    for _ in range(count):
        if position >= size:
            return -1
        first = int(data[position])
        if first == 255:
            return -2
        position += 1 if first < _SHORT else 2 if first < _TWO else 3 if first < _THREE else first - 245
    return position if position <= size else -1


@_compile
def _raw(data: Bytes, position: int, length: int) -> tuple[np.uint64, int]:
    return _bits(data, position, 0, 8 * length), position + length


@_compile
def _number(data: Bytes, position: int) -> tuple[np.uint64, int]:
    first = np.int64(data[position])
    if first < _SHORT:
        return np.uint64(first), position + 1
    if first < _TWO:
        return np.uint64(((first - _SHORT) << 8) + np.int64(data[position + 1]) + _SHORT), position + 2
    if first < _THREE:
        low, behind = _raw(data, position + 1, 2)
        return low + np.uint64(((first - _TWO) << 16) + 16561), behind
    return _raw(data, position + 1, first - 246)


@_compile
def _reverse(values: Unsigned, number: int, shift: int) -> None:
    """Reverse the order of the bits of 32-bit numbers and shift them down."""
    for i in range(number):
        v = np.uint64(values[i])
        v = (v >> np.uint64(1)) & np.uint64(0x55555555) | (v & np.uint64(0x55555555)) << np.uint64(1)
        v = (v >> np.uint64(2)) & np.uint64(0x33333333) | (v & np.uint64(0x33333333)) << np.uint64(2)
        v = (v >> np.uint64(4)) & np.uint64(0x0F0F0F0F) | (v & np.uint64(0x0F0F0F0F)) << np.uint64(4)
        v = (v >> np.uint64(8)) & np.uint64(0x00FF00FF) | (v & np.uint64(0x00FF00FF)) << np.uint64(8)
        v = (v >> np.uint64(16)) | (v & np.uint64(0xFFFF)) << np.uint64(16)
        values[i] = v >> np.uint64(shift) if shift < 32 else np.uint64(0)


@_compile
def _accumulate(values: Unsigned, first: np.uint64, is_signed: bool) -> None:
    values[0] = first
    if is_signed:
        for i in range(1, values.size):
            step = np.uint64(values[i])
            values[i] = (step >> _ONE) ^ (np.uint64(0) - (step & _ONE))
    # A sum waits for the one before, so three are made at a time; they are joined afterwards.
    third = values.size // 3
    a, b, c = values[:third], values[third : 2 * third], values[2 * third :]
    in_a = in_b = in_c = np.uint64(0)
    for i in range(third):
        in_a += a[i]
        in_b += b[i]
        in_c += c[i]
        a[i], b[i], c[i] = in_a, in_b, in_c
    for i in range(third, c.size):
        in_c += c[i]
        c[i] = in_c
    for i in range(third):
        b[i] += in_a
    for i in range(c.size):
        c[i] += in_a + in_b


@_compile
def _accumulate_bits(values: Unsigned) -> None:
    for i in range(1, values.size):
        values[i] ^= values[i - 1]


@_compile
def _add_rows(rows: Unsigned) -> None:
    for i in range(1, rows.shape[0]):
        for j in range(rows.shape[1]):
            rows[i, j] += rows[i - 1, j]


@_compile
def _xor_rows(rows: Unsigned) -> None:
    for i in range(1, rows.shape[0]):
        for j in range(rows.shape[1]):
            rows[i, j] ^= rows[i - 1, j]


@_compile
def _scale(integers: NDArray[Any], values: NDArray[Any], scale: float, offset: float, highest: int) -> None:
    for i in range(integers.size):
        values[i] = integers[i]
        values[i] = np.nan if integers[i] == highest else values[i] / scale - offset
