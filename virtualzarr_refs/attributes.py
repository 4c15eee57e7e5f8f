"""Attributes as JSON that Zarr readers understand, with the types that JSON loses kept beside them.

A NetCDF or HDF5 attribute has a type: whether ``scale_factor`` is a float32 decides the type that xarray
unpacks to. JSON has one kind of number. So every attribute is written as plain JSON, and its NumPy type goes
into the metadata extension ``virtualzarr_refs`` (see `virtualzarr_refs.metadata`), which other readers ignore.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from virtualzarr_refs.chunk_grid import JSON
from virtualzarr_refs.errors import ReferenceSetError

type AttributeTypes = Mapping[str, JSON]

FILL_VALUE = "_FillValue"
"""CF's fill value; in Zarr v3 attributes xarray keeps it in an encoded form (see `_encode_fill`)."""


def encode_attributes(
    attributes: Mapping[str, Any], dtype: np.dtype[Any] | None = None
) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """Split attributes into plain JSON and the types that restore them.

    Parameters
    ----------
    attributes : mapping of str to object
        Strings, lists of strings, and NumPy scalars and arrays.
    dtype : numpy.dtype, optional
        Type of the array that they belong to.

    Returns
    -------
    attributes, types : dict, dict
        The JSON values, and the type of each that is not a string or a list of strings.
    """
    encoded: dict[str, JSON] = {}
    types: dict[str, JSON] = {}
    for name, value in attributes.items():
        encoded[name] = _encode(value)
        if isinstance(value, np.ndarray | np.generic):
            types[name] = _encode_type(value.dtype)
        if name == FILL_VALUE and dtype is not None:
            encoded[name] = _encode_fill(value, dtype)
    return encoded, types


def decode_attributes(
    attributes: Mapping[str, JSON], types: AttributeTypes, dtype: np.dtype[Any] | None = None
) -> dict[str, Any]:
    """Restore the attributes that `encode_attributes` split.

    Attributes without a recorded type, such as those of another tool's reference set, stay as JSON gives them,
    but for ``_FillValue``, which is decoded as xarray does.

    Raises
    ------
    ReferenceSetError
        If a value does not fit its type.
    """
    decoded: dict[str, Any] = {}
    for name, value in attributes.items():
        try:
            plain = _decode_fill(value, dtype) if name == FILL_VALUE and dtype is not None else value
            decoded[name] = _decode(plain, types[name]) if name in types else plain
        except (KeyError, TypeError, ValueError, ArithmeticError, struct.error) as error:
            raise ReferenceSetError(
                f"the attribute {name!r}, {value!r:.200}, does not fit its type: {error}"
            ) from error
    return decoded


def plain_fill_value(attributes: Mapping[str, JSON], dtype: np.dtype[Any]) -> dict[str, JSON]:
    """The attributes with ``_FillValue`` as a plain JSON number, as Zarr v2 stores have it."""
    if FILL_VALUE not in attributes:
        return dict(attributes)
    return {**attributes, FILL_VALUE: _encode(_decode_fill(attributes[FILL_VALUE], dtype))}


def _encode(value: Any) -> JSON:  # noqa: ANN401  whatever an attribute may hold
    if isinstance(value, np.ndarray):
        return [_encode(item) for item in list(value)] if value.ndim else _encode(value[()])
    if isinstance(value, np.void) and value.dtype.names is not None:
        return [_encode(value[name]) for name in value.dtype.names]
    if isinstance(value, bytes | np.void):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, complex | np.complexfloating):
        return [float(value.real), float(value.imag)]
    if isinstance(value, np.datetime64 | np.timedelta64):
        return int(value.view("i8"))
    if isinstance(value, np.generic):
        return cast("JSON", value.item())
    if isinstance(value, list | tuple):
        return [_encode(item) for item in cast("list[Any]", value)]
    return cast("JSON", value)


def _decode(value: Any, type_: JSON) -> Any:  # noqa: ANN401
    dtype = _decode_type(type_)
    if dtype.kind not in "SVc":
        with np.errstate(over="raise"):
            return np.array(value, dtype=dtype)[()]
    shape = _shape(value, _depth(dtype))
    items = [value]
    for _ in shape:
        items = [item for part in items for item in part]
    return np.array([_decode_item(item, dtype) for item in items], dtype).reshape(shape)[()]


