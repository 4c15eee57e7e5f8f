"""From a dataset's record to a virtual array: read the storage, decide, build."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from h5py import h5d, h5p
from numpy.typing import NDArray

from scanners.contiguous import contiguous_manifest, cut, cut_unwritten
from scanners.hdf5.chunks import (
    ChunkTable,
    build_manifest,
    check_cells,
    check_chunks,
    is_partial,
    read_chunk_table,
    unwritten,
)
from scanners.hdf5.datatypes import Storage, ValueType, read_value_type
from scanners.hdf5.dimensions import DatasetView
from scanners.hdf5.header import LAYOUT, HeaderReader
from scanners.hdf5.index import IndexFile, IndexRequest, read_index
from scanners.hdf5.layout import ChunkedLayout, IndexType, parse_chunked_layout
from scanners.hdf5.misplaced import MisplacedChunks, is_fault_present
from scanners.hdf5.opening import h5py_errors
from scanners.hdf5.pipelines import Pipeline, applied, build_pipeline, mixed_codec, read_filters
from scanners.hdf5.records import DatasetRecord
from scanners.hdf5.superblock import chunk_tree_k
from scanners.hdf5.tree import reopen_beside_file
from scanners.hdf5.values import materialise
from scanners.hdf5.virtual import check_sources
from virtualzarr_refs.attributes import encode_attributes
from virtualzarr_refs.chunk_grid import JSON, RegularGrid, Shape
from virtualzarr_refs.codecs.hdf5_filters import HDF5Filter
from virtualzarr_refs.data_types import encode_data_type, encode_scalar
from virtualzarr_refs.errors import FormatError, UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.metadata import ArrayMetadata
from virtualzarr_refs.scanning import ScanOptions
from virtualzarr_refs.sources.location import local_path


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """The file that a dataset lies in.

    Parameters
    ----------
    url : str
        As references name it.
    size : int
        In bytes.
    headers : HeaderReader
        Reads its object headers.
    """

    url: str
    size: int
    headers: HeaderReader


@dataclass(frozen=True, slots=True)
class Stored:
    """A dataset with everything that decides how it is shown.

    Parameters
    ----------
    record : DatasetRecord
        From the walk.
    facts : SourceFacts
        Its file.
    properties : h5py.h5p.PropDCID
        Its creation properties.
    value_type : ValueType
        Its datatype.
    filters : tuple of HDF5Filter
        Its pipeline.
    options : ScanOptions
        What the user asked for.
    """

    record: DatasetRecord
    facts: SourceFacts
    properties: h5p.PropDCID
    value_type: ValueType
    filters: tuple[HDF5Filter, ...]
    options: ScanOptions

    @property
    def shape(self) -> Shape:
        """Of the Zarr array: the dataset's axes, then those of an array type."""
        return self.record.shape + self.value_type.axes


@dataclass(frozen=True, slots=True)
class Placed:
    """What has been decided: the grid, the codecs, and where the chunks lie."""

    grid: RegularGrid
    codecs: Pipeline
    manifest: Manifest
    materialised: str = ""


def build_array(
    record: DatasetRecord,
    attributes: Mapping[str, Any],
    view: DatasetView,
    facts: SourceFacts,
    options: ScanOptions,
) -> VirtualArray:
    """Show a dataset as a virtual array.

    Parameters
    ----------
    record : DatasetRecord
        The dataset.
    attributes : mapping
        Those to show.
    view : DatasetView
        How NetCDF shows it.
    facts : SourceFacts
        Its file.
    options : ScanOptions
        What the user asked for.

    Raises
    ------
    FormatError
        If the file is corrupt here.
    UnsupportedError
        If the dataset cannot be shown.
    """
    with h5py_errors("the dataset's properties cannot be read"):
        properties = record.id.get_create_plist()
        tid = record.id.get_type()
        filters = read_filters(properties)
        layout = properties.get_layout()
        has_external = properties.get_external_count() > 0
    if has_external:
        record = reopen_beside_file(record)
    stored = Stored(record, facts, properties, read_value_type(tid), filters, options)
    placed = _PLACERS[layout](stored)
    return VirtualArray(_metadata(stored, placed, attributes, view), placed.manifest)


