"""The structures of a file, as records. All numbers are little-endian.

Version 3 has a tree of variables, of which the last 24 bytes of the file name the root. A variable is an array, one
value, or nothing but its children. Versions 1 and 2 have one array, described in the first 40 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.codecs.open_meteo_values import COMPRESSIONS
from virtualzarr_refs.errors import FormatError, UnsupportedError

MAGIC = b"OM"
VERSION_3 = b"OM\x03"

TRAILER = np.dtype([("magic", "S3"), ("reserved", "V5"), ("root_offset", "<u8"), ("root_size", "<u8")])
VARIABLE = np.dtype([("data_type", "u1"), ("compression", "u1"), ("name_size", "<u2"), ("child_count", "<u4")])
ARRAY = np.dtype(
    [
        ("table_size", "<u8"),
        ("table_offset", "<u8"),
        ("rank", "<u8"),
        ("scale_factor", "<f4"),
        ("add_offset", "<f4"),
    ]
)
# Versions 1 and 2
HEADER = np.dtype(
    [
        ("magic", "S2"),
        ("version", "u1"),
        ("compression", "u1"),
        ("scale_factor", "<f4"),
        ("shape", "<u8", 2),
        ("chunk_shape", "<u8", 2),
    ]
)

GROUP, STRING, FIRST_ARRAY, MAX_RANK = 0, 11, 12, 32
NUMBERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")
"""Types of values, by their code less one; an array of them has a code that is eleven higher."""


@dataclass(frozen=True, slots=True)
class ArrayRecord:
    """An array.

    Parameters
    ----------
    dtype : numpy.dtype
        Of the values.
    shape, chunk_shape : tuple of int
        In elements; chunks at the edges are shorter.
    compression : str
        Its name.
    scale_factor, add_offset : float
        As the file has them.
    table : ByteRange
        Where the lookup table lies.
    is_old : bool
        Whether the table is that of versions 1 and 2.

    Raises
    ------
    FormatError
        If a chunk does not fit the array.
    """

    dtype: np.dtype[Any]
    shape: Shape
    chunk_shape: Shape
    compression: str
    scale_factor: float
    add_offset: float
    table: ByteRange
    is_old: bool = False

    def __post_init__(self) -> None:
        if not self.shape or not all(0 < c <= n for c, n in zip(self.chunk_shape, self.shape, strict=True)):
            raise FormatError(f"an array of shape {self.shape} cannot have chunks of shape {self.chunk_shape}")

    @property
    def grid_shape(self) -> Shape:
        """Number of chunks along each axis."""
        return tuple(-(-n // c) for n, c in zip(self.shape, self.chunk_shape, strict=True))

    @property
    def chunk_count(self) -> int:
        """Number of chunks."""
        return math.prod(self.grid_shape)


type Scalar = str | np.generic


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of version 3.

    Parameters
    ----------
    name : str
        May be empty.
    content : ArrayRecord, str, numpy scalar, UnsupportedError or None
        None for a group; an error for what cannot be shown.
    children : tuple of ByteRange
        Where the variables beneath lie.
    """

    name: str
    content: ArrayRecord | Scalar | FormatError | UnsupportedError | None
    children: tuple[ByteRange, ...] = ()


@dataclass(slots=True)
class _Cursor:
    """Takes what a record holds, one field after another."""

    record: bytes
    position: int = field(default=0, init=False)

    def take(self, size: int) -> bytes:
        start, self.position = self.position, self.position + size
        if self.position > len(self.record):
            raise FormatError(f"a variable of {len(self.record)} bytes holds more than that")
        return self.record[start : self.position]

    def structure(self, dtype: np.dtype[Any]) -> dict[str, Any]:
        values = np.frombuffer(self.take(dtype.itemsize), dtype)[0]
        return {name: values[name].tolist() for name in dtype.names or ()}

    def integers(self, count: int) -> list[int]:
        return np.frombuffer(self.take(8 * count), "<u8").tolist()

    def text(self, size: int) -> str:
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            raise FormatError("a text is not UTF-8") from error


