"""Any url that fsspec knows: http, s3, memory, members of zip archives, chains such as ``simplecache::``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Lock
from typing import Any, NamedTuple, Protocol, cast

from fsspec.asyn import AsyncFileSystem, sync
from fsspec.core import url_to_fs

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceError, UnsupportedError
from virtualzarr_refs.sources.identity import SourceIdentity, bare_etag
from virtualzarr_refs.sources.redaction import redact
from virtualzarr_refs.sources.remote import RemoteSource
from virtualzarr_refs.sources.translation import client_errors

# Keys of `fs.info`, in lower case and without punctuation: filesystems spell them in many ways.
_ETAG_KEYS = ("etag",)
_TIME_KEYS = ("mtime", "lastmodified", "modified", "updated")


class _Filesystem(Protocol):
    """What is used of an fsspec filesystem."""

    def cat_ranges(
        self, paths: list[str], starts: list[int], ends: list[int], *, on_error: str
    ) -> list[bytes | BaseException]: ...

    def cat_file(self, path: str) -> bytes: ...

    def info(self, path: str) -> dict[str, object]: ...

    def invalidate_cache(self, path: str) -> None: ...


class _Opened(NamedTuple):
    filesystem: _Filesystem
    path: str
    turn: AbstractContextManager[object]


class FsspecSource(RemoteSource):
    """A file behind an fsspec filesystem.

    Do not call it from fsspec's own event loop, which it would wait for.
    """

    _opened: _Opened | None = None

    def _open(self) -> _Opened:
        with self._lock:
            if self._opened is None:
                self._opened = _open(self.url, self._options)
            return self._opened

    def _fetch(self, spans: Sequence[ByteRange]) -> Sequence[memoryview]:
        filesystem, path, turn = self._open()
        with turn:
            answers = filesystem.cat_ranges(
                [path] * len(spans), [span.offset for span in spans], [span.stop for span in spans], on_error="raise"
            )
        return [memoryview(_answered(answer)).toreadonly() for answer in answers]

    def _look_and_fetch(self, length: int) -> tuple[SourceIdentity, memoryview] | None:
        filesystem, path, _ = self._open()
        if not issubclass(type(filesystem), AsyncFileSystem):
            return None
        both = sync(cast("AsyncFileSystem", filesystem).loop, _info_and_head, filesystem, path, length)
        info, head = cast("tuple[Mapping[str, object], bytes]", both)
        return self._identity_of_info(info), memoryview(head).toreadonly()

    def _fetch_whole(self) -> memoryview:
        filesystem, path, turn = self._open()
        with turn:
            return memoryview(filesystem.cat_file(path)).toreadonly()

    def _ignores_ranges(self, error: BaseException) -> bool:  # noqa: ARG002  most cannot tell
        return False

    def _look(self) -> SourceIdentity:
        filesystem, path, turn = self._open()
        with turn:
            filesystem.invalidate_cache(path)  # it would answer from an old listing
            info = filesystem.info(path)
        return self._identity_of_info(info)

    def _identity_of_info(self, info: Mapping[str, object]) -> SourceIdentity:
        if info.get("type") == "directory":
            raise SourceError("this is a folder, not a file", url=redact(self.url))
        size = info.get("size")
        if not isinstance(size, int):
            raise SourceError(
                "the server does not say how large the file is; use simplecache::URL, which downloads it first",
                url=redact(self.url),
            )
        return SourceIdentity(size, _etag(info), _last_modified(info))

    def _failures(self) -> tuple[type[BaseException], ...]:
        return client_errors()

    def _disconnect(self) -> None:
        """Forget the filesystem. fsspec shares filesystems, so their connections stay open for others."""
        self._opened = None


def _open(url: str, options: Mapping[str, object]) -> _Opened:
    # `url_to_fs` changes the dictionaries of options that belong to the links of a chain, hence the copies.
    own = {key: dict(cast("Mapping[str, object]", o)) if isinstance(o, Mapping) else o for key, o in options.items()}
    try:
        filesystem, path = url_to_fs(url, **own)
    except ImportError as error:
        raise UnsupportedError(
            f"this kind of url needs a package that is not installed ({redact(str(error))}); "
            'pip install "virtualzarr-refs[remote]" has the usual ones',
            url=redact(url),
        ) from None
    except ValueError as error:
        raise UnsupportedError(
            f"fsspec cannot open this url ({redact(str(error))}); check its scheme and the storage options",
            url=redact(url),
        ) from None
    # Caching filesystems download into a file that another thread would read too early; they say of
    # themselves that they are asynchronous if their target is, so ask their class.
    turn = nullcontext() if issubclass(type(filesystem), AsyncFileSystem) else Lock()
    return _Opened(cast("_Filesystem", filesystem), path, turn)


async def _info_and_head(filesystem: Any, path: str, length: int) -> tuple[Mapping[str, object], bytes]:  # noqa: ANN401
    return await asyncio.gather(filesystem._info(path), filesystem._cat_file(path, start=0, end=length))  # noqa: SLF001


def _answered(answer: bytes | BaseException) -> bytes:
    if isinstance(answer, BaseException):  # older asynchronous filesystems return errors whatever `on_error` says
        raise answer
    return answer


def _etag(info: Mapping[str, object]) -> str | None:
    for value in _values(info, _ETAG_KEYS):
        if isinstance(value, str):
            return bare_etag(value)
    return None


def _last_modified(info: Mapping[str, object]) -> float | None:
    times = (_seconds(value) for value in _values(info, _TIME_KEYS))
    return next((time for time in times if time is not None), None)


def _values(info: Mapping[str, object], keys: Iterable[str]) -> list[object]:
    plain = {re.sub(r"[^a-z]", "", key.lower()): value for key, value in info.items()}
    return [plain[key] for key in keys if key in plain]


def _seconds(time: object) -> float | None:
    """Seconds since the epoch, of a number, a datetime (naive: UTC), or a date as text."""
    if isinstance(time, str):
        time = _parsed_date(time)
    if isinstance(time, datetime):
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    return float(time) if isinstance(time, int | float) else None


def _parsed_date(text: str) -> datetime | None:
    """A date as HTTP writes it (RFC 9110) or as ISO 8601 does."""
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            return parse(text)
        except ValueError:
            continue
    return None
