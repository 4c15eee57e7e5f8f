"""A hierarchy with every kind of chunk, and one way to ask each thing that serves it.

Whatever comes next joins by writing a `Reader` and naming it in `READERS`.
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import fsspec
import numpy as np
import pytest
from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import collect_aiterator, sync
from zarr.storage import FsspecStore

from tests.server.asgi import Client
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import ChunkKeyEncoding, RectilinearGrid, RegularGrid
from virtualzarr_refs.errors import SourceError
from virtualzarr_refs.filesystem import VirtualFileSystem
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import InlineChunk, Manifest, VirtualChunk
from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata
from virtualzarr_refs.reader import ReadOptions
from virtualzarr_refs.server import application
from virtualzarr_refs.store import VirtualStore


class Reader(Protocol):
    """What the contract asks of everything that serves bytes. None stands for "nothing is under this key"."""

    folders_exist: bool
    """Whether `exists` is true of folders, and `size` 0; zarr's FsspecStore has it so."""

    hides_sources: bool
    """Whether errors keep to themselves which source is concerned, and what is wrong with it."""

    def __init__(self, group: VirtualGroup, **options: object) -> None: ...

    def read(self, key: str) -> bytes | None: ...

    def read_range(self, key: str, start: int, stop: int) -> bytes | None: ...

    def read_suffix(self, key: str, length: int) -> bytes | None: ...

    def list(self) -> list[str]: ...

    def list_dir(self, prefix: str) -> list[str]: ...

    def exists(self, key: str) -> bool: ...

    def size(self, key: str) -> int | None: ...

    def pickled(self) -> Reader: ...


class _Served:
    """Keeps what is asked, and pickles it."""

    folders_exist = False
    hides_sources = False

    def __init__(self, group, **options):
        self.target = self.serve(group, **options)

    def pickled(self):
        twin = object.__new__(type(self))
        twin.target = pickle.loads(pickle.dumps(self.target))
        return twin


class AsyncStoreReader(_Served):
    """A zarr store, through its asynchronous methods."""

    serve = staticmethod(VirtualStore)

    def _get(self, key, request=None):
        buffer = sync(self.target.get(key, default_buffer_prototype(), request))
        return None if buffer is None else buffer.to_bytes()

    def read(self, key):
        return self._get(key)

    def read_range(self, key, start, stop):
        return self._get(key, RangeByteRequest(start, stop))

    def read_suffix(self, key, length):
        return self._get(key, SuffixByteRequest(length))

    def list(self):
        return list(collect_aiterator(self.target.list()))

    def list_dir(self, prefix):
        return list(collect_aiterator(self.target.list_dir(prefix)))

    def exists(self, key):
        return sync(self.target.exists(key))

    def size(self, key):
        try:
            return sync(self.target.getsize(key))
        except FileNotFoundError:
            return None


class SyncStoreReader(AsyncStoreReader):
    """A zarr store, through its synchronous methods."""

    def _get(self, key, request=None):
        buffer = self.target.get_sync(key, byte_range=request)
        return None if buffer is None else buffer.to_bytes()


class FsspecStoreReader(AsyncStoreReader):
    """zarr's own store over the filesystem."""

    folders_exist = True

    @staticmethod
    def serve(group, **options):
        return FsspecStore(VirtualFileSystem(group, asynchronous=True, **options), read_only=True, path="")


class FilesystemReader(_Served):
    """The filesystem, as a user calls it."""

    serve = staticmethod(VirtualFileSystem)

    def _cat(self, key, start=None, stop=None):
        try:
            return self.target.cat_file(key, start, stop)
        except (FileNotFoundError, IsADirectoryError):
            return None

    def read(self, key):
        return self._cat(key)

    def read_range(self, key, start, stop):
        return self._cat(key, start, stop)

    def read_suffix(self, key, length):
        return self._cat(key, -length) if length else self._cat(key, 0, 0)

    def list(self):
        return self.target.find("")

    def list_dir(self, prefix):
        try:
            return [path.rpartition("/")[2] for path in self.target.ls(prefix, detail=False)]
        except FileNotFoundError:
            return []

    def exists(self, key):
        return self.target.isfile(key)

    def size(self, key):
        return self.target.size(key) if self.exists(key) else None


