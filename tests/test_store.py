import asyncio
import pickle
from unittest.mock import patch

import fsspec
import numpy as np
import pytest
import zarr
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import cpu, default_buffer_prototype
from zarr.core.sync import collect_aiterator, sync

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import Manifest, VirtualChunk
from virtualzarr_refs.metadata import ArrayMetadata
from virtualzarr_refs.sources import SourcePool
from virtualzarr_refs.store import VirtualStore

COUNT = 300
VALUES = np.arange(4 * COUNT, dtype="u1")
PROTOTYPE = default_buffer_prototype()


def group_over(url, attributes=None):
    """One array of 300 chunks of four bytes; the last but one is missing."""
    chunks = {(i,): VirtualChunk(url, ByteRange(4 * i, 4)) for i in range(COUNT) if i != COUNT - 2}
    metadata = ArrayMetadata("uint8", RegularGrid((4 * COUNT,), (4,)), 9, ({"name": "bytes"},), attributes or {})
    return VirtualGroup(arrays={"a": VirtualArray(metadata, Manifest.from_chunks((COUNT,), chunks))})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "source.bin"
    path.write_bytes(VALUES.tobytes())
    return path


@pytest.fixture
def store(path):
    return VirtualStore(group_over(str(path)))


@pytest.fixture
def remote_store():
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/vzrefs/source.bin", VALUES.tobytes())
    yield VirtualStore(group_over("memory://vzrefs/source.bin"))
    memory.rm("/vzrefs", recursive=True)


def expected():
    values = VALUES.copy()
    values[-8:-4] = 9
    return values


def key(i):
    return f"a/c/{i}"


def bytes_of(i):
    return VALUES[4 * i : 4 * i + 4].tobytes()


def counted():
    return patch.object(SourcePool, "read", autospec=True, side_effect=SourcePool.read)


# ── requests of zarr ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("request_", "start", "stop"),
    [
        (None, 0, 4),
        (RangeByteRequest(1, 3), 1, 3),
        (RangeByteRequest(3, 99), 3, 4),
        (RangeByteRequest(3, 1), 0, 0),
        (OffsetByteRequest(2), 2, 4),
        (OffsetByteRequest(9), 0, 0),
        (SuffixByteRequest(3), 1, 4),
        (SuffixByteRequest(0), 0, 0),
        (SuffixByteRequest(9), 0, 4),
    ],
    ids=str,
)
def test_requests(store, request_, start, stop):
    for buffer in (sync(store.get(key(3), PROTOTYPE, request_)), store.get_sync(key(3), byte_range=request_)):
        assert buffer.to_bytes() == bytes_of(3)[start:stop]
    assert store.get_sync("nothing", byte_range=request_) is None


@pytest.mark.parametrize("request_", [RangeByteRequest(-2, 4), OffsetByteRequest(-1), SuffixByteRequest(-1), (0, 2), 5])
def test_requests_that_make_no_sense(store, request_):
    with pytest.raises(ValueError, match="Unexpected byte_range"):
        sync(store.get(key(3), PROTOTYPE, request_))
    with pytest.raises(ValueError, match="Unexpected byte_range"):
        store.get_sync(key(3), byte_range=request_)


def test_buffers_are_of_the_prototype(store):
    assert isinstance(sync(store.get(key(0), cpu.buffer_prototype)), cpu.Buffer)
    assert isinstance(sync(store.get(key(0))), PROTOTYPE.buffer)


def test_many_values_at_once(remote_store):
    asked = [(key(i), RangeByteRequest(1, 3)) for i in range(COUNT)] + [("nothing", None), ("a/zarr.json", None)]
    with counted() as read:
        *found, nothing, document = sync(remote_store.get_partial_values(PROTOTYPE, iter(asked)))
    assert [None if b is None else b.to_bytes() for b in found] == [
        None if i == COUNT - 2 else bytes_of(i)[1:3] for i in range(COUNT)
    ]
    assert nothing is None
    assert document.to_bytes().startswith(b"{")
    assert read.call_count == 1
    assert sync(remote_store.get_partial_values(PROTOTYPE, [])) == []


def test_many_keys_at_once(remote_store):
    requests = [(key(i), PROTOTYPE, None) for i in range(COUNT)]
    with counted() as read:
        found = dict(collect_aiterator(remote_store._get_many(iter(requests))))
    assert found[key(COUNT - 2)] is None
    assert all(found[key(i)].to_bytes() == bytes_of(i) for i in range(COUNT - 2))
    assert read.call_count == 1


@pytest.mark.parametrize("local", [True, False])
def test_many_ranges_of_one_value(store, remote_store, local):
    chosen = store if local else remote_store
    asked = [RangeByteRequest(0, 2), None, SuffixByteRequest(1), OffsetByteRequest(3), RangeByteRequest(2, 2)]
    wanted = [bytes_of(7)[:2], bytes_of(7), bytes_of(7)[3:], bytes_of(7)[3:], b""]
    with counted() as read:
        (found,) = collect_aiterator(chosen.get_ranges(key(7), asked, prototype=PROTOTYPE, max_gap_bytes=0))
        again = chosen.get_ranges_sync(key(7), asked, prototype=PROTOTYPE, max_concurrency=1)
    assert read.call_count == 2
    for parts in (found, again):
        assert [(i, buffer.to_bytes()) for i, buffer in parts] == list(enumerate(wanted))


