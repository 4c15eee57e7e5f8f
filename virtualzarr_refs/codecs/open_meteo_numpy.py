"""The steps of decoding a chunk, in NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.codecs.open_meteo_pfor import BLOCK, Unsigned, Walk, unpack


type Scaling = tuple[np.floating[Any], np.floating[Any]]
"""What integers are divided by, and what is then subtracted: numbers of the type of the values."""


def integers(streams: Sequence[bytes], rows: int, columns: int, stored: np.dtype[Any]) -> NDArray[np.integer[Any]]:
    """The integers of chunks, on three axes: the chunk, its rows, its columns."""
    out = np.empty((len(streams), rows, columns), f"u{stored.itemsize}")
    for i, data in enumerate(streams):
        out[i] = delta_stream(data, rows * columns, stored).reshape(rows, columns)
        accumulate_rows(np.add, out[i])
    return out.view(stored)


def bits(streams: Sequence[bytes], rows: int, columns: int) -> Unsigned:
    """The bits of 32-bit floats, likewise."""
    out = np.empty((len(streams), rows, columns), "u4")
    for i, data in enumerate(streams):
        out[i] = xor_stream(data, rows * columns).reshape(rows, columns)
        accumulate_rows(np.bitwise_xor, out[i])
    return out


def scaled(
    streams: Sequence[bytes], rows: int, columns: int, stored: np.dtype[Any], scaling: Scaling
) -> NDArray[np.floating[Any]]:
    """The values that `integers` stand for; see `linear`."""
    return linear(integers(streams, rows, columns, stored), scaling)


def delta_stream(data: bytes, count: int, stored: np.dtype[Any]) -> Unsigned:
    """The integers of a stream of differences, as unsigned words."""
    walk = Walk(data, 8 * stored.itemsize)
    first = walk.first()
    _walk_blocks(walk, count - 1)
    residuals = unpack(walk, count - 1)
    # NumPy accumulates short integers slowly, and what is cut off does not matter.
    stream = np.empty(count, f"u{max(4, stored.itemsize)}")
    stream[0] = first
    stream[1:] = _from_zigzag(residuals) if stored.kind == "i" else residuals
    np.add.accumulate(stream, out=stream)
    return stream.astype(f"u{stored.itemsize}", copy=False)


def _walk_blocks(walk: Walk, count: int) -> None:
    full, rest = divmod(count, BLOCK)
    walk.blocks(full, BLOCK)
    walk.blocks(int(rest > 0), rest)
    walk.finish()


def _from_zigzag(values: Unsigned) -> Unsigned:
    """Signed integers, as unsigned words, of which 0, 1, 2, 3 stand for 0, -1, 1, -2; made in place."""
    one = values.dtype.type(1)
    signs = values & one
    np.negative(signs, out=signs)
    values >>= one
    values ^= signs
    return values


def xor_stream(data: bytes, count: int) -> Unsigned:
    """The 32-bit words of a stream of differing bits."""
    walk = Walk(data, 32, lead=1)
    _walk_blocks(walk, count)
    values = _reverse_bits(unpack(walk, count))
    shifts = np.frombuffer(data, np.uint8)[np.array(walk.heads) - 1]
    values >>= np.repeat(shifts, BLOCK)[:count]
    return np.bitwise_xor.accumulate(values, out=values)


_REVERSED = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1), axis=1, bitorder="little")[:, 0]


def _reverse_bits(values: Unsigned) -> Unsigned:
    return _REVERSED[values.view(np.uint8)].view(values.dtype).byteswap(inplace=True)


def accumulate_rows(combine: np.ufunc, rows: Unsigned) -> None:
    """Accumulate in place down the first axis, in as few steps as two levels need: NumPy's own way is slow there."""
    step = math.isqrt(len(rows))
    whole = len(rows) // step * step
    groups = rows[:whole].reshape(-1, step, rows.shape[1])
    for i in range(1, step):
        combine(groups[:, i], groups[:, i - 1], out=groups[:, i])
    for previous, group in pairwise(groups):
        combine(group, previous[-1], out=group)
    for i in range(whole, len(rows)):
        combine(rows[i], rows[i - 1], out=rows[i])


def linear(integers: NDArray[Any], scaling: Scaling) -> NDArray[Any]:
    """Numbers divided by a scale, less an offset; the largest integer is NaN."""
    scale, offset = scaling
    values = integers.astype(scale.dtype)
    with np.errstate(all="ignore"):
        values /= scale
        if offset:
            values -= offset
    highest = np.iinfo(integers.dtype).max
    if integers.max() == highest:
        np.copyto(values, math.nan, where=integers == highest)
    return values
