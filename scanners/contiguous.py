"""Arrays in one piece, cut into chunks that can be read one by one."""

from __future__ import annotations

import math

import numpy as np

from virtualzarr_refs.chunk_grid import RegularGrid, Shape
from virtualzarr_refs.manifest import Manifest


def cut(shape: Shape, item_size: int, target: int) -> RegularGrid:
    """Chunks near a target size that follow each other in the file without a gap.

    Parameters
    ----------
    shape : tuple of int
        Of the array, in elements.
    item_size : int
        Of an element, in bytes.
    target : int
        Of a chunk, in bytes.

    Returns
    -------
    RegularGrid
        Every chunk is whole: along each axis its length divides the array's, for the last chunk of a regular
        grid would have to be padded.
    """
    chunk = [max(1, length) for length in shape]
    for axis, length in enumerate(shape):
        size = math.prod(chunk) * item_size
        if size <= target or not length:
            break
        chunk[axis] = _nearest_divisor(length, size, target)
        if chunk[axis] > 1:
            break
    return RegularGrid(shape, tuple(chunk))


def cut_unwritten(shape: Shape, item_size: int, target: int) -> RegularGrid:
    """Chunks near a target size that lie nowhere, so that their lengths need not divide the array's; see `cut`."""
    chunk = [max(1, length) for length in shape]
    for axis, length in enumerate(shape):
        size = math.prod(chunk) * item_size
        if size <= target or not length:
            break
        chunk[axis] = max(1, length * target // size)
    return RegularGrid(shape, tuple(chunk))


_LARGEST_TRIED = 1 << 20
"""Divisors up to this number are found, and those that they leave; lengths may be far too large to try all."""


def _nearest_divisor(length: int, size: int, target: int) -> int:
    """The divisor of `length` that brings `size` bytes nearest to `target`, by ratio."""
    low = [d for d in range(1, min(math.isqrt(length), _LARGEST_TRIED) + 1) if length % d == 0]
    divisors = sorted({*low, *(length // d for d in low)})
    return min(divisors, key=lambda d: abs(math.log(size / length * d / target)))


def contiguous_manifest(grid: RegularGrid, url: str, offset: int, item_size: int) -> Manifest:
    """The manifest of an array that lies in one piece from `offset` on."""
    grid_shape = grid.grid_shape
    chunk_bytes = math.prod(grid.chunk_shape) * item_size
    offsets = np.uint64(offset) + np.arange(math.prod(grid_shape), dtype=np.uint64) * np.uint64(chunk_bytes)
    return Manifest(
        (url,),
        np.zeros(grid_shape, np.uint32),
        offsets.reshape(grid_shape),
        np.full(grid_shape, chunk_bytes, np.uint64),
    )
