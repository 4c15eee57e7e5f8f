"""How chunks are numbered where an index is an array."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from scanners.hdf5.index.blocks import require
from scanners.hdf5.index.order import empty_indexes
from scanners.hdf5.index.request import IndexRequest


def chunk_counts(request: IndexRequest) -> tuple[int | None, ...]:
    """Chunks along each axis when the dataset has grown to its limits; None without limit."""
    pairs = zip(request.max_shape, request.grid.chunk_shape, strict=True)
    return tuple(None if limit is None else -(-limit // length) for limit, length in pairs)


def chunk_capacity(request: IndexRequest) -> int:
    """Chunks that a dataset with a limit along every axis can have."""
    counts = chunk_counts(request)
    require(None not in counts, "the index is one of datasets that cannot grow without limit")
    return math.prod(count for count in counts if count is not None)


def chunk_indexes(request: IndexRequest, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The chunk indexes of chunks given by number, of shape (chunks, rank).

    The last axis is counted through first, up to its limit. An axis without limit is counted last, wherever it stands.
    """
    counts = chunk_counts(request)
    require(counts.count(None) <= 1, "the index is one of datasets that grow along one axis")
    growing = counts.index(None) if None in counts else 0
    steps = [(axis, count) for axis, count in enumerate(counts) if count is not None and axis != growing]
    index = empty_indexes(len(numbers), len(counts))
    rest = numbers
    for axis, count in reversed(steps):
        rest, index[:, axis] = np.divmod(rest, count) if count > 1 else (rest, 0)
    index[:, growing] = rest
    return index
