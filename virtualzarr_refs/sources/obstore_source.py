"""Object stores and HTTP servers through obstore, whose requests run in Rust."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import BaseError, NotSupportedError
from obstore.store import HTTPStore, LocalStore, ObjectStore, from_url

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.sources.identity import SourceIdentity, bare_etag
from virtualzarr_refs.sources.location import local_path
from virtualzarr_refs.sources.redaction import redact
from virtualzarr_refs.sources.remote import MAX_REQUESTS, RemoteSource

if TYPE_CHECKING:
    from obstore import ObjectMeta  # not there at run time

_BUCKET_SCHEMES = frozenset({"s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss"})
_PLAIN_PATH = re.compile(r"(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*/)*[A-Za-z0-9_~-][A-Za-z0-9._~-]*")
"""A path of an http url that stays the same whoever encodes and decodes it."""

_LOCAL_ROOT = "file:///"
_RETRIES: dict[str, Any] = {"max_retries": 4, "retry_timeout": timedelta(seconds=60)}
"""Used where no ``retry_config`` is given; obstore's own tries for three minutes."""

_TIMEOUTS: dict[str, Any] = {"timeout": timedelta(seconds=300), "connect_timeout": timedelta(seconds=10)}
"""Used where ``client_options`` do not say otherwise: obstore's own 30 seconds are too few for many megabytes over a
slow line."""

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
        # Not by `obstore.get_ranges`, which joins spans that touch however long they become, and takes ten at a time.
        if len(spans) == 1:
            return [self._fetch_one(spans[0])]
        return [*_threads(os.getpid()).map(self._fetch_one, spans)]

    def _fetch_one(self, span: ByteRange) -> memoryview:
        store, key = self._locate()
        return memoryview(obstore.get_range(store, key, start=span.offset, end=span.stop))

    def _fetch_whole(self) -> memoryview:
        store, key = self._locate()
        return memoryview(obstore.get(store, key).bytes())

    def _look(self) -> SourceIdentity:
        store, key = self._locate()
        return _identity(store, obstore.head(store, key))

    def _look_and_fetch(self, length: int) -> tuple[SourceIdentity, memoryview]:
        store, key = self._locate()
        answer = obstore.get(store, key, options={"range": (0, length)})
        return _identity(store, answer.meta), memoryview(answer.bytes())

    def _ignores_ranges(self, error: BaseException) -> bool:
        return isinstance(error, NotSupportedError)

    def _failures(self) -> tuple[type[BaseException], ...]:
        return BaseError, OSError, ValueError  # ValueError: a key that obstore cannot say, such as one with "//"

    def _disconnect(self) -> None:
        """Forget the store. It is shared with other sources under the same root."""
        self._location = None


def _identity(store: ObjectStore, meta: ObjectMeta) -> SourceIdentity:
    etag, time = meta["e_tag"], meta["last_modified"].timestamp()
    if isinstance(store, LocalStore):  # obstore makes one up from what `stat` says
        etag = None
    return SourceIdentity(meta["size"], bare_etag(etag) if etag else None, time or None)


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
    own: dict[str, Any] = {"retry_config": _RETRIES, **options.values}
    own["client_options"] = _TIMEOUTS | own.get("client_options", {})
    if not root.lower().startswith(("http://", "https://")):
        return from_url(root, **own)
    # Who writes "http:" means it.
    allow_http = root.lower().startswith("http:")
    client_options: Any = {"allow_http": allow_http, **own.pop("client_options")}
    return HTTPStore(root, client_options=client_options, **own)


@cache
def _threads(process: int) -> ThreadPoolExecutor:  # noqa: ARG001  threads do not live on in a forked process
    return ThreadPoolExecutor(MAX_REQUESTS, thread_name_prefix="virtualzarr_refs_requests")
