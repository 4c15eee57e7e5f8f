"""The steps of decoding chunks, in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, batched
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.codecs.open_meteo_pfor import BLOCK, PADDING, TRUNCATED, Headers, Unsigned, Walk, unpack
from virtualzarr_refs.errors import DecodeError

VALUES = 1 << 18
"""Values that are decoded together, unless a single chunk has more: what is made on the way then fits a cache."""

type Scaling = tuple[np.floating[Any], np.floating[Any]]
"""What integers are divided by, and what is then subtracted: numbers of the type of the values."""


def integers(streams: Sequence[bytes], rows: int, columns: int, stored: np.dtype[Any]) -> NDArray[np.integer[Any]]:
    """The integers of chunks, on three axes: the chunk, its rows, its columns.

    Raises
    ------
    DecodeError
        If the bytes of one are not exactly those of such a chunk.
    """
    parts = [_integers(part, rows, columns, stored) for part in _parts(streams, rows * columns)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def bits(streams: Sequence[bytes], rows: int, columns: int) -> Unsigned:
    """The bits of 32-bit floats, likewise."""
    parts = [_bits(part, rows, columns) for part in _parts(streams, rows * columns)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def scaled(
    streams: Sequence[bytes], rows: int, columns: int, stored: np.dtype[Any], scaling: Scaling
) -> NDArray[np.floating[Any]]:
    """The values that `integers` stand for; see `linear`."""
    parts = [linear(_integers(part, rows, columns, stored), scaling) for part in _parts(streams, rows * columns)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def linear(integers: NDArray[Any], scaling: Scaling) -> NDArray[Any]:
    """Numbers divided by a scale, less an offset; the largest integer is NaN."""
    scale, offset = scaling
    values = integers.astype(scale.dtype)
    with np.errstate(all="ignore"):
        values /= scale
        values -= offset
    highest = np.iinfo(integers.dtype).max
    if integers.max() == highest:
        np.copyto(values, math.nan, where=integers == highest)
    return values


def _parts(streams: Sequence[bytes], count: int) -> list[tuple[bytes, ...]]:
    """The streams in parts that are decoded together."""
    if min(map(len, streams)) * BLOCK < count - 1:
        raise DecodeError(TRUNCATED)
    return list(batched(streams, max(1, VALUES // count)))


def _integers(streams: Sequence[bytes], rows: int, columns: int, stored: np.dtype[Any]) -> NDArray[Any]:
    walk = Walk(b"".join((*streams, PADDING)), 8 * stored.itemsize)
    firsts, blocks = _walk(walk, streams, rows * columns - 1)
    # NumPy accumulates short integers slowly, and what is cut off does not matter.
    steps = np.empty((len(streams), rows * columns), f"u{max(4, stored.itemsize)}")
    steps[:, 0] = firsts
    _unpack(walk, blocks, steps[:, 1:], _from_zigzag if stored.kind == "i" else _as_they_are)
    np.add.accumulate(steps, axis=1, out=steps)
    words = steps.astype(f"u{stored.itemsize}", copy=False).reshape(-1, rows, columns)
    accumulate_rows(np.add, words)
    return words.view(stored)


def _bits(streams: Sequence[bytes], rows: int, columns: int) -> Unsigned:
    walk = Walk(b"".join((*streams, PADDING)), 32, lead=1)
    _, blocks = _walk(walk, streams, rows * columns)
    words = np.empty((len(streams), rows * columns), "u4")
    _unpack(walk, blocks, words, _shifted_backwards)
    np.bitwise_xor.accumulate(words, axis=1, out=words)
    words = words.reshape(-1, rows, columns)
    accumulate_rows(np.bitwise_xor, words)
    return words


def _walk(walk: Walk, streams: Sequence[bytes], count: int) -> tuple[list[int], tuple[Headers, Headers]]:
    """The first integers, if there are any before the blocks; and where the full blocks and the last ones lie."""
    full, rest = divmod(count, BLOCK)
    firsts, whole, last = list[int](), Headers(BLOCK), Headers(rest)
    for stop in accumulate(map(len, streams)):
        if not walk.lead:
            firsts.append(walk.first())
        walk.blocks(full, whole)
        walk.blocks(int(rest > 0), last)
        walk.finish(stop)
    return firsts, (whole, last)


type _Undo = Callable[[Unsigned, Walk, Headers], Unsigned]


def _unpack(walk: Walk, blocks: tuple[Headers, Headers], out: Unsigned, undo: _Undo) -> None:
    """Unpack the values of streams, a row each, and undo what was done to them in each block."""
    start = 0
    for headers in blocks:
        if headers.places:
            values = undo(unpack(walk.data, walk.word, headers), walk, headers).reshape(len(out), -1)
            out[:, start : start + values.shape[1]] = values
            start += values.shape[1]


def _as_they_are(values: Unsigned, _: Walk, __: Headers) -> Unsigned:
    return values


def _from_zigzag(values: Unsigned, _: Walk, __: Headers) -> Unsigned:
    """Signed integers, as unsigned words, of which 0, 1, 2, 3 stand for 0, -1, 1, -2; made in place."""
    one = values.dtype.type(1)
    signs = values & one
    np.negative(signs, out=signs)
    values >>= one
    values ^= signs
    return values.view(f"i{values.itemsize}")


def _shifted_backwards(values: Unsigned, walk: Walk, headers: Headers) -> Unsigned:
    """Words whose bits are in reverse order, and then shifted down by what stands before each block."""
    shifts = np.frombuffer(walk.data, np.uint8)[np.array(headers.places) - 1]
    reverse_bits(values)
    values >>= shifts[:, None]
    return values


def reverse_bits(words: Unsigned) -> None:
    """Reverse the order of the bits of 32-bit words, in place: of neighbours, then pairs, fours and bytes."""
    for distance, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F)):
        shift, these = np.uint32(distance), np.uint32(mask)
        other = words >> shift
        other &= these
        words &= these
        words <<= shift
        words |= other
    words.byteswap(inplace=True)


LEAST = 2048
"""Values of all rows that are added at once, for it to be worth doing one after another."""


def accumulate_rows(combine: np.ufunc, chunks: Unsigned) -> None:
    """Accumulate in place down the rows of each chunk, the middle axis: NumPy's own way is slow there.

    Many rows of few values are done in two levels, which needs fewer steps.
    """
    count, rows, columns = chunks.shape
    step = rows if count * columns > LEAST else math.isqrt(rows)
    whole = rows // step * step
    groups = chunks[:, :whole].reshape(count, -1, step, columns)
    for i in range(1, step):
        combine(groups[:, :, i], groups[:, :, i - 1], out=groups[:, :, i])
    for i in range(step, whole, step):
        combine(chunks[:, i : i + step], chunks[:, i - 1 : i], out=chunks[:, i : i + step])
    for i in range(whole, rows):
        combine(chunks[:, i], chunks[:, i - 1], out=chunks[:, i])
