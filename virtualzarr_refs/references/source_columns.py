"""The sources of a set as columns, in which a set of any form keeps them.

``url`` and ``size`` are always there; of ``etag``, ``last_modified`` and ``scanned_at``, times in seconds since the
epoch, only those that are known of any source, with None for the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.references.urls import SetUrls
from virtualzarr_refs.sources.identity import SourceIdentity
from virtualzarr_refs.sources.scanned import ScannedSource, Sources

_REQUIRED: Mapping[str, tuple[type, ...]] = {"url": (str,), "size": (int,)}
_OPTIONAL: Mapping[str, tuple[type, ...]] = {
    "etag": (str,),
    "last_modified": (int, float),
    "scanned_at": (int, float),
}

type Columns = dict[str, list[Any]]


def write_columns(sources: Sources) -> Columns:
    """Sources as columns; none if there are no sources."""
    records = [(s.identity.size, s.identity.etag, s.identity.last_modified, s.scanned_at) for s in sources.values()]
    names = ("size", "etag", "last_modified", "scanned_at")
    columns = {name: list(column) for name, column in zip(names, zip(*records, strict=True), strict=False)}
    known = {name: column for name, column in columns.items() if any(value is not None for value in column)}
    return {"url": list(sources), **known} if sources else {}


def read_columns(columns: object, urls: SetUrls) -> dict[str, ScannedSource]:
    """Sources from columns.

    Parameters
    ----------
    columns : object
        What a set has; columns that are not known are ignored.
    urls : SetUrls
        Where urls point. What a set may not point to is left out: no reference can use it either.

    Raises
    ------
    ReferenceSetError
        If the columns are malformed.
    """
    if not columns:
        return {}
    if not isinstance(columns, Mapping):
        raise ReferenceSetError(f'"sources" is not a JSON object: {columns!r:.80}')
    table = _checked(cast("Mapping[str, object]", columns))
    sources: dict[str, ScannedSource] = {}
    for url, size, etag, last_modified, scanned_at in zip(*table, strict=True):
        place = urls.permitted(url)
        if place is not None:
            sources[place] = ScannedSource(SourceIdentity(size, etag, last_modified), scanned_at)
    return sources


def _checked(columns: Mapping[str, object]) -> list[Sequence[Any]]:
    required = [_column(name, columns.get(name), kind) for name, kind in _REQUIRED.items()]
    length = len(required[0])
    nothing = [None] * length
    optional = [_column(name, columns.get(name, nothing), (*kind, type(None))) for name, kind in _OPTIONAL.items()]
    if any(len(column) != length for column in (*required, *optional)) or any(size < 0 for size in required[1]):
        raise ReferenceSetError('"sources" has columns of different lengths, or a negative size')
    return [*required, *optional]


def _column(name: str, values: object, kind: tuple[type, ...]) -> Sequence[Any]:
    column = cast("Sequence[object]", values) if isinstance(values, list) else None
    if column is None or not all(isinstance(value, kind) and type(value) is not bool for value in column):
        raise ReferenceSetError(f'"sources" has no sound column {name!r}: {values!r:.80}')
    return column
