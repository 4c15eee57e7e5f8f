"""Chunk grids put together along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from virtualzarr_refs.chunk_grid import ChunkGrid, RectilinearGrid, RegularGrid, Shape
from virtualzarr_refs.combine.parts import Lengths, lengths_of, stored_lengths
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray

type Edge = int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JoinedGrid:
    """The grid of a joined array.

    Parameters
    ----------
    grid : RegularGrid or RectilinearGrid
        Of the whole.
    lengths : tuple of ndarray of int64
        For each part, what each of its chunks has to decode to along the axis, in elements.
    """

    grid: ChunkGrid
    lengths: tuple[Lengths, ...]


def join_grids(arrays: Sequence[VirtualArray | None], lengths: Sequence[int], axis: int) -> JoinedGrid:
    """The grid of arrays put one after the other.

    Parameters
    ----------
    arrays : sequence of VirtualArray or None
        None where a file lacks the array; its part is cut like the others.
    lengths : sequence of int
        What each contributes along the axis, in elements.
    axis : int
        Along which they are joined.

    Raises
    ------
    UnsupportedError
        If chunks do not line up beside the axis.
    """
    present = [array for array in arrays if array is not None]
    usual = int(stored_lengths(present[0], axis)[0]) if present[0].shape[axis] else max(1, *lengths)
    parts = tuple(
        _cut(length, usual) if array is None else lengths_of(array, axis)
        for array, length in zip(arrays, lengths, strict=True)
    )
    beside = tuple(_edge_beside(present, other) for other in range(len(present[0].shape)) if other != axis)
    shape = (*present[0].shape[:axis], sum(lengths), *present[0].shape[axis + 1 :])
    along = np.concatenate(parts) if parts else np.empty(0, np.int64)
    regular = _regular_length(present, along, axis)
    edges: tuple[Edge, ...] = (*beside[:axis], regular or tuple(along.tolist()), *beside[axis:])
    if regular is not None and all(isinstance(edge, int) for edge in edges):
        whole = tuple(edge for edge in edges if isinstance(edge, int))
        return JoinedGrid(RegularGrid(shape, whole), _padded_end(parts, regular))
    if not along.size:
        nothing = (*beside[:axis], 1, *beside[axis:])
        return JoinedGrid(RegularGrid(shape, tuple(e if isinstance(e, int) else max(e) for e in nothing)), parts)
    return JoinedGrid(RectilinearGrid(shape, (*beside[:axis], tuple(along.tolist()), *beside[axis:])), parts)


def decoded_shape(grid: ChunkGrid, axis: int, length: int) -> Shape:
    """Shape that a chunk has to decode to which contributes `length` elements; where the others differ, the largest."""
    edges = grid.chunk_shape if isinstance(grid, RegularGrid) else grid.edges
    lengths = [edge if isinstance(edge, int) else max(edge) for edge in edges]
    return (*lengths[:axis], length, *lengths[axis + 1 :])


def _cut(length: int, usual: int) -> Lengths:
    lengths = np.full(-(-length // usual), usual, np.int64)
    if length % usual:
        lengths[-1] = length % usual
    return lengths


def _regular_length(arrays: Sequence[VirtualArray], along: Lengths, axis: int) -> int | None:
    """The length of all chunks, if the last is stored at that length too, and all but it have it."""
    if not along.size:
        return None
    length = int(along[0])
    if (along[:-1] != length).any() or along[-1] > length:
        return None
    last = stored_lengths(arrays[-1], axis)
    return length if along[-1] == length or (last.size and last[-1] >= length) else None


def _padded_end(parts: tuple[Lengths, ...], length: int) -> tuple[Lengths, ...]:
    """In a regular grid the last chunk decodes to full length, padding included."""
    return tuple(np.full_like(part, length) for part in parts)


def _edge_beside(arrays: Sequence[VirtualArray], axis: int) -> Edge:
    """How the axis is cut, beside the one along which arrays are joined."""
    first = lengths_of(arrays[0], axis)
    for array in arrays[1:]:
        other = lengths_of(array, axis)
        if not np.array_equal(first, other):
            raise UnsupportedError(
                f"its chunks do not line up along axis {axis}, which is not the one that is joined: "
                f"{_summary(first)} and {_summary(other)} elements; rechunk one of the files"
            )
    stored = [stored_lengths(array, axis) for array in arrays]
    if all(np.array_equal(stored[0], lengths) for lengths in stored):
        edges = [array.metadata.chunk_grid for array in arrays[:1]]
        grid = edges[0]
        return grid.chunk_shape[axis] if isinstance(grid, RegularGrid) else grid.edges[axis]
    return int(first[0]) if first.size == 1 else tuple(first.tolist())


def _summary(lengths: Lengths) -> str:
    shown = ", ".join(str(length) for length in lengths[:3].tolist())
    return f"{shown}, …" if len(lengths) > 3 else shown
