"""Which chunks of a manifest another one does not have, so that an append writes only those."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.manifest import MISSING, Manifest, index_of


def new_chunks(manifest: Manifest, old: Manifest | None) -> NDArray[np.bool_] | None:
    """Chunks that lie in a source, and are not the same in the older manifest.

    Returns
    -------
    ndarray of bool or None
        Over the grid of `manifest`; None where there is no such chunk, however large the grid.
    """
    if not manifest.virtual_positions().size:
        return None
    changed = manifest.url_id != MISSING
    if old is not None and old.virtual_positions().size:
        shared = _shared(manifest, old)
        same = manifest.url_id[shared] == _renumbered(old, manifest.urls, shared)
        same &= (manifest.offset[shared] == old.offset[shared]) & (manifest.length[shared] == old.length[shared])
        changed[shared] &= ~same
    return changed if changed.any() else None


def new_inline(manifest: Manifest, old: Manifest | None) -> dict[tuple[int, ...], bytes]:
    """Inline chunks, by index, that are not the same in the older manifest."""
    before = {} if old is None else {index_of(p, old.grid_shape): data for p, data in old.inline.items()}
    now = {index_of(p, manifest.grid_shape): data for p, data in manifest.inline.items()}
    return {index: data for index, data in now.items() if before.get(index) != data}


def is_extension(manifest: Manifest, old: Manifest) -> bool:
    """Whether the older manifest has no chunk that the newer lacks."""
    if len(manifest.grid_shape) != len(old.grid_shape):
        return False
    positions = old.positions()
    if not positions.size:
        return True
    indexes = np.unravel_index(positions, old.grid_shape) if old.grid_shape else ()
    inside = all((numbers < count).all() for numbers, count in zip(indexes, manifest.grid_shape, strict=True))
    if not inside:
        return False
    there = np.ravel_multi_index(indexes, manifest.grid_shape) if old.grid_shape else positions
    return bool(np.isin(there, manifest.positions()).all())


def _shared(manifest: Manifest, old: Manifest) -> Any:  # noqa: ANN401  an index of NumPy
    pairs = zip(manifest.grid_shape, old.grid_shape, strict=True)
    return tuple(slice(0, min(pair)) for pair in pairs) or ...


def _renumbered(old: Manifest, urls: tuple[str, ...], shared: Any) -> NDArray[np.uint32]:  # noqa: ANN401
    """The url ids of the older manifest in terms of another table of urls."""
    numbers = {url: i for i, url in enumerate(urls)}
    table = np.array([*(numbers.get(url, MISSING) for url in old.urls), MISSING], np.uint32)
    return table[np.minimum(old.url_id[shared], len(old.urls))]
