"""HDF5 datatypes as Zarr data types."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, cast

import h5py
import numpy as np
from h5py import h5t

from scanners.hdf5.attributes import is_opaque, leaves, packed_dtype
from scanners.hdf5.opening import HDF5_ERRORS
from scanners.hdf5.type_cache import TypeCache
from scanners.text import decode_text
from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.data_types import encode_data_type, split_axes
from virtualzarr_refs.errors import UnsupportedError

type Endian = Literal["little", "big"]


class Storage(Enum):
    """How the bytes of a dataset relate to the values that h5py gives."""

    DIRECT = "direct"
    """The bytes are the values, but for byte order."""
    CONVERTED = "converted"
    """libhdf5 has to convert them: padding, odd precision, strings that end at a null."""
    POINTERS = "pointers"
    """They point to values elsewhere in the file."""


@dataclass(frozen=True, slots=True)
class ValueType:
    """A datatype, understood.

    Parameters
    ----------
    dtype : numpy.dtype
        Of the Zarr array: native byte order, no padding; ``object`` for strings of variable length.
    storage : Storage
        What has to be done to the bytes.
    endian : {"little", "big"}, optional
        Byte order of what is stored directly; None where it has none.
    axes : tuple of int
        Axes that an array type adds after the dataset's own.
    members : mapping of str to int
        Names of an enumeration's values; empty for booleans and all other types.
    encoded : bytes
        The type as ``H5Tencode`` gives it.
    size : int
        Bytes of one element as stored, the added axes included.
    """

    dtype: np.dtype[Any]
    storage: Storage
    endian: Endian | None
    axes: Shape
    members: Mapping[str, int] = field(default_factory=dict[str, int])
    encoded: bytes = b""
    size: int = 0


def read_value_type(tid: h5t.TypeID) -> ValueType:
    """Understand a datatype.

    Raises
    ------
    UnsupportedError
        If Zarr or h5py has no such type.
    """
    return _value_type(tid)


def _understand(tid: h5t.TypeID, encoded: bytes) -> ValueType:
    # `encoded` comes first: looking for a conversion sorts the members of a compound type.
    dtype = _numpy_type(tid)
    element, axes = split_axes(dtype)
    storage = _storage(tid, dtype, element)
    shown = np.dtype(object) if storage is Storage.POINTERS else packed_dtype(element)
    encode_data_type(shown)
    endian = _endian(element) if storage is Storage.DIRECT else None
    return ValueType(shown, storage, endian, axes, _members(element), encoded, tid.get_size())


_value_type = TypeCache(_understand)


def _numpy_type(tid: h5t.TypeID) -> np.dtype[Any]:
    try:
        return cast("np.dtype[Any]", tid.dtype)
    except HDF5_ERRORS as error:
        raise UnsupportedError(f"h5py cannot read values of this type: {error}", feature=_class_name(tid)) from error


def _storage(tid: h5t.TypeID, dtype: np.dtype[Any], element: np.dtype[Any]) -> Storage:
    if element.hasobject:
        _check_pointers(element)
        return Storage.POINTERS
    if _is_chars(tid) or (_stores_values(tid, dtype) and _is_packed(element) and _has_one_order(element)):
        return Storage.DIRECT
    _check_conversion(tid, dtype)
    return Storage.CONVERTED


def _check_conversion(tid: h5t.TypeID, dtype: np.dtype[Any]) -> None:
    """Make sure now, and not when a chunk is read, that libhdf5 can convert the type."""
    try:
        path = h5t.find(tid, h5t.py_create(dtype))
    except HDF5_ERRORS as error:
        raise UnsupportedError(f"libhdf5 cannot convert values of this type: {error}", feature=str(dtype)) from error
    if path is None:
        raise UnsupportedError("libhdf5 cannot convert values of this type", feature=_class_name(tid))


def _check_pointers(element: np.dtype[Any]) -> None:
    if h5py.check_string_dtype(element) is not None or h5py.check_ref_dtype(element) is h5py.Reference:
        return
    if element.names is not None:
        raise UnsupportedError(
            "Zarr has no such type", feature="compound with members of variable length or references"
        )
    kind = "region reference" if h5py.check_ref_dtype(element) else "variable-length sequence"
    raise UnsupportedError("Zarr has no such type", feature=kind)


def _stores_values(tid: h5t.TypeID, dtype: np.dtype[Any]) -> bool:
    """Whether the stored type is the very one that libhdf5 would convert to, so that nothing is left to convert."""
    if tid.get_class() == h5t.BITFIELD:
        # h5py shows a bitfield as an unsigned integer: right as it stands if every bit of it is used.
        return _bitfield_extent(tid) == (0, 8 * tid.get_size())
    if is_opaque(tid):
        return True
    try:
        return bool(tid.equal(h5t.py_create(dtype, logical=True)))
    except HDF5_ERRORS:
        return False


def _bitfield_extent(tid: h5t.TypeID) -> tuple[int, int]:
    """First bit and number of bits.

    HDF5 File Format 3.0, IV.A.2.d "The Datatype Message", class 4: both follow the 8 bytes of the message's head,
    before which ``H5Tencode`` puts 2 of its own.
    """
    offset, precision = struct.unpack_from("<HH", tid.encode(), 10)
    return offset, precision


def _is_chars(tid: h5t.TypeID) -> bool:
    """Whether these are single characters, which need no terminator: NetCDF's char."""
    base = cast("Any", tid)
    while base.get_class() == h5t.ARRAY:
        base = base.get_super()
    return base.get_class() == h5t.STRING and base.get_size() == 1 and base.get_strpad() != h5t.STR_SPACEPAD


def _is_packed(dtype: np.dtype[Any]) -> bool:
    return dtype.itemsize == packed_dtype(dtype).itemsize


def _orders(dtype: np.dtype[Any]) -> set[Endian]:
    swapped = {leaf.isnative for leaf in leaves(dtype) if leaf.byteorder != "|"}
    native: Endian = "little" if np.little_endian else "big"
    other: Endian = "big" if np.little_endian else "little"
    return {native if is_native else other for is_native in swapped}


def _has_one_order(dtype: np.dtype[Any]) -> bool:
    return len(_orders(dtype)) <= 1


def _endian(dtype: np.dtype[Any]) -> Endian | None:
    return next(iter(_orders(dtype)), None)


def _members(element: np.dtype[Any]) -> dict[str, int]:
    members = h5py.check_enum_dtype(element) if element.kind in "iu" else None
    return {decode_text(name): value for name, value in (members or {}).items()}


def _class_name(tid: h5t.TypeID) -> str:
    return f"{_CLASS_NAMES.get(tid.get_class(), 'unknown')} datatype"


_CLASS_NAMES = {
    h5t.TIME: "time",
    h5t.FLOAT: "floating-point",
    h5t.INTEGER: "integer",
    h5t.STRING: "string",
    h5t.BITFIELD: "bitfield",
    h5t.OPAQUE: "opaque",
    h5t.COMPOUND: "compound",
    h5t.ENUM: "enumeration",
    h5t.VLEN: "variable-length",
    h5t.ARRAY: "array",
    h5t.REFERENCE: "reference",
}
