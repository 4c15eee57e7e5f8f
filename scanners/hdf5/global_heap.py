"""Global heaps: where strings of variable length lie.

HDF5 File Format Specification 3.0, III.E "Disk Format: Level 1E - Global Heap".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from scanners.hdf5.header import HeaderReader
from virtualzarr_refs.errors import FormatError, SourceTruncatedError

SIGNATURE = b"GCOL"
LARGEST_COLLECTION = 1 << 24
"""Bytes of a collection beyond which it is left to libhdf5."""

_MAX_KEPT = 1024


@dataclass(frozen=True, slots=True)
class GlobalHeaps:
    """The heap collections of one file; those that were read are kept.

    Parameters
    ----------
    file : HeaderReader
        Reads pieces of metadata.
    """

    file: HeaderReader
    _collections: dict[int, dict[int, bytes]] = field(default_factory=dict[int, dict[int, bytes]], repr=False)

    def object(self, address: int, index: int) -> bytes | None:
        """An object by the address of its collection and its number there; None if there is none."""
        if address not in self._collections:
            if len(self._collections) >= _MAX_KEPT:
                self._collections.clear()
            try:
                self._collections[address] = self._read(address)
            except (FormatError, SourceTruncatedError, struct.error, ValueError):
                self._collections[address] = {}  # libhdf5 is to say what is wrong
        return self._collections[address].get(index)

    def _read(self, address: int) -> dict[int, bytes]:
        width = self.file.length_size
        head = self.file.piece(address, 8 + width)
        size = int.from_bytes(head[8:], "little")
        if head[:5] != SIGNATURE + b"\1" or size > LARGEST_COLLECTION:
            return {}
        return _objects(self.file.piece(address, size), 8 + width, width)


def _objects(collection: bytes, start: int, width: int) -> dict[int, bytes]:
    """Each begins with its index, a count, 4 reserved bytes and its size; index 0 is the free space, which ends it."""
    found: dict[int, bytes] = {}
    while start + 8 + width <= len(collection):
        index = int.from_bytes(collection[start : start + 2], "little")
        size = int.from_bytes(collection[start + 8 : start + 8 + width], "little")
        start += 8 + width
        if index == 0 or start + size > len(collection):
            break
        found[index] = collection[start : start + size]
        start += (size + 7) // 8 * 8
    return found
