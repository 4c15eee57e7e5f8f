"""Reference sets say what their sources were."""

from __future__ import annotations

import json
import os

import fsspec
import h5py
import numpy as np
import pytest

import virtualzarr_refs as vzr
from tests.combine.files import Recipe
from virtualzarr_refs.errors import NotRepresentableError, ReferenceSetError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.references import open_refs, write_json
from virtualzarr_refs.sources import ScannedSource, SourceIdentity

SOURCES = {
    "s3://bucket/a.nc": ScannedSource(SourceIdentity(10**13, "abc", 1.7e9), 1764564572.123),
    "/data/b.nc": ScannedSource(SourceIdentity(0, None, 1764564572.1234567)),
    "/data/ü.nc": ScannedSource(SourceIdentity(1)),
}


@pytest.fixture
def path(tmp_path):
    return Recipe().write(tmp_path / "a.nc")


def test_a_scan_knows_its_source(path):
    (url, source), *others = vzr.scan(path).sources.items()
    status = path.stat()
    assert (url, others) == (str(path), [])
    assert source.identity == SourceIdentity(status.st_size, last_modified=status.st_mtime_ns / 1e9)
    assert source.scanned_at >= status.st_mtime


def test_a_scan_over_http_knows_the_etag(server, path):
    server.files["/a.nc"] = path.read_bytes()
    (source,) = vzr.scan(f"{server.url}/a.nc").sources.values()
    assert source.identity.size == path.stat().st_size
    assert source.identity.etag


def test_files_that_links_lead_to_are_known_too(tmp_path):
    with h5py.File(tmp_path / "inner.h5", "w") as file:
        file["v"] = np.arange(10)
    with h5py.File(tmp_path / "outer.h5", "w") as file:
        file["v"] = h5py.ExternalLink("inner.h5", "v")
    assert set(vzr.scan(tmp_path / "outer.h5").sources) == {str(tmp_path / "inner.h5"), str(tmp_path / "outer.h5")}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("sources", [SOURCES, {}, {"/data/ü.nc": SOURCES["/data/ü.nc"]}])
def test_json_sets_carry_them(tmp_path, sources, zarr_format):
    write_json(VirtualGroup(sources=sources), tmp_path / "a.json", zarr_format=zarr_format)
    assert open_refs(tmp_path / "a.json").sources == sources


def test_other_readers_are_not_disturbed(tmp_path, path):
    write_json(vzr.scan(path), tmp_path / "a.json")
    files = fsspec.filesystem("reference", fo=str(tmp_path / "a.json"), remote_protocol="file")
    assert set(files.find("")) == set(vzr.scan(path).keys())


def test_many_sources_stay_compact(tmp_path):
    sources = {
        f"/archive/{n:05}.nc": ScannedSource(SourceIdentity(n, "0" * 32, 1.7e9 + n), 1.7e9 + n) for n in range(10_000)
    }
    write_json(VirtualGroup(sources=sources), tmp_path / "a.json")
    assert (tmp_path / "a.json").stat().st_size < 100 * len(sources)
    assert open_refs(tmp_path / "a.json").sources == sources


def test_they_are_no_part_of_what_is_served(path):
    group = vzr.scan(path)
    assert b"a.nc" in write_to_bytes(group)
    assert str(path.parent).encode() not in bytes(group.resolve("zarr.json").parts[0])


def write_to_bytes(group):
    target = fsspec.filesystem("memory")
    write_json(group, "memory://set.json", overwrite=True)
    return target.cat_file("/set.json")


def test_groups_put_together_know_the_sources_of_all(tmp_path):
    paths = [Recipe(start=4 * n).write(tmp_path / f"{n}.nc") for n in range(3)]
    groups = [vzr.scan(path) for path in paths]
    for whole in (vzr.concat(groups, "time"), vzr.stack(groups, "run", join="override"), vzr.combine_by_coords(groups)):
        assert whole.sources == {**groups[0].sources, **groups[1].sources, **groups[2].sources}
    assert vzr.merge([groups[0], groups[0]]).sources == groups[0].sources
    assert vzr.keep_vars(groups[0], "v").sources == groups[0].sources


def test_a_file_that_changed_between_two_scans_is_refused(path):
    before = vzr.scan(path)
    os.utime(path, (1, 1))
    with pytest.raises(vzr.SourceChangedError, match="the file changed"):
        vzr.merge([before, vzr.scan(path)])


def test_credentials_in_the_url_of_a_source_are_refused(tmp_path):
    sources = {"https://user:secret@example.org/a.nc": ScannedSource(SourceIdentity(1))}
    with pytest.raises(NotRepresentableError, match="credentials"):
        write_json(VirtualGroup(sources=sources), tmp_path / "a.json")


def test_what_a_set_may_not_point_to_is_left_out():
    columns = {"url": ["/a/x.nc", "/b/x.nc"], "size": [1, 2]}
    group = open_refs({"version": 1, "refs": {}, "sources": columns}, allow=["/b"])
    assert group.sources == {"/b/x.nc": ScannedSource(SourceIdentity(2))}


@pytest.mark.parametrize(
    "columns",
    [
        [1],
        {"url": ["a"]},
        {"url": "a", "size": [1]},
        {"url": ["a"], "size": [1, 2]},
        {"url": ["a"], "size": [-1]},
        {"url": ["a"], "size": [True]},
        {"url": ["a"], "size": [1.5]},
        {"url": [1], "size": [1]},
        {"url": ["a"], "size": [1], "etag": [1]},
        {"url": ["a"], "size": [1], "last_modified": ["x"]},
        {"url": ["a"], "size": [1], "scanned_at": []},
    ],
    ids=json.dumps,
)
def test_malformed_columns_are_refused(columns):
    with pytest.raises(ReferenceSetError, match="sources"):
        open_refs({"version": 1, "refs": {}, "sources": columns})
