"""How the chunks of an array are shared out among files: a grid of cells, each of one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.manifest import MISSING, Manifest

type Bounds = tuple[int, ...]
"""Where cells begin along an axis, and where the last one ends, in chunks."""

_BLOCK = 1 << 22
"""Chunks that are looked at together."""


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of an array.

    Parameters
    ----------
    bounds : tuple of tuple of int
        Along each axis.
    url_id : ndarray of uint32
        The source of each cell, or `MISSING` for one without a chunk.
    """

    bounds: tuple[Bounds, ...]
    url_id: NDArray[np.uint32]

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """The cells of a manifest whose grid is not empty. Cells end wherever the source changes along an axis.

        Raises
        ------
        UnsupportedError
            If that leaves cells with chunks of several sources.
        """
        ids = manifest.url_id
        if len(manifest.urls) < 2:
            bounds = tuple((0, count) for count in ids.shape)
        else:
            bounds = tuple(_bounds(ids, axis) for axis in range(ids.ndim))
        least = _reduced(np.minimum, ids, bounds)
        most = _reduced(np.maximum, np.where(ids == MISSING, 0, ids), bounds)
        if np.any((most > least) & (least != MISSING)):
            raise UnsupportedError("its files do not form a grid of their own; put them together along whole axes")
        return cls(bounds, least)

    def box(self, index: Sequence[int]) -> tuple[slice, ...]:
        """The chunks of a cell."""
        return tuple(slice(edges[i], edges[i + 1]) for i, edges in zip(index, self.bounds, strict=True))

    def lengths(self, axis: int) -> tuple[int, ...]:
        """The chunks of each cell along an axis."""
        return tuple(stop - start for start, stop in pairwise(self.bounds[axis]))

    @property
    def largest(self) -> Shape:
        """The chunks of the largest cell along each axis."""
        return tuple(max(self.lengths(axis)) for axis in range(len(self.bounds)))


def _bounds(ids: NDArray[np.uint32], axis: int) -> Bounds:
    """Where the source changes along an axis. A missing chunk is taken for one of the source before it."""
    lines = np.moveaxis(ids, axis, 0).reshape(ids.shape[axis], -1)
    changes = np.zeros(len(lines) - 1, np.bool_)
    step = max(1, _BLOCK // len(lines))
    for start in range(0, lines.shape[1], step):
        changes |= _changes(lines[:, start : start + step])
    return (0, *(np.flatnonzero(changes) + 1).tolist(), len(lines))


def _changes(lines: NDArray[np.uint32]) -> NDArray[np.bool_]:
    places = np.where(lines == MISSING, 0, np.arange(len(lines), dtype=np.int32)[:, None])
    filled = np.take_along_axis(lines, np.maximum.accumulate(places, axis=0), axis=0)
    return ((filled[1:] != filled[:-1]) & (filled[:-1] != MISSING)).any(axis=1)


def _reduced(ufunc: np.ufunc, ids: NDArray[np.uint32], bounds: Sequence[Bounds]) -> NDArray[np.uint32]:
    for axis, edges in enumerate(bounds):
        ids = ufunc.reduceat(ids, edges[:-1], axis=axis)
    return ids
