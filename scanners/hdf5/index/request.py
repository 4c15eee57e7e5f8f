"""What the readers of all kinds of index are given, and what they give back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scanners.hdf5.chunks import ChunkTable
from scanners.hdf5.index.blocks import Addresses, IndexFile, require
from scanners.hdf5.layout import ChunkedLayout
from virtualzarr_refs.chunk_grid import RegularGrid


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """A dataset whose chunk index is to be read.

    Parameters
    ----------
    layout : ChunkedLayout
        Its layout message.
    file : IndexFile
        The file.
    grid : RegularGrid
        Its chunk grid.
    max_shape : tuple of (int or None)
        What it may grow to, in elements; None without limit.
    is_filtered : bool
        Whether it has filters.
    btree1_k : int
        A version 1 B-tree's node holds up to twice as many entries (superblock, or its extension).
    """

    layout: ChunkedLayout
    file: IndexFile
    grid: RegularGrid
    max_shape: tuple[int | None, ...]
    is_filtered: bool
    btree1_k: int

    @property
    def rank(self) -> int:
        """Axes of the dataset."""
        return len(self.grid.shape)

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk without filters."""
        return math.prod(self.layout.chunk_shape) * self.layout.element_size

    @property
    def is_empty(self) -> bool:
        """Whether there is no index, because no chunk was ever written."""
        return self.layout.address == self.file.undefined

    @property
    def root(self) -> Addresses:
        """The address of the index, as a column of one."""
        return np.array([self.layout.address], np.uint64)


def chunk_table(
    request: IndexRequest, index: NDArray[np.uint64], mask: NDArray[Any], address: Addresses, size: NDArray[Any]
) -> ChunkTable:
    """The table of the chunks that are there; those that the dataset lost by shrinking are left out."""
    require(not (address > np.uint64(request.file.room)).any(), "a chunk lies beyond the end of the file")
    inside = np.ones(len(index), np.bool_)
    for axis, count in enumerate(request.grid.grid_shape):
        inside &= index[:, axis] < np.uint64(count)
    if not inside.all():
        index, mask, address, size = index[inside], mask[inside], address[inside], size[inside]
    return ChunkTable(
        index.view(np.int64),
        np.ascontiguousarray(mask, np.uint32),
        address + np.uint64(request.file.base),
        np.ascontiguousarray(size, np.uint64),
    )
