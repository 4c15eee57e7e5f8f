"""Arrays of every kind, on regular grids and with core codecs."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr

import virtualzarr_refs as vzr
from tests.server.asgi import Client
from tests.server.running import running
from virtualzarr_refs.chunk_grid import RectilinearGrid, RegularGrid
from virtualzarr_refs.codecs import open_meteo_numpy, open_meteo_values
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.metadata import ArrayMetadata
from virtualzarr_refs.reader import ReadOptions
from virtualzarr_refs.server import application
from virtualzarr_refs.server.core_metadata import MAX_CHUNK, core_metadata

ROOT = Path(__file__).parents[2]
CORE_CODECS = {"bytes", "vlen-utf8", "zstd"}


@pytest.fixture
def kinds(tmp_path):
    """A file with arrays of many types."""
    path = tmp_path / "kinds.h5"
    rng = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "floats", data=rng.standard_normal((25, 7)), chunks=(4, 3), compression="gzip", shuffle=True
        )
        file.create_dataset("big_endian", data=np.arange(9, dtype=">i4"), chunks=(4,), fletcher32=True)
        file.create_dataset("holes", (10, 10), "f4", chunks=(3, 3), fillvalue=np.nan)[4, 4] = 1
        file["holes"].attrs["missing_value"] = np.float32("nan")
        file["scalar"] = np.complex128(1 - 2j)
        file["flags"] = np.array([True, False, True])
        file["nothing"] = np.empty((0, 3), "i2")
        file["text"] = np.array(["a", "", "grün", "x" * 50], object)
        file["fixed"] = np.array([b"ab", b"", b"abc"])
        file["records"] = np.array([(1, 2.5), (3, -1)], [("a", "<i2"), ("b", ">f8")])
        file["deep/er/half"] = np.arange(5, dtype="f2")
        with_masks = file.create_dataset("variants", (8,), "<i4", chunks=(4,), compression="gzip")
        with_masks.id.write_direct_chunk((0,), np.arange(4, dtype="<i4").tobytes(), filter_mask=1)
        with_masks[4:] = np.arange(4, 8)
    return path


def assert_served_equal(group, **options):
    """Compare what zarr reads over HTTP with what it reads from the hierarchy itself."""
    expected = zarr.open_group(group.to_store(**options), mode="r")
    with running(application(group, ReadOptions(**options), codecs="core")) as address:
        served = zarr.open_group(address, mode="r")
        for path, array in group.walk_arrays():
            shown = served[path]
            assert {codec.to_dict()["name"] for codec in shown.metadata.codecs} <= CORE_CODECS
            assert shown.metadata.chunk_grid.to_dict()["name"] == "regular"
            assert shown.dtype == array.dtype or array.dtype == np.dtype(object)
            values, whole = shown[...], expected[path][...]
            assert np.asarray(values).dtype == np.asarray(whole).dtype
            np.testing.assert_array_equal(values, whole, err_msg=path)


@pytest.mark.parametrize("backend", ["auto", "fsspec"])
def test_types(kinds, backend):
    group = vzr.scan(kinds)
    assert "virtualzarr_refs.mixed" in group["variants"].metadata.codecs[-1]["name"]
    assert_served_equal(group, backend=backend)


def test_open_meteo(monkeypatch):
    monkeypatch.setattr(open_meteo_values, "steps", lambda: open_meteo_numpy)  # spares compiling
    assert_served_equal(vzr.scan(ROOT / "sample_data/open_meteo/temperature_2m/chunk_4058.om"))


def test_rectilinear():
    grid = RectilinearGrid((9, 5), ((3, 1, 3, 2), (2, 3)))
    values = np.arange(45, dtype="u1").reshape(9, 5)
    rows, columns = np.cumsum([0, 3, 1, 3, 2]), [0, 2, 5]
    chunks = {
        i * 2 + j: values[rows[i] : rows[i + 1], columns[j] : columns[j + 1]].tobytes()
        for i in range(4)
        for j in range(2)
    }
    metadata = ArrayMetadata("uint8", grid, 0, ({"name": "bytes"},))
    group = VirtualGroup(arrays={"a": VirtualArray(metadata, Manifest.from_inline((4, 2), chunks))})
    assert core_metadata(metadata).chunk_grid == RegularGrid((9, 5), (3, 3))
    assert_served_equal(group)


@pytest.mark.parametrize("shape", [(1 << 30,), (3, 5, 1 << 28), (1 << 14, 1 << 14)])
def test_large_chunks_are_cut(shape):
    chunk_shape = core_metadata(ArrayMetadata("float64", RegularGrid(shape, shape), 0, ({"name": "bytes"},))).chunk_grid
    assert MAX_CHUNK / 4 <= np.prod(chunk_shape.chunk_shape) * 8 <= MAX_CHUNK


@pytest.fixture
def client(kinds):
    return Client(application(vzr.scan(kinds), codecs="core"))


@pytest.mark.parametrize(
    "path",
    "/floats/c/0/9 /floats/c/9/0 /floats/c/0 /floats /nothing/c/0/0 /scalar/c/0 /deep/er/c/0 /floats/d/0/0 /x/zarr.json"
    " /floats/c/0/0/ /floats/c/00/0".split(),
)
def test_what_is_not_there(client, path):
    assert client.get(path).status == 404


def test_listing(client):
    def names(path):
        return [entry["name"] for entry in client.get(path).json()["entries"]]

    assert names("/floats/") == ["zarr.json", "c"]
    assert names("/floats/c/") == [*"0123456"]
    assert names("/floats/c/6/") == [*"012"]
    assert names("/nothing/") == ["zarr.json"]
    assert names("/scalar/") == ["zarr.json", "c"]
    assert names("/deep/er/half/c/") == ["0"]
    for path in ("/floats/c/7/", "/floats/c/0/0/", "/floats/d/", "/scalar/c/"):
        assert client.get(path).status == 404


def test_ranges_etags_and_lengths(client):
    whole = client.get("/floats/c/0/0")
    assert client.get("/floats/c/0/0", range="bytes=-5").body == whole.body[-5:]
    assert client.get("/floats/c/0/0", if_none_match=whole.headers["etag"]).status == 304
    assert client.head("/floats/c/0/0").headers == whole.headers


def test_chunks_that_do_not_decode(kinds, caplog):
    group = vzr.scan(kinds)
    chunk = group["floats"].manifest.chunk((0, 0))
    with kinds.open("r+b") as file:
        file.seek(chunk.byte_range.offset)
        file.write(b"damaged")
    answer = Client(application(group, ReadOptions(on_change="ignore"), codecs="core")).get("/floats/c/0/0")
    assert answer.status == 502
    assert "do not decode" in answer.json()["error"]
    assert "kinds.h5" not in answer.body.decode()
    assert "floats/c/0/0" in caplog.text


def test_a_source_that_is_gone(client, kinds):
    kinds.unlink()
    assert client.get("/floats/c/0/0").status == 502
    assert client.get("/flags/zarr.json").status == 200
