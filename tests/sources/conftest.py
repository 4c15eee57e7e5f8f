"""Places to put a file and read it back through each backend."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import fsspec
import pytest

from tests.range_server import RangeServer
from virtualzarr_refs.sources import Source, open_source


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
    "fsspec-http": lambda _, server: _on_server("fsspec", server),
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
