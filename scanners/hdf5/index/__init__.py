"""Chunk indexes of HDF5, read in bulk: no object and no call for each chunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from scanners.hdf5.chunks import ChunkTable
from scanners.hdf5.index.blocks import IndexFile, require
from scanners.hdf5.index.btree1 import read_btree1
from scanners.hdf5.index.btree1_leaf import read_leaf
from scanners.hdf5.index.btree2 import read_btree2
from scanners.hdf5.index.extensible_array import read_extensible_array
from scanners.hdf5.index.fixed_array import read_fixed_array
from scanners.hdf5.index.request import IndexRequest
from scanners.hdf5.index.unindexed import read_implicit, read_single_chunk
from scanners.hdf5.layout import IndexType
from virtualzarr_refs.errors import FormatError, SourceTruncatedError

_READERS: Mapping[IndexType, Callable[[IndexRequest], ChunkTable]] = {
    IndexType.BTREE1: read_btree1,
    IndexType.SINGLE_CHUNK: read_single_chunk,
    IndexType.IMPLICIT: read_implicit,
    IndexType.FIXED_ARRAY: read_fixed_array,
    IndexType.EXTENSIBLE_ARRAY: read_extensible_array,
    IndexType.BTREE2: read_btree2,
}


def read_index(request: IndexRequest) -> ChunkTable:
    """Read a chunk index of any kind.

    Nothing is guessed: every block must have its signature, version, place and checksum, and lie within the file;
    B-trees must be sorted throughout.

    Raises
    ------
    FormatError
        If the index is damaged, or more than this reader understands. Then libhdf5 has to be asked.
    SourceError
        If the file cannot be read.
    """
    require(request.layout.chunk_shape == request.grid.chunk_shape, "its chunks have another shape than the dataset's")
    if request.is_empty:
        nothing = np.empty(0, np.uint64)
        index = np.empty((0, request.rank), np.int64)
        return ChunkTable(index, np.empty(0, np.uint32), nothing, nothing)
    try:
        return _READERS[request.layout.index_type](request)
    except SourceTruncatedError as error:
        raise FormatError(f"the chunk index is damaged: {error}") from error


__all__ = ["IndexFile", "IndexRequest", "read_index", "read_leaf"]
