"""The sources that a reference set points into."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Self

from virtualzarr_refs.byte_range import MAX_GAP, MAX_SIZE, ByteRange
from virtualzarr_refs.sources.guarded import GuardedSource, OnChange
from virtualzarr_refs.sources.identity import SourceIdentity
from virtualzarr_refs.sources.location import is_relative, join
from virtualzarr_refs.sources.opening import Backend, open_source
from virtualzarr_refs.sources.protocol import Source
from virtualzarr_refs.sources.redaction import redact
from virtualzarr_refs.sources.scanned import Sources

MAX_OPEN = 128
"""Sources that a pool holds open, each with one file descriptor if it is local."""


class SourcePool:
    """Sources by url, opened when they are first read and closed when others were used more recently.

    Safe to use from many threads. Pickled without its open sources.

    Parameters
    ----------
    base : str or path, optional
        Folder, or url of one, against which relative urls are resolved; without it, the current directory is.
    storage_options : mapping, optional
        Options for every source that is not local. They are part of the pickle and never shown.
    backend : {"auto", "local", "fsspec", "obstore"}
        Who reads; see `open_source`.
    max_open : int
        Number of sources that are held open.
    max_gap, max_size : int
        Limits on the joining of ranges into one request, in bytes; see `coalesce`.

    Raises
    ------
    ValueError
        If `max_open` is less than one.
    """

    def __init__(
        self,
        base: str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, object] | None = None,
        *,
        backend: Backend = "auto",
        max_open: int = MAX_OPEN,
        max_gap: int = MAX_GAP,
        max_size: int = MAX_SIZE,
    ) -> None:
        if max_open < 1:
            raise ValueError(f"a pool holds at least one source open, not {max_open}")
        self.base = None if base is None else os.fspath(base)
        self._options = dict(storage_options or {})
        self._backend: Backend = backend
        self._max_open = max_open
        self._max_gap = max_gap
        self._max_size = max_size
        self._known: Sources = {}
        self._on_change: OnChange = "error"
        self._start_empty()

    def _start_empty(self) -> None:
        self._lock = Lock()
        self._sources: OrderedDict[str, Source] = OrderedDict()  # the least recently used first

    def guarded(self, known: Sources, on_change: OnChange = "error") -> Self:
        """The pool, and from now on it makes sure that sources are what they are known to be; see `GuardedSource`."""
        self._known = known
        self._on_change = on_change
        return self

    def resolve(self, url: str) -> str:
        """The url itself or, if it is relative and there is a base, where it points."""
        return join(self.base, url) if self.base is not None and is_relative(url) else url

    def read(self, url: str, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Read ranges of one source. See `Source.read`, also for what is raised."""
        return self._source(url).read(ranges)

    def identity(self, url: str) -> SourceIdentity:
        """The identity of one source. See `Source.identity`, also for what is raised."""
        return self._source(url).identity()

    def close(self) -> None:
        """Close all sources. The pool can still be used, and opens them again."""
        with self._lock:
            sources = list(self._sources.values())
            self._sources.clear()
        for source in sources:
            source.close()

    def _source(self, url: str) -> Source:
        with self._lock:
            source = self._sources.pop(url, None) or self._open(url)
            self._sources[url] = source
            spare = self._sources.popitem(last=False)[1] if len(self._sources) > self._max_open else None
        if spare is not None:
            spare.close()  # does no harm to a thread that is just reading it: see `Source.close`
        return source

    def _open(self, url: str) -> Source:
        known = self._known.get(url)
        if known is None and self._on_change == "error":
            return self._open_unguarded(url)
        return GuardedSource(lambda: self._open_unguarded(url), known and known.identity, self._on_change)

    def _open_unguarded(self, url: str) -> Source:
        return open_source(self.resolve(url), self._options, self._backend, self._max_gap, self._max_size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in self.__dict__.items() if key not in {"_lock", "_sources"}}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._start_empty()

    def __repr__(self) -> str:
        base = None if self.base is None else redact(self.base)
        return f"SourcePool(base={base!r}, max_open={self._max_open})"
