"""Chunk keys of a whole array at once: from positions in the chunk grid to keys, and back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import ChunkKeyEncoding, Shape
from virtualzarr_refs.errors import ReferenceSetError

_NUMBER = r"(?:0|[1-9][0-9]{0,17})"
"""A number of a chunk index; eighteen digits fit an int64."""


def encode_keys(
    positions: NDArray[np.intp], grid_shape: Shape, encoding: ChunkKeyEncoding, prefix: str
) -> Iterator[str]:
    """The keys of chunks.

    Parameters
    ----------
    positions : ndarray of intp
        Of the chunks, in C order of the grid.
    grid_shape : tuple of int
        Number of chunks along each axis.
    encoding : ChunkKeyEncoding
        How they are named.
    prefix : str
        Put in front of each key, such as ``"group/array/"``.
    """
    if not grid_shape:
        return (prefix + encoding.encode(()) for _ in positions)
    columns = [column.tolist() for column in np.unravel_index(positions, grid_shape)]
    template = prefix.replace("%", "%%") + _template(encoding, len(grid_shape))
    return map(template.__mod__, zip(*columns, strict=True))


def decode_keys(keys: Sequence[str], start: int, rank: int, encoding: ChunkKeyEncoding) -> NDArray[np.int64]:
    """The chunk indexes that keys name.

    Parameters
    ----------
    keys : sequence of str
        Keys that share a prefix.
    start : int
        Length of the prefix, in characters.
    rank : int
        Number of axes of the array.
    encoding : ChunkKeyEncoding
        How chunks are named.

    Returns
    -------
    ndarray of int64
        One row for each key.

    Raises
    ------
    ReferenceSetError
        If a key names no chunk of such an array; the message quotes it.
    """
    text = "\n".join([key[start:] for key in keys])
    one = _pattern(encoding, rank)
    if text.count("\n") != len(keys) - 1 or re.fullmatch(f"(?:{one}\n)*+{one}", text) is None:
        wrong = next(key for key in keys if re.fullmatch(one, key[start:]) is None)
        raise ReferenceSetError(f"the key {wrong!r} names no chunk of an array of {rank} dimensions")
    if rank == 0:
        return np.zeros((len(keys), 0), np.int64)
    numbers = text.replace(_head(encoding), "").replace("\n", encoding.separator)
    return np.fromstring(numbers, np.int64, sep=encoding.separator).reshape(len(keys), rank)


def _head(encoding: ChunkKeyEncoding) -> str:
    return f"c{encoding.separator}"


def _template(encoding: ChunkKeyEncoding, rank: int) -> str:
    parts: list[Literal["c", "%d"]] = ["%d"] * rank
    return encoding.separator.join(["c", *parts] if encoding.name == "default" else parts)


def _pattern(encoding: ChunkKeyEncoding, rank: int) -> str:
    if rank == 0:
        return "0?" if encoding.name == "v2" else "c"  # VirtualiZarr leaves the number out
    pattern = re.escape(encoding.separator).join([_NUMBER] * rank)
    return re.escape(_head(encoding)) + pattern if encoding.name == "default" else pattern
