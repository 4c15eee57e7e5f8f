"""Reading pieces of a file whose metadata lies near its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import FormatError
from virtualzarr_refs.sources import Source

TAIL = 256 * 1024
"""Bytes from the end that are read at once: the metadata and small lookup tables of most files."""


@dataclass(frozen=True, slots=True)
class Window:
    """A file of which the end is in memory.

    Parameters
    ----------
    source : Source
        The file.
    size : int
        Of the file, in bytes.
    tail : bytes
        Its end.
    """

    source: Source
    size: int
    tail: bytes

    @classmethod
    def of(cls, source: Source) -> Window:
        """Read the end of a file."""
        size = source.identity().size
        length = min(size, TAIL)
        return cls(source, size, bytes(source.read([ByteRange(size - length, length)])[0]))

    def read(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Read ranges, in one request to the source at most.

        Raises
        ------
        FormatError
            If one reaches past the end of the file.
        """
        for wanted in ranges:
            if wanted.stop > self.size:
                raise FormatError(f"{wanted.length} bytes are said to lie past the end", offset=wanted.offset)
        start = self.size - len(self.tail)
        far = list(dict.fromkeys(wanted for wanted in ranges if wanted.offset < start))
        fetched = dict(zip(far, map(bytes, self.source.read(far) if far else ()), strict=True))
        return [
            fetched[wanted] if wanted in fetched else self.tail[wanted.offset - start : wanted.stop - start]
            for wanted in ranges
        ]
