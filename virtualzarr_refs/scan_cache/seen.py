"""What a source was when it was scanned, and whether it still is."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import Self

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.sources import Source, SourceIdentity
from virtualzarr_refs.sources.location import local_path

CONTENT_LIMIT = 1024 * 1024
"""Bytes of a file up to which its content is looked at where its identity leaves a doubt."""

_TICK = 0.05
"""Seconds that two times of modification with fractions have to differ by to be surely told apart."""

_WHOLE_TICK = 2.0
"""The same for times in whole seconds; some filesystems count in twos."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a source was at one moment.

    Parameters
    ----------
    identity : SourceIdentity
        Size, etag, time of modification.
    is_sure : bool
        Whether any other content would have another identity. It would not if the file changed so shortly before that
        another change might leave the same time, or if there is neither an etag nor a time.
    content : str, optional
        Checksum of the whole content, of small files; decides where the identity does not.
    """

    identity: SourceIdentity
    is_sure: bool
    content: str | None

    @classmethod
    def at(cls, source: Source) -> Self:
        """What the source is now. Raises SourceError."""
        identity = source.identity()
        is_sure = _is_sure(identity, source.url, time.time())
        is_near = local_path(source.url) is not None
        return cls(identity, is_sure, _content(source) if is_near or not is_sure else None)

    def is_still(self, source: Source) -> bool:
        """Whether the source has the same content. Raises SourceError."""
        return self.is_surely(source) or (
            self.content is not None
            and self.identity.size == source.identity().size
            and self.content == _content(source)
        )

    def is_surely(self, source: Source) -> bool:
        """Whether the identity alone says so. Raises SourceError."""
        return (
            self.is_sure
            and _tells_more_than_size(self.identity, now := source.identity())
            and self.identity.matches(now)
        )


def _tells_more_than_size(before: SourceIdentity, now: SourceIdentity) -> bool:
    has_etags = before.etag is not None and now.etag is not None
    return has_etags or (before.last_modified is not None and now.last_modified is not None)


def _is_sure(identity: SourceIdentity, url: str, now: float) -> bool:
    is_web = url.lower().startswith(("http:", "https:"))  # whose etags are often made of the time in seconds
    if identity.etag is not None and not (is_web and identity.last_modified is not None):
        return True
    if identity.last_modified is None:
        return False
    return now - identity.last_modified > (_WHOLE_TICK if identity.last_modified.is_integer() else _TICK)


def _content(source: Source) -> str | None:
    size = source.identity().size
    if size > CONTENT_LIMIT:
        return None
    (data,) = source.read([ByteRange(0, size)])
    return hashlib.blake2b(data, digest_size=16).hexdigest()