class FileReader(FilesystemReader):
    """File objects of the filesystem."""

    def _cat(self, key, start=None, stop=None):
        try:
            with self.target.open(key) as file:
                file.seek(start or 0, 2 if (start or 0) < 0 and -start <= file.size else 0)
                return file.read(-1 if stop is None else max(0, stop - start))
        except (FileNotFoundError, IsADirectoryError):
            return None

    def read_suffix(self, key, length):
        size = self.size(key)
        return None if size is None else self._cat(key, max(0, size - length))


class MapperReader(FilesystemReader):
    """The mapper of the filesystem, as kerchunk's users have it."""

    @staticmethod
    def serve(group, **options):
        return fsspec.filesystem("vzrefs", group=group, **options).get_mapper()

    def read(self, key):
        return self.target.get(key)

    def read_range(self, key, start, stop):
        data = self.read(key)
        return None if data is None else data[start:stop]

    def read_suffix(self, key, length):
        data = self.read(key)
        return None if data is None else data[max(0, len(data) - length) :]

    def list(self):
        return list(self.target)

    def list_dir(self, prefix):
        beneath = f"{prefix}/" if prefix else ""
        return list({key.removeprefix(beneath).partition("/")[0] for key in self.target if key.startswith(beneath)})

    def exists(self, key):
        return key in self.target

    def size(self, key):
        data = self.read(key)
        return None if data is None else len(data)


class HttpReader:
    """The server, asked in this process."""

    folders_exist = False
    hides_sources = True

    def __init__(self, group, **options):
        self.asked_for = group, options
        self.client = Client(application(group, ReadOptions(**options), consolidated=False))

    def pickled(self):
        group, options = pickle.loads(pickle.dumps(self.asked_for))
        return HttpReader(group, **options)

    def _get(self, key, method="GET", **fields):
        answer = self.client.request(method, f"/{key}", **fields)
        if answer.status in (409, 502):
            raise SourceError(answer.json()["error"])
        assert answer.status in (200, 206, 404, 416)
        is_value = "etag" in answer.headers or answer.status == 416
        return answer if is_value else None

    def read(self, key):
        answer = self._get(key)
        return None if answer is None else answer.body

    def _range(self, key, field):
        answer = self._get(key, range=f"bytes={field}")
        if answer is None:
            return None
        assert answer.status in (206, 416)
        return b"" if answer.status == 416 else answer.body

    def read_range(self, key, start, stop):
        # HTTP has no words for a range without bytes.
        return self._range(key, f"{start}-{stop - 1}") if start < stop else self._range(key, "-0")

    def read_suffix(self, key, length):
        return self._range(key, f"-{length}")

    def list(self, prefix=""):
        keys = []
        for entry in self._entries(prefix):
            path = f"{prefix}/{entry['name']}".lstrip("/")
            keys += self.list(path) if entry["type"] == "folder" else [path]
        return keys

    def list_dir(self, prefix):
        return [entry["name"] for entry in self._entries(prefix)]

    def _entries(self, prefix):
        answer = self.client.request("GET", f"/{prefix}/" if prefix else "/")
        return answer.json()["entries"] if answer.status == 200 else []

    def exists(self, key):
        answer = self.client.request("HEAD", f"/{key}")
        return answer.status != 404 and not (answer.status == 200 and "etag" not in answer.headers)

    def size(self, key):
        answer = self._get(key, "HEAD")
        return None if answer is None else int(answer.headers["content-length"])


V3 = ChunkKeyEncoding()
READERS = (AsyncStoreReader, SyncStoreReader, FsspecStoreReader, FilesystemReader, FileReader, MapperReader, HttpReader)


