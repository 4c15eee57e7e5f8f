"""The header of a file, parsed into records.

"NetCDF Classic Format Specification", "The Format in Detail"::

    header   = magic numrecs dim_list gatt_list var_list
    dim_list = ABSENT | NC_DIMENSION nelems [dim ...]        dim  = name dim_length
    att_list = ABSENT | NC_ATTRIBUTE nelems [attr ...]       attr = name nc_type nelems [values ...]
    var_list = ABSENT | NC_VARIABLE  nelems [var ...]        var  = name nelems [dimid ...] att_list nc_type vsize begin

All numbers are big-endian; names and values of attributes are padded to four bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scanners.netcdf3.types import TYPES, VERSIONS, ExternalType, Version
from scanners.text import decode_text
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import FormatError
from virtualzarr_refs.sources import Source

MAGIC = b"CDF"

FIRST_READ = 64 * 1024
"""Bytes that are fetched at first; few headers are longer."""

HEADER_LIMIT = 256 * 1024 * 1024
"""Bytes beyond which a header is taken for an attack on memory."""

MAX_RANK = 1024
"""Dimensions that the NetCDF library lets a variable have (``NC_MAX_VAR_DIMS``)."""

# Tags of lists
NC_DIMENSION, NC_VARIABLE, NC_ATTRIBUTE = 10, 11, 12

type RawValue = bytes | NDArray[Any]
"""Of an attribute: the bytes of characters, or numbers in native byte order."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension.

    Parameters
    ----------
    name : str
        Its name.
    length : int
        In elements; 0 for the record dimension, whose length is the number of records.
    """

    name: str
    length: int

    @property
    def is_record(self) -> bool:
        """Whether records follow each other along it."""
        return self.length == 0


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable.

    Parameters
    ----------
    name : str
        Its name.
    dimensions : tuple of Dimension
        One for each axis.
    attributes : mapping of str to RawValue
        Its attributes.
    type : ExternalType
        Of its values.
    begin : int
        Where its values begin, in bytes from the start of the file.
    place : int
        Where the header says so, for error messages.
    """

    name: str
    dimensions: tuple[Dimension, ...]
    attributes: Mapping[str, RawValue]
    type: ExternalType
    begin: int
    place: int

    @property
    def is_record(self) -> bool:
        """Whether it has a part in every record."""
        return bool(self.dimensions) and self.dimensions[0].is_record


@dataclass(frozen=True, slots=True)
class Header:
    """A whole header.

    Parameters
    ----------
    version : Version
        Of the format.
    record_count : int, optional
        None where the writer did not know it.
    dimensions : tuple of Dimension
        At most one of them is the record dimension.
    attributes : mapping of str to RawValue
        The global ones.
    variables : tuple of Variable
        In the file's order.
    size : int
        Of the header, in bytes.
    """

    version: Version
    record_count: int | None
    dimensions: tuple[Dimension, ...]
    attributes: Mapping[str, RawValue]
    variables: tuple[Variable, ...]
    size: int


def read_header(source: Source) -> Header:
    """Read and parse the header of a file.

    Raises
    ------
    FormatError
        If it breaks the rules of the format, ends before it is complete, or is impossibly long.
    SourceError
        If the file cannot be read.
    """
    head = _Bytes(source)
    magic = head.take(4)
    version = VERSIONS.get(magic[3])
    if magic[:3] != MAGIC or version is None:
        raise FormatError(f"a NetCDF classic file does not begin with {magic!r}", offset=0)
    return _Parser(head, version).header()


