"""Scanning through a cache: look for what an earlier scan found, else scan and keep it."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from virtualzarr_refs.errors import CacheWarning, SourceError, UnsupportedError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.scan_cache.entry import Entry
from virtualzarr_refs.scan_cache.places import Place, place_beside, place_in_folder
from virtualzarr_refs.scan_cache.seen import Seen
from virtualzarr_refs.sources import Backend, Source
from virtualzarr_refs.sources.redaction import redact
from virtualzarr_refs.sources.scanned import look_at

SIDECAR = "sidecar"
"""The name of the cache that is a file ``NAME.vzmeta`` beside each source."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a scan found.

    Parameters
    ----------
    group : VirtualGroup
        The hierarchy.
    seen : Seen
        What the source was before the scan.
    is_lasting : bool
        Whether every scan of the same bytes finds this.
    """

    group: VirtualGroup
    seen: Seen
    is_lasting: bool


@dataclass(frozen=True, slots=True)
class Cache:
    """Where scans are kept, and how to get there.

    Parameters
    ----------
    where : str or path
        A local folder, or `SIDECAR`.
    storage_options : mapping, optional
        For sidecars beside remote sources.
    backend : {"auto", "local", "fsspec", "obstore"}
        The same.
    """

    where: str | os.PathLike[str]
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    backend: Backend = "auto"

    def locate(self, url: str, request: str) -> tuple[Place, str]:
        """The place of an entry, and its key.

        A sidecar may travel with its data, so its key does not say where the two are.
        """
        if self.where == SIDECAR:
            return place_beside(url, self.storage_options, self.backend), request
        key = json.dumps([url, request])
        return place_in_folder(os.fspath(self.where), key), key


def through_cache(cache: Cache, source: Source, request: str | None, scan: Callable[[], Found]) -> VirtualGroup:
    """What an earlier scan of the same source found, or what a new one does, which is then kept.

    Parameters
    ----------
    cache : Cache
        Where scans are kept.
    source : Source
        What to scan. One whose url may hold secrets is scanned each time.
    request : str or None
        How; see `describe_request`. With None nothing is kept.
    scan : callable
        Scans the source.

    Raises
    ------
    VirtualZarrError
        What `scan` raises, and if the source cannot be looked at. A cache that is damaged, foreign or cannot be
        written is no error.

    Warns
    -----
    CacheWarning
        If what was found cannot be kept.
    """
    if request is None or redact(source.url) != source.url:
        return scan().group
    place, key = cache.locate(source.url, request)
    kept = _kept(place, key, source)
    if kept is not None:
        return kept
    found = scan()
    if _may_be_kept(found, source.url):
        _keep(place, Entry.of(key, found.seen, found.group))
    return found.group


def _may_be_kept(found: Found, url: str) -> bool:
    manifests = [array.manifest for _, array in found.group.walk_arrays()]
    is_plain = all(isinstance(m, Manifest) and {*m.urls} <= {url} and not m.inner_chunks for m in manifests)
    return is_plain and found.is_lasting and (found.seen.is_sure or found.seen.content is not None)


def _kept(place: Place, key: str, source: Source) -> VirtualGroup | None:
    data = place.load()
    entry = None if data is None else Entry.decode(data)
    if entry is None or entry.key != key or not entry.seen.is_still(source):
        return None
    group = entry.group(source.url)
    if group is None:
        return None
    if not entry.seen.is_surely(source) and (now := Seen.at(source)) != entry.seen:
        _keep(place, replace(entry, seen=now))
    return replace(group, sources=look_at(source, ()))


def _keep(place: Place, entry: Entry) -> None:
    try:
        place.store(entry.encode())
    except (SourceError, UnsupportedError) as error:
        warnings.warn(f"a scan was not kept in the cache: {error}", CacheWarning, stacklevel=5)
