"""Reading the values of a hierarchy, from threads and from event loops: what everything that serves them shares."""

from __future__ import annotations

import asyncio
import os
from asyncio import AbstractEventLoop, Task
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, cached_property
from threading import Lock

from virtualzarr_refs.byte_range import MAX_GAP, MAX_SIZE, ByteRange
from virtualzarr_refs.errors import SourceError, SourceMissingError, SourceNotFoundError, SourceTruncatedError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.manifest import VirtualChunk
from virtualzarr_refs.sources import Backend, OnChange, SourceIdentity, SourcePool, Sources
from virtualzarr_refs.sources.guarded import ON_CHANGE
from virtualzarr_refs.sources.location import local_path
from virtualzarr_refs.value import StoredValue, read_values

MAX_THREADS = 32
"""Remote sources that are read at the same time, in one process."""

type Bytes = bytes | memoryview


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How sources are read.

    Parameters
    ----------
    storage_options : mapping, optional
        Options for every source that is not local, such as credentials; never shown.
    backend : {"auto", "local", "fsspec", "obstore"}
        Who reads; see `virtualzarr_refs.sources.open_source`.
    base : str, optional
        Folder, or url of one, against which relative urls are resolved.
    max_gap, max_size : int
        Limits on the joining of ranges into one request, in bytes; see `virtualzarr_refs.byte_range.coalesce`.
    on_change : {"error", "warn", "ignore"}
        What to do about a source that is not what it was when it was scanned: raise SourceChangedError, or read what
        is there, with a SourceChangedWarning or without.

    Raises
    ------
    ValueError
        If there is no such word for `on_change`.
    """

    storage_options: Mapping[str, object] | None = field(default=None, repr=False)
    backend: Backend = "auto"
    base: str | None = None
    max_gap: int = MAX_GAP
    max_size: int = MAX_SIZE
    on_change: OnChange = "error"

    def __post_init__(self) -> None:
        if self.on_change not in ON_CHANGE:
            raise ValueError(f'on_change is "error", "warn" or "ignore", not {self.on_change!r}')

    def pool(self, known: Sources) -> SourcePool:
        """A pool of sources that are read in this way, none of them open yet."""
        limits = {"max_gap": self.max_gap, "max_size": self.max_size}
        pool = SourcePool(self.base, self.storage_options, backend=self.backend, **limits)
        return pool.guarded(known, self.on_change)


class ValueReader:
    """Turns store keys into bytes.

    Safe to use from many threads and event loops. Pickled without its open sources.

    Parameters
    ----------
    group : VirtualGroup
        The root of the hierarchy.
    options : ReadOptions
        How its sources are read.

    Notes
    -----
    Zarr and fsspec take some exceptions to say that a key is not there, and go on with fill values. What is raised
    here is never one of them; see `_failure`.
    """

    def __init__(self, group: VirtualGroup, options: ReadOptions) -> None:
        self.group = group
        self.options = options
        self._pool = options.pool(group.sources)
        self._local: dict[str, bool] = {}
        self._expected: dict[str, dict[ByteRange, None]] = {}
        self._kept: dict[str, Mapping[ByteRange, memoryview]] = {}
        self._keeping = Lock()
        self._waiting: dict[tuple[AbstractEventLoop, str], _Batch] = {}

    @cached_property
    def is_local(self) -> bool:
        """Whether every source is a local file that is mapped into memory."""
        return all(map(self._is_local, self.group.urls))

    def resolve(self, key: str) -> StoredValue | None:
        """What a store key stands for, or None if there is nothing under it.

        Raises
        ------
        SourceError
            If the references themselves cannot be read.
        """
        try:
            return self.group.resolve(key)
        except SourceError as error:
            raise _failure(error) from error

    def read(self, values: Sequence[StoredValue]) -> list[Bytes]:
        """Read several values, the neighbours among them together, in this thread.

        Raises
        ------
        SourceError
            If a source is missing, unreadable, or shorter than a byte range says.
        """
        try:
            return read_values(values, self._pool)
        except SourceError as error:
            raise _failure(error) from error

    def is_mapped(self, url: str) -> bool:
        """Whether a source is a local file that is mapped into memory."""
        return self._is_local(url)

    def read_range(self, url: str, byte_range: ByteRange) -> memoryview:
        """Read a range of one source, in this thread.

        Raises
        ------
        SourceError
            If the source is missing, unreadable, or shorter than the range says.
        """
        try:
            return self._pool.read(url, [byte_range])[0]
        except SourceError as error:
            raise _failure(error) from error

    def expect(self, chunks: Iterable[VirtualChunk]) -> None:
        """Have chunks of remote sources fetched together, and kept, as soon as one of them is read."""
        for chunk in chunks:
            if not self._is_local(chunk.url):
                self._expected.setdefault(chunk.url, {})[chunk.byte_range] = None

    def start_reading(self, url: str, ranges: Sequence[ByteRange]) -> Future[list[memoryview]]:
        """Begin to read ranges of one source in another thread, neighbours together; see `finished`."""
        return _threads(os.getpid()).submit(self._read_ranges, url, ranges)

    def finished(self, reading: Future[list[memoryview]]) -> list[memoryview]:
        """Wait for what was begun by `start_reading`.

        Raises
        ------
        SourceError
            If the source is missing, unreadable, or shorter than a range says.
        """
        try:
            return reading.result()
        except SourceError as error:
            raise _failure(error) from error

    async def read_async(self, value: StoredValue) -> Bytes:
        """Read one value without holding up the event loop.

        What is asked for of one remote source in the same turn of the loop is read together, in another thread;
        local files, which are mapped into memory, and inline bytes are at hand.

        Raises
        ------
        SourceError
            If a source is missing, unreadable, or shorter than a byte range says.
        """
        url = self._remote_url(value)
        if url is None:
            return self.read([value])[0]
        batch = self._batch((asyncio.get_running_loop(), url))
        position = batch.add(value)
        outcome = (await asyncio.shield(batch.task))[position]  # a reader that gives up must not stop the others
        if isinstance(outcome, SourceError):
            raise outcome
        return outcome

    async def read_many_async(self, values: Sequence[StoredValue]) -> list[Bytes]:
        """Read several values without holding up the event loop; see `read_async`."""
        if self.is_local:
            return self.read(values)
        return await asyncio.gather(*map(self.read_async, values))

    async def identity_async(self, url: str) -> SourceIdentity:
        """The identity of a source when it was first looked at, without holding up the event loop.

        Raises
        ------
        SourceError
            If it cannot be looked at.
        """
        try:
            if self._is_local(url):
                return self._pool.identity(url)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(_threads(os.getpid()), self._pool.identity, url)
        except SourceError as error:
            raise _failure(error) from error

    def close(self) -> None:
        """Close the sources. The reader can still be used, and opens them again."""
        self._kept.clear()
        self._pool.close()

    def _read_ranges(self, url: str, ranges: Sequence[ByteRange]) -> list[memoryview]:
        kept = self._kept_of(url, ranges)
        rest = [wanted for wanted in ranges if wanted not in kept]
        found = dict(zip(rest, self._pool.read(url, rest), strict=True)) if rest else {}
        return [kept[wanted] if wanted in kept else found[wanted] for wanted in ranges]

    def _kept_of(self, url: str, ranges: Sequence[ByteRange]) -> Mapping[ByteRange, memoryview]:
        """What was expected to be read of a source, if some of the ranges belong to that."""
        expected = self._expected.get(url, {})
        if not any(wanted in expected for wanted in ranges):
            return {}
        with self._keeping:
            if url not in self._kept:
                together = list(expected)
                try:
                    self._kept[url] = dict(zip(together, self._pool.read(url, together), strict=True))
                except SourceError:  # is it one of those that were asked for?
                    self._kept[url] = {}
            return self._kept[url]

    def _batch(self, key: tuple[AbstractEventLoop, str]) -> _Batch:
        if key not in self._waiting:
            values: list[StoredValue] = []
            # The task starts when those that are ready to run now have run, and have joined the batch.
            self._waiting[key] = _Batch(values, asyncio.create_task(self._serve(key, values)))
        return self._waiting[key]

    async def _serve(self, key: tuple[AbstractEventLoop, str], values: list[StoredValue]) -> list[Bytes | SourceError]:
        loop, _ = key
        del self._waiting[key]
        return await loop.run_in_executor(_threads(os.getpid()), self._outcomes, values)

    def _outcomes(self, values: list[StoredValue]) -> list[Bytes | SourceError]:
        """The bytes or the failure of each value."""
        try:
            return [*read_values(values, self._pool)]
        except SourceTruncatedError as error:
            if len(values) == 1:
                return [_failure(error)]
            return [self._outcomes([value])[0] for value in values]  # the others may be whole
        except SourceError as error:
            return [_failure(error) for _ in values]

    def _remote_url(self, value: StoredValue) -> str | None:
        urls = (part.url for part in value.parts if not isinstance(part, bytes))
        return next((url for url in urls if not self._is_local(url)), None)

    def _is_local(self, url: str) -> bool:
        if url not in self._local:
            mapped = self.options.backend in ("auto", "local")
            self._local[url] = mapped and local_path(self._pool.resolve(url)) is not None
        return self._local[url]

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.group, self.options)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Values that are about to be read together, and the task that does it."""

    values: list[StoredValue]
    task: Task[list[Bytes | SourceError]]

    def add(self, value: StoredValue) -> int:
        self.values.append(value)
        return len(self.values) - 1


@cache
def _threads(process: int) -> ThreadPoolExecutor:  # noqa: ARG001  threads do not live on in a forked process
    return ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="virtualzarr_refs")


def _failure(error: SourceError) -> SourceError:
    """The same error, but in a form that nobody takes for a missing key or for empty bytes.

    `zarr.storage.FsspecStore`, zarr's sharding codec and fsspec's mapper take any FileNotFoundError to say that a key
    is not there; the first also takes an OSError that says "not satisfiable" for an empty value.
    """
    kind = SourceMissingError if isinstance(error, SourceNotFoundError) else type(error)
    message = error.message.replace("not satisfiable", "not to be had")
    failure = kind(message, url=error.url, node=error.node, feature=error.feature, offset=error.offset)
    failure.__cause__ = error
    return failure
