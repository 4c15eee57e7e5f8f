"""Files of the cache, sound, forged and written by many at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import deflate
import numpy as np
import pyarrow as pa
import pytest

from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import MISSING, Manifest
from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata, Skipped
from virtualzarr_refs.scan_cache.entry import Entry
from virtualzarr_refs.scan_cache.places import LocalPlace
from virtualzarr_refs.scan_cache.seen import Seen
from virtualzarr_refs.sources import SourceIdentity

URL = "s3://bucket/a.nc"
SEEN = Seen(SourceIdentity(10, "etag", 1.5), is_sure=True, content=None)


def array(manifest):
    grid = RegularGrid(tuple(2 * n for n in manifest.grid_shape), (2,) * len(manifest.grid_shape))
    codecs = ({"name": "bytes", "configuration": {"endian": "little"}},)
    return VirtualArray(ArrayMetadata("int32", grid, 0, codecs), manifest)


def column(values, dtype):
    return np.array(values, dtype)


MANIFESTS = {
    "missing": Manifest.missing((3, 4)),
    "huge": Manifest.missing((1 << 20, 1 << 20)),
    "empty": Manifest.missing((0, 4)),
    "inline": Manifest.from_inline((3,), {1: b"", 2: b"ab"}),
    "scalar": Manifest((URL,), column(0, "u4"), column(1, "u8"), column(2, "u4")),
    "long": Manifest((URL,), column([0], "u4"), column([1 << 40], "u8"), column([1 << 33], "u8")),
    "partly": Manifest(
        (URL,), column([0, MISSING], "u4"), column([1, 0], "u8"), column([5, 0], "u4"), inline={1: b"x"}
    ),
    "variants": Manifest(
        (URL,), column([0, 0], "u4"), column([1, 2], "u8"), column([5, 5], "u4"), column([0, 1], "u2")
    ),
    "one length": Manifest(
        (URL,), np.broadcast_to(np.uint32(0), (3,)), column([1, 2, 3], "u8"), np.broadcast_to(np.uint32(7), (3,))
    ),
}  # fmt: skip
WHOLE = VirtualGroup(
    GroupMetadata({"a": 1}, skipped=(Skipped("x", "why"),)),
    {name: array(manifest) for name, manifest in MANIFESTS.items()},
    {"b": VirtualGroup(groups={"d": VirtualGroup(), "c": VirtualGroup(arrays={"é": array(Manifest.missing((1,)))})})},
)


def decoded(data):
    return Entry.decode(pa.py_buffer(data))


def signed(body):
    return body + np.uint32(deflate.crc32(body)).tobytes() + b"VZMETA 1"


def forged(**changes):
    """An entry whose checksum fits, with other columns."""
    batch = Entry.of("key", SEEN, WHOLE).batch
    for name, change in changes.items():
        number = batch.schema.get_field_index(name)
        batch = batch.set_column(number, batch.schema.field(number), change(batch.column(number)))
    return Entry("key", SEEN, batch)


def test_round_trip():
    entry = decoded(Entry.of("key", SEEN, WHOLE).encode())
    assert (entry.key, entry.seen) == ("key", SEEN)
    group = entry.group(URL)
    assert group.equals(WHOLE)
    assert group.skipped == WHOLE.skipped
    assert [path for path, _ in group.walk()] == [path for path, _ in WHOLE.walk()]
    assert not any(group.arrays["huge"].manifest.offset.strides)
    assert group.arrays["missing"].manifest.urls == ()


def test_chunks_lie_where_the_source_is_now():
    moved = decoded(Entry.of("key", SEEN, WHOLE).encode()).group("/elsewhere/a.nc")
    assert moved.urls == ("/elsewhere/a.nc",)


def test_any_arrow_library_reads_it():
    with pa.ipc.open_stream(Entry.of("key", SEEN, WHOLE).encode()) as reader:
        table = reader.read_all()
    row = table["path"].to_pylist().index(b"partly")
    assert table["offset"][row].as_py() == [1, 0]


@pytest.mark.parametrize("body", [b"", b"hello", bytes(100), Entry.of("key", SEEN, WHOLE).encode()[:-40]])
def test_what_is_no_entry(body):
    assert decoded(body) is None
    assert decoded(signed(body)) is None


def test_a_header_of_other_things():
    for header in (None, b"{}", b"[1]", b'{"key": "k", "identity": {"size": 1, "etag": 2, "last_modified": "x"}}'):
        batch = Entry.of("key", SEEN, WHOLE).batch.replace_schema_metadata(header and {"virtualzarr_refs": header})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        assert decoded(signed(sink.getvalue().to_pybytes())) is None


def lists_of(change):
    def changed(column):
        lists = change(column.to_pylist())
        return pa.array(lists, column.type)

    return changed


@pytest.mark.parametrize(
    "changes",
    [
        {"path": lists_of(lambda paths: ["a/b", *paths[1:]])},
        {"path": lists_of(lambda paths: [*paths[:-1], b"no/such/group"])},
        {"path": lists_of(lambda paths: [*paths[:-1], b".."])},
        {"path": lists_of(lambda paths: [*paths[:-1], None])},
        {"document": lists_of(lambda documents: [b"{}"] * len(documents))},
        {"document": lists_of(lambda documents: documents[1:] + documents[:1])},
        {"url_id": lists_of(lambda ids: [[7 for _ in row] for row in ids])},
        {"offset": lists_of(lambda offsets: [[*row, 1] for row in offsets])},
        {"variant": lists_of(lambda variants: [[1, 2, 3]] * len(variants))},
        {"inline_position": lists_of(lambda positions: [[99]] * len(positions))},
        {"is_in_source": lists_of(lambda flags: [False] * len(flags))},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_forged_rows(changes):
    entry = decoded(forged(**changes).encode())
    assert entry is None or entry.group(URL) is None


def test_lists_that_reach_beyond_their_values():
    entry = Entry.of("key", SEEN, WHOLE)
    starts = np.array(entry.batch.column("offset").offsets, "i8")
    far = starts.copy()
    far[-1] = 1 << 40
    whole = entry.encode()
    assert whole.count(starts.tobytes()) == 1
    forged = decoded(signed(whole[:-12].replace(starts.tobytes(), far.tobytes())))
    assert forged is None or forged.group(URL) is None


def test_many_writers_and_readers(tmp_path):
    place = LocalPlace(str(tmp_path / "cache" / "a.vzmeta"))
    versions = [Entry.of(str(i), SEEN, WHOLE).encode() for i in range(4)]

    def run(number):
        for _ in range(20):
            place.store(versions[number])
            assert decoded(place.load()) is not None

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["a.vzmeta"]