def _decode_item(value: Any, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401
    if dtype.subdtype is not None:
        return _decode(value, _encode_type(dtype.base))
    if dtype.names is not None:
        fields = cast("Mapping[str, tuple[np.dtype[Any], int]]", dtype.fields)
        return tuple(_decode_item(item, fields[name][0]) for item, name in zip(value, dtype.names, strict=True))
    if isinstance(value, bytes | complex):  # `_decode_fill` has made it
        return value
    if dtype.kind == "c":
        real, imaginary = value
        return complex(real, imaginary)
    return base64.b64decode(value, validate=True) if dtype.kind in "SV" else value


def _depth(dtype: np.dtype[Any]) -> int:
    """How deep the lists are that stand for one value of a type, going by the first item of each."""
    if dtype.subdtype is not None:
        return len(dtype.shape) + _depth(dtype.base)
    if dtype.names is not None:
        return 1 + _depth(cast("Mapping[str, tuple[np.dtype[Any], int]]", dtype.fields)[dtype.names[0]][0])
    return int(dtype.kind == "c")


def _shape(value: Any, depth: int) -> tuple[int, ...]:  # noqa: ANN401
    """Shape of an array of values that are lists of this depth; one value has the shape ()."""
    if isinstance(value, list) and not value:
        return (0,)
    if _nesting(value) <= depth:
        return ()
    return (len(value), *_shape(value[0], depth))


def _nesting(value: Any) -> int:  # noqa: ANN401
    return 1 + _nesting(value[0]) if isinstance(value, list) and value else int(isinstance(value, list))


def _encode_type(dtype: np.dtype[Any]) -> JSON:
    if dtype.names is None:
        return dtype.str if dtype.subdtype is None else [dtype.base.str, list(dtype.shape)]
    fields = cast("Mapping[str, tuple[np.dtype[Any], int]]", dtype.fields)
    return {"fields": [[name, _encode_type(fields[name][0])] for name in dtype.names]}


def _decode_type(value: JSON) -> np.dtype[Any]:
    if isinstance(value, dict):
        fields = cast("list[list[Any]]", value["fields"])
        return np.dtype([(name, _decode_type(type_)) for name, type_ in fields])
    if isinstance(value, list):
        base, shape = cast("tuple[str, list[int]]", value)
        return np.dtype((base, tuple(shape)))
    return np.dtype(cast("str", value))


def _encode_fill(value: Any, dtype: np.dtype[Any]) -> JSON:  # noqa: ANN401
    """Encode CF's ``_FillValue`` as xarray does for Zarr v3: floats as base64 of a little-endian float64."""
    item: Any = value.item() if isinstance(value, np.ndarray | np.generic) and value.size == 1 else value
    if dtype.kind == "f" and isinstance(item, int | float) and (float(item) == item or math.isnan(item)):
        return _pack(float(item))
    if dtype.kind == "c" and isinstance(item, int | float | complex):
        number = complex(item)
        return [_pack(number.real), _pack(number.imag)]
    if dtype.kind in "iu" and isinstance(item, int | float) and math.isfinite(item) and item == int(item):
        return int(item)
    if dtype.kind == "S" and isinstance(item, bytes | str):
        return base64.b64encode(item if isinstance(item, bytes) else item.encode()).decode()
    return _encode(value)


def _decode_fill(value: JSON, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401
    if dtype.kind == "f" and isinstance(value, str):
        return _NOT_FINITE[value] if value in _NOT_FINITE else _unpack(value)
    if dtype.kind == "c" and isinstance(value, list) and all(isinstance(part, str) for part in value):
        return complex(*(_unpack(cast("str", part)) for part in value))
    if dtype.kind == "S" and isinstance(value, str):
        return base64.b64decode(value)
    return value


_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""What some writers put instead of xarray's form; none of them is base64 of eight bytes."""


def _pack(number: float) -> str:
    return base64.standard_b64encode(struct.pack("<d", number)).decode()


def _unpack(text: str) -> float:
    return struct.unpack("<d", base64.standard_b64decode(text))[0]
