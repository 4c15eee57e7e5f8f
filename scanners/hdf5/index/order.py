"""Order of chunk indexes, which B-trees are sorted by: the last axis varies fastest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from scanners.hdf5.index.blocks import require

type Indexes = NDArray[np.uint64]
"""Chunk indexes, of shape (chunks, rank)."""


def empty_indexes(count: int, rank: int) -> Indexes:
    """Room for indexes. Axes are worked on one by one, so the numbers of each lie together in memory."""
    return np.empty((rank, count), np.uint64).T


def columns(indexes: Indexes) -> Indexes:
    """The same indexes, arranged like `empty_indexes`."""
    return np.ascontiguousarray(indexes.T).T


def precedes(first: Indexes, second: Indexes) -> NDArray[np.bool_]:
    """Which rows of `first` come before the same rows of `second`."""
    before = np.zeros(first.shape[0], np.bool_)
    for axis in reversed(range(first.shape[1])):
        a, b = first[:, axis], second[:, axis]
        before &= a == b
        before |= a < b
    return before


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which indexes the chunks beneath each node lie: where libhdf5 would look for them.

    Parameters
    ----------
    low, high : ndarray of uint64, shape (nodes, rank)
        First index that may lie there, and the first that may not.
    """

    low: Indexes
    high: Indexes

    @classmethod
    def everything(cls, rank: int) -> Self:
        """Of a root."""
        return cls(np.zeros((1, rank), np.uint64), np.full((1, rank), np.iinfo(np.uint64).max))

    def require_within(self, first: Indexes, last: Indexes) -> None:
        """Raise FormatError if a node's first or last index lies outside its bounds."""
        inside = ~precedes(first, self.low) & precedes(last, self.high)
        require(inside.all(), "a node holds chunks that belong into another")

    def narrowed(self, node: NDArray[np.intp], low: Indexes, high: Indexes) -> Bounds:
        """Bounds of children: their own, but never wider than those of their parent `node`."""
        return Bounds(_pick(low, self.low[node], second=True), _pick(high, self.high[node], second=False))


def _pick(a: Indexes, b: Indexes, *, second: bool) -> Indexes:
    """Row by row, the first or second of two indexes in order."""
    a_first = precedes(a, b)[:, None]
    return np.where(a_first != second, a, b)


def require_ascending(indexes: Indexes) -> None:
    """Raise FormatError unless each row comes after the one above it."""
    require(precedes(indexes[:-1], indexes[1:]).all(), "its chunks are out of order")


def positions_within(counts: NDArray[Any]) -> NDArray[np.int64]:
    """0, 1, … counts[0] - 1, 0, 1, … counts[1] - 1, and so on."""
    counts = counts.astype(np.int64)
    starts = np.cumsum(counts) - counts
    return np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(starts, counts)
