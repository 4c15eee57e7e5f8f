"""What a store key stands for: bytes here, bytes of sources, or several of both in a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.manifest import VirtualChunk
from virtualzarr_refs.sources import SourcePool

type Part = bytes | VirtualChunk


@dataclass(frozen=True, slots=True)
class StoredValue:
    """The concatenation of parts.

    Parameters
    ----------
    parts : tuple of (bytes or VirtualChunk)
        One for metadata and plain chunks; two for a chunk of an array with variants.
    """

    parts: tuple[Part, ...]

    @property
    def length(self) -> int:
        """Number of bytes, known without reading any."""
        return sum(map(_part_length, self.parts))

    def slice(self, start: int = 0, stop: int | None = None) -> StoredValue:
        """The bytes from `start` to `stop`, clipped to what is there; negative numbers count from the end."""
        start, stop, _ = slice(start, stop).indices(self.length)
        kept: list[Part] = []
        position = 0
        for part in self.parts:
            length = _part_length(part)
            first, last = max(start - position, 0), min(stop - position, length)
            if first < last:
                kept.append(_slice_part(part, first, last))
            position += length
        return StoredValue(tuple(kept))


def read_values(values: Sequence[StoredValue], pool: SourcePool) -> list[bytes | memoryview]:
    """Read several values, each source once, so that it can fetch neighbours together.

    Parameters
    ----------
    values : sequence of StoredValue
        What to read.
    pool : SourcePool
        Opens the sources.

    Returns
    -------
    list of bytes or memoryview
        One buffer for each value. A value of one part is not copied.

    Raises
    ------
    SourceError
        If a source is missing, unreadable, or shorter than a byte range says.
    """
    if len(values) == 1 and len(values[0].parts) == 1:
        return [_read_part(values[0].parts[0], pool)]  # the way of most reads, and three times as fast
    wanted: dict[str, dict[ByteRange, None]] = {}
    for part in _parts(values):
        if isinstance(part, VirtualChunk):
            wanted.setdefault(part.url, {})[part.byte_range] = None
    fetched: dict[VirtualChunk, memoryview] = {}
    for url, ranges in wanted.items():
        buffers = pool.read(url, list(ranges))
        fetched.update((VirtualChunk(url, r), buffer) for r, buffer in zip(ranges, buffers, strict=True))
    return [_join([part if isinstance(part, bytes) else fetched[part] for part in value.parts]) for value in values]


def _read_part(part: Part, pool: SourcePool) -> bytes | memoryview:
    return part if isinstance(part, bytes) else pool.read(part.url, [part.byte_range])[0]


def _parts(values: Iterable[StoredValue]) -> Iterable[Part]:
    return (part for value in values for part in value.parts)


def _part_length(part: Part) -> int:
    return len(part) if isinstance(part, bytes) else part.byte_range.length


def _slice_part(part: Part, start: int, stop: int) -> Part:
    if isinstance(part, bytes):
        return part[start:stop]
    return VirtualChunk(part.url, part.byte_range.slice(start, stop))


def _join(buffers: Sequence[bytes | memoryview]) -> bytes | memoryview:
    return buffers[0] if len(buffers) == 1 else b"".join(buffers)
