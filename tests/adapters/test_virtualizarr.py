"""Parsers of VirtualiZarr as scanners of ours, and ours as a parser there."""

import json
import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore, MemoryStore
from virtualizarr import open_virtual_dataset, open_virtual_datatree
from virtualizarr.manifests import ChunkManifest, ManifestArray, ManifestGroup, ManifestStore
from virtualizarr.manifests.utils import create_v3_array_metadata
from virtualizarr.parsers import HDFParser, KerchunkJSONParser, NetCDF3Parser
from virtualizarr.parsers.typing import Parser

import virtualzarr_refs as vzr

SAMPLES = Path(__file__).parents[2] / "sample_data"
LOCAL = ObjectStoreRegistry({"file://": LocalStore()})


def expected(path):
    with xr.open_dataset(path, engine="netcdf4") as dataset:
        return dataset.load()


# ── their parsers as our scanners ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "parser"), [("january.nc", HDFParser()), ("classic.nc", NetCDF3Parser())])
def test_a_parser_is_a_scanner(name, parser):
    group = vzr.scan(SAMPLES / name, scanner=vzr.from_virtualizarr(parser))
    assert group.urls == (str(SAMPLES / name),)
    xr.testing.assert_equal(group.to_xarray(), expected(SAMPLES / name))
    own = vzr.scan(SAMPLES / name)
    for path, array in group.walk_arrays():
        assert array.metadata.dimension_names == own[path].metadata.dimension_names


def test_nested_groups_attributes_and_fill_values_are_kept(tmp_path):
    path = tmp_path / "a b%20.h5"
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "x"
        made = file.create_dataset("one/two/x", (7,), "<i2", chunks=(3,), fillvalue=-9)
        made[:3] = 5
        made.attrs["units"] = "K"
        file["one/scalar"] = 2.5
    group = vzr.scan(path, scanner=vzr.from_virtualizarr(HDFParser()))
    assert group.attributes["title"] == "x"
    assert group["one/two/x"].metadata.attributes["units"] == "K"
    assert group["one/two/x"].metadata.fill_value == -9
    root = zarr.open_group(group.to_store(), mode="r")
    np.testing.assert_array_equal(root["one/two/x"][...], [5, 5, 5, -9, -9, -9, -9])
    assert root["one/scalar"][...] == 2.5


def test_a_remote_file_is_read_by_the_options_of_the_scan():
    import fsspec

    with fsspec.open("memory://folder/january.nc", "wb") as file:
        file.write((SAMPLES / "january.nc").read_bytes())
    group = vzr.scan("memory://folder/january.nc", scanner=vzr.from_virtualizarr(HDFParser()))
    assert group.urls == ("memory://folder/january.nc",)
    xr.testing.assert_equal(group.to_xarray(), expected(SAMPLES / "january.nc"))


def test_the_stores_of_a_registry_are_used_where_one_is_given(tmp_path):
    store = MemoryStore()
    store.put("january.nc", (SAMPLES / "january.nc").read_bytes())
    (tmp_path / "january.nc").write_bytes(b"")
    scanner = vzr.from_virtualizarr(HDFParser(), registry=ObjectStoreRegistry({f"file://{tmp_path}": Prefixed(store)}))
    assert "t2m" in vzr.scan(tmp_path / "january.nc", scanner=scanner).arrays


class Prefixed:
    """A store that finds a file by its name."""

    def __init__(self, store):
        self.store = store

    def __getattr__(self, name):
        method = getattr(self.store, name)
        return lambda path, **options: method(path.rpartition("/")[2], **options)


def test_inline_and_missing_chunks_are_kept(tmp_path):
    refs = {
        ".zgroup": json.dumps({"zarr_format": 2}),
        "x/.zarray": json.dumps(
            {
                "zarr_format": 2, "shape": [6], "chunks": [2], "dtype": "<i4", "fill_value": 7, "order": "C",
                "compressor": None, "filters": None,
            }
        ),
        "x/.zattrs": json.dumps({"_ARRAY_DIMENSIONS": ["t"]}),
        "x/0": "base64:" + "AQAAAAIAAAA=",
        "x/2": [str(tmp_path / "data.bin"), 4, 8],
    }  # fmt: skip
    (tmp_path / "data.bin").write_bytes(np.arange(3, dtype="<i4").tobytes())
    (tmp_path / "set.json").write_text(json.dumps({"version": 1, "refs": refs}))
    group = vzr.scan(tmp_path / "set.json", scanner=vzr.from_virtualizarr(KerchunkJSONParser()))
    assert group["x"].manifest.count == 2
    np.testing.assert_array_equal(zarr.open_array(group.to_store(), path="x", mode="r")[...], [1, 2, 7, 7, 1, 2])


