"""Rectangles of chunks, which are read at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from virtualzarr_refs.chunk_grid import ChunkGrid, ChunkIndex, RegularGrid, Shape
from virtualzarr_refs.scanning import Region


@dataclass(frozen=True, slots=True)
class Box:
    """Neighbouring chunks of a grid.

    Parameters
    ----------
    start, stop : tuple of int
        Chunk index of the first, and of the first beyond, along each axis.
    """

    start: ChunkIndex
    stop: ChunkIndex

    @classmethod
    def of(cls, index: ChunkIndex) -> Box:
        """The box of one chunk."""
        return cls(index, tuple(i + 1 for i in index))

    @property
    def count(self) -> int:
        """Number of chunks."""
        return math.prod(stop - start for start, stop in zip(self.start, self.stop, strict=True))

    def halves(self) -> tuple[Box, Box]:
        """The box in two, cut across the first axis with more than one chunk: the chunks stay in C order."""
        axis = next(axis for axis, (i, j) in enumerate(zip(self.start, self.stop, strict=True)) if j - i > 1)
        middle = (self.start[axis] + self.stop[axis]) // 2
        lower = (*self.stop[:axis], middle, *self.stop[axis + 1 :])
        upper = (*self.start[:axis], middle, *self.start[axis + 1 :])
        return Box(self.start, lower), Box(upper, self.stop)

    @property
    def chunks(self) -> Region:
        """The box as slices of a grid of chunks."""
        return tuple(map(slice, self.start, self.stop))


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where a grid cuts its array.

    Parameters
    ----------
    shape : tuple of int
        Of the array, in elements.
    starts : tuple of sequence of int
        Along each axis the first element of every chunk, and the end of the last.
    """

    shape: Shape
    starts: tuple[Sequence[int], ...]

    @classmethod
    def of(cls, grid: ChunkGrid) -> Cuts:
        """The cuts of a grid."""
        edges = grid.chunk_shape if isinstance(grid, RegularGrid) else grid.edges
        pairs = zip(edges, grid.grid_shape, strict=True)
        return cls(grid.shape, tuple(_starts(edge, count) for edge, count in pairs))

    def region(self, box: Box) -> Region:
        """The elements of a box, without what reaches beyond the array."""
        axes = zip(self.shape, self.starts, box.start, box.stop, strict=True)
        return tuple(slice(min(starts[i], size), min(starts[j], size)) for size, starts, i, j in axes)

    def elements(self, box: Box) -> int:
        """Number of elements of a box."""
        return math.prod(part.stop - part.start for part in self.region(box))


def _starts(edge: int | tuple[int, ...], count: int) -> Sequence[int]:
    if isinstance(edge, int):
        return range(0, (count + 1) * edge, edge)  # takes no memory, however many chunks there are
    return tuple(itertools.accumulate(edge, initial=0))
