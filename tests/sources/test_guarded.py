"""Sources that changed since they were scanned are refused, or read on request."""

from __future__ import annotations

import os
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceChangedError, SourceChangedWarning, SourceMissingError, SourceTruncatedError
from virtualzarr_refs.sources import ScannedSource, SourceIdentity, SourcePool

DATA = bytes(range(100))
SOME = [ByteRange(3, 4)]


@pytest.fixture(params=["local", "http"])
def file(request, tmp_path, server):
    return LocalFile(tmp_path / "a.bin") if request.param == "local" else ServedFile(server)


class LocalFile:
    def __init__(self, path):
        self.path = path
        self.url = str(path)
        self.put(DATA)

    def put(self, data, time=1):
        self.path.write_bytes(data)
        os.utime(self.path, (time, time))

    def remove(self):
        self.path.unlink()


class ServedFile:
    def __init__(self, server):
        self.server = server
        self.url = f"{server.url}/a.bin"
        self.put(DATA)

    def put(self, data, time=None):  # noqa: ARG002  it has an etag
        self.server.files["/a.bin"] = data

    def remove(self):
        del self.server.files["/a.bin"]


def pool_for(file, on_change="error"):
    with SourcePool() as plain:
        known = {file.url: ScannedSource(plain.identity(file.url))}
    return SourcePool().guarded(known, on_change)


def changed(data=DATA[::-1]):
    return lambda file: file.put(data, time=2)


CHANGES = {
    "same size": changed(),
    "longer": changed(DATA + b"more"),
    "shorter": changed(DATA[:50]),
    "too short": changed(DATA[:5]),
    "empty": changed(b""),
}


def test_an_unchanged_source_is_read(file):
    assert pool_for(file).read(file.url, SOME) == [DATA[3:7]]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_source_is_refused(file, change):
    pool = pool_for(file)
    change(file)
    for _ in range(2):
        with pytest.raises(SourceChangedError, match="the file changed") as caught:
            pool.read(file.url, SOME)
        assert caught.value.url == file.url


def test_a_source_that_is_gone(file):
    pool = pool_for(file)
    file.remove()
    with pytest.raises(SourceMissingError):
        pool.read(file.url, SOME)


def test_another_time_is_another_file(tmp_path):
    file = LocalFile(tmp_path / "a.bin")
    pool = pool_for(file)
    file.put(DATA, time=2)
    with pytest.raises(SourceChangedError, match="modification time"):
        pool.read(file.url, SOME)


def test_it_is_looked_at_once(server):
    file = ServedFile(server)
    pool = pool_for(file)
    server.requests.clear()
    for _ in range(5):
        pool.read(file.url, SOME)
    assert len(server.requests) == 6


@pytest.mark.parametrize("on_change", ["warn", "ignore"])
def test_it_is_read_on_request(file, on_change):
    pool = pool_for(file, on_change)
    file.put(DATA[::-1], time=2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert pool.read(file.url, SOME) == [DATA[::-1][3:7]]
        assert pool.read(file.url, SOME) == [DATA[::-1][3:7]]
    assert [each.category for each in told] == [SourceChangedWarning] * (on_change == "warn")
    assert all(file.url in str(each.message) for each in told)


@pytest.mark.parametrize("on_change", ["warn", "ignore"])
def test_what_changes_while_it_is_open_is_read_on_request(tmp_path, on_change):
    file = LocalFile(tmp_path / "a.bin")
    pool = pool_for(file, on_change)
    pool.read(file.url, SOME)
    file.put(DATA[::-1], time=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SourceChangedWarning)
        assert pool.read(file.url, SOME) == [DATA[::-1][3:7]]


def test_what_is_not_there_is_never_read(file):
    pool = pool_for(file, "ignore")
    file.put(b"12345")
    with pytest.raises(SourceTruncatedError):
        pool.read(file.url, SOME)
    file.remove()
    with pytest.raises((SourceMissingError, SourceTruncatedError)):
        pool.read(file.url, SOME)


def test_threads_and_pickles_refuse_it_too(file):
    pool = pickle.loads(pickle.dumps(pool_for(file)))
    file.put(DATA[::-1], time=2)
    with ThreadPoolExecutor(8) as threads:
        outcomes = [threads.submit(pool.read, file.url, SOME) for _ in range(32)]
    assert all(isinstance(outcome.exception(), SourceChangedError) for outcome in outcomes)


def test_only_what_both_sides_know_is_compared(file):
    pool = SourcePool().guarded({file.url: ScannedSource(SourceIdentity(len(DATA)))})
    assert pool.read(file.url, SOME) == [DATA[3:7]]
