"""Values that are no byte range, read through h5py at scan time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import h5py
import numpy as np
from h5py import h5d
from numcodecs.vlen import VLenUTF8
from numpy.typing import NDArray

from scanners.hdf5.attributes import reference_path
from scanners.hdf5.datatypes import Storage, ValueType
from scanners.hdf5.opening import h5py_errors
from scanners.hdf5.pipelines import CodecJSON, bytes_codec
from scanners.text import decode_text
from virtualzarr_refs.chunk_grid import RegularGrid, Shape
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.manifest import Manifest

_POINTER_SIZE = 16
"""Bytes that a value elsewhere in the file is reckoned with before it is read."""


def materialise(
    dsid: h5d.DatasetID, value_type: ValueType, shape: Shape, limit: int
) -> tuple[RegularGrid, CodecJSON, Manifest]:
    """Read a whole dataset into one inline chunk.

    Parameters
    ----------
    dsid : h5py.h5d.DatasetID
        The dataset.
    value_type : ValueType
        Its datatype.
    shape : tuple of int
        Of the Zarr array, axes of an array type included.
    limit : int
        Bytes of values beyond which it is refused.

    Returns
    -------
    grid, codec, manifest
        One chunk, and the one codec that decodes it.

    Raises
    ------
    UnsupportedError
        If the values are more than the limit.
    FormatError
        If they cannot be read.
    """
    size = math.prod(shape) * max(value_type.dtype.itemsize, _POINTER_SIZE * (value_type.dtype == np.dtype(object)))
    _check_limit(size, limit)
    grid = RegularGrid(shape, tuple(max(1, n) for n in shape))
    data, codec = _encode(dsid, value_type, shape)
    _check_limit(len(data), limit)
    empty = math.prod(shape) == 0
    return grid, codec, Manifest.missing(grid.grid_shape) if empty else Manifest.from_inline(grid.grid_shape, {0: data})


def _check_limit(size: int, limit: int) -> None:
    if size > limit:
        raise UnsupportedError(
            f"its {size} bytes of values cannot be referred to as byte ranges and are more than the limit of "
            f"{limit} for reading them at scan time; raise materialise_limit to have them"
        )


def _encode(dsid: h5d.DatasetID, value_type: ValueType, shape: Shape) -> tuple[bytes, CodecJSON]:
    with h5py_errors("the values cannot be read"):
        values = np.asarray(h5py.Dataset(dsid)[()])
        texts = _texts(values, dsid) if value_type.storage is Storage.POINTERS else None
    if texts is not None:
        return bytes(cast("bytes", VLenUTF8().encode(texts))), {"name": "vlen-utf8"}
    little = value_type.dtype.newbyteorder("<")
    plain = np.ascontiguousarray(values.reshape(shape).astype(value_type.dtype).astype(little))
    return plain.tobytes(), bytes_codec(value_type.dtype, "little" if _has_order(value_type.dtype) else None)


def _texts(values: NDArray[Any], dsid: h5d.DatasetID) -> NDArray[np.object_]:
    text: Callable[[Any], str] = decode_text
    if h5py.check_ref_dtype(dsid.dtype.base):
        text = lambda reference: reference_path(reference, dsid)  # noqa: E731  one of two functions
    flat = np.empty(values.size, dtype=object)
    flat[:] = [text(value) if value else "" for value in values.reshape(-1).tolist()]
    return flat


def _has_order(dtype: np.dtype[Any]) -> bool:
    """Whether byte order matters for any part of the type."""
    return dtype.newbyteorder(">") != dtype.newbyteorder("<")