def test_no_ranges(store):
    assert collect_aiterator(store.get_ranges("nothing", [], prototype=PROTOTYPE)) == ()
    assert store.get_ranges_sync("nothing", [], prototype=PROTOTYPE) == []


def test_ranges_of_nothing(store):
    with pytest.RaisesGroup(FileNotFoundError):
        collect_aiterator(store.get_ranges("nothing", [None], prototype=PROTOTYPE))
    with pytest.RaisesGroup(FileNotFoundError):
        store.get_ranges_sync("nothing", [None], prototype=PROTOTYPE)


# ── how zarr reads ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pipeline", ["BatchedCodecPipeline", "FusedCodecPipeline"])
def test_remote_chunks_are_read_together(remote_store, pipeline):
    """Both pipelines ask for as many chunks at a time as `async.concurrency` says; each time is one request."""
    with zarr.config.set(
        {"async.concurrency": 100, "codec_pipeline.path": f"zarr.core.codec_pipeline.{pipeline}"}
    ), counted() as read:  # fmt: skip
        values = zarr.open_array(remote_store, path="a")[:]
    np.testing.assert_array_equal(values, expected())
    assert read.call_count <= 10


def test_the_fused_pipeline_reads_local_files_in_its_threads(store):
    with (
        zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.FusedCodecPipeline"}),
        patch.object(VirtualStore, "get_sync", autospec=True, side_effect=VirtualStore.get_sync) as get,
    ):
        values = zarr.open_array(store, path="a")[:]
    np.testing.assert_array_equal(values, expected())
    assert get.call_count == COUNT


def test_relative_urls(path):
    store = VirtualStore(group_over(path.name), base=str(path.parent))
    np.testing.assert_array_equal(zarr.open_array(store, path="a")[:], expected())


# ── what the store says of itself ────────────────────────────────────────────────────────────────────────────────────


def test_it_is_read_only(store):
    assert store.read_only
    assert (store.supports_writes, store.supports_deletes, store.supports_listing) == (False, False, True)
    buffer = PROTOTYPE.buffer.from_bytes(b"x")
    for refused in (
        lambda: sync(store.set(key(0), buffer)),
        lambda: sync(store.delete(key(0))),
        lambda: store.set_sync(key(0), buffer),
        lambda: store.delete_sync(key(0)),
        lambda: store.with_read_only(read_only=False),
        lambda: zarr.open_group(store, mode="a"),
        lambda: zarr.open_group(store, mode="w"),
    ):
        with pytest.raises(ValueError, match="read-only"):
            refused()
    assert store.get_sync(key(0)).to_bytes() == bytes_of(0)


def test_a_read_only_twin(store):
    zarr.open_group(store, mode="r")
    twin = store.with_read_only(read_only=True)
    assert twin == store
    assert not twin._is_open
    assert twin.get_sync(key(0)).to_bytes() == bytes_of(0)


def test_sizes(store):
    with patch.object(SourcePool, "read", side_effect=AssertionError):
        assert sync(store.getsize(key(0))) == 4
        assert sync(store.getsize_prefix("a/c")) == 4 * (COUNT - 1)
        with pytest.raises(FileNotFoundError):
            sync(store.getsize(key(COUNT - 2)))


def test_lists(store):
    assert collect_aiterator(store.list_dir("")) == ("zarr.json", "a")
    assert collect_aiterator(store.list_dir("a/")) == ("zarr.json", "c")
    assert len(collect_aiterator(store.list())) == COUNT + 1
    assert collect_aiterator(store.list_prefix("a/c/29")) == tuple(key(i) for i in (29, *range(290, 300)) if i != 298)


def test_emptiness(store):
    assert not sync(store.is_empty(""))
    assert not sync(store.is_empty("a/c"))
    assert sync(store.is_empty("a/c/0"))
    assert sync(store.is_empty("b"))


def test_equality(path, store):
    assert store == VirtualStore(group_over(str(path)))
    assert store != VirtualStore(group_over("elsewhere.bin"))
    assert store != VirtualStore(group_over(str(path), {"units": "m"}))
    assert store != VirtualStore(group_over(str(path)), storage_options={"anon": True})
    assert store != "store"
    with pytest.raises(TypeError, match="unhashable"):
        hash(store)


def test_pickles(store):
    store.get_sync(key(0))
    twin = pickle.loads(pickle.dumps(store))
    assert twin == store
    np.testing.assert_array_equal(zarr.open_array(twin, path="a")[:], expected())


def test_closed_stores_open_again(store):
    with store:
        array = zarr.open_array(store, path="a")
        view = array[:8]
    np.testing.assert_array_equal(view, expected()[:8])
    np.testing.assert_array_equal(array[:], expected())


def test_the_repr_shows_no_secret(path):
    store = VirtualStore(group_over("https://user:secret@host/file"), storage_options={"password": "secret"})
    assert repr(store) == "VirtualStore(VirtualGroup(arrays=['a'], groups=[]))"
    assert "secret" not in repr(zarr.open_group(store, mode="r"))


def test_the_hierarchy_offers_it(path):
    store = group_over(str(path)).to_store(max_gap=0)
    assert isinstance(store, VirtualStore)
    assert store.group["a"].shape == (4 * COUNT,)


def test_another_event_loop_than_zarrs(remote_store):
    async def read():
        array = await zarr.api.asynchronous.open_array(store=remote_store, path="a")
        return await asyncio.gather(*(array.getitem(slice(4 * i, 4 * i + 4)) for i in range(20)))

    np.testing.assert_array_equal(np.concatenate(asyncio.run(read())), VALUES[:80])
