"""Whether one manifest only adds chunks to another, so that the partitions of the other can stay as they are."""

from __future__ import annotations

from virtualzarr_refs.chunk_manifest import ChunkManifest
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.manifest_joining import select


def unchanged_partitions(old: ChunkManifest, new: ChunkManifest, size: int) -> frozenset[int] | None:
    """Numbers of the partitions of `size` chunks that both have, and have the same.

    Returns
    -------
    frozenset of int or None
        None if the new manifest does not begin, in C order, with all chunks of the old one.
    """
    if not _is_longer(old, new):
        return None
    unchanged: set[int] = set()
    earlier = old.blocks(size)
    start, before = next(earlier, (None, None))
    for first, block in new.blocks(size):
        if first != start or before is None:
            if first < old.size and not _is_missing(block, min(old.size - first, block.size)):
                return None
            continue
        if not _begins_with(block, before):
            return None
        if block.size == before.size:
            unchanged.add(first // size)
        start, before = next(earlier, (None, None))
    return frozenset(unchanged) if start is None else None


def _is_longer(old: ChunkManifest, new: ChunkManifest) -> bool:
    """Whether the grids differ at most along the first axis, along which the new one is not shorter."""
    a, b = old.grid_shape, new.grid_shape
    return len(a) == len(b) and a[1:] == b[1:] and a[:1] <= b[:1]


def _begins_with(block: Manifest, before: Manifest) -> bool:
    return block.size >= before.size and select(block, [slice(0, before.size)]).equals(before)


def _is_missing(block: Manifest, count: int) -> bool:
    return select(block, [slice(0, count)]).is_missing
