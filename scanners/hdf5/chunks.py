"""Where HDF5 keeps the chunks of a dataset."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from h5py import h5d
from numpy.typing import NDArray

from scanners.hdf5.misplaced import MisplacedChunks
from scanners.hdf5.opening import h5py_errors
from virtualzarr_refs.chunk_grid import RegularGrid, Shape
from virtualzarr_refs.errors import FormatError, UnsupportedError
from virtualzarr_refs.manifest import MISSING, Manifest

MAX_CELLS = 100_000_000
"""Chunks of a grid beyond which a manifest of 20 bytes each is too large to keep."""


MAX_MISSING = 1 << 59
"""Chunks of a grid beyond which NumPy has no array of 8 bytes each, not even of one repeated number."""


@dataclass(frozen=True, slots=True)
class ChunkTable:
    """The chunks that a dataset has, in any order.

    Parameters
    ----------
    index : ndarray of int64, shape (chunks, rank)
        Chunk indexes.
    mask : ndarray of uint32
        Filters that were left out.
    offset, length : ndarray of uint64
        In bytes, from the start of the file.
    """

    index: NDArray[np.int64]
    mask: NDArray[np.uint32]
    offset: NDArray[np.uint64]
    length: NDArray[np.uint64]


def read_chunk_table(dsid: h5d.DatasetID, grid: RegularGrid, misplaced: MisplacedChunks | None = None) -> ChunkTable:
    """List the chunks of a chunked dataset.

    Parameters
    ----------
    dsid : h5py.h5d.DatasetID
        The dataset.
    grid : RegularGrid
        Of the dataset.
    misplaced : MisplacedChunks, optional
        Puts the chunks in place where libhdf5 lists them under wrong coordinates.

    Raises
    ------
    FormatError
        If the chunk index cannot be read.
    """
    rows: list[tuple[int, ...]] = []

    def visit(info: Any) -> None:  # noqa: ANN401  h5py.h5d.StoreInfo
        rows.append((*info.chunk_offset, info.filter_mask, info.byte_offset or 0, info.size))

    with h5py_errors("the chunk index cannot be read"):
        dsid.chunk_iter(visit)
    rank = len(grid.shape)
    table = np.array(rows, dtype=np.uint64).reshape(len(rows), rank + 3)
    index = _index(table[:, :rank], grid)
    if misplaced is not None:
        index = misplaced.put_right(index)
    # Chunks that a dataset lost by shrinking may still be in its index.
    inside = (index < np.array(grid.grid_shape, np.int64)).all(axis=1)
    kept = table[inside]
    return ChunkTable(index[inside], kept[:, rank].astype(np.uint32), kept[:, rank + 1], kept[:, rank + 2])


def _index(offsets: NDArray[np.uint64], grid: RegularGrid) -> NDArray[np.int64]:
    """The chunk indexes of offsets in elements, as listed; where the list is out of order, chunks cannot be found."""
    index, rest = np.divmod(offsets.astype(np.int64), np.array(grid.chunk_shape, np.int64))
    rows = index.tolist()
    if (index < 0).any() or rest.any() or any(a >= b for a, b in pairwise(rows)):
        raise FormatError("the chunks of the index are out of order, or lie beside the grid")
    return index


def check_chunks(table: ChunkTable, file_size: int, chunk_bytes: int, unfiltered: NDArray[np.bool_]) -> None:
    """Make sure that chunks lie within the file, and those that went through no filter have their full size.

    Raises
    ------
    FormatError
        If one does not, with its offset.
    """
    # A sum of two uint64 could wrap around; a difference that is known to be positive cannot.
    beyond = (table.offset > file_size) | (table.length > file_size - np.minimum(table.offset, np.uint64(file_size)))
    if beyond.any():
        raise FormatError("a chunk lies beyond the end of the file", offset=int(table.offset[beyond][0]))
    wrong = unfiltered & (table.length != chunk_bytes)
    if wrong.any():
        raise FormatError(f"a chunk of {chunk_bytes} bytes is stored in fewer or more", offset=_first(table, wrong))


def check_cells(grid: RegularGrid, limit: int = MAX_CELLS) -> None:
    """Make sure that a grid is not too large to keep.

    Raises
    ------
    UnsupportedError
        If it is.
    """
    if math.prod(grid.grid_shape) > limit:
        raise UnsupportedError(f"a grid of {math.prod(grid.grid_shape)} chunks is too large; the limit is {limit}")


def unwritten(grid: RegularGrid) -> Manifest:
    """The manifest of a dataset that has no chunks.

    Raises
    ------
    UnsupportedError
        If the grid is too large even for that.
    """
    check_cells(grid, MAX_MISSING)
    return Manifest.missing(grid.grid_shape)


def is_partial(table: ChunkTable, grid: RegularGrid) -> NDArray[np.bool_]:
    """Which of the chunks reach beyond the dataset."""
    partial = np.zeros(len(table.index), np.bool_)
    for axis, (size, length) in enumerate(zip(grid.shape, grid.chunk_shape, strict=True)):
        partial |= table.index[:, axis] >= size // length
    return partial


def build_manifest(table: ChunkTable, grid: RegularGrid, url: str, variant: NDArray[np.uint16] | None) -> Manifest:
    """Spread the chunks over the grid.

    Parameters
    ----------
    table : ChunkTable
        The chunks.
    grid : RegularGrid
        Of the dataset.
    url : str
        Of the file.
    variant : ndarray of uint16, optional
        Of each chunk, where they differ.

    Raises
    ------
    FormatError
        If two chunks claim the same place.
    UnsupportedError
        If the grid is too large to keep.
    """
    grid_shape = grid.grid_shape
    if not len(table.index):
        return unwritten(grid)
    check_cells(grid)
    place: Any = tuple(table.index.T)
    spread = _spreader(grid_shape, np.asarray(np.ravel_multi_index(place, grid_shape)))
    url_id = spread(np.zeros(len(table.index), np.uint32), MISSING)
    if np.count_nonzero(url_id == 0) != len(table.index):
        raise FormatError("two chunks of the index claim the same place")
    variants = None if variant is None else spread(variant, 0)
    return Manifest((url,), url_id, spread(table.offset, 0), spread(table.length, 0), variants)


def _spreader(grid_shape: Shape, position: NDArray[np.intp]) -> Callable[[NDArray[Any], Any], NDArray[Any]]:
    """What lays out a column over the grid, given the positions in C order, and fills the rest."""
    size = math.prod(grid_shape)
    if len(position) == size and (position == np.arange(size)).all():
        return lambda column, _: column.reshape(grid_shape)

    def spread(column: NDArray[Any], rest: Any) -> NDArray[Any]:  # noqa: ANN401  of the column's type
        over_grid = np.full(size, rest, column.dtype)
        over_grid[position] = column
        return over_grid.reshape(grid_shape)

    return spread


def _first(table: ChunkTable, which: NDArray[np.bool_]) -> int:
    return int(table.offset[which][0])
