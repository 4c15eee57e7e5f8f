"""Where the chunks of an array lie, for a picture of it."""

from __future__ import annotations

from typing import Any

from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.manifest import Chunk, InlineChunk, VirtualChunk, index_of
from virtualzarr_refs.references.urls import name_of
from virtualzarr_refs.sources.redaction import redact

MAX_CHUNKS = 1 << 14
"""Chunks that are told of; an array may have many more."""


def chunk_map(array: VirtualArray) -> dict[str, Any]:
    """The first chunks of an array in C order of the grid.

    Returns
    -------
    dict
        ``sources`` has the name of each file, without its folder. Each of ``chunks`` is null where a chunk is missing,
        or a list of the number of its source, offset and length in bytes; the number is null for one kept inline, the
        offset for a shard that several byte ranges make up.
    """
    grid_shape = array.manifest.grid_shape
    count = min(array.manifest.size, MAX_CHUNKS)
    numbers: dict[str, int] = {}
    chunks = [_place(array.manifest.chunk(index_of(position, grid_shape)), numbers) for position in range(count)]
    return {
        "grid_shape": list(grid_shape),
        "total": array.manifest.size,
        "sources": [name_of(redact(url)) for url in numbers],
        "chunks": chunks,
    }


def _place(chunk: Chunk, numbers: dict[str, int]) -> list[int | None] | None:
    if chunk is None:
        return None
    if isinstance(chunk, InlineChunk):
        return [None, 0, len(chunk.data)]
    number = numbers.setdefault(chunk.url, len(numbers))
    if isinstance(chunk, VirtualChunk):
        return [number, chunk.byte_range.offset, chunk.byte_range.length]
    return [number, None, chunk.inner_chunks.nbytes]
