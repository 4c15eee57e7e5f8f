"""What libhdf5 told about parts of object headers, remembered by their bytes.

The datasets of a file, and of all files of a series, are mostly described by the same bytes. So a header is split into
messages, which is quick, and libhdf5 is asked only about those that were not seen before: it alone says what they
mean. Remembered is only what means the same in every file: nothing that is shared, and nothing that holds an address.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from scanners.hdf5.header import (
    DATASPACE,
    DATATYPE,
    EXTERNAL_FILES,
    FILL_VALUE,
    FILTERS,
    LAYOUT,
    OLD_FILL_VALUE,
    SHARED,
    ObjectHeader,
)
from scanners.hdf5.layout import storage_class

MAX_KEPT = 20_000
"""Answers that are kept; with more, all are forgotten."""

_PROPERTIES = frozenset({DATATYPE, OLD_FILL_VALUE, FILL_VALUE, FILTERS})


@dataclass(slots=True)
class Memory[T]:
    """Answers, by what was asked about; None is what cannot be remembered."""

    _known: dict[Hashable, T] = field(default_factory=dict[Hashable, T])

    def recall(self, key: Hashable) -> T | None:
        """The answer, if it is known."""
        return None if key is None else self._known.get(key)

    def keep(self, key: Hashable, answer: T) -> T:
        """Remember an answer, and return it."""
        if key is not None:
            if len(self._known) >= MAX_KEPT:
                self._known.clear()
            self._known[key] = answer
        return answer


def extent_key(header: ObjectHeader) -> Hashable:
    """What decides the extent of a dataset."""
    return _of_kinds(header, frozenset({DATASPACE}))


def properties_key(header: ObjectHeader) -> Hashable:
    """What decides type, storage class, filters and fill value of a dataset."""
    layout, described = header.body(LAYOUT), _of_kinds(header, _PROPERTIES)
    if described is None or layout is None or header.body(EXTERNAL_FILES) is not None:
        return None
    storage = storage_class(layout, header.offset_size)
    return None if storage is None else (described, storage)


def _of_kinds(header: ObjectHeader, kinds: frozenset[int]) -> Hashable:
    found = tuple(message for message in header.messages if message.kind in kinds)
    return None if not found or any(message.flags & SHARED for message in found) else found
