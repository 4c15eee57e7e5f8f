"""Datasets stored in chunks: where their chunks lie, and which filters each went through."""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from scanners.hdf5.chunks import ChunkTable, build_manifest, check_chunks, is_partial, read_chunk_table
from scanners.hdf5.header import LAYOUT
from scanners.hdf5.index import IndexFile, IndexRequest, read_index, read_leaf
from scanners.hdf5.layout import ChunkedLayout, IndexType, parse_chunked_layout
from scanners.hdf5.misplaced import MisplacedChunks, is_fault_present
from scanners.hdf5.pipelines import Pipeline, mixed_codec
from scanners.hdf5.stored import Placed, Stored, with_axes
from virtualzarr_refs.chunk_grid import RegularGrid, Shape
from virtualzarr_refs.codecs.hdf5_filters import HDF5Filter
from virtualzarr_refs.errors import FormatError
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.sources.location import local_path


def place_chunked(stored: Stored) -> Placed:
    """Read the chunk index of a dataset and decide which codecs its chunks need.

    Raises
    ------
    FormatError
        If a chunk lies where none can.
    UnsupportedError
        If the grid is too large, or no codec decodes the chunks.
    """
    grid = RegularGrid(stored.record.shape, stored.properties.chunk_shape)
    table = _read_chunks(stored, grid)
    chunk_bytes = math.prod(grid.chunk_shape) * stored.value_type.size
    mask = _effective_mask(stored, table, grid, chunk_bytes)
    check_chunks(table, stored.facts.size, chunk_bytes, mask == _every(stored.filters))
    codecs, variant = _codecs(stored, mask)
    manifest = build_manifest(table, grid, stored.facts.url, variant)
    shown = with_axes(grid, stored.value_type.axes)
    return Placed(shown, codecs, _reshaped(manifest, shown.grid_shape))


FEW_CHUNKS = 100
"""Chunks that libhdf5 lists faster one by one than we parse an index in bulk."""


def _read_chunks(stored: Stored, grid: RegularGrid) -> ChunkTable:
    few = math.prod(grid.grid_shape) <= FEW_CHUNKS
    with suppress(FormatError):  # an index that we cannot make sense of is libhdf5's to judge
        if few and stored.record.header is not None:
            request = _index_request(stored, grid)
            if request.layout.index_type is IndexType.BTREE1 and not request.is_empty:
                return read_leaf(request, stored.facts.headers)
    with suppress(FormatError):
        # libhdf5 would read the nodes of a remote index one after the other.
        if not few or local_path(stored.facts.url) is None:
            return read_index(_index_request(stored, grid))
    return _list_chunks(stored, grid)


_MAX_GAP = 4096
"""Bytes of a remote file that are fetched for nothing, rather than make one more request."""


def _index_request(stored: Stored, grid: RegularGrid) -> IndexRequest:
    headers, layout = stored.facts.headers, _chunked_layout(stored)
    gap = _MAX_GAP if local_path(stored.facts.url) is None else stored.facts.size  # what is mapped costs nothing
    file = IndexFile(headers.source, headers.base, headers.offset_size, headers.length_size, gap)
    k = stored.facts.chunk_tree_k if layout.index_type is IndexType.BTREE1 else 0
    return IndexRequest(layout, file, grid, stored.record.max_shape, bool(stored.filters), k)


def _list_chunks(stored: Stored, grid: RegularGrid) -> ChunkTable:
    """Have libhdf5 list the chunks."""
    limits = stored.record.max_shape
    # Where one axis can grow, and only one, newer files have an extensible array.
    suspect = limits.count(None) == 1 and limits[0] is not None and is_fault_present()
    if suspect and _chunked_layout(stored).index_type is IndexType.EXTENSIBLE_ARRAY:
        return read_chunk_table(stored.record.id, grid, MisplacedChunks.of(limits, grid.chunk_shape))
    return read_chunk_table(stored.record.id, grid)


def _effective_mask(stored: Stored, table: ChunkTable, grid: RegularGrid, chunk_bytes: int) -> NDArray[np.uint32]:
    """The filters that each chunk went without.

    A dataset may leave partial chunks at its edges unfiltered; their masks do not say so, only the layout message
    does. It need not be read where no such chunk has the size of an unfiltered one.
    """
    relevant = _every(stored.filters)
    mask = table.mask & relevant
    if not stored.filters:
        return mask
    partial = is_partial(table, grid)
    if (partial & (table.length == chunk_bytes)).any() and _chunked_layout(stored).skips_filters_at_edges:
        return np.where(partial, relevant, mask)
    return mask


def _every(filters: tuple[HDF5Filter, ...]) -> np.uint32:
    """The mask of a chunk that went without any of the filters."""
    return np.uint32((1 << len(filters)) - 1)


def _chunked_layout(stored: Stored) -> ChunkedLayout:
    header = stored.record.header or stored.facts.headers.read(stored.record.key[1])
    message = header.body(LAYOUT)
    if message is None:
        raise FormatError("the object header has no layout message")
    return parse_chunked_layout(message, header.offset_size, header.length_size)


def _codecs(stored: Stored, mask: NDArray[np.uint32]) -> tuple[Pipeline, NDArray[np.uint16] | None]:
    """The array's codecs and, where chunks went through different filters, the variant of each chunk."""
    if not (mask != mask[:1]).any():
        return stored.properties.pipeline(int(mask[0]) if len(mask) else 0), None
    masks, variant = np.unique(mask, return_inverse=True)
    pipelines = tuple(stored.properties.pipeline(int(m)) for m in masks)
    distinct = tuple({str(pipeline): pipeline for pipeline in pipelines}.values())
    if len(distinct) == 1:
        return distinct[0], None
    number = np.array([distinct.index(pipeline) for pipeline in pipelines], np.uint16)
    return (mixed_codec(distinct),), number[variant.reshape(-1)]


def _reshaped(manifest: Manifest, grid_shape: Shape) -> Manifest:
    """The manifest over a grid with further axes of one chunk each."""
    if manifest.grid_shape == grid_shape:
        return manifest
    if manifest.is_missing:
        return Manifest.missing(grid_shape)
    variant = None if manifest.variant is None else manifest.variant.reshape(grid_shape)
    return Manifest(
        manifest.urls,
        manifest.url_id.reshape(grid_shape),
        manifest.offset.reshape(grid_shape),
        manifest.length.reshape(grid_shape),
        variant,
    )
