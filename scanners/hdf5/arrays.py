"""From a dataset's record to a virtual array: read the storage, decide, build."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from h5py import h5d

from scanners.contiguous import contiguous_manifest, cut, cut_unwritten
from scanners.hdf5.chunked import place_chunked
from scanners.hdf5.chunks import check_cells, unwritten
from scanners.hdf5.datatypes import Storage, ValueType
from scanners.hdf5.dimensions import DatasetView
from scanners.hdf5.header import LAYOUT
from scanners.hdf5.layout import contiguous_address
from scanners.hdf5.opening import h5py_errors
from scanners.hdf5.pipelines import build_pipeline
from scanners.hdf5.properties import read_properties
from scanners.hdf5.records import DatasetRecord
from scanners.hdf5.stored import Placed, SourceFacts, Stored, with_axes
from scanners.hdf5.tree import reopen_beside_file
from scanners.hdf5.values import materialise
from scanners.hdf5.virtual import check_sources
from virtualzarr_refs.attributes import encode_attributes
from virtualzarr_refs.chunk_grid import JSON
from virtualzarr_refs.errors import FormatError, UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.metadata import ArrayMetadata
from virtualzarr_refs.scanning import ScanOptions
from virtualzarr_refs.sources.location import local_path


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
    properties = read_properties(record)
    if properties.has_external_files:
        record = reopen_beside_file(record)
    stored = Stored(record, facts, properties, options)
    placed = _PLACERS[properties.layout](stored)
    return VirtualArray(_metadata(stored, placed, attributes, view), placed.manifest)


def _metadata(stored: Stored, placed: Placed, attributes: Mapping[str, Any], view: DatasetView) -> ArrayMetadata:
    value_type = stored.value_type
    flags = _flags(value_type, attributes)
    plain, types = encode_attributes({**attributes, **flags}, value_type.dtype)
    extra = tuple(f"{stored.record.name}_axis_{i}" for i in range(len(value_type.axes)))
    return ArrayMetadata(
        data_type=stored.properties.data_type,
        chunk_grid=placed.grid,
        fill_value=stored.properties.fill_value,
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
        "byte_order": "" if stored.properties.is_native_order else _OTHER_ORDER,
        "fixed_axes": list(view.fixed_axes),
        "materialised": placed.materialised,
        "layout": _LAYOUT_NAMES[stored.properties.layout],
    }
    return {name: value for name, value in facts.items() if value}


_OTHER_ORDER = "big" if sys.byteorder == "little" else "little"


def _place_inline(stored: Stored, why: str) -> Placed:
    limit = stored.options.materialise_limit
    grid, codec, manifest = materialise(stored.record.id, stored.value_type, stored.shape, limit)
    return Placed(grid, (codec,), manifest, why)


def _place_compact(stored: Stored) -> Placed:
    return _place_inline(stored, "compact storage, inside the object header")


def _place_virtual(stored: Stored) -> Placed:
    created = stored.record.id.get_create_plist()
    names = {os.fsdecode(created.get_virtual_filename(i)) for i in range(created.get_virtual_count())}
    if names - {"."}:
        _enter_other_files(stored, "virtual dataset over other files")
    with h5py_errors("the sources of the virtual dataset cannot be looked at"):
        check_sources(stored.record.id)
    return _place_inline(stored, "virtual dataset, put together from other datasets")


def _place_contiguous(stored: Stored) -> Placed:
    if stored.properties.has_external_files:
        return _place_external(stored)
    if stored.value_type.storage is Storage.POINTERS:
        return _place_inline(stored, _POINTERS)
    return _place_piece(stored, stored.facts.url, _offset(stored), stored.facts.size)


def _offset(stored: Stored) -> int | None:
    header = stored.record.header
    if header is not None:
        with suppress(FormatError):  # libhdf5 knows more kinds of layout messages
            address = contiguous_address(header.body(LAYOUT) or b"", header.offset_size)
            return None if address is None else stored.facts.headers.base + address
    with h5py_errors("the place of the values cannot be read"):
        return stored.record.id.get_offset()


def _enter_other_files(stored: Stored, feature: str) -> None:
    """Note that values depend on more than the file; refuse if it is from elsewhere: it must not lead to local ones."""
    stored.options.doubts.append(f"{stored.record.path}: {feature}")
    if local_path(stored.facts.url) is None:
        raise UnsupportedError("a remote file's data in other files is not read; scan a local copy", feature=feature)


_PREFIX = "HDF5_EXTFILE_PREFIX"
"""Variable of the environment that tells libhdf5 where files of external storage are."""


def _place_external(stored: Stored) -> Placed:
    _enter_other_files(stored, "external storage")
    created = stored.record.id.get_create_plist()
    count = created.get_external_count()
    name, offset, size = created.get_external(0)
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
        grid = with_axes(cut_unwritten(shape, value_type.size, target), value_type.axes)
        return Placed(grid, pipeline, unwritten(grid))
    if offset + length > file_size:
        raise FormatError("the values lie beyond the end of the file", offset=offset)
    grid = with_axes(cut(shape, value_type.size, target), value_type.axes)
    check_cells(grid)
    item = value_type.size // max(1, math.prod(value_type.axes))
    return Placed(grid, pipeline, contiguous_manifest(grid, url, offset, item))


def _place_chunked(stored: Stored) -> Placed:
    return _place_inline(stored, _POINTERS) if stored.value_type.storage is Storage.POINTERS else place_chunked(stored)


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
