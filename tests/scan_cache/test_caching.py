"""Scanning through a cache: the same as without one, whatever happens to files and to the cache."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import fsspec
import h5py
import numpy as np
import pytest

import virtualzarr_refs as vzr
from scanners.hdf5 import HDF5Scanner
from virtualzarr_refs.scan_cache import places, seen

SAMPLES = sorted((Path(__file__).parents[2] / "sample_data").rglob("*.[nho][c5m]*"))
OLD = 10**18
"""A time of modification, in nanoseconds, that is long ago."""


@pytest.fixture
def scans(monkeypatch):
    """The urls that the HDF5 scanner was asked to scan."""
    urls = []
    scan = HDF5Scanner.scan

    def counted(self, source, options):
        urls.append(source.url)
        return scan(self, source, options)

    monkeypatch.setattr(HDF5Scanner, "scan", counted)
    return urls


def write(path, value=1.0, time=OLD):
    """A small file of always the same size."""
    with h5py.File(path, "w") as file:
        file.create_dataset("chunked", data=np.full((40, 6), value), chunks=(8, 6))
        file.create_dataset("other/flat", data=np.arange(5)).attrs["units"] = "m"
        file["text"] = ["a", "bc"]
    os.utime(path, ns=(time, time))
    return path


def entries(folder):
    return sorted(folder.rglob("*.vzmeta"))


def assert_same(group, expected):
    assert group.equals(expected)
    assert [path for path, _ in group.walk()] == [path for path, _ in expected.walk()]
    assert group.urls == expected.urls
    assert group.skipped == expected.skipped
    assert {u: s.identity for u, s in group.sources.items()} == {u: s.identity for u, s in expected.sources.items()}
    for path, node in group.walk():
        twin = expected[path]
        assert node.metadata.to_json() == twin.metadata.to_json()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore::virtualzarr_refs.SkippedNodeWarning")
def test_finds_what_the_scan_found(path, tmp_path):
    expected = vzr.scan(path)
    for _ in range(2):
        assert_same(vzr.scan(path, cache=tmp_path / "cache"), expected)
    assert len(entries(tmp_path)) == 1


def test_scans_once(tmp_path, scans):
    path = write(tmp_path / "a.h5")
    first, second = (vzr.scan(path, cache=tmp_path / "cache") for _ in range(2))
    assert scans == [str(path)]
    assert_same(second, first)
    assert set(second.sources) == {str(path)}
    np.testing.assert_array_equal(second.to_xarray()["chunked"], 1.0)


def test_columns_are_views_of_one_buffer(tmp_path):
    path = write(tmp_path / "a.h5")
    vzr.scan(path, cache=tmp_path / "cache")
    manifest = vzr.scan(path, cache=tmp_path / "cache").arrays["chunked"].manifest
    assert not manifest.offset.flags.owndata
    assert not manifest.offset.flags.writeable


def test_large_entries_are_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "_MAP_FROM", 100)
    path = write(tmp_path / "a.h5")
    expected = vzr.scan(path, cache=tmp_path / "cache")
    found = vzr.scan(path, cache=tmp_path / "cache")
    entries(tmp_path)[0].unlink()  # what was mapped stays
    assert_same(found, expected)


def test_another_time_and_other_values(tmp_path, scans):
    path = write(tmp_path / "a.h5")
    vzr.scan(path, cache=tmp_path / "cache")
    with h5py.File(path, "w") as file:
        file["new"] = 1
    found = vzr.scan(path, cache=tmp_path / "cache")
    assert set(found.arrays) == {"new"}
    assert len(scans) == 2
    assert len(entries(tmp_path)) == 1


def test_a_file_that_was_only_touched_is_known_by_its_content(tmp_path, scans):
    path = write(tmp_path / "a.h5")
    vzr.scan(path, cache=tmp_path / "cache")
    before = entries(tmp_path)[0].read_bytes()
    os.utime(path, ns=(2 * OLD // 3, 2 * OLD // 3))
    vzr.scan(path, cache=tmp_path / "cache")
    assert len(scans) == 1
    assert entries(tmp_path)[0].read_bytes() != before  # the new time was noted


def test_a_large_file_that_was_touched_is_scanned_again(tmp_path, scans, monkeypatch):
    monkeypatch.setattr(seen, "CONTENT_LIMIT", 100)
    path = write(tmp_path / "a.h5")
    vzr.scan(path, cache=tmp_path / "cache")
    os.utime(path, ns=(2 * OLD // 3, 2 * OLD // 3))
    vzr.scan(path, cache=tmp_path / "cache")
    assert len(scans) == 2


@pytest.mark.parametrize("limit", [100, 1024 * 1024])
def test_a_change_within_the_same_tick_of_the_clock(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(seen, "CONTENT_LIMIT", limit)
    path = write(tmp_path / "a.h5")
    now = path.stat().st_mtime_ns
    monkeypatch.setattr(seen.time, "time", lambda: now / 1e9 + 0.001)
    vzr.scan(path, cache=tmp_path / "cache")
    with h5py.File(path, "w") as file:
        file.create_dataset("new", data=np.full((40, 6), 2.0), chunks=(8, 6))
    with path.open("r+b") as file:
        file.truncate(write(tmp_path / "b.h5").stat().st_size)
    os.utime(path, ns=(now, now))
    monkeypatch.undo()
    with path.open("rb") as file:
        assert b"new" in file.read()
    assert set(vzr.scan(path, cache=tmp_path / "cache").arrays) == {"new"}


def test_other_options_and_other_scanners_are_kept_apart(tmp_path, scans):
    path = write(tmp_path / "a.h5")
    for options in ({}, {"target_chunk_size": 16}, {"scanner": "hdf5"}, {"scanner": HDF5Scanner("other")}):
        found = [vzr.scan(path, cache=tmp_path / "cache", **options) for _ in range(2)]
        assert_same(found[1], vzr.scan(path, **options))
    assert len(scans) == 8
    assert len(entries(tmp_path)) == 4


def test_a_scanner_that_cannot_be_pickled_is_asked_each_time(tmp_path, scans):
    class Local(HDF5Scanner):
        pass

    path = write(tmp_path / "a.h5")
    for _ in range(2):
        vzr.scan(path, cache=tmp_path / "cache", scanner=Local())
    assert len(scans) == 2


def test_another_version_of_what_decodes_scans_again(tmp_path, scans, monkeypatch):
    path = write(tmp_path / "a.h5")
    vzr.scan(path, cache="sidecar", scanner=HDF5Scanner())
    monkeypatch.setattr("virtualzarr_refs.scan_cache.request._versions", lambda: {"h5py": "0"})
    vzr.scan(path, cache="sidecar", scanner=HDF5Scanner())
    assert len(scans) == 2


def test_what_other_files_decide_is_not_kept(tmp_path, scans):
    write(tmp_path / "other.h5")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["link"] = h5py.ExternalLink("other.h5", "/chunked")
    os.utime(path, ns=(OLD, OLD))
    for _ in range(2):
        vzr.scan(path, cache=tmp_path / "cache")
    layout = h5py.VirtualLayout((40, 6), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "chunked", (40, 6))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("v", layout)
    os.utime(path, ns=(OLD, OLD))
    for _ in range(2):
        vzr.scan(path, cache=tmp_path / "cache")
    assert scans.count(str(path)) == 4
    assert not entries(tmp_path)


def test_what_is_left_out_is_named_each_time(tmp_path, scans):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["null"] = h5py.Empty("f4")
    os.utime(path, ns=(OLD, OLD))
    for _ in range(2):
        with pytest.warns(vzr.SkippedNodeWarning, match="null"):
            vzr.scan(path, cache=tmp_path / "cache")
    with pytest.raises(vzr.UnsupportedError):
        vzr.scan(path, cache=tmp_path / "cache", strict=True)
    assert len(scans) == 2


def test_a_failure_that_may_pass_is_not_kept(tmp_path, monkeypatch):
    path = write(tmp_path / "a.h5")

    def fail(*_):
        raise vzr.FormatError("the disk is busy")

    with monkeypatch.context() as patch:
        patch.setattr("scanners.hdf5.scanner.build_array", fail)
        with pytest.warns(vzr.SkippedNodeWarning):
            vzr.scan(path, cache=tmp_path / "cache")
    assert "chunked" in vzr.scan(path, cache=tmp_path / "cache").arrays


@pytest.mark.parametrize("where", [0, 1, 7, 60, 0.3, 0.6, 0.9, -14, -12, -5, -1])
@pytest.mark.parametrize("how", ["flipped", "cut", "zeroed"])
def test_damaged_entries_are_replaced(tmp_path, scans, where, how):
    path = write(tmp_path / "a.h5")
    expected = vzr.scan(path, cache=tmp_path / "cache")
    (entry,) = entries(tmp_path)
    whole = entry.read_bytes()
    place = (int(where * len(whole)) if isinstance(where, float) else where) % len(whole)
    changed = {
        "flipped": whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :],
        "cut": whole[:place],
        "zeroed": whole[:place] + bytes(len(whole) - place),
    }[how]
    entry.write_bytes(changed)
    assert_same(vzr.scan(path, cache=tmp_path / "cache"), expected)
    assert len(scans) == 2
    assert entry.read_bytes() == whole


def test_entries_of_another_source_are_not_taken(tmp_path, scans):
    a, b = write(tmp_path / "a.h5"), write(tmp_path / "b.h5")
    vzr.scan(a, cache=tmp_path / "cache")
    (of_a,) = entries(tmp_path)
    vzr.scan(b, cache=tmp_path / "cache")
    (of_b,) = set(entries(tmp_path)) - {of_a}
    shutil.copy(of_a, of_b)
    assert vzr.scan(b, cache=tmp_path / "cache").urls == (str(b),)
    assert len(scans) == 3


@pytest.mark.parametrize("where", ["file/cache", "folder"])
def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, where):
    path = write(tmp_path / "a.h5")
    (tmp_path / "file").write_bytes(b"")
    if where == "folder":  # where an entry would be, there is a folder
        vzr.scan(path, cache=tmp_path / where)
        (entry,) = entries(tmp_path)
        entry.unlink()
        entry.mkdir()
    with pytest.warns(vzr.CacheWarning, match="not kept"):
        assert "chunked" in vzr.scan(path, cache=tmp_path / where).arrays
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_cache_is_local(tmp_path):
    with pytest.raises(vzr.UnsupportedError, match="local folder"):
        vzr.scan(write(tmp_path / "a.h5"), cache="s3://bucket/cache")


def test_a_missing_source_is_missing(tmp_path):
    path = write(tmp_path / "a.h5")
    vzr.scan(path, cache=tmp_path / "cache")
    path.unlink()
    with pytest.raises(vzr.SourceMissingError):
        vzr.scan(path, cache=tmp_path / "cache")


def test_sidecars_travel_with_their_data(tmp_path, scans):
    path = write(tmp_path / "a.h5")
    vzr.scan(path, cache="sidecar")
    assert (tmp_path / "a.h5.vzmeta").is_file()
    (tmp_path / "elsewhere").mkdir()
    for each in (path, tmp_path / "a.h5.vzmeta"):
        each.rename(tmp_path / "elsewhere" / each.name)
    moved = tmp_path / "elsewhere" / "a.h5"
    assert vzr.scan(moved, cache="sidecar").urls == (str(moved),)
    assert scans == [str(path)]


def test_sidecars_beside_remote_files(tmp_path, scans):
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/sidecars/a.h5", write(tmp_path / "a.h5").read_bytes())
    url = "memory://sidecars/a.h5"
    first, second = (vzr.scan(url, cache="sidecar") for _ in range(2))
    assert memory.exists("/sidecars/a.h5.vzmeta")
    assert scans == [url]
    assert_same(second, first)
    memory.pipe_file("/sidecars/a.h5", write(tmp_path / "b.h5", value=2.0).read_bytes())
    np.testing.assert_array_equal(vzr.scan(url, cache="sidecar").to_xarray()["chunked"], 2.0)


def test_urls_with_secrets_are_not_kept(tmp_path, scans):
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/sidecars/a.h5?token=hush", write(tmp_path / "a.h5").read_bytes())
    for _ in range(2):
        vzr.scan("memory://sidecars/a.h5?token=hush", cache=tmp_path / "cache")
    assert len(scans) == 2
    assert not entries(tmp_path)
