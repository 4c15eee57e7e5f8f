"""A folder behind an object store's latency: an HTTP server with byte ranges that waits before every answer.

It runs in a process of its own, so that it takes no time from those who are timed, and counts what they ask for.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import urllib.request
from asyncio import StreamReader, StreamWriter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

LATENCY = 0.05
"""Seconds before an answer: what object stores take."""

_COUNTS, _FORGET = "/__counts", "/__forget"
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
_REASONS = {200: "OK", 206: "Partial Content", 404: "Not Found", 416: "Range Not Satisfiable"}


@dataclass(frozen=True, slots=True)
class Counts:
    """What a server was asked for.

    Parameters
    ----------
    requests : int
        Of every kind.
    bytes : int
        Of the bodies that it sent.
    """

    requests: int
    bytes: int


@dataclass(frozen=True, slots=True)
class LatencyServer:
    """A running server.

    Parameters
    ----------
    url : str
        Of the folder, without a slash at the end.
    """

    url: str

    def forget(self) -> None:
        """Count from zero."""
        self._get(_FORGET)

    def counts(self) -> Counts:
        """What was asked for since."""
        return Counts(**json.loads(self._get(_COUNTS)))

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.url + path) as answer:  # noqa: S310  our own url
            return answer.read()


@contextmanager
def serving(folder: Path, latency: float = LATENCY) -> Generator[LatencyServer]:
    """Serve a folder for the time of the block."""
    command = [sys.executable, __file__, str(folder), str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  ours
        try:
            assert process.stdout is not None  # noqa: S101  it is a pipe
            yield LatencyServer(process.stdout.readline().strip())
        finally:
            process.terminate()


# ── The process that serves ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Serving:
    folder: Path
    latency: float
    counts: dict[str, int] = field(default_factory=lambda: {"requests": 0, "bytes": 0})

    async def run(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)  # noqa: T201  for who started us
        async with server:
            await server.serve_forever()

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            while line := await reader.readline():
                method, path, _ = line.decode("latin1").split(" ", 2)
                await self._answer(writer, method, path, await _headers(reader))
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def _answer(self, writer: StreamWriter, method: str, path: str, headers: Mapping[str, str]) -> None:
        if path in (_COUNTS, _FORGET):
            body = json.dumps(self.counts).encode()
            if path == _FORGET:
                self.counts = {"requests": 0, "bytes": 0}
            writer.write(_head(200, {"Content-Length": len(body)}) + body)
            return
        self.counts["requests"] += 1
        await asyncio.sleep(self.latency)
        file = self.folder / path.lstrip("/")
        if file.is_file():
            await self._send(writer, file, method, headers.get("range"))
        else:
            writer.write(_head(404, {"Content-Length": 0}))

    async def _send(self, writer: StreamWriter, file: Path, method: str, wanted: str | None) -> None:
        size = file.stat().st_size  # noqa: ASYNC240  takes no time worth handing over
        match = _RANGE.fullmatch(wanted or "")
        start = int(match[1]) if match else 0
        stop = min(int(match[2]) + 1, size) if match and match[2] else size
        about: dict[str, object] = {"Accept-Ranges": "bytes", "ETag": f'"{size}"', "Content-Length": stop - start}
        about["Last-Modified"] = "Mon, 01 Jan 2024 00:00:00 GMT"
        if start >= size:
            writer.write(_head(416, {"Content-Range": f"bytes */{size}", "Content-Length": 0}))
            return
        if match:
            about["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        writer.write(_head(206 if match else 200, about))
        if method != "GET":
            return
        self.counts["bytes"] += stop - start
        with file.open("rb") as body:
            await writer.drain()
            await asyncio.get_running_loop().sendfile(writer.transport, body, start, stop - start)


async def _headers(reader: StreamReader) -> dict[str, str]:
    found: dict[str, str] = {}
    while (line := (await reader.readline()).decode("latin1").strip()) != "":
        name, _, value = line.partition(":")
        found[name.strip().lower()] = value.strip()
    return found


def _head(status: int, headers: Mapping[str, object]) -> bytes:
    lines = [f"HTTP/1.1 {status} {_REASONS[status]}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin1")


if __name__ == "__main__":
    asyncio.run(_Serving(Path(sys.argv[1]).absolute(), float(sys.argv[2])).run())
