"""Chunks of remote sources: those of a window are fetched together, while those of the window before are decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.manifest import VirtualChunk
from virtualzarr_refs.reader import ValueReader

WINDOW_SIZE = 64 * 1024 * 1024
"""Stored bytes of the chunks that are fetched together; twice as many are in memory."""

WINDOW_CHUNKS = 16 * 1024
"""Chunks that are fetched together."""


class RangeReader(Protocol):
    """What reads the bytes of chunks."""

    def is_mapped(self, url: str) -> bool:
        """Whether a source is a local file that is mapped into memory."""
        ...

    def read_range(self, url: str, byte_range: ByteRange) -> memoryview:
        """Read a range of one source. Raises SourceError."""
        ...


@dataclass(frozen=True, slots=True)
class Fetched:
    """Reads chunks that were fetched before, and others from local files.

    Parameters
    ----------
    values : ValueReader
        Reads local files.
    buffers : mapping of VirtualChunk to memoryview
        The bytes of the others.
    """

    values: ValueReader
    buffers: Mapping[VirtualChunk, memoryview]

    def is_mapped(self, url: str) -> bool:
        """See `RangeReader`."""
        return self.values.is_mapped(url)

    def read_range(self, url: str, byte_range: ByteRange) -> memoryview:
        """See `RangeReader`."""
        buffer = self.buffers.get(VirtualChunk(url, byte_range))
        return self.values.read_range(url, byte_range) if buffer is None else buffer


@dataclass(slots=True)
class _Window[T]:
    """Tasks, and the remote chunks that they need."""

    tasks: list[T] = field(default_factory=list[T])
    ranges: dict[str, dict[ByteRange, None]] = field(default_factory=dict[str, dict[ByteRange, None]])
    size: int = 0
    chunks: int = 0

    @property
    def is_full(self) -> bool:
        return self.size >= WINDOW_SIZE or self.chunks >= WINDOW_CHUNKS

    def add(self, task: T, needed: Iterable[VirtualChunk]) -> None:
        self.tasks.append(task)
        for chunk in needed:
            self.ranges.setdefault(chunk.url, {})[chunk.byte_range] = None
            self.size += chunk.byte_range.length
            self.chunks += 1


def fetched[T](
    values: ValueReader, tasks: Iterable[T], needed: Callable[[T], Iterable[VirtualChunk]]
) -> Iterator[tuple[RangeReader, Sequence[T]]]:
    """Tasks by windows, each with what reads its chunks once they are here; those of the next are then on their way.

    Parameters
    ----------
    values : ValueReader
        Reads the sources.
    tasks : iterable
        What is to be done, in any order.
    needed : callable
        The chunks that a task reads.

    Raises
    ------
    SourceError
        If the bytes of a window cannot be had.
    """
    before: _Fetching[T] | None = None
    for window in _windows(values, tasks, needed):
        started = _Fetching(values, window)
        if before is not None:
            yield before.result(), before.window.tasks
        before = started
    if before is not None:
        yield before.result(), before.window.tasks


class _Fetching[T]:
    """A window on its way."""

    def __init__(self, values: ValueReader, window: _Window[T]) -> None:
        self.window = window
        self._values = values
        wanted = {url: list(ranges) for url, ranges in window.ranges.items()}
        self._answers: list[tuple[str, list[ByteRange], Future[list[memoryview]]]] = [
            (url, ranges, values.start_reading(url, ranges)) for url, ranges in wanted.items()
        ]

    def result(self) -> Fetched:
        buffers: dict[VirtualChunk, memoryview] = {}
        for url, ranges, answer in self._answers:
            buffers.update(zip((VirtualChunk(url, r) for r in ranges), self._values.finished(answer), strict=True))
        return Fetched(self._values, buffers)


def _windows[T](
    values: ValueReader, tasks: Iterable[T], needed: Callable[[T], Iterable[VirtualChunk]]
) -> Iterator[_Window[T]]:
    window = _Window[T]()
    for task in tasks:
        window.add(task, (chunk for chunk in needed(task) if not values.is_mapped(chunk.url)))
        if window.is_full:
            yield window
            window = _Window[T]()
    if window.tasks:
        yield window
