"""What a selection takes from the chunks along one axis."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import ChunkGrid, RegularGrid, Shape

type Indexes = NDArray[np.intp]
type Selector = int | slice | NDArray[Any]
type Place = slice | Indexes
"""Positions along one axis."""


@dataclass(frozen=True, slots=True)
class Part:
    """What some equally long chunks along an axis, put in a row, contribute.

    Parameters
    ----------
    result : slice or ndarray of intp
        Where it goes in what is read.
    row : slice or ndarray of intp
        Where it lies in the row of chunks, in elements.
    numbers : ndarray of intp
        Which chunks they are.
    length : int
        Of each chunk, in elements.
    """

    result: Place
    row: Place
    numbers: Indexes
    length: int


@dataclass(frozen=True, slots=True)
class AxisSelection:
    """The chunks along one axis that a selection touches, in ascending order.

    Parameters
    ----------
    numbers : ndarray of intp
        Which chunks they are.
    origins, lengths : ndarray of intp
        Where each begins along the axis, and what it decodes to, in elements.
    bounds : ndarray of intp
        One more than there are chunks: chunk i contributes elements ``bounds[i]`` to ``bounds[i + 1]``.
    is_dropped : bool
        Whether the axis is gone from the result.
    start, step : int
        Position of element k along the axis is ``start + k * step``, if there is no `order`.
    order, positions : ndarray of intp, optional
        Element k is number ``order[k]`` of the result, and lies at ``positions[k]``.
    """

    numbers: Indexes
    origins: Indexes
    lengths: Indexes
    bounds: Indexes
    is_dropped: bool = False
    start: int = 0
    step: int = 1
    order: Indexes | None = None
    positions: Indexes | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(self.bounds[-1])

    def parts(self, most: int) -> list[Part]:
        """All of it, in parts of at most that many chunks."""
        changes = np.flatnonzero(np.diff(self.lengths)) + 1
        runs = itertools.pairwise((0, *changes.tolist(), len(self.numbers)))
        starts = ((start, stop) for first, stop in runs for start in range(first, stop, most))
        return [self._part(start, min(start + most, stop)) for start, stop in starts]

    def _part(self, first: int, stop: int) -> Part:
        low, high = int(self.bounds[first]), int(self.bounds[stop])
        result = slice(low, high) if self.order is None else self.order[low:high]
        return Part(result, self._row(first, stop), self.numbers[first:stop], int(self.lengths[first]))

    def _row(self, first: int, stop: int) -> Place:
        """Where the elements lie in the row of touched chunks from `first` to `stop`."""
        low, high = int(self.bounds[first]), int(self.bounds[stop])
        if self.positions is None and self.numbers[stop - 1] - self.numbers[first] == stop - 1 - first:
            begin = self.start + low * self.step - int(self.origins[first])
            return slice(begin, begin + (high - low - 1) * self.step + 1, self.step)
        positions = (
            np.arange(low, high) * self.step + self.start if self.positions is None else self.positions[low:high]
        )
        which = np.repeat(np.arange(stop - first), np.diff(self.bounds[first : stop + 1]))
        return which * self.lengths[first] + positions - self.origins[first:stop][which]


def select(selection: Sequence[Selector], grid: ChunkGrid) -> tuple[AxisSelection, ...]:
    """Take a selection apart, axis by axis.

    Raises
    ------
    IndexError
        If a number lies outside of its axis.
    """
    return tuple(
        _select(selector, size, _edges(grid, axis))
        for axis, (selector, size) in enumerate(zip(selection, grid.shape, strict=True))
    )


@dataclass(frozen=True, slots=True)
class PointSelection:
    """Single elements of an array, sorted by chunk.

    Parameters
    ----------
    shape : tuple of int
        Of the result.
    indexes : tuple of ndarray of intp
        The chunks that are touched, as an index along each axis.
    bounds : ndarray of intp
        One more than there are chunks: points from ``bounds[i]`` to ``bounds[i + 1]`` lie in chunk i.
    order : ndarray of intp
        Point k is number ``order[k]`` of the result, in C order.
    inside : tuple of ndarray of intp
        Where point k lies in its chunk, along each axis.
    """

    shape: Shape
    indexes: tuple[Indexes, ...]
    bounds: Indexes
    order: Indexes
    inside: tuple[Indexes, ...]


def select_points(points: Sequence[NDArray[Any]], grid: ChunkGrid) -> PointSelection:
    """Sort points, given by arrays of their positions along each of at least one axis.

    Raises
    ------
    IndexError
        If a number lies outside of its axis.
    """
    spread = np.broadcast_arrays(*map(_positions, points, grid.shape))
    positions = [part.reshape(-1) for part in spread]
    edges = [_edges(grid, axis) for axis in range(len(grid.shape))]
    numbers = [np.asarray(edge.numbers(part)) for edge, part in zip(edges, positions, strict=True)]
    chunk = np.ravel_multi_index(numbers, grid.grid_shape) if positions[0].size else positions[0]
    order = np.argsort(chunk, kind="stable")
    starts = np.unique(chunk[order], return_index=True)[1]
    sorted_numbers = [number[order] for number in numbers]
    origins = [edge.origins_and_lengths(number)[0] for edge, number in zip(edges, sorted_numbers, strict=True)]
    inside = tuple(part[order] - origin for part, origin in zip(positions, origins, strict=True))
    indexes = tuple(number[starts] for number in sorted_numbers)
    return PointSelection(spread[0].shape, indexes, np.append(starts, len(order)), order, inside)


@dataclass(frozen=True, slots=True)
class _Edges:
    """Where the chunks of an axis lie: `length` for all, or `starts` and `lengths` of each."""

    length: int
    starts: Indexes | None = None
    lengths: Indexes | None = None

    def numbers(self, positions: Any) -> Any:  # noqa: ANN401  one number or an array of them
        """The chunks that hold elements at these positions."""
        if self.starts is None:
            return positions // self.length
        return np.searchsorted(self.starts, positions, "right") - 1

    def origins_and_lengths(self, numbers: Indexes) -> tuple[Indexes, Indexes]:
        if self.starts is None or self.lengths is None:
            return numbers * self.length, np.full(numbers.shape, self.length)
        return self.starts[numbers], self.lengths[numbers]


def _edges(grid: ChunkGrid, axis: int) -> _Edges:
    edge = grid.chunk_shape[axis] if isinstance(grid, RegularGrid) else grid.edges[axis]
    if isinstance(edge, int):
        return _Edges(edge)
    lengths = np.array(edge, np.intp)
    return _Edges(0, np.concatenate(([0], np.cumsum(lengths[:-1]))), lengths)


def _select(selector: Selector, size: int, edges: _Edges) -> AxisSelection:
    if isinstance(selector, slice):
        steps = range(*selector.indices(size))
        if steps.step > 0:
            return _strided(steps, edges)
        return _scattered(np.array(steps, np.intp), edges)
    if isinstance(selector, np.ndarray) and selector.ndim:
        return _scattered(_positions(selector, size), edges)
    position = int(_positions(np.array(selector), size))
    return _strided(range(position, position + 1), edges, is_dropped=True)


def _positions(selector: NDArray[Any], size: int) -> Indexes:
    """Positions from the start of the axis."""
    if selector.dtype == np.bool_:
        return np.flatnonzero(selector)
    positions = selector.astype(np.intp)
    if ((positions < -size) | (positions >= size)).any():
        raise IndexError(f"an index lies outside of an axis of {size}")
    return cast("Indexes", np.where(positions < 0, positions + size, positions))


def _strided(steps: range, edges: _Edges, *, is_dropped: bool = False) -> AxisSelection:
    if not steps:
        return _scattered(np.empty(0, np.intp), edges)
    numbers = np.arange(edges.numbers(steps[0]), edges.numbers(steps[-1]) + 1)
    origins, lengths = edges.origins_and_lengths(numbers)
    # The number of elements before the end of each chunk.
    before = np.minimum(-((steps.start - origins - lengths) // steps.step), len(steps))
    bounds = np.concatenate(([0], before))
    touched = np.diff(bounds) > 0
    if not touched.all():
        numbers, origins, lengths = numbers[touched], origins[touched], lengths[touched]
        bounds = np.concatenate(([0], before[touched]))
    return AxisSelection(numbers, origins, lengths, bounds, is_dropped, steps.start, steps.step)


def _scattered(positions: Indexes, edges: _Edges) -> AxisSelection:
    number = np.asarray(edges.numbers(positions))
    order = np.argsort(number, kind="stable")
    numbers, counts = np.unique(number, return_counts=True)
    bounds = np.concatenate(([0], np.cumsum(counts)))
    origins, lengths = edges.origins_and_lengths(numbers)
    return AxisSelection(numbers, origins, lengths, bounds, order=order, positions=positions[order])