def test_a_set_from_afar_that_a_parser_reads_reaches_no_local_file():
    import fsspec

    refs = {
        ".zgroup": '{"zarr_format":2}',
        "x/.zarray": json.dumps(V2),
        "x/.zattrs": '{"_ARRAY_DIMENSIONS":["t"]}',
        "x/0": ["/etc/passwd", 0, 8],
    }
    with fsspec.open("memory://set.json", "wb") as file:
        file.write(json.dumps({"version": 1, "refs": refs}).encode())
    scanner = vzr.from_virtualizarr(KerchunkJSONParser())
    assert vzr.scan("memory://set.json", scanner=scanner).urls == ("/etc/passwd",)  # memory is this machine
    with pytest.raises(vzr.ReferenceSetError, match="may reach files of this machine"):
        scanner.scan(Far("s3://bucket/set.json", json.dumps({"version": 1, "refs": refs}).encode()), vzr.ScanOptions())


V2 = {
    "zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "<f8", "fill_value": 0, "order": "C",
    "compressor": None, "filters": None,
}  # fmt: skip


class Far:
    """A source that says it is far away."""

    def __init__(self, url, data):
        self.url, self.data = url, data

    def identity(self):
        from virtualzarr_refs.sources.identity import SourceIdentity

        return SourceIdentity(len(self.data))

    def read(self, ranges):
        return [memoryview(self.data)[r.offset : r.stop] for r in ranges]


def test_what_a_parser_says_is_checked():
    metadata = create_v3_array_metadata((4,), np.dtype("<i4"), (2,), dimension_names=["t"])
    wrong = ManifestArray(metadata, ChunkManifest({"0": {"path": "s3://b/a", "offset": 0, "length": 8}}))
    store = ManifestStore(ManifestGroup({"x": wrong}))
    with pytest.raises(vzr.FormatError, match=r"impossible array.*node x"):
        vzr.scan(SAMPLES / "january.nc", scanner=vzr.from_virtualizarr(lambda *_: store))


def test_an_error_of_a_parser_names_it_and_the_file(tmp_path):
    (tmp_path / "no.nc").write_bytes(b"CDF\x09")
    with pytest.raises(vzr.FormatError, match=r"NetCDF3Parser cannot read .*version 9.*no\.nc"):
        vzr.scan(tmp_path / "no.nc", scanner=vzr.from_virtualizarr(NetCDF3Parser()))
    (tmp_path / "a#b.nc").write_bytes(b"")
    with pytest.raises(vzr.NotRepresentableError, match="rename"):
        vzr.scan(tmp_path / "a#b.nc", scanner=vzr.from_virtualizarr(NetCDF3Parser()))


def test_a_scanner_pickles_and_recognises_nothing_by_itself():
    scanner = pickle.loads(pickle.dumps(vzr.from_virtualizarr(NetCDF3Parser())))
    assert scanner.name == "virtualizarr.NetCDF3Parser"
    assert not scanner.recognises(b"CDF\x01", "a.nc")
    assert isinstance(scanner, vzr.Scanner)


# ── ours as a parser of theirs ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["january.nc", "classic.nc"])
def test_virtualizarr_opens_what_we_scan(name):
    parser = vzr.VirtualiZarrParser()
    assert isinstance(parser, Parser)
    url = f"file://{SAMPLES / name}"
    truth = expected(SAMPLES / name)
    loaded = open_virtual_dataset(url, registry=LOCAL, parser=parser, loadable_variables=list(truth.variables))
    for variable in truth.variables:
        found, values = loaded[variable].to_numpy(), truth[variable].to_numpy()
        if values.dtype == np.float32:  # unpacked by attributes without types, so in float64
            found = found.astype(np.float32)
            np.testing.assert_allclose(found, values, rtol=1e-6)
        else:
            np.testing.assert_array_equal(found, values)
    virtual = open_virtual_dataset(url, registry=LOCAL, parser=parser)
    assert isinstance(virtual["t2m" if "t2m" in virtual else next(iter(virtual))].variable.data, ManifestArray)
    assert dict(virtual.sizes) == dict(truth.sizes)


