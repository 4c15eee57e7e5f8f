"""Zarr v3 data types and scalars, and the NumPy types they stand for.

Zarr v3 core, "Data types" and "Fill value list", and the registered extensions ``string``, ``struct``,
``null_terminated_bytes``, ``raw_bytes``, ``fixed_length_utf32``, ``numpy.datetime64`` and ``numpy.timedelta64`` in the
form that zarr-python writes.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from virtualzarr_refs.chunk_grid import JSON, Shape
from virtualzarr_refs.errors import ReferenceSetError, UnsupportedError

STRING = "string"
"""The variable-length UTF-8 data type; its NumPy form here is ``object``."""

_CORE_NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
)
# name of a type of fixed length -> (NumPy kind, bytes a character)
_SIZED_KINDS = {"null_terminated_bytes": ("S", 1), "raw_bytes": ("V", 1), "fixed_length_utf32": ("U", 4)}
_TIME_KINDS = {"numpy.datetime64": "M8", "numpy.timedelta64": "m8"}
_TIME_NAMES = {"M": "numpy.datetime64", "m": "numpy.timedelta64"}
_SIZED_NAMES = {kind: (name, width) for name, (kind, width) in _SIZED_KINDS.items()}


def encode_data_type(dtype: np.dtype[Any]) -> JSON:
    """The ``data_type`` member of ``zarr.json`` for a NumPy type; byte order is not part of it.

    Raises
    ------
    UnsupportedError
        If Zarr has no such type: fields that are arrays, long doubles, Python objects, empty strings.
    """
    if dtype == np.dtype(object):
        return STRING
    if dtype.names is not None:
        fields: list[JSON] = [{"name": n, "data_type": _encode_member(n, _field(dtype, n))} for n in dtype.names]
        return {"name": "struct", "configuration": {"fields": fields}}
    if dtype.name in _CORE_NAMES:
        return dtype.name
    if dtype.kind in _TIME_NAMES:
        unit, step = np.datetime_data(dtype)
        return {"name": _TIME_NAMES[dtype.kind], "configuration": {"unit": unit, "scale_factor": step}}
    if dtype.kind in _SIZED_NAMES and dtype.itemsize > 0 and dtype.subdtype is None:
        return {"name": _SIZED_NAMES[dtype.kind][0], "configuration": {"length_bytes": dtype.itemsize}}
    raise UnsupportedError("Zarr has no data type for these values", feature=f"NumPy type {dtype}")


def _encode_member(name: str, dtype: np.dtype[Any]) -> JSON:
    if dtype.subdtype is not None or dtype.hasobject:
        kind = "an array" if dtype.subdtype is not None else "of variable length"
        raise UnsupportedError("Zarr has no such type", feature=f"compound member {name!r} that is {kind}")
    return encode_data_type(dtype)


def decode_data_type(data_type: JSON) -> np.dtype[Any]:
    """The NumPy type, in native byte order, of a ``data_type`` member of ``zarr.json``.

    Raises
    ------
    ReferenceSetError
        If the data type is not known.
    """
    if data_type == STRING:
        return np.dtype(object)
    if isinstance(data_type, str) and data_type in _CORE_NAMES:
        return np.dtype(data_type)
    try:
        member = cast("dict[str, Any]", data_type)
        name, configuration = member["name"], member.get("configuration") or {}
        if name in _SIZED_KINDS:
            return _sized_type(*_SIZED_KINDS[name], configuration["length_bytes"])
        if name in _TIME_KINDS:
            return np.dtype(f"{_TIME_KINDS[name]}[{configuration['scale_factor']}{configuration['unit']}]")
        if name in ("struct", "structured"):
            return np.dtype([_parse_field(field) for field in configuration["fields"]])
        if name in _CORE_NAMES or name == STRING:
            return decode_data_type(name)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReferenceSetError(f"the data type {data_type!r} cannot be read: {error}") from error
    raise ReferenceSetError(f"the data type {data_type!r} is not known")


def encode_scalar(value: object, dtype: np.dtype[Any]) -> JSON:
    """The ``fill_value`` member of ``zarr.json`` for a value of an array of this type, bit for bit."""
    if dtype == np.dtype(object):
        return str(value)
    scalar = np.asarray(value, dtype=dtype)[()]
    if dtype.names is not None:
        return {name: encode_scalar(scalar[name], _field(dtype, name)) for name in dtype.names}
    return _ENCODERS[dtype.kind](scalar)


def decode_scalar(value: JSON, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401  a scalar of any NumPy type
    """The NumPy scalar of a ``fill_value`` member of ``zarr.json``.

    Raises
    ------
    ReferenceSetError
        If the value does not fit the data type.
    """
    try:
        if dtype == np.dtype(object):
            return _required(str, value)
        if dtype.names is not None:
            return _decode_struct(value, dtype)
        return _DECODERS[dtype.kind](value, dtype)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ReferenceSetError(f"the fill value {value!r} does not fit the type {dtype}: {error}") from error


def split_axes(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], Shape]:
    """The type of an element, and the axes that subarray types, however nested, add to an array's own."""
    axes: Shape = ()
    while dtype.subdtype is not None:
        dtype, inner = dtype.subdtype
        axes += inner
    return dtype, axes


