"""What each file contributes to one array."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import RegularGrid, Shape
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.manifest import Manifest

type Lengths = NDArray[np.int64]
"""Elements that each chunk along an axis contributes to its array."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one file contributes to an array along an axis.

    Parameters
    ----------
    file : str
        Url of the file, or a name for it, for messages.
    array : VirtualArray or None
        None where the file lacks the variable.
    length : int
        Along the axis, in elements.
    """

    file: str
    array: VirtualArray | None
    length: int


def parts_of(file: str, array: VirtualArray | None, length: int, axis: int) -> tuple[Part, ...]:
    """What a file contributes: the array and, if it ends before its unlimited dimension does, what follows."""
    if array is None or array.shape[axis] == length:
        return (Part(file, array, length),)
    shape = (*array.shape[:axis], length - array.shape[axis], *array.shape[axis + 1 :])
    grid = array.metadata.chunk_grid
    chunk_shape = grid.chunk_shape if isinstance(grid, RegularGrid) else tuple(map(_longest, grid.edges))
    rest = RegularGrid(shape, chunk_shape)
    metadata = replace(array.metadata, chunk_grid=rest)
    missing = VirtualArray(metadata, Manifest.missing(rest.grid_shape))
    parts = (Part(file, array, array.shape[axis]), Part(file, missing, shape[axis]))
    return parts if array.shape[axis] else parts[1:]


def _longest(edge: int | tuple[int, ...]) -> int:
    return edge if isinstance(edge, int) else max(edge)


def dimensions_of(array: VirtualArray) -> tuple[str, ...]:
    """The names of an array's dimensions; empty for those without."""
    names = array.metadata.dimension_names or (None,) * len(array.shape)
    return tuple(name or "" for name in names)


def lengths_of(array: VirtualArray, axis: int) -> Lengths:
    """The elements that each chunk along an axis contributes."""
    grid, size = array.metadata.chunk_grid, array.shape[axis]
    edge = grid.chunk_shape[axis] if isinstance(grid, RegularGrid) else grid.edges[axis]
    if not isinstance(edge, int):
        return np.array(grid.chunk_lengths(axis), np.int64)
    lengths = np.full(-(-size // edge), edge, np.int64)
    if size % edge:
        lengths[-1] = size % edge
    return lengths


def stored_lengths(array: VirtualArray, axis: int) -> Lengths:
    """The elements that each chunk along an axis decodes to."""
    grid, size = array.metadata.chunk_grid, array.shape[axis]
    edge = grid.chunk_shape[axis] if isinstance(grid, RegularGrid) else grid.edges[axis]
    return np.full(-(-size // edge), edge, np.int64) if isinstance(edge, int) else np.array(edge, np.int64)


def stored_shape(array: VirtualArray) -> Shape | None:
    """The shape that every chunk decodes to; None where they differ."""
    grid = array.metadata.chunk_grid
    if isinstance(grid, RegularGrid):
        return grid.chunk_shape
    edges = [edge if isinstance(edge, int) else _only(edge) for edge in grid.edges]
    return None if None in edges else tuple(edge for edge in edges if edge is not None)


def value_bytes(array: VirtualArray) -> int:
    """Bytes of an array's values."""
    return math.prod(array.shape) * array.dtype.itemsize


def _only(lengths: tuple[int, ...]) -> int | None:
    return lengths[0] if len(set(lengths)) == 1 else None
