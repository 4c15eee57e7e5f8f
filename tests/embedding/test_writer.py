import shutil

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr
from click.testing import CliRunner

import virtualzarr_refs as vzr
from tests.shards.files import STORAGE, values, write
from virtualzarr_refs.cli import main
from virtualzarr_refs.embedding import embed
from virtualzarr_refs.errors import NodeNotFoundError, ReferenceSetError, SourceChangedError, UnsupportedError


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write(tmp_path_factory.mktemp("source") / "file.h5")


@pytest.fixture(scope="module")
def written(source, tmp_path_factory):
    return embed(source, tmp_path_factory.mktemp("copy") / "copy.h5")


@pytest.fixture
def own(written, tmp_path):
    """A copy of the copy and its hierarchy, to be spoilt."""
    shutil.copytree(written.file.parent, tmp_path / "own", symlinks=True)
    return tmp_path / "own"


def test_the_copy_is_the_same_file_to_hdf5(source, written):
    expected, found = values(source), values(written.file)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    with netCDF4.Dataset(written.file) as file:
        np.testing.assert_array_equal(file["raw"][:], expected["raw"])


def test_zarr_reads_the_hierarchy(source, written):
    assert set(written.shards) == {*STORAGE, "lzf"}
    assert set(written.copied) == {"group/counts", "scalar", "skipping", "text"}
    opened = zarr.open_group(written.hierarchy, mode="r")
    for name, expected in values(source).items():
        np.testing.assert_array_equal(opened[name][...], expected)
    assert opened["text"][...].tolist() == ["a", "bc"]
    assert opened["raw"].attrs["units"] == "K"


def test_no_selection_is_all_of_a_shard(written):
    opened = zarr.open_array(written.hierarchy / "deflate", mode="r")
    assert (written.hierarchy / "deflate/c/0/0/0").resolve() == written.file
    assert opened.shards[0] >= opened.shape[0] + opened.chunks[0]  # else zarr asks for the whole file


def test_folders_move_with_their_copy(own):
    opened = zarr.open_array(own / "copy.zarr", path="raw", mode="r")
    assert (own / "copy.zarr/raw/c/0/0/0").resolve() == own / "copy.h5"
    np.testing.assert_array_equal(opened[...], values(own / "copy.h5")["raw"])


def test_our_readers_read_the_hierarchy(source, written):
    expected = values(source)
    group = vzr.open_refs(written.hierarchy)
    np.testing.assert_array_equal(group.to_xarray().raw.values, expected["raw"])
    with xr.open_dataset(written.hierarchy, engine="virtualzarr_refs") as dataset:
        np.testing.assert_array_equal(dataset.shuffle_deflate[1:5].values, expected["shuffle_deflate"][1:5])
    np.testing.assert_array_equal(zarr.open_array(group.to_store(), path="deflate", mode="r")[...], expected["deflate"])
    assert vzr.check(written.hierarchy).ok


def test_links_lead_only_where_it_is_allowed(written):
    assert vzr.open_refs(written.hierarchy, allow=[str(written.file.parent)])
    with pytest.raises(ReferenceSetError, match="allow"):
        vzr.open_refs(written.hierarchy, allow=[str(written.hierarchy)])


@pytest.mark.parametrize("selection", [slice(None), slice(2, 4)])
def test_a_copy_that_lost_its_indexes_is_noticed(own, selection):
    h5py.File(own / "copy.h5", "r+").close()
    for name in STORAGE:
        with pytest.raises(ValueError, match=r"checksum|crc|CRC"):
            zarr.open_array(own / "copy.zarr", path=name, mode="r")[selection]
    with pytest.raises(SourceChangedError, match="embed the indexes again"):
        vzr.open_refs(own / "copy.zarr")
    result = CliRunner().invoke(main, ["check", str(own / "copy.zarr")])
    assert result.exit_code == 1
    assert "embed the indexes again" in result.stderr


