"""A small HTTP server with byte ranges, which can also answer in wrong ways."""

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

MODIFIED = "Wed, 21 Oct 2026 07:28:00 GMT"


class Answer(NamedTuple):
    """What is sent; a length that is not the body's breaks the connection off."""

    status: int
    headers: dict[str, str]
    body: bytes


class RangeServer(ThreadingHTTPServer):
    """Serves `files` by path, and answers with a status where there is a number in place of bytes."""

    daemon_threads = True

    def handle_error(self, *_):
        """Say nothing: who reads may go away at any time."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes | int] = {}
        self.redirects: dict[str, str] = {}
        self.ignores_ranges = False
        self.spoil: Callable[[Answer], Answer] | None = None
        self.bodies: list[tuple[str, int]] = []
        self.requests: list[tuple[str, str, str | None]] = []

    def sent(self, path: str) -> int:
        """Bytes that were sent of a file."""
        return sum(length for name, length in self.bodies if name == path)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def _answer(self):
        wanted = self.headers.get("Range")
        self.server.requests.append((self.command, self.path, wanted))
        if self.path in self.server.redirects:
            self._send(302, b"", {"Location": self.server.redirects[self.path]})
            return
        data = self.server.files.get(self.path, 404)
        if isinstance(data, int):
            self._send(data, b"", {})
        elif wanted is None or self.server.ignores_ranges:
            self._send(200, data, {})
        else:
            self._send_range(data, wanted)

    def _send_range(self, data, wanted):
        start, stop = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted).groups()
        start, stop = int(start), min(int(stop) + 1 if stop else len(data), len(data))
        if start >= len(data):
            self._send(416, b"", {"Content-Range": f"bytes */{len(data)}"})
        else:
            self._send(206, data[start:stop], {"Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"}, whole=data)

    def _send(self, status, body, headers, whole=None):
        digest = hashlib.md5(body if whole is None else whole, usedforsecurity=False).hexdigest()
        headers = {"ETag": f'"{digest}"', "Last-Modified": MODIFIED, "Content-Length": str(len(body)), **headers}
        answer = Answer(status, headers, body)
        if self.server.spoil is not None:
            answer = self.server.spoil(answer)
        self._write(answer)

    def _write(self, answer):
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.server.bodies.append((self.path, len(answer.body)))
            with suppress(ConnectionError):  # nobody has to read to the end
                self.wfile.write(answer.body)
            self.close_connection = self.close_connection or len(answer.body) != int(answer.headers["Content-Length"])
