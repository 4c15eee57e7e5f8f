"""The ASGI application: paths are store keys, and folders where they end with a slash."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import batched
from pathlib import Path
from typing import Literal

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from virtualzarr_refs.errors import VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.listing import Entry
from virtualzarr_refs.reader import ReadOptions
from virtualzarr_refs.server.access import TokenRequired
from virtualzarr_refs.server.answers import answer
from virtualzarr_refs.server.chunk_map import chunk_map
from virtualzarr_refs.server.contents import Contents
from virtualzarr_refs.server.core import CoreContents
from virtualzarr_refs.server.failures import failure_response, refusal_response
from virtualzarr_refs.server.page import FOLDER, page_routes
from virtualzarr_refs.server.stored import StoredContents

Codecs = Literal["stored", "core"]

_METHODS = ("GET", "HEAD")
_CHUNK_MAPS = f"{FOLDER}/chunks/".removeprefix("/")
_CORE = f"{FOLDER}/core/".removeprefix("/")
_REQUEST_FIELDS = ("Authorization", "Range", "If-None-Match", "If-Range")
_ANSWER_FIELDS = ("Accept-Ranges", "Content-Encoding", "Content-Length", "Content-Range", "ETag")

_MAX_TARGET = 8 * 1024
"""Bytes of a path; no key is nearly as long."""

_MAX_FIELDS = 32 * 1024
"""Bytes of all header fields of a request together."""

_ENTRIES = 500
"""Entries of a listing that are put together at once."""


def application(
    group: VirtualGroup,
    options: ReadOptions | None = None,
    *,
    codecs: Codecs = "stored",
    token: str | None = None,
    origins: Sequence[str] = ("*",),
    consolidated: bool = True,
    npm: Path | None = None,
) -> ASGIApp:
    """Make a read-only ASGI application of a hierarchy.

    Parameters
    ----------
    group : VirtualGroup
        The root of the hierarchy.
    options : ReadOptions, optional
        How its sources are read.
    codecs : {"stored", "core"}
        Chunks as they are stored, or encoded anew with ``bytes`` and ``zstd`` on regular grids.
    token : str, optional
        What requests have to carry as ``Authorization: Bearer TOKEN``.
    origins : sequence of str
        Web sites whose pages may read from it (CORS).
    consolidated : bool
        Whether the document of a group holds those of the nodes beneath, so that clients need no listing.
    npm : path, optional
        A folder ``node_modules`` with zarrita for the page; without it, browsers load zarrita from a public network.

    Raises
    ------
    ValueError
        If the token is empty.
    """
    options = options or ReadOptions()
    core = CoreContents(group, options, consolidated=consolidated)
    contents = core if codecs == "core" else StoredContents(group, options, consolidated=consolidated)

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncGenerator[None]:
        yield
        contents.close()
        core.close()

    keys: ASGIApp = _Keys(contents, core, dict(group.walk_arrays()))
    if token is not None:
        keys = TokenRequired(keys, token)
    app = ExceptionMiddleware(Router(page_routes(npm), redirect_slashes=False, default=keys, lifespan=lifespan))
    # Outermost: a page has to be allowed to see refusals too, and asks first without a token.
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=_METHODS,
        allow_headers=_REQUEST_FIELDS,
        expose_headers=_ANSWER_FIELDS,
    )


class _Keys:
    """Answers requests for keys and folders."""

    def __init__(self, contents: Contents, core: Contents, arrays: Mapping[str, VirtualArray]) -> None:
        self._contents = contents
        self._core = core
        self._arrays = arrays

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await WebSocketClose()(scope, receive, send)
            return
        request = Request(scope, receive)
        key = scope["path"].removeprefix("/")
        try:
            response = await self._respond(request, key)
        except HTTPException as error:
            response = refusal_response(error, key[:_MAX_TARGET])
        except VirtualZarrError as error:
            response = failure_response(error, key)
        await response(scope, receive, send)

    async def _respond(self, request: Request, key: str) -> Response:
        _refuse_oversized(request)
        if request.method not in _METHODS:
            raise HTTPException(405, "this server is read-only", {"Allow": ", ".join(_METHODS)})
        if key.startswith(_CHUNK_MAPS):
            return await self._chunk_map(key.removeprefix(_CHUNK_MAPS))
        if key.startswith(_CORE):
            return await _from(self._core, request, key.removeprefix(_CORE))
        return await _from(self._contents, request, key)

    async def _chunk_map(self, path: str) -> Response:
        array = self._arrays.get(path)
        if array is None:
            raise HTTPException(404, "there is no such array")
        return JSONResponse(await run_in_threadpool(chunk_map, array), headers={"Cache-Control": "no-cache"})


async def _from(contents: Contents, request: Request, key: str) -> Response:
    """What is under a key, or in a folder."""
    if not key or key.endswith("/"):
        return _folder(contents, request, key)
    found = await contents.find(key)
    if found is None:
        raise HTTPException(404, "nothing is under this key; a path that ends with a slash lists a folder")
    return await answer(request, found)


def _folder(contents: Contents, request: Request, path: str) -> Response:
    folder = path.removesuffix("/")
    entries = contents.entries(folder)
    first = next(entries, None) if folder or not path else None
    if first is None:
        raise HTTPException(404, "there is no such folder")
    headers = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}
    if request.method == "HEAD":
        return Response(None, 200, headers, "application/json")
    return StreamingResponse(_listing(path, first, entries), 200, headers, "application/json")


def _refuse_oversized(request: Request) -> None:
    """Refuse what the server has read in one piece, though it is long; what is longer it has refused itself."""
    if len(request.scope.get("raw_path") or b"") > _MAX_TARGET:
        raise HTTPException(414, "the path is too long")
    if sum(len(name) + len(value) for name, value in request.scope["headers"]) > _MAX_FIELDS:
        raise HTTPException(431, "the header fields are too long")


def _listing(path: str, first: tuple[Entry, int | None], others: Iterator[tuple[Entry, int | None]]) -> Iterator[str]:
    """A listing as JSON, in pieces: a folder may hold any number of chunks."""
    yield f'{{"path":{json.dumps(path)},"entries":[{_entry(*first)}'
    for batch in batched(others, _ENTRIES):
        yield "".join(f",{_entry(*entry)}" for entry in batch)
    yield "]}"


def _entry(entry: Entry, length: int | None) -> str:
    kind = "folder" if entry.is_folder else "file"
    size = {} if length is None else {"size": length}
    return json.dumps({"name": entry.name, "type": kind, **size})
