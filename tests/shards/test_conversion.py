import pickle
from unittest.mock import patch

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync

import virtualzarr_refs as vzr
from tests import open_meteo_files
from tests.shards.files import STORAGE, Counted, values, write
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.errors import ReferenceSetError, UnsupportedError
from virtualzarr_refs.manifest import Manifest, VirtualChunk
from virtualzarr_refs.shards.plain import plain_array, without_shards
from virtualzarr_refs.sources import SourcePool


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(tmp_path_factory.mktemp("shards") / "file.h5")


@pytest.fixture(scope="module")
def group(path):
    return vzr.to_shards(vzr.scan(path))


def codec_of(group, path):
    return [codec["name"] for codec in group[path].metadata.codecs]


def month(path, days, first, chunks=(1, 4, 3), storage=None):
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("y", 4)
        file.createDimension("x", 5)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "days since 2024-01-01"
        time[:] = first + np.arange(days)
        v = file.createVariable("v", "f4", ("time", "y", "x"), chunksizes=chunks, zlib=True, **(storage or {}))
        v[:] = np.arange(days * 20).reshape(days, 4, 5) + first
    return path


@pytest.fixture(scope="module")
def months(tmp_path_factory):
    folder = tmp_path_factory.mktemp("months")
    lengths = (3, 2, 3)
    starts = np.cumsum((0, *lengths))
    return [month(folder / f"{i}.nc", n, int(starts[i])) for i, n in enumerate(lengths)]


@pytest.mark.parametrize("location", ["start", "end"])
def test_zarr_reads_what_h5py_reads(path, location):
    group = vzr.to_shards(vzr.scan(path), index_location=location)
    opened = zarr.open_group(group.to_store(), mode="r")
    for name, expected in values(path).items():
        np.testing.assert_array_equal(opened[name][...], expected)
        if expected.ndim:
            np.testing.assert_array_equal(opened[name][1:3], expected[1:3])
    assert all(codec_of(group, name) == ["sharding_indexed"] for name in (*STORAGE, "lzf"))


def test_a_file_is_one_reference(group):
    assert {name: group[name].manifest.count for name in STORAGE} == dict.fromkeys(STORAGE, 1)
    assert group["raw"].metadata.chunk_grid.chunk_shape == (8, 30, 25)


def test_what_makes_no_shard_stays_and_says_why(group):
    reasons = {record.path: record.reason for record in group.skipped if "no shards" in record.reason}
    assert reasons == {"skipping": "its chunks are no shards: its chunks are encoded in different ways"}
    assert codec_of(group, "group/counts") == ["bytes"]


def test_strict_refuses_what_makes_no_shard(path):
    with pytest.raises(UnsupportedError, match="encoded in different ways") as caught:
        vzr.to_shards(vzr.scan(path), strict=True)
    assert caught.value.node == "skipping"


def test_other_places_of_the_index_are_refused(group):
    with pytest.raises(ValueError, match="middle"):
        vzr.to_shards(group, index_location="middle")


def test_shards_are_not_turned_into_shards_again(group):
    assert vzr.to_shards(group)["raw"] is group["raw"]


def test_everything_at_once_reads_only_what_the_array_holds(path, group):
    stored = vzr.scan(path)["shuffle_deflate"].manifest.nbytes
    counted = Counted()
    store = group.to_store(max_gap=0)
    with patch.object(store.reader._pool, "read", side_effect=counted.wrap(store.reader._pool.read)):
        zarr.open_array(store, path="shuffle_deflate", mode="r")[...]
    assert stored <= counted.bytes <= 1.1 * stored < 0.6 * path.stat().st_size


