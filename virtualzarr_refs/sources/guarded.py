"""Sources that must still be what they were when they were scanned."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceChangedError, SourceChangedWarning
from virtualzarr_refs.sources.checks import require_same
from virtualzarr_refs.sources.identity import SourceIdentity
from virtualzarr_refs.sources.local import LocalSource
from virtualzarr_refs.sources.protocol import Source

type OnChange = Literal["error", "warn", "ignore"]
"""What to do about a source that changed: raise SourceChangedError, or read what is there, and warn or not."""

ON_CHANGE: tuple[OnChange, ...] = ("error", "warn", "ignore")


class GuardedSource:
    """A source that is compared with what it was, once, when it is first read.

    Safe to use from many threads.

    Parameters
    ----------
    open_anew : callable
        Opens the source.
    expected : SourceIdentity, optional
        What it was when it was scanned, if that is known.
    on_change : {"error", "warn", "ignore"}
        What to do where it is not that, or becomes another one while it is open.
    """

    def __init__(self, open_anew: Callable[[], Source], expected: SourceIdentity | None, on_change: OnChange) -> None:
        self._open_anew = open_anew
        self._source = open_anew()
        self._expected = None if on_change == "ignore" else expected
        self._on_change: OnChange = on_change

    @property
    def url(self) -> str:
        """See `Source.url`."""
        return self._source.url

    def identity(self) -> SourceIdentity:
        """See `Source.identity`."""
        return self._source.identity()

    def read(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """See `Source.read`.

        Warns
        -----
        SourceChangedWarning
            If it changed and is read all the same.
        """
        try:
            if self._expected is None:
                return self._source.read(ranges)
            return self._first_read(ranges, self._expected)
        except SourceChangedError as error:
            if self._on_change == "error":
                raise
            return self._accepted(error).read(ranges)

    def _first_read(self, ranges: Sequence[ByteRange], expected: SourceIdentity) -> list[memoryview]:
        if isinstance(self._source, LocalSource):
            self._require(expected)
            return self._source.read(ranges)
        with ThreadPoolExecutor(1) as beside:  # a remote source is asked what it is while it sends what it holds
            asked = beside.submit(self._require, expected)
            try:
                return self._source.read(ranges)
            finally:
                asked.result()  # says more than a failure to read would

    def _require(self, expected: SourceIdentity) -> None:
        require_same(self.url, expected, self._source.identity())
        self._expected = None

    def _accepted(self, error: SourceChangedError) -> Source:
        """The source as it is now."""
        if self._on_change == "warn":
            warnings.warn(str(error), SourceChangedWarning, stacklevel=2)
        self._source.close()
        self._source, self._expected = self._open_anew(), None
        return self._source

    def close(self) -> None:
        """See `Source.close`."""
        self._source.close()