def _field(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    return cast("Mapping[str, tuple[np.dtype[Any], int]]", dtype.fields)[name][0]


def _parse_field(field: Any) -> tuple[str, np.dtype[Any]]:  # noqa: ANN401  parsed JSON
    # zarr-python 3.1 wrote pairs, later versions write objects.
    name, data_type = (field["name"], field["data_type"]) if isinstance(field, Mapping) else field
    return name, decode_data_type(data_type)


def _sized_type(kind: str, width: int, length: int) -> np.dtype[Any]:
    count, rest = divmod(length, width)
    if count < 1 or rest:
        raise ValueError(f"{length} bytes are no length of such a type")
    return np.dtype(f"{kind}{count}")


def _required[T](kind: type[T], value: object) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"a {kind.__name__} is needed")
    return value


_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_QUIET_NAN = {np.dtype(f"f{size}"): np.array(math.nan, f"f{size}").tobytes() for size in (2, 4, 8)}


def _encode_float(value: np.floating[Any]) -> JSON:
    if np.isfinite(value):
        return float(value)
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    native = np.asarray(value).astype(value.dtype.newbyteorder("="))
    if native.tobytes() == _QUIET_NAN[native.dtype]:
        return "NaN"
    return "0x" + native.astype(native.dtype.newbyteorder(">")).tobytes().hex()


def _decode_float(value: JSON, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401
    if isinstance(value, str) and value.startswith("0x"):
        (scalar,) = np.frombuffer(bytes.fromhex(value[2:]), dtype.newbyteorder(">")).astype(dtype)
        return scalar
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError("a number is needed")
    number = _NOT_FINITE[value] if isinstance(value, str) else float(value)
    with np.errstate(over="ignore"):
        scalar = dtype.type(number)
    if np.isinf(scalar) and math.isfinite(number):
        raise OverflowError("it is too large")
    return scalar


def _decode_integer(value: JSON, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401
    if isinstance(value, bool) or not isinstance(value, int | float) or int(value) != value:
        raise ValueError("an integer is needed")
    return dtype.type(int(value))


def _decode_complex(value: JSON, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401
    part = np.dtype(f"f{dtype.itemsize // 2}")
    real, imaginary = cast("list[JSON]", value)
    return np.array([_decode_float(real, part), _decode_float(imaginary, part)]).view(dtype)[0]


def _decode_struct(value: JSON, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401
    if isinstance(value, str):  # the form of zarr-python 3.1
        return np.frombuffer(base64.b64decode(value), dtype)[0]
    fields = cast("dict[str, JSON]", value)
    return np.array(tuple(decode_scalar(fields[n], _field(dtype, n)) for n in dtype.names or ()), dtype)[()]


def _decode_bytes(value: JSON, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401
    raw = base64.b64decode(_required(str, value), validate=True)
    if len(raw) > dtype.itemsize:
        raise ValueError("it is too long")
    return np.frombuffer(raw.ljust(dtype.itemsize, b"\0"), dtype)[0]


def _decode_text(value: JSON, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401
    text = _required(str, value)
    if len(text) * 4 > dtype.itemsize:
        raise ValueError("it is too long")
    return np.array(text, dtype)[()]


_ENCODERS: Mapping[str, Any] = {
    "b": bool,
    "i": int,
    "u": int,
    "f": _encode_float,
    "c": lambda value: [_encode_float(value.real), _encode_float(value.imag)],
    "S": lambda value: base64.b64encode(bytes(value)).decode(),
    "V": lambda value: base64.b64encode(bytes(value)).decode(),
    "U": str,
    "M": lambda value: int(value.view("i8")),
    "m": lambda value: int(value.view("i8")),
}
_DECODERS: Mapping[str, Any] = {
    "b": lambda value, _: np.bool_(_required(bool, value)),
    "i": _decode_integer,
    "u": _decode_integer,
    "f": _decode_float,
    "c": _decode_complex,
    "S": _decode_bytes,
    "V": _decode_bytes,
    "U": _decode_text,
    "M": lambda value, dtype: np.array(value, dtype)[()],
    "m": lambda value, dtype: np.array(value, dtype)[()],
}