def test_a_user_block_outlives_changes(source, tmp_path):
    written = embed(source, tmp_path / "copy.h5", userblock=True, variable="deflate")
    with h5py.File(written.file, "r+") as file:
        file.attrs["history"] = "changed"
        del file["lzf"]
    opened = zarr.open_array(written.hierarchy, path="deflate", mode="r")
    np.testing.assert_array_equal(opened[...], values(source)["deflate"])
    assert [record.path for record in written.left_out] == ["lzf", "raw", "shuffle_deflate"]
    assert vzr.check(written.hierarchy).ok


def test_a_user_block_replaces_another(tmp_path):
    source = write(tmp_path / "file.h5", others=False, userblock=4096)
    written = embed(source, tmp_path / "copy.h5", userblock=True, variable="raw")
    np.testing.assert_array_equal(values(written.file)["raw"], values(source)["raw"])
    assert vzr.check(written.hierarchy).ok
    assert vzr.check(embed(source, tmp_path / "tail.h5").hierarchy).ok


def test_a_stale_index_in_a_user_block_is_noticed(source, tmp_path):
    written = embed(source, tmp_path / "copy.h5", userblock=True, variable="deflate")
    with h5py.File(written.file, "r+") as file:
        file["deflate"][0] = np.random.default_rng(1).random((30, 25))
    assert not vzr.check(written.hierarchy).ok


def test_a_user_block_is_of_one_array(source, tmp_path):
    with pytest.raises(UnsupportedError, match="deflate, lzf, raw, shuffle_deflate"):
        embed(source, tmp_path / "copy.h5", userblock=True)
    with pytest.raises(NodeNotFoundError):
        embed(source, tmp_path / "copy.h5", userblock=True, variable="text")
    assert names_in(tmp_path) == []


def test_nothing_is_replaced_unasked(source, tmp_path):
    embed(source, tmp_path / "copy.h5")
    with pytest.raises(FileExistsError):
        embed(source, tmp_path / "copy.h5")
    again = embed(source, tmp_path / "copy.h5", overwrite=True)
    assert vzr.check(again.hierarchy).ok
    with pytest.raises(FileExistsError):
        embed(again.file, again.file, overwrite=True)
    assert names_in(tmp_path) == ["copy.h5", "copy.zarr"]


def test_files_without_room_are_refused(tmp_path):
    with netCDF4.Dataset(tmp_path / "classic.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("t", None)
        file.createDimension("x", 3)
        for name in ("v", "w"):
            file.createVariable(name, "i4", ("t", "x"))[:] = np.arange(15).reshape(5, 3)
    with pytest.raises(UnsupportedError, match="HDF5"):
        embed(tmp_path / "classic.nc", tmp_path / "copy.nc")
    assert names_in(tmp_path) == ["classic.nc"]


def test_what_fails_leaves_nothing(source, tmp_path, monkeypatch):
    def fail(_):
        raise OSError("no room")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no room"):
        embed(source, tmp_path / "copy.h5")
    assert names_in(tmp_path) == []


def test_the_command_writes_sets_and_copies(source, tmp_path):
    def run(*arguments):
        return CliRunner().invoke(main, ["shard", *map(str, arguments)])

    result = run(source, "-o", tmp_path / "set.json")
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path}/set.json: 4 arrays of 4 shards\n")
    assert "skipping: its chunks are no shards" in result.stderr
    assert vzr.open_refs(tmp_path / "set.json")["raw"].manifest.has_shards
    result = run(source, "--embed", "-o", tmp_path / "copy.h5")
    told = f"{tmp_path}/copy.zarr: 4 arrays in {tmp_path}/copy.h5, 4 arrays copied\n"
    assert (result.exit_code, result.stdout) == (0, told)
    assert run(source, "--userblock", "-o", tmp_path / "other.h5").exit_code == 1
    assert run(source, "--variable", "raw", "-o", "x").exit_code == 2
