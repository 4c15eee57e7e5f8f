"""Byte ranges, and the joining of neighbouring ones into fewer requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MAX_GAP = 256 * 1024
"""Bytes between two ranges below which fetching the gap is cheaper than a second request."""

MAX_SIZE = 16 * 1024 * 1024
"""Bytes beyond which a request is not made longer by joining."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A stretch of bytes of a source.

    Parameters
    ----------
    offset : int
        First byte, from the start of the source.
    length : int
        Number of bytes.

    Raises
    ------
    ValueError
        If either is negative.
    """

    offset: int
    length: int

    def __post_init__(self) -> None:
        if self.offset < 0 or self.length < 0:
            raise ValueError(f"a byte range cannot be negative: offset {self.offset}, length {self.length}")

    @property
    def stop(self) -> int:
        """The first byte after the range."""
        return self.offset + self.length

    def slice(self, start: int, stop: int) -> ByteRange:
        """The part of this range from byte `start` to byte `stop`, both counted from its own start.

        Clipped to the range, as Python slices are.
        """
        start = min(start, self.length)
        return ByteRange(self.offset + start, max(0, min(stop, self.length) - start))


@dataclass(frozen=True, slots=True)
class Batch:
    """Ranges that one request fetches together.

    Parameters
    ----------
    span : ByteRange
        What to fetch.
    members : tuple of int
        Positions, in the sequence that was coalesced, of the ranges that lie in the span.
    """

    span: ByteRange
    members: tuple[int, ...]


def coalesce(ranges: Sequence[ByteRange], max_gap: int = MAX_GAP, max_size: int = MAX_SIZE) -> list[Batch]:
    """Group ranges that lie close to each other.

    Parameters
    ----------
    ranges : sequence of ByteRange
        In any order; they may overlap or be equal.
    max_gap : int
        Largest gap, in bytes, that is fetched and thrown away.
    max_size : int
        A batch is not extended beyond this many bytes; a single longer range stays whole.

    Returns
    -------
    list of Batch
        In order of offset; every input range is a member of exactly one batch.
    """
    order = sorted(range(len(ranges)), key=lambda i: ranges[i].offset)
    batches: list[Batch] = []
    start = stop = 0
    members: list[int] = []
    for i in order:
        candidate = ranges[i]
        longer = max(stop, candidate.stop)
        if members and candidate.offset - stop <= max_gap and longer - start <= max_size:
            stop = longer
        else:
            if members:
                batches.append(Batch(ByteRange(start, stop - start), tuple(members)))
            start, stop, members = candidate.offset, candidate.stop, []
        members.append(i)
    if members:
        batches.append(Batch(ByteRange(start, stop - start), tuple(members)))
    return batches
