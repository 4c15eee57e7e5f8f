"""Where the chunks of an array lie: one behind the other, from boundary to boundary.

Version 3 stores all boundaries, from the start of the file, in blocks of 64: each a stream of packed differences,
filled up with zeros to a common size. Versions 1 and 2 store where each chunk ends, from the end of the table.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from scanners.open_meteo.records import ArrayRecord
from scanners.open_meteo.window import Window
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.codecs.open_meteo_pfor import PADDING, Headers, Walk, unpack
from virtualzarr_refs.errors import DecodeError, FormatError

BLOCK = 64
"""Boundaries of a block."""

PIECE = 1 << 13
"""Blocks read and decoded at once: a table may have hundreds of thousands, and must not take much more memory than
what it stands for."""

type Boundaries = NDArray[np.uint64]
type Lengths = NDArray[np.uint64] | NDArray[np.uint32]


def read_chunks(window: Window, record: ArrayRecord) -> tuple[Boundaries, Lengths]:
    """Offsets and lengths of all chunks in C order; the lengths as 32-bit numbers if they fit.

    Raises
    ------
    FormatError
        If the table is damaged, or names bytes that are not there.
    """
    count = record.chunk_count
    if count > window.size:
        raise FormatError(f"{count} chunks cannot lie in {window.size} bytes")
    boundaries = np.empty(count + 1, np.uint64)
    position = 0
    for piece in (_old_pieces if record.is_old else _pieces)(window, record):
        boundaries[position : position + piece.size] = piece
        position += piece.size
    if int(boundaries[-1]) > window.size:
        raise FormatError("the last chunk is said to end past the end of the file; it was cut short")
    return boundaries[:-1], _lengths(boundaries, record.table.offset)


def _lengths(boundaries: Boundaries, offset: int) -> Lengths:
    count = boundaries.size - 1
    lengths: Lengths = np.empty(count, np.uint32)
    for start in range(0, count, PIECE * BLOCK):
        piece = boundaries[start : start + PIECE * BLOCK + 1]
        if np.any(piece[1:] < piece[:-1]):
            raise FormatError("the lookup table names chunks out of order; it is damaged", offset=offset)
        difference = np.diff(piece)
        if lengths.itemsize == 4 and difference.max(initial=0) >> np.uint64(32):
            lengths = lengths.astype(np.uint64)
        lengths[start : start + difference.size] = difference
    return lengths


def _old_pieces(window: Window, record: ArrayRecord) -> Iterator[Boundaries]:
    table = record.table
    start = np.uint64(table.stop)
    yield np.array([start])
    for first in range(0, table.length, 8 * PIECE * BLOCK):
        length = min(8 * PIECE * BLOCK, table.length - first)
        ends = np.frombuffer(window.read([ByteRange(table.offset + first, length)])[0], "<u8")
        if int(ends.max()) > window.size:
            raise FormatError("the lookup table names bytes past the end of the file", offset=table.offset)
        yield start + ends


def _pieces(window: Window, record: ArrayRecord) -> Iterator[Boundaries]:
    table, count = record.table, record.chunk_count + 1
    blocks = -(-count // BLOCK)
    size, rest = divmod(table.length, blocks)
    if rest or not size:
        raise FormatError(f"a lookup table of {table.length} bytes cannot have {blocks} blocks", offset=table.offset)
    for first in range(0, blocks, PIECE):
        number = min(PIECE, blocks - first)
        place = ByteRange(table.offset + first * size, number * size)
        try:
            yield decode_table(window.read([place])[0], size, min(number * BLOCK, count - first * BLOCK))
        except DecodeError as error:
            raise FormatError("the lookup table is damaged", offset=place.offset) from error


def decode_table(data: bytes, size: int, count: int) -> Boundaries:
    """The boundaries in several blocks.

    Parameters
    ----------
    data : bytes
        The blocks.
    size : int
        Of each, in bytes.
    count : int
        Number of boundaries; only the last block may have fewer than 64.

    Raises
    ------
    DecodeError
        If they are no such blocks.
    """
    full, rest = divmod(count, BLOCK)
    parts = [_decode_blocks(data[: full * size], size, BLOCK)] if full else []
    if rest:
        parts.append(_decode_blocks(data[full * size :], size, rest))
    return np.concatenate(parts)


def _decode_blocks(data: bytes, size: int, count: int) -> Boundaries:
    walk, headers = Walk(data + PADDING, 64), Headers(count - 1)
    firsts: list[int] = []
    for start in range(0, len(data), size):
        walk.position = start
        firsts.append(walk.first())
        if count > 1:
            walk.blocks(1, headers)
        if walk.position > start + size:
            raise DecodeError("a block of the lookup table is longer than it may be")
    boundaries = np.empty((len(firsts), count), np.uint64)
    boundaries[:, 0] = firsts
    if count > 1:
        boundaries[:, 1:] = unpack(walk.data, 64, headers)
    return np.add.accumulate(boundaries, axis=1, out=boundaries).reshape(-1)
