import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pytest

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceMissingError
from virtualzarr_refs.sources import SourceIdentity, SourcePool

FIRST = [ByteRange(0, 2)]
DESCRIPTORS = Path("/proc/self/fd")
needs_descriptors = pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="only Linux lists descriptors as files")


@pytest.fixture
def folder(tmp_path):
    for i in range(20):
        (tmp_path / f"{i}.bin").write_bytes(bytes([i] * 100))
    return tmp_path


def names_of_open_files(folder):
    return sorted(path.name for path in map(Path.resolve, DESCRIPTORS.iterdir()) if path.parent == folder.resolve())


def test_resolves_against_its_base(folder):
    with SourcePool(folder) as pool:
        assert pool.resolve("3.bin") == str(folder / "3.bin")
        assert pool.resolve("s3://bucket/a") == "s3://bucket/a"
        assert bytes(pool.read("3.bin", FIRST)[0]) == b"\3\3"
        assert bytes(pool.read(str(folder / "4.bin"), FIRST)[0]) == b"\4\4"
        assert pool.identity("3.bin") == SourceIdentity(100, None, pool.identity("3.bin").last_modified)


def test_without_a_base(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert SourcePool().resolve("3.bin") == "3.bin"
    assert bytes(SourcePool().read("3.bin", FIRST)[0]) == b"\3\3"


def test_base_on_a_server(server):
    server.files["/data/a.bin"] = b"abc"
    with SourcePool(f"{server.url}/data/refs") as pool:
        assert bytes(pool.read("../a.bin", FIRST)[0]) == b"ab"


@pytest.mark.parametrize("backend", ["fsspec", "obstore"])
def test_backend_limits_and_options_reach_the_sources(server, backend):
    server.files["/a"] = bytes(1000)
    pool = SourcePool(server.url, {"nonsense": 1}, backend=backend, max_gap=0, max_size=10)
    source = pool._source("a")
    assert type(source).__name__.lower().startswith(backend)
    assert source._options == {"nonsense": 1}
    pool = SourcePool(server.url, backend=backend, max_gap=0, max_size=10)
    pool.read("a", [ByteRange(0, 5), ByteRange(6, 5)])
    assert sorted(wanted for _, _, wanted in server.requests) == ["bytes=0-4", "bytes=6-10"]


@needs_descriptors
def test_closes_the_least_recently_used(folder):
    pool = SourcePool(folder, max_open=3)
    for i in (0, 1, 2, 0, 3):
        pool.read(f"{i}.bin", FIRST)
    assert names_of_open_files(folder) == ["0.bin", "2.bin", "3.bin"]
    pool.close()
    assert names_of_open_files(folder) == []
    assert bytes(pool.read("1.bin", FIRST)[0]) == b"\1\1"


def test_a_pool_holds_at_least_one():
    with pytest.raises(ValueError, match="at least one"):
        SourcePool(max_open=0)


def test_buffers_outlive_eviction(folder):
    pool = SourcePool(folder, max_open=1)
    views = [pool.read(f"{i}.bin", FIRST)[0] for i in range(20)]
    assert [bytes(view) for view in views] == [bytes([i, i]) for i in range(20)]


@needs_descriptors
def test_many_threads_few_open(folder):
    pool = SourcePool(folder, max_open=2)
    order = [i * i * 7 // 3 % 20 for i in range(2000)]
    with ThreadPoolExecutor(8) as threads:
        views = list(threads.map(lambda i: pool.read(f"{i}.bin", [ByteRange(i, 3)])[0], order))
    assert [bytes(view) for view in views] == [bytes([i] * 3) for i in order]
    del views
    assert len(names_of_open_files(folder)) <= 2


@needs_descriptors
def test_pickles_without_its_sources(folder):
    pool = SourcePool(folder, {"key": "x"}, backend="auto", max_open=7)
    pool.read("3.bin", FIRST)
    copy = pickle.loads(pickle.dumps(pool))
    assert len(names_of_open_files(folder)) == 1
    assert bytes(copy.read("3.bin", FIRST)[0]) == b"\3\3"
    assert (copy.base, copy._options, copy._max_open) == (str(folder), {"key": "x"}, 7)


def test_a_missing_source_does_not_stay(folder):
    pool = SourcePool(folder)
    with pytest.raises(SourceMissingError):
        pool.read("new.bin", FIRST)
    (folder / "new.bin").write_bytes(b"abc")
    assert bytes(pool.read("new.bin", FIRST)[0]) == b"ab"


def test_mixes_kinds(folder):
    fsspec.filesystem("memory").pipe("/pool/a.bin", b"abc")
    with SourcePool(folder) as pool:
        assert bytes(pool.read("memory://pool/a.bin", FIRST)[0]) == b"ab"
        assert bytes(pool.read("5.bin", FIRST)[0]) == b"\5\5"


def test_shows_no_secret():
    pool = SourcePool("https://ada:SECRET@host/data?sig=SECRET", {"token": "SECRET"})
    assert repr(pool) == "SourcePool(base='https://ada:***@host/data?…', max_open=128)"