@dataclass
class Sample:
    """A hierarchy over files in a folder, and what must be under each of its chunk keys."""

    folder: Path
    arrays: dict[str, VirtualArray] = field(default_factory=dict)
    chunks: dict[str, bytes] = field(default_factory=dict)

    def file(self, name, size):
        data = np.random.default_rng(len(name)).bytes(size)
        (self.folder / name).write_bytes(data)

    def add(self, name, grid, chunks, *, encoding=V3, variants=None):
        """Add an array of bytes, whose chunks are `(file, offset, length)`, or bytes to keep inline."""
        described, grid_shape = {}, grid.grid_shape
        for index, chunk in chunks.items():
            key, variant = f"{name}/{encoding.encode(index)}", (variants or {}).get(index)
            if isinstance(chunk, bytes):
                described[index], data = InlineChunk(chunk), chunk
            else:
                file, offset, length = chunk
                described[index] = VirtualChunk(str(self.folder / file), ByteRange(offset, length))
                data = (self.folder / file).read_bytes()[offset : offset + length]
            self.chunks[key] = data if variant is None else struct.pack("<H", variant) + data
        manifest = Manifest.from_chunks(grid_shape, described)
        if variants is not None:
            column = np.zeros(grid_shape, np.uint16)
            for index, variant in variants.items():
                column[index] = variant
            manifest = Manifest(
                manifest.urls, manifest.url_id, manifest.offset, manifest.length, column, manifest.inline
            )
        metadata = ArrayMetadata("uint8", grid, 0, ({"name": "bytes"},), {"name": name}, chunk_key_encoding=encoding)
        self.arrays[name] = VirtualArray(metadata, manifest)

    @property
    def group(self):
        return _nested(self.arrays)

    @property
    def metadata(self):
        """What must be under each metadata key, parsed."""
        nodes = dict(self.group.walk())
        return {f"{path}/zarr.json".lstrip("/"): node.metadata.to_json() for path, node in nodes.items()}

    @property
    def keys(self):
        return {*self.chunks, *self.metadata}

    def expected(self, key):
        return self.chunks.get(key)


def _nested(arrays):
    here = {path: array for path, array in arrays.items() if "/" not in path}
    names = dict.fromkeys(path.partition("/")[0] for path in arrays if "/" in path)
    groups = {
        name: _nested({p.partition("/")[2]: a for p, a in arrays.items() if p.partition("/")[0] == name})
        for name in names
    }
    return VirtualGroup(GroupMetadata({"title": "sample"}), here, groups)


@pytest.fixture
def sample(tmp_path):
    made = Sample(tmp_path)
    made.file("first.bin", 4000)
    made.file("second.bin", 500)
    square = {(i, j): ("first.bin", 1000 * i + 37 * j, 30 + i) for i in range(3) for j in range(3)}
    made.add("plain", RegularGrid((8, 8), (3, 3)), {**square, (1, 1): ("first.bin", 3990, 10)})
    made.add("holes", RegularGrid((4, 6), (2, 2)), {(0, 1): ("first.bin", 0, 8), (1, 2): b"inside"})
    made.add("inline", RegularGrid((6,), (2,)), {(0,): b"ab", (2,): b""})
    made.add("several", RegularGrid((3,), (1,)), {(0,): ("first.bin", 5, 9), (1,): ("second.bin", 490, 10)})
    made.add("empty", RegularGrid((1,), (1,)), {(0,): ("first.bin", 12, 0)})
    variants = {(0,): 0, (1,): 1, (2,): 700}
    mixed = {(0,): ("first.bin", 50, 20), (1,): ("second.bin", 0, 100), (2,): b"inline too"}
    made.add("mixed", RegularGrid((4,), (1,)), mixed, variants=variants)
    made.add("scalar", RegularGrid((), ()), {(): ("second.bin", 100, 1)})
    made.add("scalar_v2", RegularGrid((), ()), {(): b"!"}, encoding=ChunkKeyEncoding("v2", "."))
    made.add("nothing", RegularGrid((10, 10), (1, 1)), {})
    made.add("zero_length", RegularGrid((0, 3), (1, 1)), {})
    made.add("name [with] *?", RegularGrid((1,), (1,)), {(0,): ("second.bin", 7, 11)})
    rows = RectilinearGrid((7, 4), ((2, 4, 1), 2))
    made.add("deep/er/rows", rows, {(i, j): ("first.bin", 100 * i + j, 8) for i in range(3) for j in range(2)})
    made.add("deep/dots", RegularGrid((4, 4), (2, 2)), square_of(2), encoding=ChunkKeyEncoding("default", "."))
    made.add("deep/v2", RegularGrid((4, 4), (2, 2)), square_of(2), encoding=ChunkKeyEncoding("v2", "."))
    made.add("deep/v2_slash", RegularGrid((12, 4), (1, 2)), square_of(2), encoding=ChunkKeyEncoding("v2", "/"))
    return made


def square_of(length):
    return {(i, j): ("second.bin", 40 * i + j, 4) for i in range(length) for j in range(length)}


@pytest.fixture(params=READERS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@pytest.fixture(params=["mapped", "by request"])
def options(request):
    """How the sources are read: local files as they are, or as if they were remote."""
    return {} if request.param == "mapped" else {"backend": "fsspec"}


@pytest.fixture
def reader(kind, sample, options) -> Reader:
    return kind(sample.group, **options)
