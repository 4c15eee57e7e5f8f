"""Manifests put together and taken apart, column by column: nothing is done chunk by chunk but for inline ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.manifest import MISSING, Manifest

type Renumbering = NDArray[np.uint16]
"""The new number of each variant of a manifest; of one without variants, the only element is its number."""


def concatenate(manifests: Sequence[Manifest], axis: int, renumbering: Sequence[Renumbering] | None = None) -> Manifest:
    """Join manifests along an axis of the grid.

    Parameters
    ----------
    manifests : sequence of Manifest
        At least one; their grids may differ along `axis` only.
    axis : int
        Of the grid.
    renumbering : sequence of ndarray of uint16, optional
        For each manifest; by default the result has no variants.

    Raises
    ------
    ValueError
        If the grids do not line up.
    """
    shape = _joined_shape(manifests, axis)
    inline = dict(_joined_inline(manifests, axis, shape))
    if renumbering is None and all(manifest.is_missing for manifest in manifests):
        return Manifest.missing(shape)
    urls = {url: number for number, url in enumerate(dict.fromkeys(url for m in manifests for url in m.urls))}
    wide = any(manifest.length.dtype.itemsize > 4 for manifest in manifests)
    url_id, offset = np.empty(shape, np.uint32), np.empty(shape, np.uint64)
    length = np.empty(shape, np.uint64 if wide else np.uint32)
    variant = None if renumbering is None else np.empty(shape, np.uint16)
    for number, (place, manifest) in enumerate(_places(manifests, axis)):
        url_id[place] = _renumbered_urls(manifest, urls)
        offset[place], length[place] = manifest.offset, manifest.length
        if variant is not None:
            variant[place] = _renumbered(manifest, cast("Sequence[Renumbering]", renumbering)[number])
    return Manifest(tuple(urls), url_id, offset, length, variant, inline)


def select(manifest: Manifest, chunks: Sequence[slice]) -> Manifest:
    """The chunks in a box of the grid.

    Parameters
    ----------
    manifest : Manifest
        Of all chunks.
    chunks : sequence of slice
        Which chunks, along each axis, without steps.
    """
    box = tuple(chunks)
    url_id, variant = manifest.url_id[box], None if manifest.variant is None else manifest.variant[box]
    starts = [part.indices(n)[0] for part, n in zip(box, manifest.grid_shape, strict=True)]
    inline = dict(_moved(manifest, [-start for start in starts], url_id.shape))
    return Manifest(manifest.urls, url_id, manifest.offset[box], manifest.length[box], variant, inline)


def _joined_shape(manifests: Sequence[Manifest], axis: int) -> Shape:
    first = manifests[0].grid_shape
    count = sum(manifest.grid_shape[axis] for manifest in manifests)
    for manifest in manifests:
        if _without(manifest.grid_shape, axis) != _without(first, axis):
            raise ValueError(f"grids of {first} and {manifest.grid_shape} chunks do not line up beside axis {axis}")
    return (*first[:axis], count, *first[axis + 1 :])


def _without(shape: Shape, axis: int) -> Shape:
    return shape[:axis] + shape[axis + 1 :]


def _places(manifests: Sequence[Manifest], axis: int) -> Iterator[tuple[tuple[slice, ...], Manifest]]:
    start = 0
    for manifest in manifests:
        stop = start + manifest.grid_shape[axis]
        yield (*(slice(None),) * axis, slice(start, stop)), manifest
        start = stop


def _joined_inline(manifests: Sequence[Manifest], axis: int, shape: Shape) -> Iterator[tuple[int, bytes]]:
    start = 0
    for manifest in manifests:
        if manifest.inline:
            yield from _moved(manifest, [start if i == axis else 0 for i in range(len(shape))], shape)
        start += manifest.grid_shape[axis]


def _moved(manifest: Manifest, by: Sequence[int], shape: Shape) -> Iterator[tuple[int, bytes]]:
    """The inline chunks of a manifest by their positions in another grid; those that fall outside of it are left."""
    if not shape or not manifest.inline:
        yield from manifest.inline.items()
        return
    positions = np.fromiter(manifest.inline, np.intp, len(manifest.inline))
    index = np.array(np.unravel_index(positions, manifest.grid_shape)) + np.array(by)[:, None]
    inside = ((index >= 0) & (index < np.array(shape)[:, None])).all(axis=0)
    moved = np.asarray(np.ravel_multi_index(tuple(index[:, inside]), shape))
    yield from zip(moved.tolist(), _picked(manifest, inside), strict=True)


def _picked(manifest: Manifest, which: NDArray[np.bool_]) -> list[bytes]:
    return [data for data, is_in in zip(manifest.inline.values(), which.tolist(), strict=True) if is_in]


def _renumbered_urls(manifest: Manifest, urls: dict[str, int]) -> NDArray[np.uint32]:
    numbers = np.array([urls[url] for url in manifest.urls], np.uint32)
    if len(numbers) == 1 and numbers[0] == 0:
        return manifest.url_id
    if not len(numbers):
        return manifest.url_id
    is_missing = manifest.url_id == MISSING
    return np.where(is_missing, MISSING, numbers[np.where(is_missing, 0, manifest.url_id)])


def _renumbered(manifest: Manifest, numbers: Renumbering) -> NDArray[np.uint16]:
    if manifest.variant is None:
        return np.broadcast_to(numbers[0], manifest.grid_shape)
    return numbers[manifest.variant]


def with_inline(manifest: Manifest, positions: NDArray[np.intp], data: bytes) -> Manifest:
    """The manifest with the same bytes inline at some positions, in C order, where chunks were missing."""
    inline = {**manifest.inline, **dict.fromkeys(positions.tolist(), data)}
    return Manifest(manifest.urls, manifest.url_id, manifest.offset, manifest.length, manifest.variant, inline)


def missing_positions(manifest: Manifest) -> NDArray[np.intp]:
    """Positions, in C order, of the chunks that are not there."""
    is_there = np.zeros(manifest.size, np.bool_)
    is_there[manifest.positions()] = True
    return np.flatnonzero(~is_there)