def test_an_inner_chunk_is_one_range_and_the_index_none(group):
    value = group.resolve("deflate/c/0/0/0")
    entry = np.frombuffer(value.parts[-1], "<u8", 2).tolist()
    assert [part.byte_range.length for part in value.slice(entry[0], sum(entry)).parts] == [entry[1]]
    store = group.to_store()
    with patch.object(SourcePool, "read", side_effect=AssertionError("the index lies in no source")):
        suffix = sync(store.get("deflate/c/0/0/0", default_buffer_prototype(), SuffixByteRequest(100)))
        assert suffix.to_bytes() == value.parts[-1][-100:]
        end = value.length
        part = store.get_sync("deflate/c/0/0/0", byte_range=RangeByteRequest(end - 10, end))
        assert part.to_bytes() == value.parts[-1][-10:]


def test_pickles_give_the_same_shards(group):
    assert pickle.loads(pickle.dumps(group)).equals(group)
    assert not group.equals(vzr.to_shards(vzr.scan(group["raw"].manifest.urls[0]), index_location="start"))


def test_files_of_different_length_form_a_rectilinear_grid(months):
    whole = vzr.to_shards(vzr.concat(map(vzr.scan, months), "time"))
    array = whole["v"]
    assert array.manifest.grid_shape == (3, 1, 1)
    assert array.metadata.chunk_grid.chunk_lengths(0) == (3, 2, 3)
    expected = xr.concat([xr.load_dataset(path) for path in months], "time").v.values
    opened = zarr.open_array(whole.to_store(), path="v", mode="r")
    np.testing.assert_array_equal(opened[...], expected)
    np.testing.assert_array_equal(opened[2:6, 1], expected[2:6, 1])
    np.testing.assert_array_equal(whole.to_xarray().v.values, expected)


def test_files_of_one_length_form_a_regular_grid(months):
    both = vzr.to_shards(vzr.concat(map(vzr.scan, months[:2]), "time"))
    assert both["v"].metadata.chunk_grid.chunk_shape == (3, 4, 6)
    expected = xr.concat([xr.load_dataset(path) for path in months[:2]], "time").v.values
    np.testing.assert_array_equal(zarr.open_array(both.to_store(), path="v", mode="r")[...], expected)


def test_a_file_that_ends_inside_a_chunk_is_no_shard(tmp_path):
    files = [month(tmp_path / f"{i}.nc", 3, 3 * i, (2, 4, 5), {"fill_value": -1}) for i in range(2)]
    whole = vzr.to_shards(vzr.concat(map(vzr.scan, files), "time"))
    assert codec_of(whole, "v") != ["sharding_indexed"]
    assert [record.path for record in whole.skipped if "no shards" in record.reason] == ["v"]
    expected = xr.concat([xr.load_dataset(path) for path in files], "time").v.values
    np.testing.assert_array_equal(whole.to_xarray().v.values, expected)


def test_shards_are_put_together_chunk_by_chunk(months):
    groups = [vzr.scan(path) for path in months]
    whole = vzr.concat(map(vzr.to_shards, groups), "time")
    assert whole.equals(vzr.concat(groups, "time"))


def test_files_that_form_no_grid_are_refused():
    places = {(0, 0): "a", (0, 1): "a", (2, 2): "b", (2, 3): "b"}
    chunks = {index: VirtualChunk(url, ByteRange(0, 4)) for index, url in places.items()}
    codecs = ({"name": "bytes", "configuration": {"endian": "little"}},)
    metadata = vzr.ArrayMetadata("int32", RegularGrid((3, 4), (1, 1)), 0, codecs)
    group = vzr.VirtualGroup(arrays={"v": vzr.VirtualArray(metadata, Manifest.from_chunks((3, 4), chunks))})
    with pytest.raises(UnsupportedError, match="do not form a grid"):
        vzr.to_shards(group, strict=True)


def test_without_shards_undoes_it(path, months):
    for group in (vzr.scan(path), vzr.concat(map(vzr.scan, months), "time")):
        undone = without_shards(vzr.to_shards(group))
        assert all(undone[name].equals(array) for name, array in group.walk_arrays())
    assert plain_array(group["v"]) is None


