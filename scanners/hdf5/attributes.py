"""Attributes of HDF5 objects, through h5py's low-level calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, cast

import h5py
import numpy as np
from h5py import h5a, h5r, h5s, h5t
from numpy.typing import NDArray

from scanners.hdf5.attribute_messages import AttributeMessage
from scanners.hdf5.familiar import Memory
from scanners.hdf5.global_heap import GlobalHeaps
from scanners.hdf5.opening import h5py_errors
from scanners.hdf5.records import DatasetHandle
from scanners.hdf5.type_cache import TypeCache
from scanners.text import decode_text
from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.data_types import split_axes
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.skip_log import SkipLog

DIMENSION_LIST = "DIMENSION_LIST"
REFERENCE_LIST = "REFERENCE_LIST"

_BOOKKEEPING = frozenset({DIMENSION_LIST, REFERENCE_LIST})
"""References that say how datasets share dimensions; read apart, by `attached_scales`."""


def read_attributes(oid: Any, path: str, skips: SkipLog) -> dict[str, Any]:  # noqa: ANN401  an h5py object id
    """Read every attribute of an object, but for the references between datasets and dimension scales.

    Parameters
    ----------
    oid : h5py ObjectID
        Group or dataset.
    path : str
        Of the object, for messages.
    skips : SkipLog
        Told of attributes that cannot be read; each is named ``path@attribute``.

    Returns
    -------
    dict
        Strings, lists of strings, NumPy scalars and arrays. As NetCDF has it, one element is a scalar.
    """
    attributes: dict[str, Any] = {}
    with h5py_errors("the attributes cannot be listed"):
        count = h5a.get_num_attrs(oid)
    for position in range(count):
        with skips.node(f"{path}@{position}"):
            with h5py_errors("an attribute cannot be opened"):
                aid = h5a.open(oid, index=position)
                name = decode_text(cast("bytes", aid.name))
            if name in _BOOKKEEPING:
                continue
            with skips.node(f"{path}@{name}"), h5py_errors("an attribute cannot be read"):
                if name in attributes:
                    raise UnsupportedError("another attribute has this name too, in another encoding")
                attributes[name] = read_attribute(aid)
    return attributes


def recall_attributes(
    handle: DatasetHandle, messages: Mapping[bytes, AttributeMessage], heaps: GlobalHeaps, path: str, skips: SkipLog
) -> dict[str, Any]:
    """Read every attribute of a dataset, as `read_attributes` does; libhdf5 is asked only about unfamiliar ones."""
    attributes: dict[str, Any] = {}
    for raw, message in messages.items():
        name = decode_text(raw)
        if name in _BOOKKEEPING:
            continue
        with skips.node(f"{path}@{name}"), h5py_errors("an attribute cannot be read"):
            if name in attributes:
                raise UnsupportedError("another attribute has this name too, in another encoding")
            key = message.key(heaps)
            value = _known.recall(key)
            if value is None:
                value = _known.keep(key, read_attribute(h5a.open(handle.id, raw)))
            attributes[name] = copy(value)
    return attributes


_known = Memory[Any]()


def read_attribute(aid: h5a.AttrID) -> Any:  # noqa: ANN401  whatever an attribute may hold
    """Read one attribute.

    Raises
    ------
    UnsupportedError
        If its type has no counterpart.
    """
    known, space = _attribute_type(aid.get_type()), aid.get_space()
    if known.decode is None:
        raise UnsupportedError("an attribute of this type cannot be shown as JSON", feature=str(known.dtype))
    if space.get_simple_extent_type() == h5s.NULL:
        return _empty(known)
    decoded = known.decode(_raw_values(aid, known, space), aid)
    if isinstance(decoded, np.ndarray):
        array = cast("NDArray[Any]", decoded)
        return array.reshape(-1)[0] if array.size == 1 else array
    return decoded


def attached_scales(oid: Any) -> tuple[tuple[Any, ...], ...]:  # noqa: ANN401  an h5py object id
    """The dimension scales attached to each axis (attribute ``DIMENSION_LIST``), as open objects."""
    with h5py_errors("the dimension scales cannot be read"):
        if not h5a.exists(oid, DIMENSION_LIST.encode()):
            return ()
        aid = h5a.open(oid, DIMENSION_LIST.encode())
        if h5py.check_ref_dtype(h5py.check_vlen_dtype(aid.dtype) or aid.dtype) is not h5py.Reference:
            return ()
        return tuple(tuple(_targets(references, oid)) for references in _references(aid).reshape(-1).tolist())


def _references(aid: h5a.AttrID) -> NDArray[Any]:
    return _raw_values(aid, _attribute_type(aid.get_type()), aid.get_space())


def _targets(references: Any, oid: Any) -> list[Any]:  # noqa: ANN401
    found: list[Any] = []
    for reference in references if isinstance(references, np.ndarray) else ():
        try:
            found.append(h5r.dereference(reference, oid))
        except (ValueError, RuntimeError, OSError):  # the scale was deleted: the axis goes without it
            continue
    return found


def reference_path(reference: Any, oid: Any) -> str:  # noqa: ANN401
    """The path of the object that a reference leads to; empty for a null reference."""
    if not reference:
        return ""
    return decode_text(cast("bytes", h5r.get_name(reference, oid)) or b"")


@dataclass(frozen=True, slots=True)
class _AttributeType:
    """A datatype of attributes, understood.

    Parameters
    ----------
    dtype : numpy.dtype
        As h5py has it.
    element : numpy.dtype
        Of one value.
    axes : tuple of int
        Axes that an array type adds.
    memory : h5py.h5t.TypeID
        What libhdf5 is to convert to.
    decode : callable, optional
        Makes what is shown of values and their attribute; None where nothing can be shown.
    """

    dtype: np.dtype[Any]
    element: np.dtype[Any]
    axes: Shape
    memory: h5t.TypeID
    decode: Callable[[NDArray[Any], h5a.AttrID], Any] | None


def _understand(tid: h5t.TypeID, _: bytes) -> _AttributeType:
    dtype = cast("np.dtype[Any]", tid.dtype)
    element, axes = split_axes(dtype)
    memory = tid.copy() if is_opaque(tid) else h5t.py_create(dtype)
    return _AttributeType(dtype, element, axes, memory, _decoder(element))


_attribute_type = TypeCache(_understand)


def _raw_values(aid: h5a.AttrID, known: _AttributeType, space: h5s.SpaceID) -> NDArray[Any]:
    values = np.zeros(space.get_simple_extent_dims() + known.axes, known.element)
    if values.size:
        aid.read(values, mtype=known.memory)
    return values


def _empty(known: _AttributeType) -> Any:  # noqa: ANN401
    return "" if _is_text(known.element) else np.zeros(0, packed_dtype(known.element))


def _is_text(element: np.dtype[Any]) -> bool:
    return h5py.check_string_dtype(element) is not None or h5py.check_ref_dtype(element) is h5py.Reference


def _decoder(dtype: np.dtype[Any]) -> Callable[[NDArray[Any], h5a.AttrID], Any] | None:
    if h5py.check_string_dtype(dtype) is not None:
        return _decode_strings
    if h5py.check_ref_dtype(dtype) is h5py.Reference:
        return _decode_references
    is_plain = all(leaf.kind in "biufcSVmM" and leaf.name not in _LONG_DOUBLES for leaf in leaves(dtype))
    return _decode_plain if is_plain else None


_LONG_DOUBLES = {np.dtype(code).name for code in "gG"} - {"float64", "complex128"}


def _decode_strings(values: NDArray[Any], _: h5a.AttrID) -> Any:  # noqa: ANN401
    return _nested_text(values.reshape(-1)[0] if values.size == 1 else values.tolist())


def _nested_text(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, list):
        return [_nested_text(item) for item in cast("list[Any]", value)]
    return decode_text(value or b"")


def _decode_references(values: NDArray[Any], aid: h5a.AttrID) -> Any:  # noqa: ANN401
    paths = [reference_path(reference, aid) for reference in values.reshape(-1)]
    return paths[0] if len(paths) == 1 else paths


def _decode_plain(values: NDArray[Any], _: h5a.AttrID) -> NDArray[Any]:
    return values.astype(packed_dtype(values.dtype))


def is_opaque(tid: Any) -> bool:  # noqa: ANN401  h5py.h5t.TypeID
    """Whether values are bytes that only the file knows the meaning of; libhdf5 converts them to nothing else."""
    return tid.get_class() == h5t.OPAQUE and tid.dtype.kind == "V"


def leaves(dtype: np.dtype[Any]) -> list[np.dtype[Any]]:
    """The types of all that a structured type is made of, however deep; any other type is its only one."""
    if dtype.names is None:
        return [dtype] if dtype.subdtype is None else leaves(dtype.base)
    fields = cast("Mapping[str, tuple[np.dtype[Any], int]]", dtype.fields)
    return [leaf for name in dtype.names for leaf in leaves(fields[name][0])]


def packed_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in native byte order, without padding between fields and without h5py's tags."""
    if dtype.names is not None:
        fields = cast("Mapping[str, tuple[np.dtype[Any], int]]", dtype.fields)
        return np.dtype([(name, packed_dtype(fields[name][0])) for name in dtype.names])
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return np.dtype((packed_dtype(base), shape))
    return np.dtype(dtype.newbyteorder("=").str) if not dtype.hasobject else dtype
