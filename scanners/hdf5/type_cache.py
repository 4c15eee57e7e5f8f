"""Remembering what was understood of datatypes: a file has many datasets and attributes, but of few types."""

from __future__ import annotations

from collections.abc import Callable

from h5py import h5t

MAX_TYPES = 1024
"""Types that are kept; with more, all are forgotten."""


class TypeCache[T]:
    """What a function makes of datatypes, by their encoding (``H5Tencode``).

    Parameters
    ----------
    understand : callable
        Takes a datatype and its encoding. What it returns must not hold the datatype: one that is committed keeps its
        file open. `h5py.h5t.decode` would not do instead, for it loses what kind references are of.
    """

    def __init__(self, understand: Callable[[h5t.TypeID, bytes], T]) -> None:
        self._understand = understand
        self._known: dict[bytes, T] = {}

    def __call__(self, tid: h5t.TypeID) -> T:
        """What is known of a datatype."""
        encoded: bytes = tid.encode()
        try:
            return self._known[encoded]
        except KeyError:
            pass
        if len(self._known) >= MAX_TYPES:
            self._known.clear()
        self._known[encoded] = known = self._understand(tid, encoded)
        return known
