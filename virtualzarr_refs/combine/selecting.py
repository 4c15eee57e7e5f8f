"""A part of an array along an axis, without reading it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from virtualzarr_refs.chunk_grid import RectilinearGrid, RegularGrid
from virtualzarr_refs.combine.options import ConcatOptions
from virtualzarr_refs.combine.parts import lengths_of, stored_lengths, value_bytes
from virtualzarr_refs.combine.values import inline_array
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.manifest_joining import select

MAX_CUT = 16 * 1024 * 1024
"""Bytes of the values of an array that is read, and kept inline, where it cannot be cut between two chunks."""


def take_or_read(array: VirtualArray, axis: int, start: int, stop: int, options: ConcatOptions) -> VirtualArray:
    """Elements `start` to `stop` along an axis; those of a small array are read if need be.

    Raises
    ------
    UnsupportedError
        If `start` lies inside a chunk of an array that is not small.
    SourceError, DecodeError
        If a small one cannot be read.
    """
    try:
        return take(array, axis, start, stop)
    except UnsupportedError:
        if value_bytes(array) > MAX_CUT:
            raise
    (values,) = options.read([array])
    return inline_array(array.metadata, values[(slice(None),) * axis + (slice(start, stop),)])


def take(array: VirtualArray, axis: int, start: int, stop: int) -> VirtualArray:
    """Elements `start` to `stop` along an axis.

    Raises
    ------
    UnsupportedError
        If `start` lies inside a chunk.
    """
    if (start, stop) == (0, array.shape[axis]):
        return array
    ends = np.cumsum(lengths_of(array, axis))
    starts = np.concatenate(([0], ends[:-1])) if ends.size else ends
    first, last = int(np.searchsorted(starts, start)), int(np.searchsorted(starts, stop))
    if start < stop and (first == len(starts) or starts[first] != start):
        raise UnsupportedError(f"element {start} along axis {axis} lies inside a chunk, which cannot be cut there")
    shape = (*array.shape[:axis], stop - start, *array.shape[axis + 1 :])
    chunks = [slice(None)] * len(shape)
    chunks[axis] = slice(first, max(first, last))
    grid = array.metadata.chunk_grid
    if isinstance(grid, RegularGrid):
        cut: RegularGrid | RectilinearGrid = RegularGrid(shape, grid.chunk_shape)
    else:
        lengths = tuple(stored_lengths(array, axis)[first:last].tolist())
        edge = grid.edges[axis] if isinstance(grid.edges[axis], int) else lengths or 1
        cut = RectilinearGrid(shape, (*grid.edges[:axis], edge, *grid.edges[axis + 1 :]))
    return VirtualArray(replace(array.metadata, chunk_grid=cut), select(array.manifest.loaded(), chunks))
