"""Data types and fill values between Zarr v2 (NumPy's own notation) and Zarr v3.

Zarr v2 core, "Data type encoding" and "Fill value encoding".
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, cast

import numpy as np

from virtualzarr_refs.chunk_grid import JSON
from virtualzarr_refs.data_types import decode_scalar, encode_scalar
from virtualzarr_refs.errors import ReferenceSetError, UnsupportedError

type ByteOrder = Literal["little", "big", "mixed"] | None
"""None where no part of a value is longer than a byte."""

OBJECT = "|O"
"""Objects; what they are is said by a codec among the filters."""

_TYPE = re.compile(r"[<>|=]?(?:[?bBO]|b1|[iufcSUV][0-9]{1,9}|[Mm]8(?:\[[A-Za-z0-9]*\])?)")
_ORDERS: Mapping[str, ByteOrder] = {"<": "little", ">": "big", "=": "little", "|": None}


def read_dtype(value: object) -> np.dtype[Any]:
    """The NumPy type of the ``dtype`` member of a ``.zarray``, with the byte order it has there.

    Raises
    ------
    ReferenceSetError
        If it is no data type.
    UnsupportedError
        If it has fields that are arrays.
    """
    if isinstance(value, str) and _TYPE.fullmatch(value):
        return np.dtype(value)
    if isinstance(value, list) and value:
        return np.dtype([_read_field(field) for field in cast("list[object]", value)])
    raise ReferenceSetError(f"the data type {value!r:.200} cannot be read")


def _read_field(field: object) -> tuple[str, np.dtype[Any]]:
    match field:
        case [str(name), dtype]:
            return name, read_dtype(dtype)
        case [str(name), _, _]:
            raise UnsupportedError("Zarr v3 has no data type for fields that are arrays", feature=f"field {name!r}")
        case _:
            raise ReferenceSetError(f"the field {field!r:.200} of a data type cannot be read")


def write_dtype(dtype: np.dtype[Any]) -> JSON:
    """The ``dtype`` member of a ``.zarray``."""
    if dtype.names is not None:
        return [[name, write_dtype(field)] for name, field in _fields(dtype)]
    return dtype.str


def byte_order(dtype: np.dtype[Any]) -> ByteOrder:
    """The byte order of a type, or of all its fields."""
    if dtype.names is None:
        return _ORDERS[np.dtype(dtype).str[0]]
    orders = {cast("str", byte_order(field)) for _, field in _fields(dtype)} - {None}
    return "mixed" if len(orders) > 1 else cast("ByteOrder", next(iter(orders), None))


def read_fill_value(value: object, dtype: np.dtype[Any]) -> JSON:
    """A fill value of Zarr v2 in the form of Zarr v3; null stands for zero, or the empty string.

    Raises
    ------
    ReferenceSetError
        If it does not fit the data type.
    """
    try:
        scalar = _zero(dtype) if value is None else _READERS[_kind(dtype)](value, dtype)
        with np.errstate(over="raise"):
            return encode_scalar(scalar, dtype.newbyteorder("="))
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ReferenceSetError(f"the fill value {value!r:.200} does not fit the data type {dtype}") from error


def write_fill_value(value: JSON, dtype: np.dtype[Any]) -> JSON:
    """A fill value of Zarr v3 in the form of Zarr v2, for a type in the byte order it is stored in."""
    scalar = decode_scalar(value, dtype.newbyteorder("="))
    if dtype.names is not None:
        return base64.b64encode(np.array(scalar).astype(dtype).tobytes()).decode()
    if dtype.kind in "SV":
        return base64.b64encode(bytes(scalar)).decode()
    return _nan_by_name(value)


def is_zero(value: JSON, dtype: np.dtype[Any]) -> bool:
    """Whether a fill value of Zarr v3 is what a null means in Zarr v2."""
    native = dtype.newbyteorder("=")
    return encode_scalar(decode_scalar(value, native), native) == encode_scalar(_zero(native), native)


def _nan_by_name(value: JSON) -> JSON:
    """Zarr v2 knows one NaN; v3 may spell out its bits."""
    if isinstance(value, list):
        return [_nan_by_name(part) for part in value]
    return "NaN" if isinstance(value, str) and value.startswith("0x") else value


def _fields(dtype: np.dtype[Any]) -> Iterator[tuple[str, np.dtype[Any]]]:
    fields = cast("Mapping[str, tuple[np.dtype[Any], int]]", dtype.fields)
    return ((name, fields[name][0]) for name in dtype.names or ())


def _kind(dtype: np.dtype[Any]) -> str:
    return "struct" if dtype.names is not None else dtype.kind


def _zero(dtype: np.dtype[Any]) -> object:
    """What zarr-python takes a null for."""
    if dtype.kind in "Mm":
        return np.array("NaT", dtype)[()]
    return "" if dtype.kind == "O" else np.zeros((), dtype)[()]


def _read_integer(value: Any, dtype: np.dtype[Any]) -> object:  # noqa: ANN401  parsed JSON
    if int(value) != float(value) and int(value) != value:
        raise ValueError("an integer is needed")
    return dtype.type(int(value))


def _read_time(value: Any, dtype: np.dtype[Any]) -> object:  # noqa: ANN401
    return np.array(value if value == "NaT" else np.int64(value), dtype.newbyteorder("="))[()]


def _read_complex(value: Any, _: np.dtype[Any]) -> object:  # noqa: ANN401
    real, imaginary = cast("list[Any]", value) if isinstance(value, list) else (value, 0)
    return complex(float(real), float(imaginary))


def _read_bytes(value: Any, dtype: np.dtype[Any]) -> object:  # noqa: ANN401
    if value == 0:
        return _zero(dtype)
    try:
        raw = base64.b64decode(value, validate=True)
    except binascii.Error:  # some writers put the text itself
        raw = str(value).encode()
    if len(raw.rstrip(b"\0")) > dtype.itemsize:
        raise ValueError("it is too long")
    return np.frombuffer(raw.ljust(dtype.itemsize, b"\0")[: dtype.itemsize], dtype)[0]


def _read_text(value: Any, _: np.dtype[Any]) -> object:  # noqa: ANN401
    return "" if value == 0 else str(value)


_READERS: Mapping[str, Callable[[Any, np.dtype[Any]], object]] = {
    "b": lambda value, _: bool(value),
    "i": _read_integer,
    "u": _read_integer,
    "f": lambda value, _: float(value),  # also "NaN" and "Infinity"
    "c": _read_complex,
    "S": _read_bytes,
    "V": _read_bytes,
    "struct": _read_bytes,
    "U": _read_text,
    "O": _read_text,
    "M": _read_time,
    "m": _read_time,
}
