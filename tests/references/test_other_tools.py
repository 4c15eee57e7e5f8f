"""Sets that kerchunk and VirtualiZarr make, read here; and sets that are made here, read by kerchunk and fsspec."""

import json
import warnings

import fsspec
import h5py
import netCDF4
import numpy as np
import pyarrow as pa
import pytest
import xarray as xr
from kerchunk.hdf import SingleHdf5ToZarr
from kerchunk.utils import refs_as_store
from zarr.storage import FsspecStore

from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.references import open_refs, write_json

pytestmark = pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning", "ignore::UserWarning")


@pytest.fixture(scope="module")
def netcdf(tmp_path_factory):
    """A NetCDF4 file with most of what the two tools can read."""
    path = tmp_path_factory.mktemp("netcdf") / "a.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.title = "ünïcode"
        file.numbers = np.arange(3, dtype="i2")
        for name, size in {"time": 5, "x": 7, "one": 1}.items():
            file.createDimension(name, size)
        values = np.arange(35.0).reshape(5, 7)
        deflated = file.createVariable("deflated", "f4", ("time", "x"), chunksizes=(2, 3), zlib=True, shuffle=True)
        deflated.units = "K"
        deflated[:] = values
        packed = file.createVariable("packed", "i2", ("time", "x"), fill_value=-99, chunksizes=(5, 7))
        packed.scale_factor, packed.add_offset = 0.5, 10.0
        packed[:] = np.ma.masked_equal(values, 3)
        big = file.createVariable("big", "i4", ("time",), endian="big")
        big[:] = np.arange(5) - 2
        file.createVariable("scalar", "f8", ())[...] = 2.5
        file.createVariable("time", "f8", ("time",))[:] = np.arange(5)
        text = file.createVariable("text", str, ("x",))
        text[:] = np.array(["a", "ü", "", "long" * 9, "e", "f", "g"], dtype=object)
        group = file.createGroup("inner")
        group.note = "in a group"
        group.createVariable("deep", "u8", ("x",))[:] = np.arange(7, dtype="u8") + 2**63
    return path


def h5py_values(path):
    """Every dataset as h5py reads it."""
    found = {}

    def visit(name, node):
        if isinstance(node, h5py.Dataset) and name not in ("x", "one"):
            found[name] = node.asstr()[...] if node.dtype.kind == "O" else node[...]

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


@pytest.mark.parametrize("inline_threshold", [0, 500])
def test_kerchunk_sets(netcdf, tmp_path, helpers, inline_threshold):
    refs = SingleHdf5ToZarr(str(netcdf), inline_threshold=inline_threshold).translate()
    (tmp_path / "set.json").write_text(json.dumps(refs))
    for group in (open_refs(tmp_path / "set.json"), open_refs(refs)):
        helpers.same_values(helpers.read_all(group.to_store()), h5py_values(netcdf))
        assert group.attributes["title"] == "ünïcode"
        assert group["inner"].attributes == {"note": "in a group"}
        assert group["packed"].metadata.dimension_names == ("time", "x")
        assert group.skipped == ()


def test_kerchunk_leaves_out_the_fill_value_of_cf_which_can_be_had_back(netcdf):
    refs = SingleHdf5ToZarr(str(netcdf)).translate()
    expected = xr.open_dataset(netcdf, engine="h5netcdf")["packed"].values
    masked = xr.open_zarr(open_refs(refs, mask_fill_value=True).to_store(), consolidated=False)["packed"].values
    plain = xr.open_zarr(open_refs(refs).to_store(), consolidated=False)["packed"].values
    np.testing.assert_array_equal(masked, expected)
    assert not np.isnan(plain).any()


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("compression", [None, "zstd", "gzip"])
def test_kerchunk_sets_in_each_version_compressed_or_not(netcdf, tmp_path, helpers, version, compression):
    refs = SingleHdf5ToZarr(str(netcdf)).translate()
    refs = refs if version else refs["refs"]
    with pa.output_stream(tmp_path / "set.json", compression=compression) as file:
        file.write(json.dumps(refs).encode())
    found = helpers.read_all(open_refs(tmp_path / "set.json").to_store())
    helpers.same_values(found, h5py_values(netcdf))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_virtualizarr_sets(netcdf, tmp_path, helpers, zarr_format):
    virtualizarr = pytest.importorskip("virtualizarr")
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr.parsers import HDFParser

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    options = {"url": f"file://{netcdf}", "registry": registry, "parser": HDFParser(drop_variables=["text"])}
    with virtualizarr.open_virtual_dataset(**options, loadable_variables=["time"], decode_times=False) as dataset:
        dataset.vz.to_kerchunk(tmp_path / "set.json", format="json", zarr_format=zarr_format)
    found = helpers.read_all(open_refs(tmp_path / "set.json").to_store())
    expected = h5py_values(netcdf)
    helpers.same_values(found, {name: expected[name] for name in ("deflated", "packed", "big", "scalar", "time")})


# ── the other way ────────────────────────────────────────────────────────────────────────────────────────────────────

SHUFFLE = {"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}
ZLIB = {"name": "numcodecs.zlib", "configuration": {"level": 3}}
ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
BLOSC = {
    "name": "blosc",
    "configuration": {"typesize": 4, "cname": "lz4", "clevel": 5, "shuffle": "bitshuffle", "blocksize": 0},
}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}
GRID = RegularGrid((5, 7), (2, 3))