class _Bytes:
    """The bytes of a header, in order, fetched in reads that double in size."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._size = source.identity().size
        self._buffer = bytearray()
        self.position = 0

    @property
    def remaining(self) -> int:
        """Bytes to the end of the file."""
        return self._size - self.position

    def take(self, count: int) -> bytes:
        """The next bytes."""
        stop = self.position + count
        if stop > len(self._buffer):
            self._fetch(stop)
        taken = bytes(self._buffer[self.position : stop])
        self.position = stop
        return taken

    def _fetch(self, stop: int) -> None:
        if stop > self._size:
            raise FormatError("the file is cut short: it ends inside its header", offset=self.position)
        if stop > HEADER_LIMIT:
            raise FormatError(f"the header is longer than {HEADER_LIMIT} bytes", offset=self.position)
        start = len(self._buffer)
        target = min(self._size, max(stop, 2 * start, FIRST_READ))
        self._buffer += self._source.read([ByteRange(start, target - start)])[0]


@dataclass(slots=True)
class _Parser:
    """Reads the parts of a header one after the other."""

    head: _Bytes
    version: Version

    def header(self) -> Header:
        count = self.number(self.version.count_size)
        dimensions = tuple(self.named(NC_DIMENSION, self.dimension).values())
        if sum(dimension.is_record for dimension in dimensions) > 1:
            raise FormatError("the file has more than one record dimension", offset=self.head.position)
        attributes = self.attributes()
        variables = self.named(NC_VARIABLE, lambda name: self.variable(name, dimensions))
        return Header(
            version=self.version,
            record_count=None if count == self.version.streaming else count,
            dimensions=dimensions,
            attributes=attributes,
            variables=tuple(variables.values()),
            size=self.head.position,
        )

    def number(self, size: int) -> int:
        return int.from_bytes(self.head.take(size), "big")

    def count(self, member_size: int) -> int:
        """How many members of at least this many bytes follow; no more than the file has room for."""
        place = self.head.position
        count = self.number(self.version.count_size)
        if count * member_size > self.head.remaining:
            raise FormatError(f"the header counts {count} members, more than the file has room for", offset=place)
        return count

    def padded(self, length: int) -> bytes:
        return self.head.take(length + -length % 4)[:length]

    def name(self) -> str:
        # The NetCDF library takes a name up to a null.
        return decode_text(self.padded(self.count(1)).partition(b"\0")[0])

    def named[T](self, tag: int, member: Callable[[str], T]) -> dict[str, T]:
        """A list of members that begin with a name, which no two of them share."""
        place = self.head.position
        found_tag, count = self.number(4), self.count(2 * self.version.count_size)
        if found_tag != tag and (found_tag, count) != (0, 0):
            raise FormatError(f"a list has the tag {found_tag} instead of {tag}", offset=place)
        found: dict[str, T] = {}
        for _ in range(count):
            place = self.head.position
            name = self.name()
            if name in found:
                raise FormatError(f"two members of a list have the name {name!r}", offset=place)
            found[name] = member(name)
        return found

    def dimension(self, name: str) -> Dimension:
        return Dimension(name, self.number(self.version.count_size))

    def attributes(self) -> dict[str, RawValue]:
        return self.named(NC_ATTRIBUTE, lambda _: self.values())

    def values(self) -> RawValue:
        type_ = self.type()
        raw = self.padded(self.count(type_.size) * type_.size)
        return raw if type_.is_char else np.frombuffer(raw, type_.stored).astype(type_.native)

    def type(self) -> ExternalType:
        place = self.head.position
        number = self.number(4)
        if number not in TYPES or number > self.version.last_type:
            raise FormatError(f"there is no type {number} in this version of the format", offset=place)
        return TYPES[number]

    def variable(self, name: str, dimensions: tuple[Dimension, ...]) -> Variable:
        axes = self.axes(dimensions)
        attributes = self.attributes()
        type_ = self.type()
        # vsize is redundant, and too small a number for large variables; "Note on vsize".
        self.number(self.version.count_size)
        place = self.head.position
        begin = self.number(self.version.offset_size)
        if begin >> 8 * self.version.offset_size - 1:
            raise FormatError(f"the offset of the variable {name!r} is negative", offset=place)
        return Variable(name, axes, attributes, type_, begin, place)

    def axes(self, dimensions: tuple[Dimension, ...]) -> tuple[Dimension, ...]:
        place = self.head.position
        ids = [self.number(self.version.count_size) for _ in range(self.rank())]
        if any(i >= len(dimensions) for i in ids):
            raise FormatError(f"a variable has dimension {max(ids)}; there are {len(dimensions)}", offset=place)
        axes = tuple(dimensions[i] for i in ids)
        if any(axis.is_record for axis in axes[1:]):
            raise FormatError("the record dimension is not the first of a variable", offset=place)
        return axes

    def rank(self) -> int:
        place = self.head.position
        rank = self.count(self.version.count_size)
        if rank > MAX_RANK:
            raise FormatError(f"a variable has {rank} dimensions, more than {MAX_RANK}", offset=place)
        return rank
