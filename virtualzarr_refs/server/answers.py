"""From a request and a representation to an answer: conditions, ranges, compression (RFC 9110)."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from functools import lru_cache

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import VirtualZarrError
from virtualzarr_refs.server.contents import Bytes, Representation
from virtualzarr_refs.server.failures import log_failure
from virtualzarr_refs.server.ranges import requested_range

BLOCK = 2 * 1024 * 1024
"""Bytes of a value that are in memory at a time, for each request."""

_SMALL = 512
"""Bytes below which compressing does not pay."""


async def answer(request: Request, found: Representation) -> Response:
    """The answer to GET and HEAD.

    Raises
    ------
    HTTPException
        If the range that is asked for is malformed or cannot be had.
    VirtualZarrError
        If the first bytes cannot be read.
    """
    if found.is_metadata and "range" not in request.headers and found.length >= _SMALL and _takes_gzip(request):
        return await _compressed(request, found)
    headers = _headers(found, found.etag)
    if _is_known(request, found.etag):
        return Response(status_code=304, headers=headers)
    wanted = _wanted(request, found)
    if wanted is not None:
        headers["Content-Range"] = f"bytes {wanted.offset}-{wanted.stop - 1}/{found.length}"
    return await _body(request, found, wanted, headers)


async def _body(request: Request, found: Representation, wanted: ByteRange | None, headers: dict[str, str]) -> Response:
    span, status = (ByteRange(0, found.length), 200) if wanted is None else (wanted, 206)
    headers["Content-Length"] = str(span.length)
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers)
    # Read before the status is sent, which it may change.
    first = await found.read(span.offset, min(span.stop, span.offset + BLOCK))
    return BlocksResponse(first, _rest(found, span), status, headers)


async def _rest(found: Representation, span: ByteRange) -> AsyncIterator[Bytes]:
    for start in range(span.offset + BLOCK, span.stop, BLOCK):
        yield await found.read(start, min(span.stop, start + BLOCK))


class BlocksResponse(Response):
    """An answer that is sent block by block, and broken off where its bytes cannot be had.

    Parameters
    ----------
    first : bytes or memoryview
        The first block.
    rest : async iterator
        The others, each read when the one before is on its way.
    status : int
        The status.
    headers : dict
        With the length of all blocks.
    """

    def __init__(self, first: Bytes, rest: AsyncIterator[Bytes], status: int, headers: dict[str, str]) -> None:
        self.status_code = status
        self.background = None
        self.body = b""
        self._first = first
        self._rest = rest
        self.init_headers(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the blocks until all are sent or the client is gone."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self._first, "more_body": True})
        request = Request(scope, receive)
        try:
            async for block in self._rest:
                if await request.is_disconnected():
                    return
                await send({"type": "http.response.body", "body": block, "more_body": True})
        except VirtualZarrError as error:
            # The status is sent; an answer that is never completed has the server close the connection, which tells
            # the client that bytes are missing.
            log_failure(error, scope["path"])
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _headers(found: Representation, etag: str) -> dict[str, str]:
    headers = {
        "ETag": f'"{etag}"',
        "Accept-Ranges": "bytes",
        "Cache-Control": "no-cache",  # kept, but asked about by ETag each time
        "Content-Type": "application/json" if found.is_metadata else "application/octet-stream",
        "X-Content-Type-Options": "nosniff",
    }
    return {**headers, "Vary": "Accept-Encoding"} if found.is_metadata else headers


async def _compressed(request: Request, found: Representation) -> Response:
    etag = f"{found.etag}-gzip"
    headers = _headers(found, etag) | {"Content-Encoding": "gzip"}
    if _is_known(request, etag):
        return Response(status_code=304, headers=headers)
    data = _gzip(bytes(await found.read(0, found.length)))
    return Response(b"" if request.method == "HEAD" else data, 200, headers | {"Content-Length": str(len(data))})


@lru_cache(16)
def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, 6, mtime=0)


def _takes_gzip(request: Request) -> bool:
    """Whether ``Accept-Encoding`` names gzip, and does not rule it out with a weight of zero."""
    for item in request.headers.get("accept-encoding", "").lower().replace(" ", "").split(","):
        coding, _, weight = item.partition(";q=")
        if coding == "gzip":
            return not weight or weight.strip("0.") != ""
    return False


def _is_known(request: Request, etag: str) -> bool:
    """Whether ``If-None-Match`` names the representation."""
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    return "*" in known or f'"{etag}"' in known


def _wanted(request: Request, found: Representation) -> ByteRange | None:
    header = request.headers.get("range")
    if header is None or request.method != "GET":
        return None
    unless_changed = request.headers.get("if-range")
    if unless_changed is not None and unless_changed != f'"{found.etag}"':
        return None
    return requested_range(header, found.length)
