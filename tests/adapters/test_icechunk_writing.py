"""Groups in Icechunk repositories: what is written is read back, by us and by zarr alone."""

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

import h5py
import icechunk
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

import virtualzarr_refs as vzr
from virtualzarr_refs.chunk_grid import ChunkKeyEncoding, RectilinearGrid, RegularGrid
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata
from virtualzarr_refs.references.variants import has_variants

LITTLE = ({"name": "bytes", "configuration": {"endian": "little"}},)
SAMPLES = Path(__file__).parents[2] / "sample_data"


def allowed(prefixes):
    return dict.fromkeys(prefixes, icechunk.credentials.LocalFileSystemAccess)


def opened(folder, **revision):
    """A session as a user of icechunk opens it, who has never heard of us."""
    storage = icechunk.local_filesystem_storage(str(folder))
    known = icechunk.Repository.open(storage).config.virtual_chunk_containers
    repository = icechunk.Repository.open(storage, authorize_virtual_chunk_access=allowed(known))
    return repository.readonly_session(**(revision or {"branch": "main"}))


def in_memory(folder):
    config = icechunk.RepositoryConfig.default()
    prefix = f"file://{folder}/"
    config.set_virtual_chunk_container(
        icechunk.VirtualChunkContainer(prefix, icechunk.local_filesystem_store(f"{folder}/"))
    )
    storage = icechunk.in_memory_storage()
    return icechunk.Repository.create(storage, config, authorize_virtual_chunk_access=allowed([prefix]))


def inline(values, **more):
    """An array of one inline chunk."""
    metadata = ArrayMetadata(values.dtype.name, RegularGrid(values.shape, values.shape), 0, LITTLE, **more)
    return VirtualArray(metadata, Manifest.from_inline((1,) * values.ndim, {0: values.tobytes()}))


@pytest.fixture
def file(tmp_path):
    """A file with a name that has to be escaped, and groups, scalars, missing chunks and what is no byte range."""
    folder = tmp_path / "a b%20"
    folder.mkdir()
    path = folder / "c#d?e.h5"
    with h5py.File(path, "w") as file:
        file["scalar"] = 7.5
        file["whole"] = np.arange(100.0)
        file.create_dataset("deflated", data=np.arange(100).reshape(10, 10), chunks=(4, 5), compression="gzip")
        file.create_dataset("gaps", (9,), "i4", chunks=(2,), fillvalue=-1)[2:4] = 5
        file.create_dataset("never", (9,), "i4", chunks=(2,), fillvalue=-1)
        file["inner/deep/texts"] = ["a", "ü" * 400]
        file["inner/big"] = np.arange(4.0, dtype=">f4")
        file.attrs["title"] = "x"
    return path


def test_what_is_written_is_read_back(file, tmp_path):
    group = vzr.scan(file)
    snapshot = vzr.write_icechunk(group, tmp_path / "repository")
    assert vzr.open_icechunk(tmp_path / "repository").equals(group)
    assert vzr.open_refs(tmp_path / "repository").equals(group)
    assert vzr.open_icechunk(tmp_path / "repository", snapshot_id=snapshot).equals(group)


def test_zarr_reads_it_through_icechunk_alone(file, tmp_path):
    vzr.write_icechunk(vzr.scan(file), tmp_path / "repository")
    root = zarr.open_group(opened(tmp_path / "repository").store, mode="r")
    with h5py.File(file) as expected:
        for path in ("scalar", "whole", "deflated", "gaps", "never", "inner/big"):
            np.testing.assert_array_equal(root[path][...], expected[path][...], err_msg=path)
        assert root["inner/deep/texts"][...].tolist() == expected["inner/deep/texts"].asstr()[...].tolist()
    assert root.attrs["title"] == "x"


def test_the_xarray_engine_reads_a_repository(tmp_path):
    repository = tmp_path / "repository"
    vzr.write_icechunk(vzr.scan(SAMPLES / "january.nc"), repository)
    with (
        xr.open_dataset(repository, engine="virtualzarr_refs") as found,
        xr.open_dataset(SAMPLES / "january.nc", engine="netcdf4") as expected,
    ):
        xr.testing.assert_equal(found, expected)


