"""Values of small arrays, read while files are put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numcodecs.vlen import VLenUTF8
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.codecs.names import PACKING
from virtualzarr_refs.codecs.unpacking import unpack
from virtualzarr_refs.combine.parts import value_bytes
from virtualzarr_refs.data_types import decode_scalar, encode_data_type, encode_scalar
from virtualzarr_refs.errors import UnsupportedError, VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.lazy_array import LazyArray
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.metadata import ArrayMetadata
from virtualzarr_refs.sources import Sources

type EncodedAttributes = tuple[Mapping[str, Any], Mapping[str, Any]]
"""Attributes as in ``zarr.json``, and their NumPy types."""

MAX_READ = 256 * 1024 * 1024
"""Bytes of values of one array in one file that are read to be compared or kept inline."""

_THREADS = 16


def read_arrays(
    arrays: Sequence[VirtualArray],
    storage_options: Mapping[str, object] | None = None,
    sources: Sources | None = None,
) -> list[NDArray[Any]]:
    """The values of arrays, as files hold them.

    Parameters
    ----------
    arrays : sequence of VirtualArray
        To be read whole.
    storage_options : mapping, optional
        Of their sources.
    sources : mapping of str to ScannedSource, optional
        What the sources were when they were scanned.

    Raises
    ------
    UnsupportedError
        If one is too large to be read whole.
    SourceError, DecodeError
        If one cannot be read.
    """
    for array in arrays:
        if value_bytes(array) > MAX_READ:
            raise UnsupportedError(f"its {value_bytes(array)} bytes are too many to be compared or read at once")
    named = {str(number): array for number, array in enumerate(arrays)}
    group = VirtualGroup(arrays=named, sources=sources or {})
    store = group.to_store(storage_options=storage_options)
    options = {"storage_options": storage_options}
    readers = [LazyArray(array, store, path, options) for path, array in group.arrays.items()]

    try:
        if all(map(store.reader.is_mapped, group.urls)):
            return list(map(_read, arrays, readers))
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(_read, arrays, readers))
    finally:
        store.close()


def _read(array: VirtualArray, reader: LazyArray) -> NDArray[Any]:
    try:
        return reader.read((slice(None),) * len(reader.shape))
    except VirtualZarrError as error:
        error.node = None  # whoever asked knows what the array is called
        raise error.at(url=next(iter(array.manifest.urls), None)) from error.__cause__


def with_tail(array: VirtualArray, values: NDArray[Any], length: int, axis: int) -> NDArray[Any]:
    """Values up to the end of an unlimited dimension, the last ones the array's fill value."""
    if values.shape[axis] == length:
        return values
    shape = (*values.shape[:axis], length - values.shape[axis], *values.shape[axis + 1 :])
    fill = decode_scalar(array.metadata.fill_value, array.dtype)
    return np.concatenate([values, np.full(shape, fill, values.dtype)], axis)


def decoded(array: VirtualArray, values: NDArray[Any]) -> NDArray[Any]:
    """Values without CF's packing."""
    attributes = array.metadata.typed_attributes()
    return unpack(values, {name: attributes[name] for name in PACKING if name in attributes})


def inline_array(
    like: ArrayMetadata, values: NDArray[Any], attributes: Mapping[str, Any] | None = None
) -> VirtualArray:
    """An array of one inline chunk.

    Parameters
    ----------
    like : ArrayMetadata
        What it takes names and attributes from.
    values : ndarray
        Its values.
    attributes : mapping, optional
        Encoded ones that replace those of `like`.
    """
    plain = like.attributes if attributes is None else attributes
    types = {name: type_ for name, type_ in like.attribute_types.items() if attributes is None or name in attributes}
    array = inline_values(values, (plain, types), like.dimension_names)
    if array.metadata.data_type != like.data_type:
        return array
    return replace(array, metadata=replace(array.metadata, fill_value=like.fill_value))


def inline_values(
    values: NDArray[Any], attributes: EncodedAttributes, dimensions: tuple[str | None, ...] | None
) -> VirtualArray:
    """An array of one inline chunk.

    Parameters
    ----------
    values : ndarray
        Its values.
    attributes : tuple of two mappings
        As in ``zarr.json``, and their NumPy types.
    dimensions : tuple of str, optional
        Their names.
    """
    dtype = shown_type(values)
    grid = RegularGrid(values.shape, tuple(max(1, length) for length in values.shape))
    data, codec = _encoded(values, dtype)
    metadata = ArrayMetadata(
        data_type=encode_data_type(dtype),
        chunk_grid=grid,
        fill_value="" if dtype.hasobject else encode_scalar(np.zeros((), dtype)[()], dtype),
        codecs=(codec,),
        attributes=attributes[0],
        dimension_names=dimensions,
        attribute_types=attributes[1],
    )
    return VirtualArray(metadata, Manifest.from_inline(grid.grid_shape, {0: data} if values.size else {}))


def shown_type(values: NDArray[Any]) -> np.dtype[Any]:
    """The type by which Zarr shows values in memory: texts of any kind have variable length."""
    return np.dtype(object) if values.dtype.kind in "OTU" else values.dtype.newbyteorder("=")


def _encoded(values: NDArray[Any], dtype: np.dtype[Any]) -> tuple[bytes, dict[str, Any]]:
    if dtype.hasobject:
        return bytes(VLenUTF8().encode(np.asarray(values, object))), {"name": "vlen-utf8"}
    little = np.ascontiguousarray(values, dtype.newbyteorder("<") if dtype.names is None else dtype)
    return little.tobytes(), {"name": "bytes", "configuration": {"endian": "little"}}


def same_values(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two arrays are equal; NaN equals NaN."""
    if a.shape != b.shape:
        return False
    if a.dtype.kind in "fc" and b.dtype.kind in "fciub":
        return bool(np.array_equal(a, b, equal_nan=True))
    return bool(np.array_equal(a, b))


def file_of(group: VirtualGroup, number: int) -> str:
    """What to call a group in messages: the url of its only source, if it has one."""
    urls = group.urls
    if not urls:
        return f"group {number}"
    return urls[0] if len(urls) == 1 else f"{urls[0]} and {len(urls) - 1} more"


def files_of(groups: Iterable[VirtualGroup]) -> tuple[str, ...]:
    """See `file_of`."""
    return tuple(file_of(group, number) for number, group in enumerate(groups))
