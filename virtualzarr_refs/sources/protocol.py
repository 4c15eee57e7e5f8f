"""What every source can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.sources.identity import SourceIdentity


class Source(Protocol):
    """A file whose bytes can be read in ranges.

    Sources are opened lazily, at the first call of `identity` or `read`, may be used from many threads at once,
    and are pickled as their url and options, to be opened again on the other side.
    """

    @property
    def url(self) -> str:
        """The url as it was given, which may hold secrets; errors show it redacted."""
        ...

    def identity(self) -> SourceIdentity:
        """The identity of the source when it was first looked at.

        Raises
        ------
        SourceMissingError
            If there is no such file.
        SourceError
            If it cannot be looked at.
        """
        ...

    def read(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Read one or more ranges, in as few requests as the limits on coalescing allow.

        Parameters
        ----------
        ranges : sequence of ByteRange
            In any order; they may overlap.

        Returns
        -------
        list of memoryview
            One read-only buffer of bytes for each range, in the order of `ranges`, exactly as long as the range.

        Raises
        ------
        SourceTruncatedError
            If a range reaches past the end of the source.
        SourceMissingError
            If there is no such file.
        SourceChangedError
            If the source is seen to be another one than when it was first looked at.
        SourceError
            If the bytes cannot be had for another reason, such as a lack of permission.
        """
        ...

    def close(self) -> None:
        """Let go of files and connections. Buffers handed out stay valid; a later `read` opens again."""
        ...
