"""The indexes of several arrays at the end of one file.

A reader takes the last bytes of a shard for its index: as many as the shard has inner chunks, and a checksum. Where the
shard of every array is the same file, all indexes have to end where the file does. So each holds those of the arrays
after it: an array's shard is declared longer than the array, by rows of inner chunks that no reader ever asks for, and
the index entries of these rows are where the other indexes stand. One entry among them is chosen such that the checksum
at the end of the file is right for all.

.. code-block:: text

    … the file | b: its chunks | not there … | chosen | a: its chunks | not there … | checksum
                                                      └─ index of a ──────────────────────────┘
               └─ index of b ─────────────────────────────────────────────────────────────────┘

The row that is not there has a second use: zarr-python reads the whole shard, here the whole file, if it is asked for
all of a shard's chunks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.embedding.checksums import patch
from virtualzarr_refs.inner_chunks import checksum

_ENTRY = 16
"""Bytes of an index entry: offset and length of a chunk."""

_NOT_THERE = b"\xff" * _ENTRY


@dataclass(frozen=True, slots=True)
class Tail:
    """Indexes that end where their file does.

    Parameters
    ----------
    data : bytes
        What to append to the file.
    spare : mapping of str to int
        By array, how many rows of inner chunks along the first axis its shard has beyond the array.
    """

    data: bytes
    spare: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Index:
    """The index of one array.

    Parameters
    ----------
    entries : bytes
        Of its chunks.
    inner_grid : tuple of int
        Their number along each axis, of which there is at least one.
    """

    entries: bytes
    inner_grid: Shape

    @property
    def row(self) -> int:
        """Bytes of the entries of one row along the first axis."""
        return _ENTRY * math.prod(self.inner_grid[1:])


def nest(indexes: Mapping[str, Index]) -> Tail:
    """Put indexes of at least one array into each other, the smallest last."""
    inner, spare, last = b"", dict[str, int](), b""
    for name, index in sorted(indexes.items(), key=lambda item: len(item[1].entries)):
        if not inner:
            spare[name] = 1
            inner = index.entries + index.row // _ENTRY * _NOT_THERE
            last = checksum(inner)
            continue
        spare[name] = -(-(len(inner) + _ENTRY) // index.row)
        filler = (spare[name] * index.row - len(inner)) // _ENTRY - 1
        before = index.entries + filler * _NOT_THERE
        after = bytes(_ENTRY - 4) + inner
        inner = before + patch(before, after, int.from_bytes(last, "little")) + after
    return Tail(inner + last, spare)