def parse_trailer(tail: bytes) -> ByteRange | None:
    """Where the root variable lies, or None if this is not the end of a file of version 3."""
    if len(tail) < TRAILER.itemsize:
        return None
    trailer = _Cursor(tail[-TRAILER.itemsize :]).structure(TRAILER)
    return ByteRange(trailer["root_offset"], trailer["root_size"]) if trailer["magic"] == VERSION_3 else None


def parse_header(head: bytes) -> ArrayRecord:
    """The array of a file of version 1 or 2, from its first bytes.

    Raises
    ------
    FormatError
        If this is no such file.
    UnsupportedError
        If its compression is not known.
    """
    if len(head) < HEADER.itemsize or head[:2] != MAGIC or head[2] not in (1, 2):
        raise FormatError("this is no Open-Meteo file, or its end, which says what it holds, is missing", offset=0)
    header = _Cursor(head).structure(HEADER)
    shape, chunk_shape = tuple(header["shape"]), tuple(header["chunk_shape"])
    compression = _compression(header["compression"] if header["version"] == 2 else 0)
    scale = header["scale_factor"]
    table = ByteRange(HEADER.itemsize, 8)
    record = ArrayRecord(np.dtype("f4"), shape, chunk_shape, compression, scale, 0.0, table, is_old=True)
    return replace(record, table=ByteRange(HEADER.itemsize, 8 * record.chunk_count))


def parse_variable(record: bytes) -> Variable:
    """Read a variable of version 3.

    Raises
    ------
    FormatError
        If it is cut short or its name is no text.
    """
    cursor = _Cursor(record)
    head = cursor.structure(VARIABLE)
    code = head["data_type"]
    array = cursor.structure(ARRAY) if FIRST_ARRAY <= code < FIRST_ARRAY + len(NUMBERS) else None
    count = head["child_count"]
    sizes, offsets = cursor.integers(count), cursor.integers(count)
    children = tuple(map(ByteRange, offsets, sizes))
    if array is not None:
        return _array(cursor, head, array, children)
    if code > STRING:
        return Variable("", UnsupportedError("there is no such data", feature=f"data type {code}"), children)
    value = _value(cursor, code)
    return Variable(cursor.text(head["name_size"]), value, children)


def _array(cursor: _Cursor, head: dict[str, Any], array: dict[str, Any], children: tuple[ByteRange, ...]) -> Variable:
    rank = array["rank"]
    if rank > MAX_RANK:
        raise FormatError(f"an array has {rank} dimensions; more than {MAX_RANK} cannot be")
    shape, chunk_shape = cursor.integers(rank), cursor.integers(rank)
    name = cursor.text(head["name_size"])
    try:
        content = _array_record(head, array, shape, chunk_shape)
    except (FormatError, UnsupportedError) as error:
        return Variable(name, error, children)
    return Variable(name, content, children)


def _array_record(
    head: dict[str, Any], array: dict[str, Any], shape: Sequence[int], chunk_shape: Sequence[int]
) -> ArrayRecord:
    return ArrayRecord(
        np.dtype(NUMBERS[head["data_type"] - FIRST_ARRAY]),
        tuple(shape),
        tuple(chunk_shape),
        _compression(head["compression"]),
        array["scale_factor"],
        array["add_offset"],
        ByteRange(array["table_offset"], array["table_size"]),
    )


def _compression(number: int) -> str:
    if number >= len(COMPRESSIONS):
        raise UnsupportedError("there is no such compression of arrays", feature=f"compression {number}")
    return COMPRESSIONS[number]


def _value(cursor: _Cursor, code: int) -> Scalar | None:
    if code == GROUP:
        return None
    if code == STRING:
        (size,) = cursor.integers(1)
        return cursor.text(size)
    dtype = np.dtype(NUMBERS[code - 1])
    value: np.generic = np.frombuffer(cursor.take(dtype.itemsize), dtype.newbyteorder("<"))[0]
    return value.astype(dtype)
