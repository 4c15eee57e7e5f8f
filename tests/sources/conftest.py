"""Places to put a file and read it back through each backend, and a small HTTP server with byte ranges."""

import hashlib
import itertools
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest

from virtualzarr_refs.sources import Source, open_source

MODIFIED = "Wed, 21 Oct 2026 07:28:00 GMT"


class RangeServer(ThreadingHTTPServer):
    """Serves `files` by path, and answers with a status where there is a number in place of bytes."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes | int] = {}
        self.redirects: dict[str, str] = {}
        self.ignores_ranges = False
        self.requests: list[tuple[str, str, str | None]] = []

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
        self.send_response(status)
        for name, value in {"ETag": f'"{digest}"', "Last-Modified": MODIFIED, **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


@pytest.fixture(scope="session")
def _running_server():
    server = RangeServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def server(_running_server):
    _running_server.files.clear()
    _running_server.redirects.clear()
    _running_server.requests.clear()
    _running_server.ignores_ranges = False
    return _running_server


@dataclass
class Place:
    """Somewhere to put files, and how to read them."""

    backend: str
    write: Callable[[str, bytes], None]
    remove: Callable[[str], None]
    url: Callable[[str], str]
    storage_options: Mapping[str, object] = field(default_factory=dict)

    def open(self, name: str, **options) -> Source:
        return open_source(self.url(name), self.storage_options, backend=self.backend, **options)

    def holding(self, data: bytes, **options) -> Source:
        """A source with these bytes."""
        self.write("file.bin", data)
        return self.open("file.bin", **options)


QUICK_FAILURE = {"retry_config": {"max_retries": 0}}  # obstore tries for three minutes otherwise
_buckets = itertools.count()


def _in_folder(backend: str, folder: Path, prefix: str) -> Place:
    return Place(
        backend,
        lambda name, data: (folder / name).write_bytes(data),
        lambda name: (folder / name).unlink(),
        lambda name: f"{prefix}{folder / name}",
    )


def _on_server(backend: str, server: RangeServer, **storage_options) -> Place:
    return Place(
        backend,
        lambda name, data: server.files.__setitem__(f"/data/{name}", data),
        lambda name: server.files.pop(f"/data/{name}"),
        lambda name: f"{server.url}/data/{name}",
        storage_options,
    )


def _in_memory() -> Place:
    files = fsspec.filesystem("memory")
    return Place(
        "fsspec",
        lambda name, data: files.pipe(f"/sources/{name}", data),
        lambda name: files.rm(f"/sources/{name}"),
        lambda name: f"memory://sources/{name}",
    )


def _in_bucket(backend: str, server: RangeServer, **storage_options) -> Place:
    bucket = f"bucket-{next(_buckets)}"  # s3fs remembers what it listed
    return Place(
        backend,
        lambda name, data: server.files.__setitem__(f"/{bucket}/{name}", data),
        lambda name: server.files.pop(f"/{bucket}/{name}"),
        lambda name: f"s3://{bucket}/{name}",
        storage_options,
    )


PLACES = {
    "local": lambda folder, _: _in_folder("auto", folder, ""),
    "local-url": lambda folder, _: _in_folder("local", folder, "file://"),
    "fsspec-memory": lambda *_: _in_memory(),
    "fsspec-local": lambda folder, _: _in_folder("fsspec", folder, "local://"),
    "fsspec-http": lambda _, server: _on_server("auto", server),
    "fsspec-s3": lambda _, server: _in_bucket(
        "auto", server, anon=True, client_kwargs={"endpoint_url": server.url, "region_name": "us-east-1"}
    ),
    "obstore-file": lambda folder, _: _in_folder("obstore", folder, "file://"),
    "obstore-http": lambda _, server: _on_server("obstore", server, **QUICK_FAILURE),
    "obstore-s3": lambda _, server: _in_bucket(
        "obstore",
        server,
        endpoint=server.url,
        region="us-east-1",
        skip_signature=True,
        client_options={"allow_http": True},
        **QUICK_FAILURE,
    ),
}


@pytest.fixture(params=PLACES)
def place(request, tmp_path, server):
    return PLACES[request.param](tmp_path, server)


@pytest.fixture(params=[name for name in PLACES if name.endswith(("http", "s3"))])
def served(request, tmp_path, server):
    """A place behind the HTTP server."""
    return PLACES[request.param](tmp_path, server)
