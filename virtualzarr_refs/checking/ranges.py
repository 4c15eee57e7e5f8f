"""Whether sources are there, and byte ranges within them: for all chunks of an array at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.checking.report import SourceReport
from virtualzarr_refs.errors import SourceChangedError, VirtualZarrError
from virtualzarr_refs.manifest import MISSING, Manifest, index_of
from virtualzarr_refs.sources import SourcePool
from virtualzarr_refs.sources.checks import require_same
from virtualzarr_refs.sources.redaction import redact
from virtualzarr_refs.sources.scanned import ScannedSource

_LOOK_UPS_AT_ONCE = 16
_BLOCK = 1 << 20
"""Chunks that are looked at together."""


def look_at(
    urls: Iterable[str], pool: SourcePool, scanned: Mapping[str, ScannedSource] | None = None
) -> dict[str, SourceReport]:
    """The size of every source, or why it cannot be had; and whether it is still what was scanned.

    Parameters
    ----------
    urls : iterable of str
        The sources.
    pool : SourcePool
        Opens them.
    scanned : mapping of str to ScannedSource, optional
        What they were.
    """
    distinct = list(dict.fromkeys(urls))
    known = scanned or {}
    with ThreadPoolExecutor(_LOOK_UPS_AT_ONCE) as workers:
        looks = workers.map(lambda url: _look_at(url, pool, known.get(url)), distinct)
        return dict(zip(distinct, looks, strict=True))


def _look_at(url: str, pool: SourcePool, scanned: ScannedSource | None) -> SourceReport:
    try:
        found = pool.identity(url)
        if scanned is not None:
            require_same(url, scanned.identity, found)
        return SourceReport(redact(url), found.size)
    except SourceChangedError as error:
        return SourceReport(redact(url), pool.identity(url).size, error.message)
    except VirtualZarrError as error:
        return SourceReport(redact(url), None, error.message)


@dataclass(frozen=True, slots=True)
class Broken:
    """The chunks of one array whose bytes cannot be had.

    Parameters
    ----------
    mask : ndarray of bool, optional
        Over the grid; None if there are none.
    errors : tuple of str
        A sentence for every source with such chunks.
    """

    mask: NDArray[np.bool_] | None = None
    errors: tuple[str, ...] = ()


def broken_chunks(manifest: Manifest, sources: Mapping[str, SourceReport]) -> Broken:
    """Find the chunks that lie in a source that is not there, or beyond the end of one.

    Parameters
    ----------
    manifest : Manifest
        Of the array.
    sources : mapping of str to SourceReport
        By url, at least those of the manifest.
    """
    if manifest.is_missing or not manifest.urls:
        return Broken()
    mask = _mask(manifest, [sources[url].size for url in manifest.urls])
    if not mask.any():
        return Broken()
    return Broken(mask.reshape(manifest.grid_shape), tuple(_sentences(manifest, mask, sources)))


def present_chunks(manifest: Manifest) -> NDArray[np.bool_] | None:
    """Which chunks of the grid are there, inline or in a source; None if none is."""
    if manifest.is_missing:
        return None
    present = manifest.url_id != MISSING
    present.reshape(-1)[list(manifest.inline)] = True
    return present


def _mask(manifest: Manifest, sizes: list[int | None]) -> NDArray[np.bool_]:
    """Which chunks, in C order, are not wholly within their source."""
    is_there = np.array([size is not None for size in sizes])
    limits = np.array([size or 0 for size in sizes], np.uint64)
    url_id, offset, length = (c.reshape(-1) for c in (manifest.url_id, manifest.offset, manifest.length))
    mask = np.zeros(manifest.size, np.bool_)
    for start in range(0, manifest.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        virtual = url_id[block] != MISSING
        ids = np.where(virtual, url_id[block], 0)
        limit = limits[ids]
        # A sum of two uint64 could wrap around; a difference that is known to be positive cannot.
        beyond = (offset[block] > limit) | (length[block] > limit - np.minimum(offset[block], limit))
        mask[block] = virtual & (beyond | ~is_there[ids])
    return mask


def _sentences(manifest: Manifest, mask: NDArray[np.bool_], sources: Mapping[str, SourceReport]) -> Iterable[str]:
    positions = np.flatnonzero(mask)
    ids = manifest.url_id.reshape(-1)[positions]
    for number in np.unique(ids).tolist():
        source = sources[manifest.urls[number]]
        within = positions[ids == number]
        first = list(index_of(int(within[0]), manifest.grid_shape))
        why = "which cannot be read" if source.size is None else f"beyond the end of its {source.size} bytes"
        yield f"{within.size} chunks, the first {first}, lie in {source.url}, {why}"
