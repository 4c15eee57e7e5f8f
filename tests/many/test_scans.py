"""Scanning many files: the same as one after another, whoever does it."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import h5py
import numpy as np
import pytest

import virtualzarr_refs as vzr
from tests.many.files import Killer, write
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.many import crews


def assert_same(scans, expected):
    assert len(scans) == len(expected)
    assert all(a.equals(b) and a.urls == b.urls for a, b in zip(scans, expected, strict=True))


class Counting(Executor):
    """Runs nothing before it is asked for more than it may have."""

    def __init__(self):
        self.threads = ThreadPoolExecutor(1)
        self.out = self.most = self.batches = 0

    def submit(self, act, batch):
        self.out += 1
        self.batches += 1
        self.most = max(self.most, self.out)
        future = self.threads.submit(act, batch)
        future.add_done_callback(self._done)
        return future

    def _done(self, _):
        self.out -= 1


@pytest.mark.parametrize("executor", [None, "threads", ThreadPoolExecutor])
def test_equals_scans_one_after_another(tmp_path, executor):
    paths = write(tmp_path, 40)
    found = vzr.scan_many(paths, executor=executor(3) if callable(executor) else executor)
    assert_same(found, [vzr.scan(path) for path in paths])
    assert found.urls == tuple(map(str, paths))
    assert found.failed == ()
    assert isinstance(found, list)


def test_no_files():
    assert vzr.scan_many([], executor="threads") == []


def test_the_first_error_is_raised(tmp_path):
    paths = write(tmp_path, 5, bad=[3])
    for executor in (None, "threads"):
        with pytest.raises(vzr.FormatError, match=r"3\.h5"):
            vzr.scan_many(paths, executor=executor)


@pytest.mark.parametrize("executor", [None, "threads"])
def test_errors_are_listed(tmp_path, executor):
    paths = [*write(tmp_path, 9, bad=[3, 7]), tmp_path / "missing.h5"]
    with pytest.warns(vzr.SkippedFileWarning, match=r"3 of 10 files .*3\.h5.*7\.h5.*missing\.h5"):
        found = vzr.scan_many(paths, executor=executor, on_error="skip")
    assert [Path(failure.url).stem for failure in found.failed] == ["3", "7", "missing"]
    assert [type(failure.error) for failure in found.failed] == [vzr.FormatError] * 2 + [vzr.SourceNotFoundError]
    assert [Path(url).stem for url in found.urls] == list("0124568")
    assert_same(found, [vzr.scan(url) for url in found.urls])
    again = pickle.loads(pickle.dumps(found))
    assert_same(again, found)
    assert (again.urls, len(again.failed)) == (found.urls, 3)


def test_nodes_left_out_are_named_once(tmp_path):
    paths = [tmp_path / f"{i}.h5" for i in range(7)]
    for path in paths:
        with h5py.File(path, "w") as file:
            file["null"] = h5py.Empty("f4")
    with pytest.warns(vzr.SkippedNodeWarning, match=r"7 node.*0\.h5, null.*and 2 more") as caught:
        vzr.scan_many(paths, executor="threads")
    assert len(caught) == 1


def test_few_batches_are_out_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(crews, "MAX_BATCH", 2)
    paths = write(tmp_path, 3)
    executor = Counting()
    executor._max_workers = 1
    found = vzr.scan_many(paths * 30, executor=executor)
    executor.threads.shutdown()
    assert_same(found, [vzr.scan(path) for path in paths] * 30)
    assert executor.batches == 45
    assert executor.most <= crews.BATCHES_A_WORKER


def test_processes_and_a_killed_one(tmp_path, monkeypatch):
    """The process that meets file 3 is killed, once; and whoever meets file 5, always."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})  # one process, which takes a second to start
    paths = write(tmp_path, 6)
    flag = tmp_path / "flag"
    flag.touch()
    found = vzr.scan_many(paths, executor="processes", scanner=Killer("3.h5", str(flag)))
    assert not flag.exists()
    assert_same(found, [vzr.scan(path) for path in paths])
    with pytest.warns(vzr.SkippedFileWarning, match=r"killed.*5\.h5"):
        found = vzr.scan_many(paths, executor="processes", scanner=Killer("5.h5"), on_error="skip")
    assert_same(found, [vzr.scan(path) for path in paths[:5]])
    assert isinstance(found.failed[0].error, vzr.WorkerLostError)


def test_an_executor_of_the_callers_that_breaks(tmp_path):
    paths = write(tmp_path, 2)
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as executor,
        pytest.raises(vzr.WorkerLostError, match="start another one"),
    ):
        vzr.scan_many(paths, executor=executor, scanner=Killer("1.h5"))


def test_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    paths = write(tmp_path, 6, bad=[4])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(vzr.FormatError):
        vzr.scan_many(paths, cache="kept")
    paths[4].write_bytes(paths[5].read_bytes())
    seen = []
    choose = vzr.scanning.find_scanner
    monkeypatch.setattr("virtualzarr_refs.scanning.find_scanner", lambda s: seen.append(s.url) or choose(s))
    found = vzr.scan_many(paths, cache="kept", executor="threads")
    assert sorted(seen) == [str(path) for path in paths[4:]]
    assert_same(found, [vzr.scan(path) for path in paths])


def test_a_bar_where_it_is_asked_for(tmp_path, capsys):
    paths = write(tmp_path, 2)
    vzr.scan_many(paths, progress=True)
    assert "100%" in capsys.readouterr().err
    vzr.scan_many(paths)
    assert capsys.readouterr().err == ""


def test_wrong_arguments(tmp_path):
    with pytest.raises(TypeError, match="use None"):
        vzr.scan_many([tmp_path], executor="fibres")
    with pytest.raises(ValueError, match="ignore"):
        vzr.scan_many([], on_error="ignore")
    with pytest.raises(TypeError, match="strickt"):
        vzr.scan_many([], strickt=True)


def test_secrets_are_never_shown():
    options = {"key": "hush", "client_kwargs": {"token": "hush"}}
    url = "memory://nowhere/a.nc?token=hush"
    with pytest.warns(vzr.SkippedFileWarning) as caught:
        found = vzr.scan_many([url], storage_options=options, on_error="skip", backend="fsspec")
    shown = f"{found.failed} {found.failed[0].error} {caught[0].message} {vzr.scanning.ScanRequest(None, options)}"
    assert "hush" not in shown


def test_a_group_travels_as_its_columns():
    """A million chunks take their 16 bytes each, or 12 where the length of chunks is a small number."""
    n = 1 << 20
    columns = np.broadcast_to(np.uint32(0), (n,)), np.arange(n, dtype="u8"), np.full(n, 7, "u4")
    grid = vzr.chunk_grid.RegularGrid((n,), (1,))
    codecs = ({"name": "bytes"},)
    array = VirtualArray(vzr.ArrayMetadata("int8", grid, 0, codecs), vzr.Manifest(("a",), *columns))
    assert len(pickle.dumps(vzr.VirtualGroup(arrays={"v": array}), 5)) < 12 * n + 2000
