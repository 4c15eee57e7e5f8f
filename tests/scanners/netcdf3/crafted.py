"""Headers written by hand, so that they may lie. From the grammar, without the scanner's tables."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

NC_BYTE, NC_CHAR, NC_SHORT, NC_INT, NC_FLOAT, NC_DOUBLE, NC_UBYTE, NC_USHORT, NC_UINT, NC_INT64, NC_UINT64 = range(
    1, 12
)
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}


@dataclass
class Var:
    """A variable: its type, its dimensions, and where it says its values begin."""

    type: int
    dimensions: list[int]
    begin: int
    attributes: dict[bytes, tuple[int, int, bytes]] = field(default_factory=dict)
    size: int = 0


@dataclass
class File:
    """What a header says. Every field may be wrong."""

    version: int = 1
    records: int = 0
    dimensions: list[tuple[bytes, int]] = field(default_factory=list)
    attributes: dict[bytes, tuple[int, int, bytes]] = field(default_factory=dict)
    variables: list[tuple[bytes, Var]] = field(default_factory=list)

    def count(self, number: int) -> bytes:
        return struct.pack(">Q" if self.version == 5 else ">I", number)

    def offset(self, number: int) -> bytes:
        return struct.pack(">I" if self.version == 1 else ">Q", number)

    def name(self, name: bytes) -> bytes:
        return self.count(len(name)) + padded(name)

    def members(self, tag: int, members: list[bytes]) -> bytes:
        head = struct.pack(">I", tag if members else 0) + self.count(len(members))
        return head + b"".join(members)

    def attribute_list(self, attributes: dict[bytes, tuple[int, int, bytes]]) -> bytes:
        return self.members(
            12,
            [
                self.name(name) + struct.pack(">I", type_) + self.count(count) + padded(raw)
                for name, (type_, count, raw) in attributes.items()
            ],
        )

    def variable(self, name: bytes, var: Var) -> bytes:
        ids = b"".join(map(self.count, var.dimensions))
        return (
            self.name(name)
            + self.count(len(var.dimensions))
            + ids
            + self.attribute_list(var.attributes)
            + struct.pack(">I", var.type)
            + self.count(var.size)
            + self.offset(var.begin)
        )

    def header(self) -> bytes:
        return (
            b"CDF"
            + bytes([self.version])
            + self.count(self.records)
            + self.members(10, [self.name(name) + self.count(length) for name, length in self.dimensions])
            + self.attribute_list(self.attributes)
            + self.members(11, [self.variable(name, var) for name, var in self.variables])
        )


def padded(raw: bytes) -> bytes:
    return raw + b"\0" * (-len(raw) % 4)
