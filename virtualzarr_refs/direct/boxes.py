"""A selection, cut into boxes of chunks that are read at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import ChunkIndex, Shape
from virtualzarr_refs.direct.selection import AxisSelection, Part, Place

SMALL_CHUNK = 32 * 1024
"""Decoded bytes of a chunk up to which many are read at a time."""

MAX_BOX = 2 * 1024 * 1024
"""Decoded bytes of a box that is more than one chunk."""

MAX_CHUNKS = 16 * 1024
"""Chunks of a box."""


@dataclass(frozen=True, slots=True)
class Box:
    """Chunks of one shape that form a box of the grid, but for chunks between them that are not asked for.

    Parameters
    ----------
    parts : tuple of Part
        Along each axis.
    """

    parts: tuple[Part, ...]

    @property
    def chunk_shape(self) -> Shape:
        """Shape of each chunk, in elements."""
        return tuple([part.length for part in self.parts])

    @property
    def grid_shape(self) -> Shape:
        """Number of chunks along each axis."""
        return tuple([len(part.numbers) for part in self.parts])

    @property
    def is_chunk(self) -> bool:
        """Whether it is one chunk."""
        return math.prod(self.grid_shape) == 1

    def index(self, position: int) -> ChunkIndex:
        """Index in the array's grid of the chunk at a position in C order."""
        where = np.unravel_index(position, self.grid_shape) if position else (0,) * len(self.parts)
        return tuple([int(part.numbers[i]) for part, i in zip(self.parts, where, strict=True)])

    @property
    def is_block(self) -> bool:
        """Whether what the box contributes is a rectangle of the result."""
        return all(isinstance(part.result, slice) for part in self.parts)

    @property
    def result(self) -> tuple[Any, ...]:
        """NumPy's index of what the box contributes, in the result."""
        return _index([part.result for part in self.parts])

    @property
    def inside(self) -> tuple[Any, ...]:
        """NumPy's index of the same, in the box."""
        return _index([part.row for part in self.parts])

    def put_together(self, chunks: NDArray[Any]) -> NDArray[Any]:
        """The box as one array, from its chunks along a first axis."""
        rank = len(self.parts)
        apart = chunks.reshape(self.grid_shape + self.chunk_shape)
        order = [axis for pair in zip(range(rank), range(rank, 2 * rank), strict=True) for axis in pair]
        shape = [n * length for n, length in zip(self.grid_shape, self.chunk_shape, strict=True)]
        return apart.transpose(order).reshape(shape)


def cut(axes: Sequence[AxisSelection], itemsize: int) -> Iterator[Box]:
    """The boxes of a selection that touches a chunk at least: of many small chunks each, or of one large one."""
    at_most = _chunks_at_a_time(axes, itemsize)
    parts = [axis.parts(most) for axis, most in zip(axes, at_most, strict=True)]
    return map(Box, itertools.product(*parts))


def _chunks_at_a_time(axes: Sequence[AxisSelection], itemsize: int) -> list[int]:
    """The most chunks of a box along each axis."""
    size = itemsize * math.prod(int(axis.lengths.max()) for axis in axes)
    room = 1 if size > SMALL_CHUNK else min(MAX_CHUNKS, MAX_BOX // max(1, size))
    at_most: list[int] = []
    for axis in reversed(axes):
        at_most.append(max(1, min(room, len(axis.numbers))))
        room //= at_most[-1]
    return at_most[::-1]


def _index(places: Sequence[Place]) -> tuple[Any, ...]:
    if all(isinstance(place, slice) for place in places):
        return tuple(places)
    return np.ix_(*(np.arange(p.start, p.stop, p.step) if isinstance(p, slice) else p for p in places))
