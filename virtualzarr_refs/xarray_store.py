"""One group in the form that xarray reads: variables with dimensions, attributes and encoding."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast, override

import numpy as np
import xarray as xr
from xarray.backends import AbstractDataStore, BackendArray
from xarray.core import indexing

from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.lazy_array import LazyArray, chunk_lengths
from virtualzarr_refs.metadata import ArrayMetadata
from virtualzarr_refs.store import VirtualStore

HIDDEN_ATTRIBUTES = frozenset(
    {
        "CLASS",
        "DIMENSION_LIST",
        "NAME",
        "REFERENCE_LIST",
        "_ARRAY_DIMENSIONS",
        "_NCProperties",
        "_Netcdf4Coordinates",
        "_Netcdf4Dimid",
        "_nc3_strict",
    }
)
"""Attributes that xarray's engines for NetCDF4 hide, and the one that its engine for Zarr hides."""


class GroupStore(AbstractDataStore):
    """One group, as xarray reads it.

    Parameters
    ----------
    group : VirtualGroup
        The group.
    arrays : mapping of str to LazyArray
        Its arrays, by name.
    store : VirtualStore
        Closed with the dataset.
    source : str, optional
        Where it comes from.
    """

    def __init__(
        self, group: VirtualGroup, arrays: Mapping[str, LazyArray], store: VirtualStore, source: str | None
    ) -> None:
        self._group = group
        self._arrays = arrays
        self._store = store
        self._source = source

    def maskable(self, mask_and_scale: Any) -> Any:  # noqa: ANN401  as xarray has it
        """What xarray may mask and scale: no records or raw bytes, which it would fail on."""
        records = [name for name, array in self._arrays.items() if array.array.dtype.kind == "V"]
        if not records or not mask_and_scale:
            return mask_and_scale
        asked = mask_and_scale if isinstance(mask_and_scale, Mapping) else {}
        return {**dict.fromkeys(self._arrays, True), **asked, **dict.fromkeys(records, False)}

    @override
    def get_variables(self) -> dict[str, xr.Variable]:
        """The variables, none of them read."""
        return {name: self._variable(name, array) for name, array in self._arrays.items()}

    @override
    def get_attrs(self) -> dict[str, Any]:
        """The attributes of the group."""
        return _visible(self._group.attributes)

    @override
    def get_encoding(self) -> dict[str, Any]:
        """Which dimensions are unlimited."""
        return {"unlimited_dims": set(self._group.metadata.unlimited_dimensions)}

    @override
    def close(self) -> None:
        """Close the sources."""
        self._store.close()

    def _variable(self, name: str, array: LazyArray) -> xr.Variable:
        metadata = array.array.metadata
        dimensions = _dimensions(name, metadata)
        data = indexing.LazilyIndexedArray(LazyBackendArray(array))
        encoding = _encoding(name, array, dimensions)
        if self._source is not None:
            encoding["source"] = self._source
        derived = cast("list[str]", metadata.encoding.get("derived_attributes", []))
        attributes = _visible({k: v for k, v in metadata.typed_attributes().items() if k not in derived})
        return xr.Variable(dimensions, data, attributes, encoding)


def _visible(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if name not in HIDDEN_ATTRIBUTES}


def _dimensions(name: str, metadata: ArrayMetadata) -> tuple[str, ...]:
    """The names of the dimensions; one that has none is the array's own."""
    names = metadata.dimension_names or (None,) * len(metadata.shape)
    return tuple(f"{name}_dim_{axis}" if given is None else given for axis, given in enumerate(names))


def _encoding(name: str, array: LazyArray, dimensions: tuple[str, ...]) -> dict[str, Any]:
    metadata = array.array.metadata
    encoding: dict[str, Any] = {"dtype": _stored_type(name, metadata), "original_shape": array.shape}
    if array.shape:
        encoding["preferred_chunks"] = dict(zip(dimensions, chunk_lengths(array), strict=True))
    return encoding | _storage(metadata)


def _stored_type(name: str, metadata: ArrayMetadata) -> Any:  # noqa: ANN401  a NumPy type, or `str`
    """The type in the file; of an enumeration with its names, under one for the type that xarray can write."""
    if metadata.dtype == np.dtype(object):
        return str
    is_big = {"name": "bytes", "configuration": {"endian": "big"}} in metadata.codecs
    dtype = metadata.dtype.newbyteorder(">" if is_big or metadata.encoding.get("byte_order") == "big" else "=")
    members = metadata.encoding.get("enum")
    return np.dtype(dtype, metadata={"enum": members, "enum_name": f"{name}_t"}) if members else dtype


def _storage(metadata: ArrayMetadata) -> dict[str, Any]:
    """How the array is stored, in the words of xarray's engines for NetCDF4; they can write it so again."""
    lengths = getattr(metadata.chunk_grid, "chunk_shape", None)
    if not metadata.shape or metadata.encoding.get("layout", "chunked") != "chunked":
        return {"contiguous": True, "chunksizes": None}
    storage: dict[str, Any] = {} if lengths is None else {"contiguous": False, "chunksizes": lengths}
    filters = cast("list[dict[str, Any]]", metadata.encoding.get("filters", []))
    for step in filters:
        storage |= _FILTERS.get(step["name"], lambda _: {})(step["values"])
    return storage


_FILTERS = {
    "filter 1 (deflate)": lambda values: {"zlib": True, "complevel": values[0] if values else 6},
    "filter 2 (shuffle)": lambda _: {"shuffle": True},
    "filter 3 (fletcher32)": lambda _: {"fletcher32": True},
}


class LazyBackendArray(BackendArray):
    """A lazy array in the form that xarray indexes.

    Parameters
    ----------
    array : LazyArray
        What is read.
    """

    def __init__(self, array: LazyArray) -> None:
        self._array = array
        self.shape = array.shape
        dtype = array.array.dtype
        # How xarray tells strings from other objects.
        self.dtype = np.dtype(object, metadata={"element_type": str}) if dtype == np.dtype(object) else dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:  # noqa: ANN401  any array
        is_vectorized = isinstance(key, indexing.VectorizedIndexer) and not self._array.is_padded
        support = indexing.IndexingSupport.VECTORIZED if is_vectorized else indexing.IndexingSupport.OUTER
        read: Any = self._array.read_points if is_vectorized else self._array.read
        return indexing.explicit_indexing_adapter(key, self.shape, support, read)

    @override
    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """What indexing does, without holding up the event loop."""
        return await asyncio.to_thread(self.__getitem__, key)
