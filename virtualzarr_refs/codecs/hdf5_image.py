"""HDF5 files in memory that hold one chunk, for libhdf5 to decode it.

libhdf5 is the truth about its filters and type conversions. It decodes whole files only; so a chunk's bytes are
put, untouched, behind a minimal file that declares one dataset of one chunk with the same type and filters. Writing
the declaration by hand keeps the filters' parameters exactly as the archive has them (creating a dataset would let
each filter change its own, and needs its encoder).

Layouts are from the HDF5 File Format Specification 3.0; the section stands at each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from numcodecs.checksum32 import jenkins_lookup3

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.codecs.hdf5_filters import HDF5Filter

DATASET_NAME = b"x"

_UNDEFINED = 0xFFFFFFFFFFFFFFFF
_SUPERBLOCK_LENGTH = 48
_DATASPACE, _LINK_INFO, _DATATYPE, _FILL_VALUE, _LINK, _LAYOUT, _GROUP_INFO, _FILTERS = 1, 2, 3, 5, 6, 8, 10, 11


def chunk_image(
    data: bytes | memoryview, shape: Shape, datatype: bytes, element_size: int, filters: tuple[HDF5Filter, ...]
) -> bytes:
    """The bytes of an HDF5 file whose dataset ``x`` is one chunk.

    Parameters
    ----------
    data : bytes-like
        The chunk as stored.
    shape : tuple of int
        Of the chunk, in elements; at least one axis.
    datatype : bytes
        Datatype message.
    element_size : int
        Of one element as stored, in bytes.
    filters : tuple of HDF5Filter
        Those that were applied to this chunk.
    """
    root = _root_header(_SUPERBLOCK_LENGTH)
    address = _SUPERBLOCK_LENGTH + len(root)
    # The layout message holds the address of what follows the header: build once for the length, once for good.
    length = len(_dataset_header(shape, datatype, element_size, filters, len(data), 0))
    header = _dataset_header(shape, datatype, element_size, filters, len(data), address + length)
    end = address + length + len(data)
    return b"".join((_superblock(end), root, header, data))


def _superblock(end: int) -> bytes:
    """II.A "Disk Format: Level 0A - Format Signature and Superblock", version 2."""
    fields = struct.pack("<8sBBBBQQQQ", b"\x89HDF\r\n\x1a\n", 2, 8, 8, 0, 0, _UNDEFINED, end, _SUPERBLOCK_LENGTH)
    return fields + _checksum(fields)


def _root_header(address: int) -> bytes:
    """The root group: a hard link to the dataset, whose header follows it directly."""

    def messages(target: int) -> bytes:
        return b"".join(
            (
                # IV.A.2.c "The Link Info Message", IV.A.2.k "The Group Info Message"
                _message(_LINK_INFO, struct.pack("<BBQQ", 0, 0, _UNDEFINED, _UNDEFINED)),
                _message(_GROUP_INFO, struct.pack("<BB", 0, 0)),
                # IV.A.2.g "The Link Message"
                _message(_LINK, struct.pack("<BBB1sQ", 1, 0, len(DATASET_NAME), DATASET_NAME, target)),
            )
        )

    return _object_header(messages(address + len(_object_header(messages(0)))))


def _dataset_header(
    shape: Shape, datatype: bytes, element_size: int, filters: tuple[HDF5Filter, ...], stored: int, address: int
) -> bytes:
    rank = len(shape)
    # IV.A.2.b "The Dataspace Message", version 2
    dataspace = struct.pack(f"<BBBB{rank}Q", 2, rank, 0, 1, *shape)
    # IV.A.2.f "The Data Storage - Fill Value Message", version 3: allocated step by step, written if set, undefined
    fill = struct.pack("<BB", 3, 0b1011)
    # IV.A.2.i "The Data Layout Message", version 4, chunked; index type 1 is "single chunk"
    lengths = (*shape, element_size)
    width = max((length.bit_length() + 7) // 8 for length in lengths)
    dimensions = b"".join(length.to_bytes(width, "little") for length in lengths)
    layout = (
        struct.pack("<BBBBB", 4, 2, 0b10, rank + 1, width) + dimensions + struct.pack("<BQIQ", 1, stored, 0, address)
    )
    return _object_header(
        b"".join(
            (
                _message(_DATASPACE, dataspace),
                _message(_DATATYPE, datatype),
                _message(_FILL_VALUE, fill),
                _message(_FILTERS, _filter_message(filters)),
                _message(_LAYOUT, layout),
            )
        )
    )


def _filter_message(filters: Iterable[HDF5Filter]) -> bytes:
    """IV.A.2.l "The Data Storage - Filter Pipeline Message", version 2."""
    steps = tuple(filters)
    return struct.pack("<BB", 2, len(steps)) + b"".join(map(_filter_step, steps))


def _filter_step(step: HDF5Filter) -> bytes:
    # Filters above 255 have a name; an empty one will do.
    name_length = b"" if step.id < 256 else struct.pack("<H", 0)
    head = struct.pack("<H", step.id) + name_length
    return head + struct.pack(f"<HH{len(step.values)}I", step.flags, len(step.values), *step.values)


def _object_header(messages: bytes) -> bytes:
    """IV.A.1.b "Version 2 Data Object Header Prefix"; the size of the messages takes four bytes."""
    header = struct.pack("<4sBBI", b"OHDR", 2, 0b10, len(messages)) + messages
    return header + _checksum(header)


def _message(kind: int, body: bytes) -> bytes:
    return struct.pack("<BHB", kind, len(body), 0) + body


def _checksum(data: bytes) -> bytes:
    """Appendix of the specification: Bob Jenkins' lookup3, with 0 to start from."""
    return struct.pack("<I", jenkins_lookup3(data, 0))
