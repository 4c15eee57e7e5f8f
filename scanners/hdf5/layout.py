"""The layout message of chunked datasets, for the facts that h5py does not tell."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.errors import FormatError

CONTIGUOUS = 1
CHUNKED = 2


class IndexType(IntEnum):
    """IV.A.2.i "The Data Layout Message": how the chunks are found. Before version 4 always by a version 1 B-tree."""

    BTREE1 = 0
    SINGLE_CHUNK = 1
    IMPLICIT = 2
    FIXED_ARRAY = 3
    EXTENSIBLE_ARRAY = 4
    BTREE2 = 5


PARAMETERS = {IndexType.IMPLICIT: 0, IndexType.FIXED_ARRAY: 1, IndexType.EXTENSIBLE_ARRAY: 5, IndexType.BTREE2: 6}
"""Bytes of what follows the type of index; the index itself repeats all of it."""


@dataclass(frozen=True, slots=True)
class ChunkedLayout:
    """Chunked storage, as the layout message describes it.

    Parameters
    ----------
    version : int
        Of the message.
    chunk_shape : tuple of int
        In elements.
    element_size : int
        In bytes.
    index_type : IndexType
        How the chunks are found.
    address : int
        Of the index, or of the chunk itself; all bits are set where nothing was ever written.
    skips_filters_at_edges : bool
        Whether chunks that reach beyond the dataset are stored unfiltered.
    single_size, single_mask : int, optional
        Bytes and left-out filters of a single chunk, where it is filtered.
    """

    version: int
    chunk_shape: Shape
    element_size: int
    index_type: IndexType
    address: int
    skips_filters_at_edges: bool = False
    single_size: int | None = None
    single_mask: int = 0


@dataclass(slots=True)
class _Cursor:
    """Takes integers off the front of a message."""

    data: bytes
    position: int = 0

    def take(self, width: int) -> int:
        end = self.position + width
        if end > len(self.data):
            raise FormatError("a layout message is cut short")
        value = int.from_bytes(self.data[self.position : end], "little")
        self.position = end
        return value


def parse_chunked_layout(message: bytes, offset_size: int, length_size: int) -> ChunkedLayout:
    """Read a layout message.

    Parameters
    ----------
    message : bytes
        IV.A.2.i "The Data Layout Message".
    offset_size, length_size : int
        Widths of addresses and lengths, in bytes.

    Raises
    ------
    FormatError
        If the message is cut short, of an unknown version or not of chunked storage.
    """
    cursor = _Cursor(message)
    version = cursor.take(1)
    if version in (1, 2):
        return _parse_1(cursor, version, offset_size)
    if version not in (3, 4, 5) or cursor.take(1) != CHUNKED:
        raise FormatError(f"a layout message of version {version} is not one of chunked storage that is known")
    return _parse_3(cursor, offset_size) if version == 3 else _parse_4(cursor, version, offset_size, length_size)


def storage_class(message: bytes, offset_size: int) -> bytes | None:
    """What of a layout message says how values are stored, and not where.

    None for versions and classes of storage for which the two cannot be told apart.
    """
    version, kind = message[0], message[1]
    if kind == CONTIGUOUS and version in (3, 4):
        return message[:2]
    if kind == CHUNKED and version == 3:
        rank = message[2]  # one more than the dataset's: the last length is an element's
        start = 3 + offset_size
        return message[:3] + message[start : start + 4 * rank]
    if kind == CHUNKED and version in (4, 5):
        rank, width = message[3], message[4]
        return message[: 5 + rank * width]
    return None


def contiguous_address(message: bytes, offset_size: int) -> int | None:
    """Where the values of a contiguous dataset lie, if they were ever written; relative to the base address.

    Raises
    ------
    FormatError
        If it is no layout message of contiguous storage that is known.
    """
    if len(message) < 2 + offset_size or message[0] not in (3, 4) or message[1] != CONTIGUOUS:
        raise FormatError("a layout message is not one of contiguous storage that is known")
    address = int.from_bytes(message[2 : 2 + offset_size], "little")
    return None if address == (1 << 8 * offset_size) - 1 else address


def _parse_1(cursor: _Cursor, version: int, offset_size: int) -> ChunkedLayout:
    rank = cursor.take(1)
    if cursor.take(1) != CHUNKED:
        raise FormatError("a layout message is not one of chunked storage")
    cursor.take(5)
    address = cursor.take(offset_size)
    *chunk_shape, element_size = (cursor.take(4) for _ in range(max(1, rank)))
    return ChunkedLayout(version, tuple(chunk_shape), element_size, IndexType.BTREE1, address)


def _parse_3(cursor: _Cursor, offset_size: int) -> ChunkedLayout:
    rank = cursor.take(1)
    address = cursor.take(offset_size)
    *chunk_shape, element_size = (cursor.take(4) for _ in range(max(1, rank)))
    return ChunkedLayout(3, tuple(chunk_shape), element_size, IndexType.BTREE1, address)


def _parse_4(cursor: _Cursor, version: int, offset_size: int, length_size: int) -> ChunkedLayout:
    """Flags: bit 0, no filters at the edges; bit 1, a single chunk is filtered."""
    flags, rank, width = cursor.take(1), cursor.take(1), cursor.take(1)
    *chunk_shape, element_size = (cursor.take(width) for _ in range(max(1, rank)))
    kind = cursor.take(1)
    if kind not in (1, 2, 3, 4, 5):
        raise FormatError(f"a layout message names a chunk index of unknown type {kind}")
    index_type = IndexType(kind)
    size, mask = None, 0
    if index_type is IndexType.SINGLE_CHUNK and flags & 2:
        size, mask = cursor.take(length_size), cursor.take(4)
    cursor.take(PARAMETERS.get(index_type, 0))
    address = cursor.take(offset_size)
    return ChunkedLayout(version, tuple(chunk_shape), element_size, index_type, address, bool(flags & 1), size, mask)
