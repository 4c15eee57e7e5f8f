"""HTTP servers through fsspec's filesystem, whose session and settings are used; the requests are our own.

fsspec takes whatever a server sends. Here every answer has to be the range that was asked for, of the version of the
file that was seen first.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, cast

from fsspec.asyn import sync

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceError
from virtualzarr_refs.sources.checks import require_same
from virtualzarr_refs.sources.fsspec_source import FsspecSource
from virtualzarr_refs.sources.identity import SourceIdentity, bare_etag
from virtualzarr_refs.sources.redaction import redact
from virtualzarr_refs.sources.remote import MAX_REQUESTS

_PARTIAL_CONTENT = 206
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
"""RFC 9110, 14.4 "Content-Range"; a server that does not say how large the file is, is asked apart."""


class RangesIgnoredError(OSError):
    """The server sent the whole file, or began to, where a range was asked for."""


class _Answer(NamedTuple):
    body: memoryview
    identity: SourceIdentity


class FsspecHTTPSource(FsspecSource):
    """A file on an HTTP server."""

    def _fetch(self, spans: Sequence[ByteRange]) -> Sequence[memoryview]:
        answers = self._ask(spans)
        if self._identity is not None:
            for answer in answers:
                require_same(self.url, self._identity, answer.identity)
        return [answer.body for answer in answers]

    def _look_and_fetch(self, length: int) -> tuple[SourceIdentity, memoryview]:
        (answer,) = self._ask([ByteRange(0, length)])
        return answer.identity, answer.body

    def _ask(self, spans: Sequence[ByteRange]) -> list[_Answer]:
        opened = self._open()  # here, not in the event loop, which another thread runs: it would wait for our lock
        filesystem: Any = opened.filesystem
        return cast("list[_Answer]", sync(filesystem.loop, self._ask_all, filesystem, opened.path, spans))

    async def _ask_all(self, filesystem: Any, path: str, spans: Sequence[ByteRange]) -> list[_Answer]:  # noqa: ANN401
        session, turns = await filesystem.set_session(), asyncio.Semaphore(MAX_REQUESTS)
        options = {**filesystem.kwargs}
        headers = {**options.pop("headers", {})}
        url = filesystem.encode_url(path)

        async def ask(span: ByteRange) -> _Answer:
            wanted = {**headers, "Range": f"bytes={span.offset}-{span.stop - 1}"}
            async with turns, session.get(url, headers=wanted, **options) as response:
                response.raise_for_status()
                if response.status != _PARTIAL_CONTENT:
                    raise RangesIgnoredError("the server sent the whole file instead of a range")
                identity = self._identity_of(response.headers, span)
                return _Answer(memoryview(await response.read()).toreadonly(), identity)

        return await asyncio.gather(*map(ask, spans))

    def _identity_of(self, headers: Mapping[str, str], span: ByteRange) -> SourceIdentity:
        """What an answer says of the file, if it is an answer to what was asked."""
        given = headers.get("Content-Range", "")
        match = _CONTENT_RANGE.fullmatch(given)
        start, last, size = map(int, match.groups()) if match else (-1, -1, -1)
        if start != span.offset or last != min(span.stop, size) - 1:
            message = f"the server sent {given or 'an unknown range'} where {span.length} bytes from {span.offset} on"
            raise SourceError(f"{message} were asked for; try again", url=redact(self.url), offset=span.offset)
        etag, time = headers.get("ETag"), headers.get("Last-Modified")
        modified = None if time is None else parsedate_to_datetime(time).timestamp()
        return SourceIdentity(size, None if etag is None else bare_etag(etag), modified)

    def _ignores_ranges(self, error: BaseException) -> bool:
        return isinstance(error, RangesIgnoredError)
