"""What is known of the sources of a hierarchy: what each of them was when it was scanned."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from virtualzarr_refs.sources.checks import require_same
from virtualzarr_refs.sources.identity import SourceIdentity
from virtualzarr_refs.sources.local import LocalSource
from virtualzarr_refs.sources.location import local_path
from virtualzarr_refs.sources.protocol import Source


@dataclass(frozen=True, slots=True)
class ScannedSource:
    """What a source was when references to it were made.

    Parameters
    ----------
    identity : SourceIdentity
        Its size, etag and time of modification.
    scanned_at : float, optional
        When that was, in seconds since the epoch.
    """

    identity: SourceIdentity
    scanned_at: float | None = None


type Sources = Mapping[str, ScannedSource]
"""By url, as references have it."""


def look_at(source: Source, urls: Iterable[str]) -> dict[str, ScannedSource]:
    """What a file is that was just scanned, and other local files that its references point into.

    Raises
    ------
    SourceError
        If one cannot be looked at.
    """
    now = round(time.time(), 3)
    others = [LocalSource(url) for url in urls if url != source.url and local_path(url) is not None]
    return {each.url: ScannedSource(each.identity(), now) for each in (source, *others)}


def join_sources(several: Iterable[Sources]) -> dict[str, ScannedSource]:
    """What several hierarchies know; of one source, what was found last.

    Raises
    ------
    SourceChangedError
        If a source was not the same for all of them: the older references do not fit what it is now.
    """
    joined: dict[str, ScannedSource] = {}
    for sources in several:
        for url, source in sources.items():
            known = joined.setdefault(url, source)
            if known is not source:
                joined[url] = _later(url, known, source)
    return joined


def _later(url: str, a: ScannedSource, b: ScannedSource) -> ScannedSource:
    first, last = sorted((a, b), key=lambda source: source.scanned_at or 0)
    require_same(url, first.identity, last.identity)
    return last
