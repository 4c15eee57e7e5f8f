"""Attributes as object headers hold them: their names, and what tells two of them apart.

HDF5 File Format Specification 3.0, IV.A.2.m "The Attribute Message" and IV.A.2.d "The Datatype Message".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from scanners.hdf5.global_heap import GlobalHeaps
from scanners.hdf5.header import ATTRIBUTE, ATTRIBUTE_INFO, SHARED, Message, ObjectHeader

_VALUES = frozenset({0, 1, 3, 4, 5, 8})
"""Classes of datatypes whose values lie in the message: integer, float, string, bitfield, opaque, enumeration."""

_VARIABLE_LENGTH = 9
_STRING = 1
_LONGEST = 4096
"""Bytes of a message beyond which it is not worth remembering."""


@dataclass(frozen=True, slots=True)
class AttributeMessage:
    """An attribute message, taken apart.

    Parameters
    ----------
    name : bytes
        Of the attribute.
    head : bytes
        The message up to its values.
    values : bytes
        The rest.
    """

    name: bytes
    head: bytes
    values: bytes

    def key(self, heaps: GlobalHeaps) -> Hashable:
        """What the attribute's value depends on, wherever it lies; None where that is more than can be told here."""
        if len(self.head) + len(self.values) > _LONGEST or not _describes_itself(self.head):
            return None
        kind, detail = self._datatype()
        if kind in _VALUES:
            return self.head, self.values
        if kind == _VARIABLE_LENGTH and detail & 0b1111 == _STRING:
            strings = self._strings(heaps)
            return None if strings is None else (self.head, strings)
        return None

    def heaps(self, width: int) -> Iterator[int]:
        """Addresses of the heap collections that values of variable length lie in; addresses are `width` bytes wide."""
        if not _describes_itself(self.head) or self._datatype()[0] != _VARIABLE_LENGTH:
            return
        step = 8 + width
        for start in range(0, len(self.values) // step * step, step):
            length, address, _ = _unpack_reference(self.values[start : start + step], width)
            if length:
                yield address

    def _datatype(self) -> tuple[int, int]:
        """Class, and the first of its bits."""
        start = _name_start(self.head) + _padded(self.head, int.from_bytes(self.head[2:4], "little"))
        return self.head[start] & 0b1111, self.head[start + 1]

    def _strings(self, heaps: GlobalHeaps) -> tuple[bytes, ...] | None:
        """Each is a length, the address of a heap collection, and the number of an object there."""
        width = heaps.file.offset_size
        step = 8 + width
        if not self.values or len(self.values) % step:
            return None
        found: list[bytes] = []
        for start in range(0, len(self.values), step):
            length, address, index = _unpack_reference(self.values[start : start + step], width)
            stored = heaps.object(address, index) if length else b""
            if stored is None or len(stored) < length:
                return None
            found.append(stored[:length])
        return tuple(found)


def attribute_messages(header: ObjectHeader) -> Mapping[bytes, AttributeMessage] | None:
    """The attributes of an object by name, in the order in which libhdf5 lists them.

    None where the header does not hold all of them, or holds one that cannot be taken apart.
    """
    found: dict[bytes, AttributeMessage] = {}
    for message in header.messages:
        if message.kind == ATTRIBUTE_INFO and not _has_no_heap(message.body, header.offset_size):
            return None
        if message.kind == ATTRIBUTE:
            attribute = _take_apart(message)
            if attribute is None or attribute.name in found:
                return None
            found[attribute.name] = attribute
    return dict(sorted(found.items()))


def _take_apart(message: Message) -> AttributeMessage | None:
    """Sizes of name, datatype and dataspace follow 2 bytes; the three themselves come next, in version 1 padded."""
    body = message.body
    if message.flags & SHARED or len(body) < 9 or body[0] not in (1, 2, 3):
        return None
    sizes = [int.from_bytes(body[at : at + 2], "little") for at in (2, 4, 6)]
    start = _name_start(body)
    values = start + sum(_padded(body, size) for size in sizes)
    name = body[start : start + sizes[0]]
    if not name or name.find(0) != len(name) - 1 or values > len(body) or not sizes[1]:
        return None
    return AttributeMessage(name[:-1], body[:values], body[values:])


def _name_start(body: bytes) -> int:
    """Version 3 has one byte more, for the encoding of the name."""
    return 9 if body[0] == 3 else 8


def _padded(body: bytes, size: int) -> int:
    return (size + 7) // 8 * 8 if body[0] == 1 else size


def _describes_itself(body: bytes) -> bool:
    """Whether datatype and dataspace lie in the message: flags that version 1 does not have."""
    return body[0] == 1 or body[1] == 0


def _unpack_reference(reference: bytes, width: int) -> tuple[int, int, int]:
    length, address = int.from_bytes(reference[:4], "little"), int.from_bytes(reference[4 : 4 + width], "little")
    return length, address, int.from_bytes(reference[4 + width :], "little")


def _has_no_heap(body: bytes, offset_size: int) -> bool:
    """IV.A.2.v "Attribute Info Message": whether all attributes are in the header.

    Flags: bit 0, the order of creation is tracked, and a number of 2 bytes comes next.
    """
    start = 4 if body[1] & 1 else 2
    return body[start : start + offset_size] == b"\xff" * offset_size