def test_icechunk_refuses_a_source_that_was_changed_later(file, tmp_path):
    repository = tmp_path / "repository"
    vzr.write_icechunk(vzr.scan(file), repository)
    os.utime(file, (time.time() + 60,) * 2)
    root = zarr.open_group(opened(repository).store, mode="r")
    with pytest.raises(icechunk.IcechunkError, match=r"checksum of the object .* has changed"):
        root["whole"][...]


def test_months_are_appended_as_xarray_would_put_them_together(tmp_path):
    whole = xr.Dataset(
        {"t": (("time", "x"), np.arange(180.0).reshape(90, 2))},
        {"time": pd.date_range("2023-01-01", periods=90), "x": [1, 2]},
    )
    repository, months = tmp_path / "repository", []
    for name, days in {"january": slice(0, 31), "february": slice(31, 59), "march": slice(59, 90)}.items():
        whole.isel(time=days).to_netcdf(tmp_path / name, engine="h5netcdf", encoding={"t": {"chunksizes": (10, 2)}})
        months.append(vzr.scan(tmp_path / name))
        vzr.write_icechunk(months[-1], repository, append_dim="time" if len(months) > 1 else None)
    back = vzr.open_icechunk(repository)
    assert back["t"].equals(vzr.concat(months, "time")["t"])
    xr.testing.assert_equal(back.to_xarray(), whole)
    with xr.open_zarr(opened(repository).store, consolidated=False, chunks=None) as found:
        xr.testing.assert_equal(found, whole)


def test_an_append_writes_only_what_is_new(tmp_path):
    first, second = tmp_path / "first.h5", tmp_path / "second.h5"
    for path in (first, second):
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=np.arange(8.0), chunks=(2,))
            file["x"].dims[0].label = "t"
    repository = in_memory(tmp_path)
    parts = [replace_names(vzr.scan(path)) for path in (first, second)]
    vzr.write_icechunk(parts[0], repository)
    session = repository.writable_session("main")
    assert vzr.write_icechunk(parts[1], session, append_dim="t") is None
    (changes,) = session.status().updated_chunks.values()
    assert sorted(map(tuple, changes)) == [(4,), (5,), (6,), (7,)]
    np.testing.assert_array_equal(zarr.open_group(session.store, mode="r")["x"][...], np.tile(np.arange(8.0), 2))


def replace_names(group):
    return group.map_arrays(lambda _, a: replace(a, metadata=replace(a.metadata, dimension_names=("t",))))


def test_of_two_who_append_at_once_the_second_is_refused_and_loses_nothing(tmp_path, monkeypatch):
    repository = in_memory(tmp_path)
    part = VirtualGroup(arrays={"x": inline(np.arange(3), dimension_names=("t",))})
    vzr.write_icechunk(part, repository)
    other = repository.writable_session("main")
    monkeypatch.setattr(repository, "writable_session", lambda _: other, raising=False)
    late = repository.readonly_session("main")  # what the second one sees
    fresh = icechunk.Repository.writable_session(repository, "main")
    vzr.write_icechunk(part, fresh, append_dim="t")
    fresh.commit("first")
    with pytest.raises(vzr.SourceChangedError, match="write again"):
        vzr.write_icechunk(part, repository, append_dim="t")
    assert vzr.open_icechunk(repository)["x"].shape == (6,)
    assert vzr.open_icechunk(late)["x"].shape == (3,)


def test_an_append_that_does_not_fit_leaves_all_as_it_was(tmp_path):
    repository = in_memory(tmp_path)
    vzr.write_icechunk(VirtualGroup(arrays={"x": inline(np.zeros((2, 3)), dimension_names=("t", "y"))}), repository)
    other = VirtualGroup(arrays={"x": inline(np.zeros((2, 4)), dimension_names=("t", "y"))})
    with pytest.raises(vzr.IncompatibleError):
        vzr.write_icechunk(other, repository, append_dim="t")
    assert vzr.open_icechunk(repository)["x"].shape == (2, 3)


