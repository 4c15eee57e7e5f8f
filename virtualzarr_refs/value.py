"""What a store key stands for: bytes here, bytes of sources, or several of both in a row."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.manifest import VirtualChunk
from virtualzarr_refs.sources import SourcePool


@dataclass(frozen=True, slots=True, eq=False)
class Gather:
    """Byte ranges of one source, one after the other; as columns, for a shard may have very many.

    Parameters
    ----------
    url : str
        The source.
    offset : ndarray
        Where each range begins in the source, in bytes.
    ends : ndarray
        Where each ends in the gather, in bytes; ascending.
    """

    url: str
    offset: NDArray[np.integer[Any]]
    ends: NDArray[np.integer[Any]]

    @property
    def length(self) -> int:
        """Bytes of all ranges."""
        return int(self.ends[-1]) if self.ends.size else 0

    @property
    def span(self) -> ByteRange:
        """The shortest range of the source that has all ranges."""
        if not self.ends.size:
            return ByteRange(0, 0)
        lengths = np.diff(self.ends, prepend=self.ends.dtype.type(0))
        start = int(self.offset.min())
        return ByteRange(start, int((self.offset + lengths).max()) - start)

    def slice(self, start: int, stop: int) -> tuple[VirtualChunk, ...]:
        """The ranges from byte `start` to byte `stop` of the gather, which lie in it and are not empty."""
        first, last = (int(i) for i in np.searchsorted(self.ends, np.array((start + 1, stop), self.ends.dtype)))
        ends = self.ends[first : last + 1].tolist()
        begin = int(self.ends[first - 1]) if first else 0
        parts: list[VirtualChunk] = []
        for offset, end in zip(self.offset[first : last + 1].tolist(), ends, strict=True):
            byte_range = ByteRange(offset, end - begin).slice(max(0, start - begin), min(stop, end) - begin)
            if byte_range.length:
                parts.append(VirtualChunk(self.url, byte_range))
            begin = end
        return tuple(parts)


type FlatPart = bytes | VirtualChunk
type Part = FlatPart | Gather


@dataclass(frozen=True, slots=True)
class StoredValue:
    """The concatenation of parts.

    Parameters
    ----------
    parts : tuple of (bytes, VirtualChunk or Gather)
        One for metadata and plain chunks; two for a chunk of an array with variants, and for a file used as a shard.
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
                kept.extend(_slice_part(part, first, last))
            position += length
        return StoredValue(tuple(kept))

    def flat(self) -> Sequence[FlatPart]:
        """The parts, and instead of gathers their ranges."""
        flat: list[FlatPart] = []
        for part in self.parts:
            if isinstance(part, Gather):
                flat.extend(part.slice(0, part.length))
            else:
                flat.append(part)
        return flat


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
    flat = [value.flat() for value in values]
    if len(flat) == 1 and len(flat[0]) == 1:
        return [_read_part(flat[0][0], pool)]  # the way of most reads, and three times as fast
    wanted: dict[str, dict[ByteRange, None]] = {}
    for part in itertools.chain.from_iterable(flat):
        if isinstance(part, VirtualChunk):
            wanted.setdefault(part.url, {})[part.byte_range] = None
    fetched: dict[VirtualChunk, memoryview] = {}
    for url, ranges in wanted.items():
        buffers = pool.read(url, list(ranges))
        fetched.update((VirtualChunk(url, r), buffer) for r, buffer in zip(ranges, buffers, strict=True))
    return [_join([part if isinstance(part, bytes) else fetched[part] for part in parts]) for parts in flat]


def _read_part(part: FlatPart, pool: SourcePool) -> bytes | memoryview:
    return part if isinstance(part, bytes) else pool.read(part.url, [part.byte_range])[0]


def _part_length(part: Part) -> int:
    if isinstance(part, VirtualChunk):
        return part.byte_range.length
    return len(part) if isinstance(part, bytes) else part.length


def _slice_part(part: Part, start: int, stop: int) -> tuple[Part, ...]:
    if isinstance(part, bytes):
        return (part[start:stop],)
    if isinstance(part, Gather):
        return part.slice(start, stop)
    return (VirtualChunk(part.url, part.byte_range.slice(start, stop)),)


def _join(buffers: Sequence[bytes | memoryview]) -> bytes | memoryview:
    return buffers[0] if len(buffers) == 1 else b"".join(buffers)