def _metadata(stored: Stored, placed: Placed, attributes: Mapping[str, Any], view: DatasetView) -> ArrayMetadata:
    value_type = stored.value_type
    flags = _flags(value_type, attributes)
    plain, types = encode_attributes({**attributes, **flags}, value_type.dtype)
    extra = tuple(f"{stored.record.name}_axis_{i}" for i in range(len(value_type.axes)))
    return ArrayMetadata(
        data_type=encode_data_type(value_type.dtype),
        chunk_grid=placed.grid,
        fill_value=encode_scalar(_fill_value(stored), value_type.dtype),
        codecs=placed.codecs,
        attributes=plain,
        dimension_names=view.dimensions + extra,
        attribute_types=types,
        encoding=_encoding(stored, placed, view, tuple(flags)),
    )


def _flags(value_type: ValueType, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """CF's way to tell the names of an enumeration's values."""
    if not value_type.members or "flag_values" in attributes or "flag_meanings" in attributes:
        return {}
    values = np.array(list(value_type.members.values()), value_type.dtype)
    return {"flag_values": values, "flag_meanings": " ".join(value_type.members)}


def _encoding(stored: Stored, placed: Placed, view: DatasetView, derived: tuple[str, ...]) -> dict[str, JSON]:
    facts: dict[str, JSON] = {
        "filters": [{"name": step.label, "values": list(step.values)} for step in stored.filters],
        "enum": {name: int(value) for name, value in stored.value_type.members.items()},
        "derived_attributes": list(derived),
        "byte_order": "" if stored.record.id.dtype.base.isnative else _OTHER_ORDER,
        "fixed_axes": list(view.fixed_axes),
        "materialised": placed.materialised,
        "layout": _LAYOUT_NAMES[stored.properties.get_layout()],
    }
    return {name: value for name, value in facts.items() if value}


_OTHER_ORDER = "big" if sys.byteorder == "little" else "little"


def _fill_value(stored: Stored) -> Any:  # noqa: ANN401  a scalar of any type
    """What h5py gives for values that were never written: zeros where no fill value is defined, or never used."""
    dtype, properties = stored.value_type.dtype, stored.properties
    if stored.value_type.storage is Storage.POINTERS:
        return ""
    with h5py_errors("the fill value cannot be read"):
        is_used = properties.get_fill_time() != h5d.FILL_TIME_NEVER
        if not is_used or properties.fill_value_defined() != h5d.FILL_VALUE_USER_DEFINED:
            return np.zeros((), dtype)[()]
        element = np.zeros((), stored.record.id.dtype)
        properties.get_fill_value(element)
    first = element.reshape(-1)[:1].astype(dtype)
    return first[0]


def _place_inline(stored: Stored, why: str) -> Placed:
    limit = stored.options.materialise_limit
    grid, codec, manifest = materialise(stored.record.id, stored.value_type, stored.shape, limit)
    return Placed(grid, (codec,), manifest, why)


def _place_compact(stored: Stored) -> Placed:
    return _place_inline(stored, "compact storage, inside the object header")


def _place_virtual(stored: Stored) -> Placed:
    names = {
        os.fsdecode(stored.properties.get_virtual_filename(i)) for i in range(stored.properties.get_virtual_count())
    }
    if names - {"."}:
        _refuse_other_files(stored, "virtual dataset over other files")
    with h5py_errors("the sources of the virtual dataset cannot be looked at"):
        check_sources(stored.record.id)
    return _place_inline(stored, "virtual dataset, put together from other datasets")


def _place_contiguous(stored: Stored) -> Placed:
    if stored.properties.get_external_count():
        return _place_external(stored)
    if stored.value_type.storage is Storage.POINTERS:
        return _place_inline(stored, _POINTERS)
    with h5py_errors("the place of the values cannot be read"):
        offset = stored.record.id.get_offset()
    return _place_piece(stored, stored.facts.url, offset, stored.facts.size)


def _refuse_other_files(stored: Stored, feature: str) -> None:
    """A file from elsewhere must not lead to local ones."""
    if local_path(stored.facts.url) is None:
        raise UnsupportedError("a remote file's data in other files is not read; scan a local copy", feature=feature)


_PREFIX = "HDF5_EXTFILE_PREFIX"
"""Variable of the environment that tells libhdf5 where files of external storage are."""


def _place_external(stored: Stored) -> Placed:
    _refuse_other_files(stored, "external storage")
    count = stored.properties.get_external_count()
    name, offset, size = stored.properties.get_external(0)
    beside = Path(stored.record.file).parent / os.fsdecode(name)
    length = math.prod(stored.record.shape) * stored.value_type.size
    if (
        count > 1
        or size < length
        or stored.value_type.storage is Storage.POINTERS
        or _PREFIX in os.environ  # the file may be another one
        or not beside.is_file()
        or beside.stat().st_size < offset + length  # HDF5 reads zeros beyond the end
    ):
        return _place_inline(stored, "external storage in several files, or not whole")
    return _place_piece(stored, str(beside.absolute()), int(offset), beside.stat().st_size)


def _place_piece(stored: Stored, url: str, offset: int | None, file_size: int) -> Placed:
    """Values in one piece; without an offset they were never written."""
    value_type, shape, target = stored.value_type, stored.record.shape, stored.options.target_chunk_size
    pipeline = build_pipeline(value_type, ())
    length = math.prod(shape) * value_type.size
    if offset is None or not length:
        grid = _with_axes(cut_unwritten(shape, value_type.size, target), value_type.axes)
        return Placed(grid, pipeline, unwritten(grid))
    if offset + length > file_size:
        raise FormatError("the values lie beyond the end of the file", offset=offset)
    grid = _with_axes(cut(shape, value_type.size, target), value_type.axes)
    check_cells(grid)
    item = value_type.size // max(1, math.prod(value_type.axes))
    return Placed(grid, pipeline, contiguous_manifest(grid, url, offset, item))


def _place_chunked(stored: Stored) -> Placed:
    if stored.value_type.storage is Storage.POINTERS:
        return _place_inline(stored, _POINTERS)
    grid = RegularGrid(stored.record.shape, tuple(int(n) for n in stored.properties.get_chunk()))
    table = _read_chunks(stored, grid)
    chunk_bytes = math.prod(grid.chunk_shape) * stored.value_type.size
    mask = _effective_mask(stored, table, grid, chunk_bytes)
    check_chunks(table, stored.facts.size, chunk_bytes, mask == _every(stored.filters))
    codecs, variant = _codecs(stored, mask)
    manifest = build_manifest(table, grid, stored.facts.url, variant)
    shown = _with_axes(grid, stored.value_type.axes)
    return Placed(shown, codecs, _reshaped(manifest, shown.grid_shape))


FEW_CHUNKS = 100
"""Chunks that libhdf5 lists faster one by one than we parse an index in bulk."""


def _read_chunks(stored: Stored, grid: RegularGrid) -> ChunkTable:
    if math.prod(grid.grid_shape) > FEW_CHUNKS:
        with suppress(FormatError):  # an index that we cannot make sense of is libhdf5's to judge
            return read_index(_index_request(stored, grid))
    return _list_chunks(stored, grid)


def _index_request(stored: Stored, grid: RegularGrid) -> IndexRequest:
    headers, layout = stored.facts.headers, _chunked_layout(stored)
    file = IndexFile(headers.source, headers.base, headers.offset_size, headers.length_size)
    k = chunk_tree_k(headers) if layout.index_type is IndexType.BTREE1 else 0
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
    message = stored.facts.headers.message(stored.record.key[1], LAYOUT)
    if message is None:
        raise FormatError("the object header has no layout message")
    return parse_chunked_layout(message, stored.facts.headers.offset_size, stored.facts.headers.length_size)


def _codecs(stored: Stored, mask: NDArray[np.uint32]) -> tuple[Pipeline, NDArray[np.uint16] | None]:
    """The array's codecs and, where chunks went through different filters, the variant of each chunk."""
    if not (mask != mask[:1]).any():
        return build_pipeline(stored.value_type, applied(stored.filters, int(mask[0]) if len(mask) else 0)), None
    masks, variant = np.unique(mask, return_inverse=True)
    pipelines = tuple(build_pipeline(stored.value_type, applied(stored.filters, int(m))) for m in masks)
    distinct = tuple({str(pipeline): pipeline for pipeline in pipelines}.values())
    if len(distinct) == 1:
        return distinct[0], None
    number = np.array([distinct.index(pipeline) for pipeline in pipelines], np.uint16)
    return (mixed_codec(distinct),), number[variant.reshape(-1)]


def _with_axes(grid: RegularGrid, axes: Shape) -> RegularGrid:
    return RegularGrid(grid.shape + axes, grid.chunk_shape + tuple(max(1, n) for n in axes))


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


_POINTERS = "values of variable length or references, kept elsewhere in the file"

_PLACERS: Mapping[int, Callable[[Stored], Placed]] = {
    h5d.COMPACT: _place_compact,
    h5d.CONTIGUOUS: _place_contiguous,
    h5d.CHUNKED: _place_chunked,
    h5d.VIRTUAL: _place_virtual,
}

_LAYOUT_NAMES: Mapping[int, str] = {
    h5d.COMPACT: "compact",
    h5d.CONTIGUOUS: "contiguous",
    h5d.CHUNKED: "chunked",
    h5d.VIRTUAL: "virtual",
}