@pytest.fixture
def group(build, helpers):
    numbers = np.arange(35).reshape(5, 7)
    names = ("y", "x")

    def array(data_type, values, *, codecs=(helpers.LITTLE,), inline=False, missing=(), grid=GRID, **more):
        metadata = helpers.describe(data_type, grid, codecs=codecs, names=more.pop("names", names), **more)
        return build.array(values, metadata, inline=inline, missing=missing)

    text = np.array([["ü", ""], ["x" * 50, "𝄞"]], dtype=object)
    arrays = {
        "plain": array("float32", numbers, fill_value=0.0, attributes={"units": "K"}),
        "inline": array("int16", numbers, inline=True),
        "deflated": array("int32", numbers, codecs=[helpers.LITTLE, SHUFFLE, ZLIB]),
        "big": array("float64", numbers / 3, codecs=[BIG, ZSTD], fill_value=0.0),
        "blosc": array("int32", numbers, codecs=[helpers.LITTLE, BLOSC]),
        "transposed": array("uint16", numbers, codecs=[TRANSPOSE, helpers.LITTLE, ZLIB]),
        "zeros": array("int32", numbers * 0),
        "holes": array("float32", numbers, fill_value="NaN", missing=[(0, 1), (2, 2)]),
        "zero_holes": array("int8", numbers, missing=[(1, 1)]),
        "masked": array("int16", numbers, fill_value=-9, missing=[(1, 0)], attributes={"_FillValue": np.int16(-9)}),
        "marked": array("float32", numbers, fill_value=0.0, attributes={"_FillValue": np.float32(4)}),
        "packed": array("uint8", numbers, attributes={"_FillValue": np.uint8(3), "scale_factor": 0.5}),
        "huge": array("uint64", numbers.astype("u8") + 2**63, inline=True),
        "flags": array("bool", numbers % 2 == 0, codecs=[{"name": "bytes"}], fill_value=False),
        "text": array("string", text, codecs=[{"name": "vlen-utf8"}], grid=RegularGrid((2, 2), (1, 2)), fill_value="",
                      names=("a", "b")),
        "scalar": array("float64", np.float64(2.5), grid=RegularGrid((), ()), names=(), fill_value=0.0),
    }  # fmt: skip
    root = helpers.group({"title": "ü/\\", "list": [1, 2]}, **arrays)
    inner = helpers.group({"note": "x"}, deep=array("complex64", numbers * 1j, fill_value=[0.0, 0.0]))
    return VirtualGroup(root.metadata, root.arrays, {"inner": inner})


@pytest.mark.parametrize("inline_threshold", [1 << 20, 0], ids=["inline", "sidecar"])
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_fsspec_and_zarr_open_what_is_written(group, tmp_path, helpers, zarr_format, inline_threshold):
    path = tmp_path / "set.json"
    write_json(group, path, zarr_format=zarr_format, inline_threshold=inline_threshold)
    filesystem = fsspec.filesystem("reference", fo=str(path), asynchronous=True)
    found = helpers.read_all(FsspecStore(filesystem, read_only=True))
    helpers.same_values(found, helpers.read_all(group.to_store()))
    helpers.same_values(helpers.read_all(open_refs(path).to_store()), helpers.read_all(group.to_store()))


def decoded(dataset):
    return {name: np.asarray(variable.values) for name, variable in dataset.variables.items()}


@pytest.mark.parametrize("inline_threshold", [1 << 20, 0], ids=["inline", "sidecar"])
def test_xarray_through_kerchunk_shows_the_same_values_as_zarr_v3(group, tmp_path, helpers, inline_threshold):
    v2, v3 = tmp_path / "v2.json", tmp_path / "v3.json"
    write_json(group, v2, zarr_format=2, inline_threshold=inline_threshold)
    write_json(group, v3, inline_threshold=inline_threshold)
    expected = xr.open_zarr(group.to_store(), consolidated=False)
    found = xr.open_dataset(str(v2), engine="kerchunk")
    helpers.same_values(decoded(found), decoded(expected))
    assert found.attrs == expected.attrs == {"title": "ü/\\", "list": [1, 2]}
    assert found["packed"].dims == ("y", "x")
    assert np.isnan(found["masked"].values[2:4, :3]).all()
    assert not np.isnan(found["zeros"].values).any()
    helpers.same_values(
        decoded(xr.open_zarr(refs_as_store(str(v3)), consolidated=False, zarr_format=3)), decoded(expected)
    )


def test_a_set_with_local_and_other_sources_and_a_sidecar(helpers, build, tmp_path):
    """fsspec learns from the template that it needs the local filesystem too."""
    values = np.arange(35, dtype="f4").reshape(5, 7)
    metadata = helpers.describe("float32", GRID, fill_value=0.0, names=("y", "x"))
    local = build.array(values, metadata)
    (url,) = local.manifest.urls
    with fsspec.open("memory://data.bin", "wb") as there, fsspec.open(url, "rb") as here:
        there.write(here.read())
    moved = local.manifest.rename_urls(lambda _: "memory://data.bin")
    group = helpers.group(remote=type(local)(metadata, moved), inline=build.array(values, metadata, inline=True))
    write_json(group, tmp_path / "set.json", inline_threshold=0)
    filesystem = fsspec.filesystem("reference", fo=str(tmp_path / "set.json"), asynchronous=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        helpers.same_values(
            helpers.read_all(FsspecStore(filesystem, read_only=True)), {"remote": values, "inline": values}
        )


def test_kerchunk_refuses_variants_loudly(tmp_path):
    refs = {"x/c/0": ["s3://bucket/a", 0, 2, 1]}
    (tmp_path / "set.json").write_text(json.dumps({"version": 1, "refs": refs}))
    filesystem = fsspec.filesystem("reference", fo=str(tmp_path / "set.json"), remote_protocol="file")
    with pytest.raises(ValueError, match="unpack"):
        filesystem.cat_file("x/c/0")