def test_a_group_is_replaced_only_on_request(tmp_path):
    repository = in_memory(tmp_path)
    one, two = (VirtualGroup(arrays={name: inline(np.arange(3))}) for name in ("one", "two"))
    vzr.write_icechunk(one, repository, path="a/b")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        vzr.write_icechunk(two, repository, path="a/b")
    vzr.write_icechunk(two, repository, path="/a/c/")
    vzr.write_icechunk(two, repository, path="a/b", overwrite=True)
    assert sorted(path for path, _ in vzr.open_icechunk(repository).walk_arrays()) == ["a/b/two", "a/c/two"]
    assert vzr.open_icechunk(repository, path="a/c").equals(two)
    with pytest.raises(ValueError, match="one of the two"):
        vzr.write_icechunk(two, repository, append_dim="t", overwrite=True)


def test_rectilinear_grids_are_carried(tmp_path):
    values = np.arange(20, dtype="int32").reshape(5, 4)
    metadata = ArrayMetadata("int32", RectilinearGrid((5, 4), ((2, 3), 3)), 0, LITTLE)
    padded = np.pad(values, ((0, 0), (0, 2)))
    chunks = {i * 2 + j: padded[2 * i : (2, 5)[i], 3 * j : 3 * j + 3].tobytes() for i in (0, 1) for j in (0, 1)}
    group = VirtualGroup(arrays={"x": VirtualArray(metadata, Manifest.from_inline((2, 2), chunks))})
    repository = in_memory(tmp_path)
    vzr.write_icechunk(group, repository)
    store = repository.readonly_session("main").store
    np.testing.assert_array_equal(zarr.open_array(store, path="x", mode="r")[...], values)
    back = vzr.open_icechunk(repository)
    np.testing.assert_array_equal(zarr.open_array(back.to_store(), path="x", mode="r")[...], values)
    assert back["x"].manifest.equals(group["x"].manifest)


def test_chunk_keys_of_other_forms_become_those_that_icechunk_knows(tmp_path):
    array = inline(np.arange(6).reshape(2, 3), chunk_key_encoding=ChunkKeyEncoding("v2", "."))
    repository = in_memory(tmp_path)
    vzr.write_icechunk(VirtualGroup(arrays={"x": array}), repository)
    store = repository.readonly_session("main").store
    np.testing.assert_array_equal(zarr.open_array(store, path="x", mode="r")[...], np.arange(6).reshape(2, 3))


def test_large_inline_chunks_become_chunks_of_the_repository(tmp_path):
    group = VirtualGroup(arrays={"x": inline(np.arange(2000.0))})
    repository = in_memory(tmp_path)
    vzr.write_icechunk(group, repository)
    assert vzr.open_icechunk(repository).equals(group)
    with pytest.raises(vzr.UnsupportedError, match=r"16000 bytes.*native_limit"):
        vzr.open_icechunk(repository, native_limit=15_999)


@pytest.fixture
def variants(tmp_path):
    """One array whose chunks are encoded in two ways."""
    with h5py.File(tmp_path / "variants.h5", "w") as file:
        made = file.create_dataset("x", (6,), "<i4", chunks=(2,), compression="gzip")
        made[:4] = np.arange(4)
        made.id.write_direct_chunk((4,), np.array([4, 5], "<i4").tobytes(), filter_mask=1)
    group = vzr.scan(tmp_path / "variants.h5")
    assert has_variants(group["x"])
    return group


def test_variants_are_refused_by_name_with_the_way_out(variants, tmp_path):
    repository = in_memory(tmp_path)
    with pytest.raises(vzr.NotRepresentableError, match=r'x: its chunks .*materialise="inline"'):
        vzr.write_icechunk(variants, repository)
    vzr.write_icechunk(variants, repository, materialise="inline")
    root = zarr.open_group(repository.readonly_session("main").store, mode="r")
    np.testing.assert_array_equal(root["x"][...], np.arange(6))


