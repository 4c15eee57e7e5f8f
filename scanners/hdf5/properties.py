"""What a dataset was created with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from h5py import h5d, h5p, h5t

from scanners.hdf5.datatypes import Storage, ValueType, read_value_type
from scanners.hdf5.familiar import Memory, properties_key
from scanners.hdf5.opening import h5py_errors
from scanners.hdf5.pipelines import Pipeline, applied, build_pipeline, read_filters
from scanners.hdf5.records import DatasetRecord
from virtualzarr_refs.chunk_grid import JSON, Shape
from virtualzarr_refs.codecs.hdf5_filters import HDF5Filter
from virtualzarr_refs.data_types import encode_data_type, encode_scalar


@dataclass(frozen=True, slots=True, eq=False)
class DatasetProperties:
    """Type and storage of a dataset, but for where its values lie.

    Parameters
    ----------
    value_type : ValueType
        Its datatype.
    is_native_order : bool
        Whether its values are stored in the byte order of this machine.
    data_type : JSON
        The Zarr array's.
    fill_value : JSON
        What h5py gives for values that were never written.
    layout : int
        Storage class, such as `h5py.h5d.CHUNKED`.
    chunk_shape : tuple of int
        In elements; empty unless chunked.
    filters : tuple of HDF5Filter
        Its pipeline.
    has_external_files : bool
        Whether its values lie in other files.
    """

    value_type: ValueType
    is_native_order: bool
    data_type: JSON
    fill_value: JSON
    layout: int
    chunk_shape: Shape
    filters: tuple[HDF5Filter, ...]
    has_external_files: bool
    _pipelines: dict[int, Pipeline] = field(default_factory=dict[int, Pipeline])

    def pipeline(self, mask: int) -> Pipeline:
        """The codecs of chunks that went without some filters.

        Parameters
        ----------
        mask : int
            Bit i says that filter i was left out.

        Raises
        ------
        UnsupportedError
            If a filter cannot be undone in this process.
        """
        if mask not in self._pipelines:
            self._pipelines[mask] = build_pipeline(self.value_type, applied(self.filters, mask))
        return self._pipelines[mask]


def read_properties(record: DatasetRecord) -> DatasetProperties:
    """Ask libhdf5 for the properties of a dataset, or recall what it said of another that is described alike.

    Raises
    ------
    FormatError
        If they cannot be read.
    UnsupportedError
        If Zarr or h5py has no such type, or h5py cannot tell all filters.
    """
    key = None if record.header is None else properties_key(record.header)
    return _known.recall(key) or _known.keep(key, _ask(record.id))


_known = Memory[DatasetProperties]()


def _ask(dsid: h5d.DatasetID) -> DatasetProperties:
    with h5py_errors("the dataset's properties cannot be read"):
        created, tid = dsid.get_create_plist(), dsid.get_type()
        filters = read_filters(created)
        layout = created.get_layout()
        chunk_shape = tuple(int(n) for n in created.get_chunk()) if layout == h5d.CHUNKED else ()
        has_external = created.get_external_count() > 0
    value_type = read_value_type(tid)
    is_native = bool(tid.dtype.base.isnative)
    data_type = encode_data_type(value_type.dtype)
    fill = encode_scalar(_fill_value(created, tid, value_type), value_type.dtype)
    return DatasetProperties(value_type, is_native, data_type, fill, layout, chunk_shape, filters, has_external)


def _fill_value(created: h5p.PropDCID, tid: h5t.TypeID, value_type: ValueType) -> Any:  # noqa: ANN401  of any type
    """What h5py gives for values that were never written: zeros where no fill value is defined, or never used."""
    if value_type.storage is Storage.POINTERS:
        return ""
    with h5py_errors("the fill value cannot be read"):
        is_used = created.get_fill_time() != h5d.FILL_TIME_NEVER
        if not is_used or created.fill_value_defined() != h5d.FILL_VALUE_USER_DEFINED:
            return np.zeros((), value_type.dtype)[()]
        element = np.zeros((), tid.dtype)
        created.get_fill_value(element)
    return element.reshape(-1)[:1].astype(value_type.dtype)[0]