def test_unpacked_values_are_equal_to_the_last_bit(tmp_path):
    values = np.random.default_rng(0).normal(size=(6, 5))
    data = xr.Dataset({"x": (("t", "y"), values), "n": (("t",), ["a", "ü", "", "b", "c", "d"])}, {"t": np.arange(6)})
    data.to_netcdf(tmp_path / "x.nc", engine="h5netcdf", encoding={"x": {"chunksizes": (4, 5), "zlib": True}})
    url = f"file://{tmp_path / 'x.nc'}"
    loaded = open_virtual_dataset(
        url, registry=LOCAL, parser=vzr.VirtualiZarrParser(), loadable_variables=["x", "n", "t"]
    )
    xr.testing.assert_equal(loaded.load(), data)


def test_virtualizarr_reads_through_the_stores_of_its_registry():
    store = MemoryStore()
    store.put("folder/january.nc", (SAMPLES / "january.nc").read_bytes())
    registry = ObjectStoreRegistry({"s3://bucket": store})
    names = list(expected(SAMPLES / "january.nc").variables)
    loaded = open_virtual_dataset(
        "s3://bucket/folder/january.nc", registry=registry, parser=vzr.VirtualiZarrParser(), loadable_variables=names
    )
    np.testing.assert_array_equal(loaded["time"], expected(SAMPLES / "january.nc")["time"])
    with pytest.raises(vzr.SourceMissingError, match="nothing"):
        vzr.VirtualiZarrParser()("s3://bucket/nothing.nc", registry)
    with pytest.raises(vzr.UnsupportedError, match="LocalStore"):
        vzr.VirtualiZarrParser()("file:///a.nc", ObjectStoreRegistry({"file://": store}))


def test_a_group_of_a_file_and_variables_to_leave_out(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["one/two/x"] = np.arange(3)
        file["top"] = 1
    inner, group, name = "one/two/x", "one/two", "x"
    url = f"file://{tmp_path / 'x.h5'}"
    store = vzr.VirtualiZarrParser(group=group)(url, LOCAL)
    assert name in store._group.arrays
    assert name not in vzr.VirtualiZarrParser(group=group, drop_variables=[name])(url, LOCAL)._group.arrays
    with pytest.raises(vzr.NodeNotFoundError):
        vzr.VirtualiZarrParser(group=inner)(url, LOCAL)
    tree = open_virtual_datatree(url, registry=LOCAL, parser=vzr.VirtualiZarrParser())
    assert name in tree[group]


def test_what_their_model_cannot_carry_is_refused_by_name(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        made = file.create_dataset("in/mixed", (4,), "<i4", chunks=(2,), compression="gzip")
        made[:2] = 1
        made.id.write_direct_chunk((2,), np.array([4, 5], "<i4").tobytes(), filter_mask=1)
        file["good"] = np.arange(3)
    url = f"file://{tmp_path / 'x.h5'}"
    with pytest.raises(vzr.NotRepresentableError, match=r"in/mixed: .*different ways; drop_variables"):
        vzr.VirtualiZarrParser()(url, LOCAL)
    assert list(vzr.VirtualiZarrParser(drop_variables=["mixed"])(url, LOCAL)._group.arrays) == ["good"]
    om = next((SAMPLES / "open_meteo").rglob("*.om"))
    with pytest.raises(vzr.NotRepresentableError, match="rectilinear"):
        vzr.VirtualiZarrParser()(f"file://{om}", LOCAL)


def test_what_was_skipped_is_named_in_a_warning(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["good"] = np.arange(3)
        file.create_dataset("bad", (1,), h5py.vlen_dtype("i4"))
    with pytest.warns(vzr.SkippedNodeWarning, match="bad"):
        store = vzr.VirtualiZarrParser()(f"file://{tmp_path / 'x.h5'}", LOCAL)
    assert list(store._group.arrays) == ["good"]


def test_both_ways_give_the_same_group_again():
    own = vzr.scan(SAMPLES / "january.nc")
    again = vzr.scan(SAMPLES / "january.nc", scanner=vzr.from_virtualizarr(vzr.VirtualiZarrParser()))
    for path, array in own.walk_arrays():
        assert again[path].manifest.equals(array.manifest)
        assert again[path].metadata.attributes == array.metadata.attributes
