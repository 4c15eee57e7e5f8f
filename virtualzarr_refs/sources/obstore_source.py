"""Object stores and HTTP servers through obstore, whose requests run in Rust."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import BaseError
from obstore.store import HTTPStore, LocalStore, ObjectStore, from_url

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.sources.identity import SourceIdentity, bare_etag
from virtualzarr_refs.sources.location import local_path
from virtualzarr_refs.sources.redaction import redact
from virtualzarr_refs.sources.remote import RemoteSource

_BUCKET_SCHEMES = frozenset({"s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss"})
_PLAIN_PATH = re.compile(r"(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*/)*[A-Za-z0-9_~-][A-Za-z0-9._~-]*")
"""A path of an http url that stays the same whoever encodes and decodes it."""

_LOCAL_ROOT = "file:///"
_MAX_STORES = 32
"""Stores, each with its pool of connections, that are kept for reuse."""


@dataclass(frozen=True, slots=True)
class _StoreOptions:
    """Options as a key of a cache: compared by value, hashed by name, since values need not be hashable."""

    names: frozenset[str]
    values: Mapping[str, Any] = field(hash=False, repr=False)


class ObstoreSource(RemoteSource):
    """A file behind an obstore store.

    `storage_options` are the keyword arguments of `obstore.store.from_url` or, for http, of `HTTPStore`, such as
    ``region``, ``skip_signature``, ``client_options`` and ``retry_config``. They are not those of fsspec.

    Raises
    ------
    UnsupportedError
        If obstore does not know the scheme of the url.
    """

    _location: tuple[ObjectStore, str] | None = None

    def _locate(self) -> tuple[ObjectStore, str]:
        with self._lock:
            if self._location is None:
                root, key = _split(self.url)
                self._location = _store(root, _StoreOptions(frozenset(self._options), self._options)), key
            return self._location

    def _fetch(self, spans: Sequence[ByteRange]) -> Sequence[memoryview]:
        store, key = self._locate()
        starts = [span.offset for span in spans]
        # The spans are coalesced already, under the same two limits as with every other backend.
        buffers = obstore.get_ranges(store, key, starts=starts, ends=[span.stop for span in spans], coalesce=0)
        return [memoryview(buffer) for buffer in buffers]

    def _look(self) -> SourceIdentity:
        store, key = self._locate()
        head = obstore.head(store, key)
        etag = head["e_tag"]
        if isinstance(store, LocalStore):  # obstore makes one up from what `stat` says
            etag = None
        return SourceIdentity(head["size"], bare_etag(etag) if etag else None, head["last_modified"].timestamp())

    def _failures(self) -> tuple[type[BaseException], ...]:
        return BaseError, OSError, ValueError  # ValueError: a key that obstore cannot say, such as one with "//"

    def close(self) -> None:
        """Forget the store. It is shared with other sources under the same root."""
        self._location = None


def _split(url: str) -> tuple[str, str]:
    """The root, of which there is one store, and the key within it."""
    path = local_path(url)
    if path is not None:
        return _LOCAL_ROOT, Path(path).absolute().as_posix().lstrip("/")
    scheme, _, rest = url.partition("://")
    authority, _, key = rest.partition("/")
    if scheme.lower() in _BUCKET_SCHEMES:
        return f"{scheme}://{authority}", key
    if scheme.lower() not in {"http", "https"}:
        raise UnsupportedError('obstore does not know this kind of url; use backend="fsspec"', url=redact(url))
    # A store at the file's own url sends the url as it is, with its escapes and its query.
    return (f"{scheme}://{authority}", key) if _PLAIN_PATH.fullmatch(key) else (url, "")


@lru_cache(maxsize=_MAX_STORES)
def _store(root: str, options: _StoreOptions) -> ObjectStore:
    if root == _LOCAL_ROOT:
        return LocalStore()
    if not root.lower().startswith(("http://", "https://")):
        return from_url(root, **options.values)
    own: dict[str, Any] = dict(options.values)
    # Who writes "http:" means it.
    allow_http = root.lower().startswith("http:")
    client_options: Any = {"allow_http": allow_http, **own.pop("client_options", {})}
    return HTTPStore(root, client_options=client_options, **own)
