"""Object headers, for the few facts that h5py does not tell.

HDF5 File Format Specification 3.0, IV.A "Data Object Headers". Addresses are relative to the superblock's base
address; lengths and addresses are as wide as the superblock says.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import h5py

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import FormatError, SourceTruncatedError
from virtualzarr_refs.sources import Source

LAYOUT = 8
CONTINUATION = 16

_LONGEST_PREFIX = 34

MAX_BLOCKS = 1000
"""Continuation blocks of one header; more is a cycle or an attack."""


@dataclass(frozen=True, slots=True)
class HeaderReader:
    """Reads object headers of one file.

    Parameters
    ----------
    source : Source
        The file's bytes.
    base : int
        Base address of the superblock, in bytes from the start of the file.
    offset_size, length_size : int
        Widths of addresses and lengths, in bytes.
    """

    source: Source
    base: int
    offset_size: int
    length_size: int

    @classmethod
    def of(cls, file: h5py.File, source: Source) -> HeaderReader:
        """A reader for an open file."""
        creation = file.id.get_create_plist()
        offset_size, length_size = creation.get_sizes()
        return cls(source, creation.get_userblock(), offset_size, length_size)

    def message(self, address: int, kind: int) -> bytes | None:
        """The first message of a kind in the object header at `address`, or None.

        Raises
        ------
        FormatError
            If the header is malformed.
        """
        try:
            return next((body for found, body in self._messages(address) if found == kind), None)
        except (struct.error, ValueError, IndexError, SourceTruncatedError) as error:
            raise FormatError(f"an object header cannot be read: {error}", offset=self.base + address) from error

    def _messages(self, address: int) -> Iterator[tuple[int, bytes]]:
        prefix = self._read(address, _LONGEST_PREFIX)
        version2 = prefix.startswith(b"OHDR")
        skipped, length = _first_block_2(prefix) if version2 else _first_block_1(prefix)
        blocks = [(address + skipped, length)]
        # IV.A.1.b: in version 2, flag bit 2 says that messages carry the order of their creation.
        tracked = version2 and bool(prefix[5] & 0b100)
        for done, (start, length) in enumerate(blocks):
            if done > MAX_BLOCKS:
                raise ValueError("its continuation blocks go round in circles")
            data = self._read(start, length)
            for kind, body in _split_2(data, tracked=tracked) if version2 else _split_1(data):
                if kind == CONTINUATION:
                    blocks.append(self._continuation(body, version2=version2))
                yield kind, body

    def _continuation(self, body: bytes, *, version2: bool) -> tuple[int, int]:
        """IV.A.2.q "The Object Header Continuation Message"."""
        start = int.from_bytes(body[: self.offset_size], "little")
        length = int.from_bytes(body[self.offset_size : self.offset_size + self.length_size], "little")
        # IV.A.1.c: a version 2 block has a signature before its messages and a checksum after them.
        return (start + 4, length - 8) if version2 else (start, length)

    def _read(self, address: int, length: int) -> bytes:
        room = self.source.identity().size - self.base - address
        return bytes(self.source.read([ByteRange(self.base + address, max(0, min(length, room)))])[0])


def _first_block_1(prefix: bytes) -> tuple[int, int]:
    """IV.A.1.a "Version 1 Data Object Header Prefix": start, from the prefix, and length of the messages."""
    version, _, _, length = struct.unpack_from("<BxHII", prefix)
    if version != 1:
        raise ValueError(f"its version is {version}")
    return 16, length


def _first_block_2(prefix: bytes) -> tuple[int, int]:
    """IV.A.1.b "Version 2 Data Object Header Prefix": start, from the prefix, and length of the messages."""
    flags = prefix[5]
    # Bit 5: four times are stored; bit 4: two limits of attribute storage; bits 0 and 1: width of the length.
    skipped = 6 + (16 if flags & 0b100000 else 0) + (4 if flags & 0b10000 else 0)
    width = 1 << (flags & 0b11)
    return skipped + width, int.from_bytes(prefix[skipped : skipped + width], "little")


def _split_1(data: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position + 8 <= len(data):
        kind, size, _ = struct.unpack_from("<HHB3x", data, position)
        yield kind, data[position + 8 : position + 8 + size]
        position += 8 + size


def _split_2(data: bytes, *, tracked: bool) -> Iterator[tuple[int, bytes]]:
    head = 6 if tracked else 4
    position = 0
    while position + head <= len(data):
        kind, size, _ = struct.unpack_from("<BHB", data, position)
        yield kind, data[position + head : position + head + size]
        position += head + size