def test_attributes_that_are_no_json_are_refused_by_name_with_the_way_out(tmp_path):
    repository = in_memory(tmp_path)
    types = {"missing_value": "<f4"}
    array = inline(np.arange(3), attributes={"missing_value": float("nan"), "good": 1}, attribute_types=types)
    group = VirtualGroup(GroupMetadata({"range": [0, float("inf")]}), {"x": array})
    with pytest.raises(vzr.NotRepresentableError, match=r"/: its attributes range .*; x: its attributes missing_value"):
        vzr.write_icechunk(group, repository)
    vzr.write_icechunk(group, repository, nan_attributes="text")
    back = vzr.open_icechunk(repository)
    assert back.attributes["range"] == [0, "Infinity"]
    restored = back["x"].metadata.typed_attributes()["missing_value"]
    assert np.isnan(restored)
    assert restored.dtype == np.float32


def test_a_url_that_icechunk_cannot_read_is_refused(tmp_path):
    group = VirtualGroup(arrays={"x": inline(np.arange(3))})
    far = group.map_arrays(lambda _, a: replace(a, manifest=virtual("memory://a.nc")))
    with pytest.raises(vzr.NotRepresentableError, match="cannot point to"):
        vzr.write_icechunk(far, in_memory(tmp_path))
    uncovered = group.map_arrays(lambda _, a: replace(a, manifest=virtual("s3://bucket/a.nc")))
    with pytest.raises(vzr.NotRepresentableError, match=r"no virtual chunk container for 's3://bucket/a\.nc'"):
        vzr.write_icechunk(uncovered, in_memory(tmp_path))
    secret = group.map_arrays(lambda _, a: replace(a, manifest=virtual("https://ada:secret@h/a.nc")))
    with pytest.raises(vzr.NotRepresentableError, match="credentials"):
        vzr.write_icechunk(secret, in_memory(tmp_path))


def virtual(url):
    return Manifest.from_chunks((1,), {(0,): vzr.VirtualChunk(url, vzr.ByteRange(0, 24))})


def test_a_repository_by_its_url_gets_the_containers_it_lacks(tmp_path):
    repository = tmp_path / "repository"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with h5py.File(tmp_path / name / "x.h5", "w") as file:
            file["x"] = np.arange(5)
        vzr.write_icechunk(vzr.scan(tmp_path / name / "x.h5"), repository, path=name)
    store = opened(repository).store
    assert [zarr.open_array(store, path=f"{name}/x", mode="r")[4] for name in ("one", "two")] == [4, 4]


def test_allow_holds_for_a_repository(file, tmp_path):
    repository = tmp_path / "repository"
    vzr.write_icechunk(vzr.scan(file), repository)
    vzr.open_icechunk(repository, allow=[str(file.parent)])
    with pytest.raises(vzr.ReferenceSetError, match="allow"):
        vzr.open_icechunk(repository, allow=["s3://bucket"])


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(vzr.SourceMissingError, match="no Icechunk repository"):
        vzr.open_icechunk(tmp_path / "nothing")
    repository = in_memory(tmp_path)
    with pytest.raises(vzr.NodeNotFoundError, match="node a/b"):
        vzr.open_icechunk(repository, path="a/b")
    with pytest.raises(vzr.SourceError, match="revision"):
        vzr.open_icechunk(repository, tag="v9")
    with pytest.raises(ValueError, match="together"):
        vzr.open_icechunk(repository, tag="a", branch="b")
    with pytest.raises(vzr.UnsupportedError, match="pass the Repository"):
        vzr.open_icechunk("gs://bucket/a")


def test_it_can_be_written_from_within_an_event_loop(tmp_path):
    async def write():
        repository = in_memory(tmp_path)
        vzr.write_icechunk(VirtualGroup(arrays={"x": inline(np.arange(3))}), repository)
        return vzr.open_icechunk(repository)

    assert asyncio.run(write())["x"].shape == (3,)