def test_sets_in_json_carry_shards(tmp_path, path, group):
    target = tmp_path / "set.json"
    vzr.write_json(group, target)
    read = vzr.open_refs(target)
    assert read["raw"].equals(group["raw"])
    assert read["lzf"].equals(group["lzf"])
    np.testing.assert_array_equal(xr.open_dataset(target, engine="virtualzarr_refs").raw.values, values(path)["raw"])
    assert vzr.check(target).ok


@pytest.mark.parametrize("change", [lambda r: [r[0], r[1] + 1, *r[2:]], lambda r: [*r[:3], r[3][:-8]], lambda r: r[:3]])
def test_sets_whose_shards_do_not_fit_are_refused(tmp_path, group, change):
    import json

    vzr.write_json(group, tmp_path / "set.json")
    document = json.loads((tmp_path / "set.json").read_text())
    document["refs"]["raw/c/0/0/0"] = change(document["refs"]["raw/c/0/0/0"])
    if len(document["refs"]["raw/c/0/0/0"]) == 3:
        opened = zarr.open_array(vzr.open_refs(document).to_store(), path="raw", mode="r")
        with pytest.raises(ValueError, match=r"checksum|crc|CRC"):
            opened[...]
    else:
        with pytest.raises(ReferenceSetError):
            vzr.open_refs(document)


def test_records_of_netcdf3_are_shards(tmp_path):
    path = tmp_path / "classic.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("x", 5)
        for name in ("a", "b"):
            file.createVariable(name, "i2", ("time", "x"))[:] = np.arange(20).reshape(4, 5) + len(name)
    group = vzr.to_shards(vzr.scan(path))
    assert codec_of(group, "a") == ["sharding_indexed"]
    expected = xr.load_dataset(path)
    opened = zarr.open_group(group.to_store(), mode="r")
    for name in ("a", "b"):
        np.testing.assert_array_equal(opened[name][...], expected[name].values)


def test_a_source_that_is_gone_is_no_missing_shard(tmp_path):
    path = tmp_path / "gone.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=np.arange(10), chunks=(2,))
    group = vzr.to_shards(vzr.scan(path))
    path.unlink()
    opened = zarr.open_array(group.to_store(), path="v", mode="r")
    for selection in (slice(None), slice(2, 4)):
        with pytest.raises(vzr.SourceError):
            opened[selection]


def test_sets_in_parquet_carry_shards(tmp_path, path, group):
    target = tmp_path / "set.parq"
    vzr.write_parquet(group, target)
    assert without_shards(vzr.open_refs(target).loaded()).equals(without_shards(group))
    opened = zarr.open_array(vzr.open_refs(target).to_store(), path="deflate", mode="r")
    np.testing.assert_array_equal(opened[...], values(path)["deflate"])
    with xr.open_dataset(target, engine="virtualzarr_refs") as dataset:
        np.testing.assert_array_equal(dataset.raw.values, values(path)["raw"])


@pytest.mark.parametrize(("chunks", "count"), [((10, 20), 4), ((7, 20), 0)])
def test_files_of_open_meteo_are_shards_where_no_chunk_is_short(tmp_path, chunks, count):
    array = open_meteo_files.values("smooth", (20, 40), "f4")
    path = open_meteo_files.write(tmp_path / "file.om", array, chunks, scale_factor=20.0)
    plain = vzr.scan(path)
    group = vzr.to_shards(plain)
    ((name, shards),) = group.walk_arrays()
    assert sum(inner.size for inner in shards.manifest.inner_chunks.values()) == count
    assert [record.path for record in group.skipped if "no shards" in record.reason] == ([] if count else [name])
    opened = zarr.open_array(group.to_store(), path=name, mode="r")
    np.testing.assert_array_equal(opened[...], zarr.open_array(plain.to_store(), path=name, mode="r")[...])
    np.testing.assert_allclose(opened[...], array, atol=0.03)
