"""What the sources that are read by requests have in common: coalescing, checking, explaining failures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import RLock

from virtualzarr_refs.byte_range import MAX_GAP, MAX_SIZE, Batch, ByteRange, coalesce
from virtualzarr_refs.errors import SourceError, SourceMissingError
from virtualzarr_refs.sources.checks import require_same, require_within
from virtualzarr_refs.sources.identity import SourceIdentity
from virtualzarr_refs.sources.redaction import redact
from virtualzarr_refs.sources.translation import is_range_error, translate

MAX_WHOLE = 16 * 1024 * 1024
"""Bytes of a file up to which it is read whole if its server does not serve byte ranges."""

MAX_REQUESTS = 32
"""Requests of one read that run at the same time."""


class RemoteSource(ABC):
    """A file that is read by requests.

    Parameters
    ----------
    url : str
        Any url that the backend knows.
    storage_options : mapping, optional
        Handed to the backend as they are; never shown.
    max_gap, max_size : int
        Limits on the joining of ranges into one request, in bytes; see `coalesce`.
    """

    def __init__(
        self,
        url: str,
        storage_options: Mapping[str, object] | None = None,
        *,
        max_gap: int = MAX_GAP,
        max_size: int = MAX_SIZE,
    ) -> None:
        self.url = url
        self._options = dict(storage_options or {})
        self._max_gap = max_gap
        self._max_size = max_size
        self._lock = RLock()  # reentrant: asking for the identity opens
        self._identity: SourceIdentity | None = None
        self._whole: memoryview | None = None

    @abstractmethod
    def _fetch(self, spans: Sequence[ByteRange]) -> Sequence[memoryview]:
        """Make one request for each span, all at once; a span is never empty. May raise `_failures`."""

    @abstractmethod
    def _look(self) -> SourceIdentity:
        """Ask for the identity. May raise `_failures` and SourceError."""

    @abstractmethod
    def _look_and_fetch(self, length: int) -> tuple[SourceIdentity, memoryview] | None:
        """Ask for the identity and up to `length` first bytes in one round trip, or None. May raise `_failures`."""

    @abstractmethod
    def _fetch_whole(self) -> memoryview:
        """Ask for the whole file. May raise `_failures`."""

    @abstractmethod
    def _ignores_ranges(self, error: BaseException) -> bool:
        """Whether an error of `_failures` says that the server sends whole files only."""

    @abstractmethod
    def _failures(self) -> tuple[type[BaseException], ...]:
        """The exceptions by which the backend says that it cannot read."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Let go of connections."""

    def identity(self) -> SourceIdentity:
        """The identity as the server gave it at the first call. See `Source.identity`."""
        with self._lock:
            if self._identity is None:
                self._identity = self._current_identity()
            return self._identity

    def first(self, length: int) -> tuple[SourceIdentity, memoryview]:
        """The identity and up to `length` first bytes, in one round trip where that can be done.

        Raises
        ------
        SourceError
            If they cannot be had.
        """
        with self._lock:
            found = None if self._identity is not None else self._first_look(length)
            if found is not None and len(found[1]) == min(length, found[0].size):
                self._identity = found[0]
                return found
        size = self.identity().size
        return self.identity(), self.read([ByteRange(0, min(length, size))])[0]

    def _first_look(self, length: int) -> tuple[SourceIdentity, memoryview] | None:
        try:
            return self._look_and_fetch(length)
        except SourceError:
            raise
        except self._failures() as error:
            if is_range_error(error) or self._ignores_ranges(error):  # an empty file has no ranges either
                return None
            failure = translate(error, self.url)
        raise failure

    def read(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Fetch the ranges in coalesced requests, concurrently. See `Source.read`."""
        filled = [i for i, wanted in enumerate(ranges) if wanted.length]
        batches = coalesce([ranges[i] for i in filled], self._max_gap, self._max_size)
        buffers = self._fetch_batches(batches, ranges) if batches else []
        if len(filled) < len(ranges):  # nothing was fetched for the empty ones, so nothing has checked them
            require_within(self.url, ranges, self.identity().size)
        views = [memoryview(b"")] * len(ranges)
        for batch, buffer in zip(batches, buffers, strict=True):
            for member in batch.members:
                wanted = ranges[filled[member]]
                start = wanted.offset - batch.span.offset
                views[filled[member]] = buffer[start : start + wanted.length]
        return views

    def fetch(self, spans: Sequence[ByteRange]) -> Sequence[memoryview]:
        """Fetch spans that are not empty, with one request for each, concurrently. See `Source.read`."""
        return self._fetch_checked(spans, spans) if spans else []

    def _fetch_batches(self, batches: Sequence[Batch], ranges: Sequence[ByteRange]) -> Sequence[memoryview]:
        return self._fetch_checked([batch.span for batch in batches], ranges)

    def _fetch_checked(self, spans: Sequence[ByteRange], ranges: Sequence[ByteRange]) -> Sequence[memoryview]:
        """Fetch spans. What was asked for originally decides which error a failure is."""
        if self._whole is None:
            buffers = self._guarded(lambda: self._fetch_unless_ignored(spans), ranges)
            if buffers is not None:
                return self._of_right_length(spans, buffers, ranges)
            self._whole = self._fetched_whole()
        require_within(self.url, ranges, len(self._whole))
        return [self._whole[span.offset : span.stop] for span in spans]

    def _fetch_unless_ignored(self, spans: Sequence[ByteRange]) -> Sequence[memoryview] | None:
        try:
            return self._fetch(spans)
        except self._failures() as error:
            if not self._ignores_ranges(error):
                raise
        return None

    def _of_right_length(
        self, spans: Sequence[ByteRange], buffers: Sequence[memoryview], ranges: Sequence[ByteRange]
    ) -> Sequence[memoryview]:
        for span, buffer in zip(spans, buffers, strict=True):
            if len(buffer) != span.length:
                self._look_again(ranges)
                raise SourceError(_wrong_length(span, buffer), url=redact(self.url), offset=span.offset)
        return buffers

    def _fetched_whole(self) -> memoryview:
        """All of a small file whose server does not serve byte ranges.

        Raises
        ------
        SourceError
            If the file is too large for that, or cannot be read.
        """
        size = self.identity().size
        if size > MAX_WHOLE:
            raise SourceError(f"{_NO_RANGES} ({size} bytes, of which {MAX_WHOLE} would be read)", url=redact(self.url))
        whole = self._guarded(self._fetch_whole)
        if len(whole) != size:
            raise SourceError(_wrong_length(ByteRange(0, size), whole), url=redact(self.url))
        return whole

    def _look_again(self, ranges: Sequence[ByteRange]) -> None:
        """After a failed read: raise if the source is gone, is another one, or is shorter than the ranges need."""
        now: SourceIdentity | None = None
        try:
            now = self._current_identity()
        except SourceMissingError:
            raise
        except SourceError:
            return  # the failure of the read says more
        if self._identity is not None:
            require_same(self.url, self._identity, now)
        require_within(self.url, ranges, now.size)

    def _guarded[T](self, act: Callable[[], T], ranges: Sequence[ByteRange] = ()) -> T:
        """Do what may raise `_failures`, and raise our error instead, see `translate`."""
        try:
            return act()
        except SourceError:
            raise
        except self._failures() as error:
            failure, may_be_range = translate(error, self.url), is_range_error(error)
        # Raised outside of the handler, an error has no foreign one as its context, which dask would pickle too.
        if ranges and may_be_range:
            self._look_again(ranges)
        raise failure

    def _current_identity(self) -> SourceIdentity:
        return self._guarded(self._look)

    def close(self) -> None:
        """Let go of connections. Buffers handed out stay valid; a later `read` opens again."""
        self._whole = None
        self._disconnect()

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), max_gap=self._max_gap, max_size=self._max_size), (self.url, self._options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({redact(self.url)!r})"


_NO_RANGES = (
    "the server does not serve byte ranges, and the file is too large to be read whole; use simplecache::URL, which "
    "downloads it first"
)


def _wrong_length(span: ByteRange, buffer: memoryview) -> str:
    answer = f"the server sent {len(buffer)} bytes where {span.length} were asked for"
    if len(buffer) > span.length:
        return f"{answer}: it does not serve byte ranges; use simplecache::URL, which downloads the whole file first"
    return f"{answer}, though the file is long enough; try again"
