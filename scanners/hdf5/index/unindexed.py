"""Chunks without an index: a single one, or all of them one after the other."""

from __future__ import annotations

import numpy as np

from scanners.hdf5.chunks import ChunkTable
from scanners.hdf5.index.blocks import require
from scanners.hdf5.index.numbering import chunk_capacity, chunk_indexes
from scanners.hdf5.index.request import IndexRequest, chunk_table


def read_single_chunk(request: IndexRequest) -> ChunkTable:
    """VII.A "The Single Chunk Index": the layout message itself says where the chunk lies.

    Raises
    ------
    FormatError
        If the dataset can have more chunks, or the message does not fit its filters.
    """
    size = request.layout.single_size
    require((size is not None) == request.is_filtered, "the size of a single chunk does not fit the filters")
    require(chunk_capacity(request) == 1, "a single chunk does not cover the dataset")
    index = np.zeros((1, request.rank), np.uint64)
    mask = np.array([request.layout.single_mask], np.uint32)
    length = np.array([request.chunk_bytes if size is None else size], np.uint64)
    return chunk_table(request, index, mask, request.root, length)


def read_implicit(request: IndexRequest) -> ChunkTable:
    """VII.B "The Implicit Index": every chunk was given its place when the dataset was made.

    Raises
    ------
    FormatError
        If the chunks do not fit into the file, or have filters.
    """
    require(not request.is_filtered, "chunks without an index have filters")
    count, size = chunk_capacity(request), request.chunk_bytes
    require(request.layout.address + count * size <= request.file.room, "chunks lie beyond the end of the file")
    number = np.arange(count)
    address = request.root + number.astype(np.uint64) * np.uint64(size)
    index, sizes = chunk_indexes(request, number), np.full(count, size, np.uint64)
    return chunk_table(request, index, np.zeros(count, np.uint32), address, sizes)
