"""Object headers: for the few facts that h5py does not tell, and to see which objects are described alike.

HDF5 File Format Specification 3.0, IV.A "Data Object Headers". Addresses are relative to the superblock's base
address; lengths and addresses are as wide as the superblock says.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

import h5py
from numcodecs.checksum32 import jenkins_lookup3

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import FormatError, SourceTruncatedError
from virtualzarr_refs.sources import Source
from virtualzarr_refs.sources.read_ahead import ReadAhead

DATASPACE = 1
DATATYPE = 3
OLD_FILL_VALUE = 4
FILL_VALUE = 5
EXTERNAL_FILES = 7
LAYOUT = 8
FILTERS = 11
ATTRIBUTE = 12
CONTINUATION = 16
ATTRIBUTE_INFO = 21

SHARED = 0b10
"""IV.A.1: flag of a message that only says where in the file the real one is."""

MAX_BLOCKS = 1000
"""Continuation blocks of one header; more is a cycle or an attack."""

_LONGEST_PREFIX = 34
_BLOCK = 1 << 16
_MAX_KEPT = 256
_CHECKSUM = 4


class Message(NamedTuple):
    """A message of an object header: its type, its flags, and what it says."""

    kind: int
    flags: int
    body: bytes


@dataclass(frozen=True, slots=True)
class ObjectHeader:
    """The object header of one object.

    Parameters
    ----------
    messages : tuple of Message
        All of them, in their order.
    offset_size, length_size : int
        Widths of addresses and lengths, in bytes.
    """

    messages: tuple[Message, ...]
    offset_size: int
    length_size: int

    def body(self, kind: int) -> bytes | None:
        """What the first message of a kind says, or None."""
        return next((message.body for message in self.messages if message.kind == kind), None)


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
    _blocks: dict[int, bytes] = field(default_factory=dict[int, bytes], compare=False, repr=False)

    @classmethod
    def of(cls, file: h5py.File, source: Source) -> HeaderReader:
        """A reader for an open file."""
        creation = file.id.get_create_plist()
        offset_size, length_size = creation.get_sizes()
        return cls(source, creation.get_userblock(), offset_size, length_size)

    def read(self, address: int) -> ObjectHeader:
        """The object header at `address`.

        Raises
        ------
        FormatError
            If it is malformed.
        """
        try:
            messages = tuple(self._messages(address))
        except (struct.error, ValueError, IndexError, SourceTruncatedError) as error:
            raise FormatError(f"an object header cannot be read: {error}", offset=self.base + address) from error
        return ObjectHeader(messages, self.offset_size, self.length_size)

    def _messages(self, address: int) -> list[Message]:
        prefix = self.piece(address, _LONGEST_PREFIX)
        if prefix.startswith(b"OHDR"):
            return self._messages_2(address, prefix)
        found: list[Message] = []
        blocks = [(address + 16, _first_length_1(prefix))]
        for done, block in enumerate(blocks):
            _check_count(done)
            messages = _split(self.piece(*block), _HEAD_1)
            found += messages
            blocks += [self._target(message.body) for message in messages if message.kind == CONTINUATION]
        return found

    def _messages_2(self, address: int, prefix: bytes) -> list[Message]:
        skipped, length = _first_block_2(prefix)
        # IV.A.1.b: flag bit 2 says that messages carry the order of their creation.
        head = _HEAD_2_TRACKED if prefix[5] & 0b100 else _HEAD_2
        found: list[Message] = []
        blocks = [(address, skipped + length + _CHECKSUM, skipped)]
        for done, (start, size, skip) in enumerate(blocks):
            _check_count(done)
            messages = _split(_checked(self.piece(start, size))[skip:], head)
            found += messages
            # IV.A.1.c: a further block has a signature before its messages.
            blocks += [(*self._target(message.body), 4) for message in messages if message.kind == CONTINUATION]
        return found

    def _target(self, body: bytes) -> tuple[int, int]:
        """IV.A.2.q "The Object Header Continuation Message": address and length of a block."""
        start = int.from_bytes(body[: self.offset_size], "little")
        return start, int.from_bytes(body[self.offset_size : self.offset_size + self.length_size], "little")

    def piece(self, address: int, length: int) -> bytes:
        """Up to `length` bytes of metadata, fewer at the end of the file. Metadata lies together: blocks are kept.

        Raises
        ------
        ValueError
            If it starts beyond the end of the file.
        """
        if isinstance(self.source, ReadAhead) and not self.source.is_whole:  # a block may cost a request
            return self._piece_of(self.source, address, length)
        number, skip = divmod(self.base + address, _BLOCK)
        block = self._blocks.get(number) or self._load(number)
        if skip + length <= len(block):
            return block[skip : skip + length]
        room = self.source.identity().size - self.base - address
        return bytes(self.source.read([ByteRange(self.base + address, max(0, min(length, room)))])[0])

    def _piece_of(self, source: ReadAhead, address: int, length: int) -> bytes:
        room = source.identity().size - self.base - address
        if room <= 0:
            raise ValueError("it lies beyond the end of the file")
        return bytes(source.read_on(ByteRange(self.base + address, min(length, room))))

    def _load(self, number: int) -> bytes:
        if len(self._blocks) >= _MAX_KEPT:
            self._blocks.clear()
        start = number * _BLOCK
        length = min(_BLOCK, self.source.identity().size - start)
        if length <= 0:
            raise ValueError("it lies beyond the end of the file")
        self._blocks[number] = block = bytes(self.source.read([ByteRange(start, length)])[0])
        return block


def _check_count(blocks: int) -> None:
    if blocks > MAX_BLOCKS:
        raise ValueError("its continuation blocks go round in circles")


def _first_length_1(prefix: bytes) -> int:
    """IV.A.1.a "Version 1 Data Object Header Prefix": the length of the messages, which begin after 16 bytes."""
    version, _, _, length = struct.unpack_from("<BxHII", prefix)
    if version != 1:
        raise ValueError(f"its version is {version}")
    return length


def _first_block_2(prefix: bytes) -> tuple[int, int]:
    """IV.A.1.b "Version 2 Data Object Header Prefix": start, from the prefix, and length of the messages."""
    flags = prefix[5]
    # Bit 5: four times are stored; bit 4: two limits of attribute storage; bits 0 and 1: width of the length.
    skipped = 6 + (16 if flags & 0b100000 else 0) + (4 if flags & 0b10000 else 0)
    width = 1 << (flags & 0b11)
    return skipped + width, int.from_bytes(prefix[skipped : skipped + width], "little")


def _checked(block: bytes) -> bytes:
    """A block of a version 2 header without its checksum (Jenkins' lookup3)."""
    content = block[:-_CHECKSUM]
    if jenkins_lookup3(content) != int.from_bytes(block[-_CHECKSUM:], "little"):
        raise ValueError("its checksum does not match its bytes")
    return content


_HEAD_1 = struct.Struct("<HHB3x")
_HEAD_2 = struct.Struct("<BHB")
_HEAD_2_TRACKED = struct.Struct("<BHB2x")


def _split(data: bytes, head: struct.Struct) -> list[Message]:
    """The messages of a block: type, size, flags, and as many bytes."""
    found: list[Message] = []
    position, end = 0, len(data) - head.size
    while position <= end:
        kind, size, flags = head.unpack_from(data, position)
        position += head.size
        found.append(Message(kind, flags, data[position : position + size]))
        position += size
    return found
