"""The superblock, for the one fact about chunk indexes that h5py does not tell."""

from __future__ import annotations

from scanners.hdf5.header import HeaderReader
from virtualzarr_refs.errors import FormatError

BTREE_K_VALUES = 19
"""Type of the message that may lie in the superblock's extension (IV.A.2.t "The B-tree 'K' Values Message")."""

DEFAULT_K = 32
"""II.A: half the entries of a node, where nothing else is said."""


def chunk_tree_k(headers: HeaderReader) -> int:
    """Half the entries that a node of a version 1 B-tree of chunks has room for.

    II.A "Disk Format: Level 0A - Format Signature and Superblock": a version 0 superblock does not tell, version 1 has
    a field (after 24 bytes), and later ones an extension that is an object header (its address is the second that
    follows the first 12 bytes).

    Raises
    ------
    FormatError
        If the superblock is cut short or damaged.
    """
    head = headers.piece(0, 28)
    if len(head) < 28:
        raise FormatError("the superblock is cut short", offset=headers.base)
    version = head[8]
    if version == 0:
        return DEFAULT_K
    if version == 1:
        return int.from_bytes(head[24:26], "little")
    start = 12 + headers.offset_size
    return _from_extension(headers, int.from_bytes(head[start : start + headers.offset_size], "little"))


def _from_extension(headers: HeaderReader, address: int) -> int:
    if address == (1 << 8 * headers.offset_size) - 1:
        return DEFAULT_K
    message = headers.read(address).body(BTREE_K_VALUES)
    return DEFAULT_K if message is None else int.from_bytes(message[1:3], "little")
