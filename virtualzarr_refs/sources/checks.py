"""Checks that every source makes."""

from __future__ import annotations

from collections.abc import Sequence

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceChangedError, SourceTruncatedError
from virtualzarr_refs.sources.identity import SourceIdentity
from virtualzarr_refs.sources.redaction import redact


def require_within(url: str, ranges: Sequence[ByteRange], size: int) -> None:
    """Refuse ranges that reach past the end.

    Raises
    ------
    SourceTruncatedError
        With the offset of the first such range.
    """
    for wanted in ranges:
        if wanted.stop > size:
            raise SourceTruncatedError(
                f"{wanted.length} bytes from byte {wanted.offset} reach past the end of the file, which has {size} "
                "bytes; it was cut short, or the reference is wrong: compare the file with its original",
                url=redact(url),
                offset=wanted.offset,
            )


def require_same(url: str, before: SourceIdentity, now: SourceIdentity) -> None:
    """Refuse a source that is not what it was.

    Raises
    ------
    SourceChangedError
        If the identities do not match; the message shows both.
    """
    if not before.matches(now):
        raise SourceChangedError(
            f"the file changed: it had {_described(before)}, it now has {_described(now)}; scan it again",
            url=redact(url),
        )


def _described(identity: SourceIdentity) -> str:
    facts = {"etag": identity.etag, "modification time": identity.last_modified}
    return ", ".join([f"{identity.size} bytes", *(f"{name} {fact}" for name, fact in facts.items() if fact)])
