"""How values are read from an event loop; what is read is the business of the contract suite."""

import asyncio
import importlib
import os
import pickle
import threading
from unittest.mock import patch

import pytest

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceError, SourceMissingError, SourceTruncatedError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.manifest import VirtualChunk
from virtualzarr_refs.reader import ReadOptions, ValueReader
from virtualzarr_refs.sources import SourcePool
from virtualzarr_refs.value import StoredValue

DATA = os.urandom(1000)
REMOTE = ReadOptions(backend="fsspec")


@pytest.fixture
def urls(tmp_path):
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.write_bytes(DATA)
    return [str(path) for path in paths]


def value(url, offset, length=10):
    return StoredValue((VirtualChunk(url, ByteRange(offset, length)),))


def remote():
    return ValueReader(VirtualGroup(), REMOTE)


def gather(reader, values, **options):
    async def read():
        return await asyncio.gather(*map(reader.read_async, values), **options)

    return asyncio.run(read())


def test_what_is_asked_for_at_once_is_read_together(urls):
    values = [value(url, i) for i in range(200) for url in urls]
    with patch.object(SourcePool, "read", autospec=True, side_effect=SourcePool.read) as read:
        found = gather(remote(), values)
    assert [bytes(data) for data in found] == [DATA[i : i + 10] for i in range(200) for _ in urls]
    assert sorted((call.args[1], len(call.args[2])) for call in read.call_args_list) == [(url, 200) for url in urls]


def test_sources_are_read_at_the_same_time(urls):
    meeting = threading.Barrier(2, timeout=20)

    def meet(pool, url, ranges):
        meeting.wait()
        return [memoryview(b"met") for _ in ranges]

    with patch.object(SourcePool, "read", meet):
        assert gather(remote(), [value(url, 0) for url in urls]) == [b"met", b"met"]


def test_the_event_loop_goes_on_while_a_source_is_read(urls):
    loop_went_on = threading.Event()

    def wait(pool, url, ranges):
        assert loop_went_on.wait(20)
        return [memoryview(b"late") for _ in ranges]

    async def read():
        reading = asyncio.create_task(remote().read_async(value(urls[0], 0)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        loop_went_on.set()
        return await reading

    with patch.object(SourcePool, "read", wait):
        assert asyncio.run(read()) == b"late"


def test_local_files_are_read_in_place(urls):
    reader = ValueReader(VirtualGroup(), ReadOptions())
    threads = []

    def note(pool, url, ranges):
        threads.append(threading.current_thread())
        return [memoryview(b"here") for _ in ranges]

    with patch.object(SourcePool, "read", note):
        assert gather(reader, [value(urls[0], 0)]) == [b"here"]
    assert threads == [threading.current_thread()]


def test_one_chunk_that_reaches_past_the_end_spoils_no_other(urls):
    first, second, third = gather(
        remote(), [value(urls[0], 0), value(urls[0], 995), value(urls[0], 20)], return_exceptions=True
    )
    assert bytes(first) == DATA[:10]
    assert isinstance(second, SourceTruncatedError)
    assert second.offset == 995
    assert bytes(third) == DATA[20:30]


def test_one_missing_source_spoils_no_other(urls):
    failed, found = gather(remote(), [value("/no/such/file", 0), value(urls[0], 0)], return_exceptions=True)
    assert type(failed) is SourceMissingError
    assert bytes(found) == DATA[:10]


def test_each_reader_gets_an_error_of_its_own():
    errors = gather(remote(), [value("/no/such/file", i) for i in range(3)], return_exceptions=True)
    assert len(set(map(id, errors))) == 3
    assert all(type(error) is SourceMissingError and error.url == "/no/such/file" for error in errors)


def test_an_error_that_nobody_expects_reaches_every_reader(urls):
    with patch.object(SourcePool, "read", side_effect=RuntimeError("bug")):
        errors = gather(remote(), [value(urls[0], i) for i in range(3)], return_exceptions=True)
    assert [str(error) for error in errors] == ["bug"] * 3


def test_a_reader_that_gives_up_does_not_stop_the_others(urls):
    async def read():
        reader = remote()
        first, second = (asyncio.create_task(reader.read_async(value(urls[0], i))) for i in range(2))
        await asyncio.sleep(0)
        first.cancel()
        return await asyncio.gather(first, second, return_exceptions=True)

    cancelled, found = asyncio.run(read())
    assert isinstance(cancelled, asyncio.CancelledError)
    assert bytes(found) == DATA[1:11]


def test_many_event_loops(urls):
    reader, found = remote(), []

    def read():
        found.extend(bytes(gather(reader, [value(urls[0], i)])[0]) == DATA[i : i + 10] for i in range(20))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 160


def test_no_error_is_taken_for_empty_bytes():
    """zarr's FsspecStore returns no bytes where the words "not satisfiable" are in an OSError."""
    with patch.object(SourcePool, "read", side_effect=SourceError("the range is not satisfiable", url="u", offset=3)):
        (error,) = gather(remote(), [value("u", 0)], return_exceptions=True)
    assert "not satisfiable" not in str(error)
    assert (error.url, error.offset) == ("u", 3)


def test_local_or_not(tmp_path):
    def is_local(url, **options):
        reader = ValueReader(VirtualGroup(), ReadOptions(**options))
        return reader._remote_url(value(url, 0)) is None

    assert is_local(str(tmp_path / "f"))
    assert is_local((tmp_path / "f").as_uri())
    assert is_local("f.nc", base=str(tmp_path))
    assert not is_local("f.nc", base="s3://bucket")
    assert not is_local("s3://bucket/f.nc", base=str(tmp_path))
    assert not is_local("simplecache::file:///f.nc")
    assert not is_local(str(tmp_path / "f"), backend="fsspec")


def test_pickles_with_its_options_and_without_its_sources(urls):
    reader = ValueReader(VirtualGroup(), ReadOptions({"key": "secret"}, base="/data", max_gap=3))
    reader.read([value(urls[0], 0)])
    twin = pickle.loads(pickle.dumps(reader))
    assert twin.options == reader.options
    assert bytes(twin.read([value(urls[0], 5)])[0]) == DATA[5:15]


def test_options_show_no_secret():
    assert "secret" not in repr(ReadOptions({"key": "secret"}))


@pytest.mark.parametrize("options", [ReadOptions(), REMOTE])
def test_errors_cross_process_borders(options):
    importlib.import_module("dask.base")  # makes pickle take along the cause and the context of every error
    (error,) = gather(ValueReader(VirtualGroup(), options), [value("/no/such/file", 0)], return_exceptions=True)
    twin = pickle.loads(pickle.dumps(error))
    assert type(twin) is SourceMissingError
    assert (str(twin), twin.url) == (str(error), "/no/such/file")
