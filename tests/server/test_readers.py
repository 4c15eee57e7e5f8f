"""Other Zarr readers over HTTP: the values that they read are those of the file."""

import h5py
import numpy as np
import obstore
import pytest
import tensorstore
import xarray as xr
import zarr
from zarr.storage import ObjectStore

import virtualzarr_refs as vzr
from tests.readers import read_with_zarrita, serving


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    path = tmp_path_factory.mktemp("readers") / "archive.h5"
    values = np.random.default_rng(0).standard_normal((50, 30)).round(2).cumsum(0)
    with h5py.File(path, "w") as file:
        file.create_dataset("raw", data=values.astype("f4"), chunks=(16, 16))
        file.create_dataset("big_endian", data=values.astype(">f8"), chunks=(16, 16))
        file.create_dataset("deflated", data=values.astype("i2"), chunks=(16, 16), compression="gzip")
        file.create_dataset("shuffled", data=values, chunks=(16, 16), compression="gzip", shuffle=True)
        file.create_dataset("lzf", data=values, chunks=(16, 16), compression="lzf")
        file.create_dataset("scalar", data=np.int32(-5))
        file.create_dataset("holes", (9, 9), "u1", chunks=(4, 4), fillvalue=7)[4:, :5] = 1
        file["deep/er/bytes"] = np.arange(200, dtype="u1")
        masked = file.create_dataset("variants", (8,), "<i8", chunks=(4,), compression="gzip")
        masked.id.write_direct_chunk((0,), np.arange(4).tobytes(), filter_mask=1)
        masked[4:] = np.arange(4, 8)
        for name in ("raw", "scalar"):
            file[name].attrs["missing_value"] = np.float32("nan")
    return path


@pytest.fixture(scope="module")
def expected(archive):
    group = vzr.scan(archive)
    with h5py.File(archive) as file:
        return {path: file[path][()].astype(file[path].dtype.newbyteorder("=")) for path, _ in group.walk_arrays()}


@pytest.fixture(scope="module")
def stored(archive):
    with serving(archive) as address:
        yield address


@pytest.fixture(scope="module")
def core(archive):
    with serving(archive, "--codecs", "core") as address:
        yield address


STORED = {"raw", "big_endian", "scalar", "holes", "deep/er/bytes"}
DEFLATED = {*STORED, "deflated"}
SHUFFLED = {*DEFLATED, "shuffled"}


def assert_equal(found, expected, names):
    assert set(found) == set(names)
    for name, values in found.items():
        assert np.asarray(values).dtype == expected[name].dtype, name
        np.testing.assert_array_equal(values, expected[name], err_msg=name)


# ── zarr-python ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["stored", "core"])
def test_zarr_python_through_fsspec(kind, request, expected):
    group = zarr.open_group(request.getfixturevalue(kind), mode="r")
    assert_equal({name: group[name][...] for name in expected}, expected, expected)


@pytest.mark.parametrize("kind", ["stored", "core"])
def test_zarr_python_through_obstore(kind, request, expected):
    remote = obstore.store.HTTPStore.from_url(request.getfixturevalue(kind), client_options={"allow_http": True})
    group = zarr.open_group(ObjectStore(remote, read_only=True), mode="r")
    assert_equal({name: group[name][...] for name in expected}, expected, expected)


@pytest.mark.parametrize("kind", ["stored", "core"])
def test_xarray(kind, request, expected):
    with xr.open_zarr(request.getfixturevalue(kind), consolidated=True, mask_and_scale=False) as dataset:
        names = [name for name in expected if "/" not in name]
        assert_equal({name: dataset[name].values for name in names}, expected, names)


# ── zarrs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def zarrs():
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "codec_pipeline.strict": True}):
        yield


@pytest.mark.usefixtures("zarrs")
@pytest.mark.parametrize(("kind", "names"), [("stored", SHUFFLED), ("core", None)])
def test_zarrs(kind, names, request, expected):
    group = zarr.open_group(request.getfixturevalue(kind), mode="r")
    names = expected.keys() if names is None else names
    assert_equal({name: group[name][...] for name in names}, expected, names)


# ── tensorstore ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("kind", "names"), [("stored", STORED), ("core", None)])
def test_tensorstore(kind, names, request, expected):
    address = request.getfixturevalue(kind)
    names = expected.keys() if names is None else names
    found = {}
    for name in names:
        opened = tensorstore.open({"driver": "zarr3", "kvstore": f"{address}/{name}/"}).result()
        found[name] = opened.read().result()
    assert_equal(found, expected, names)


# ── zarrita ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("kind", "names"), [("stored", SHUFFLED), ("core", None)])
def test_zarrita(kind, names, request, expected):
    names = expected.keys() if names is None else names
    assert_equal(dict(read_with_zarrita(request.getfixturevalue(kind), names)), expected, names)
