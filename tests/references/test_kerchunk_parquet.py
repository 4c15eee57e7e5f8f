"""kerchunk's sets in Parquet: those that kerchunk and VirtualiZarr make, read here; and ours, read by fsspec."""

import json

import fsspec
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
import zarr
from fsspec.implementations.reference import LazyReferenceMapper
from zarr.storage import FsspecStore

import virtualzarr_refs as vzr
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RectilinearGrid, RegularGrid
from virtualzarr_refs.errors import NotRepresentableError, ReferenceSetError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.manifest import InlineChunk, Manifest, VirtualChunk
from virtualzarr_refs.references import open_refs
from virtualzarr_refs.references.parquet.writer import write_parquet

pytestmark = pytest.mark.filterwarnings(
    "ignore::zarr.errors.ZarrUserWarning", "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)


@pytest.fixture
def file(tmp_path):
    """A file with compressed, missing and scalar values, in two groups."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as h5:
        h5.create_dataset("v", data=np.arange(30, dtype="f4").reshape(5, 6) + 1, chunks=(2, 3), compression="gzip")
        h5.create_dataset("scalar", data=np.float64(2.5))
        sparse = h5.create_dataset("sparse", (9,), "i2", chunks=(2,))
        sparse[4:6] = [7, 8]
        h5.create_dataset("inner/deep", data=np.arange(4, dtype=">i8"))
        h5.create_dataset("empty", (0,), "i4", maxshape=(None,), chunks=(3,))
    return path


def true_values(path):
    names = ("v", "scalar", "sparse", "inner/deep", "empty")
    with h5py.File(path) as h5:
        return {name: h5[name][()] for name in names}


def through_fsspec(path):
    """The values of a set as fsspec's reference filesystem and zarr read them."""
    storage = fsspec.filesystem("reference", fo=str(path), remote_protocol="file", asynchronous=True)
    return zarr.open_group(FsspecStore(storage, read_only=True), mode="r", zarr_format=2)


@pytest.mark.parametrize("record_size", [2, 100])
@pytest.mark.parametrize("inline_threshold", [0, 100])
def test_sets_of_kerchunk(file, tmp_path, helpers, record_size, inline_threshold):
    from kerchunk.hdf import SingleHdf5ToZarr

    out = LazyReferenceMapper.create(str(tmp_path / "set.parq"), fs=fsspec.filesystem("file"), record_size=record_size)
    refs = SingleHdf5ToZarr(str(file), inline_threshold=inline_threshold).translate()
    out.update(sorted(refs["refs"].items(), key=lambda item: "/.z" not in item[0]))  # chunks after their metadata
    out.flush()
    opened = open_refs(tmp_path / "set.parq")
    helpers.same_values(helpers.read_all(opened.to_store()), true_values(file))
    assert opened["sparse"].manifest.count == 1
    assert list(opened["sparse"].manifest.indexes()) == [(2,)]
    assert set(opened["v"].manifest.urls) == {str(file)} if inline_threshold == 0 else True


def test_sets_of_refs_to_dataframe(file, tmp_path, helpers):
    from kerchunk.df import refs_to_dataframe

    vzr.write_json(vzr.scan(file), tmp_path / "set.json", zarr_format=2)
    refs = json.loads((tmp_path / "set.json").read_text())
    refs_to_dataframe(refs, str(tmp_path / "set.parq"), record_size=3)
    helpers.same_values(helpers.read_all(open_refs(tmp_path / "set.parq").to_store()), true_values(file))


def test_sets_of_virtualizarr(file, tmp_path, helpers):
    virtualizarr = pytest.importorskip("virtualizarr")
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    parser = virtualizarr.parsers.HDFParser(drop_variables=["empty", "inner", "sparse", "scalar"])
    with virtualizarr.open_virtual_dataset(f"file://{file}", registry=registry, parser=parser) as dataset:
        dataset.vz.to_kerchunk(str(tmp_path / "set.parq"), format="parquet", record_size=4)
    found = helpers.read_all(open_refs(tmp_path / "set.parq").to_store())
    expected = {name: values for name, values in true_values(file).items() if name == "v"}
    helpers.same_values(found, expected)


@pytest.mark.parametrize("partition_size", [2, 3, 1000])
def test_our_sets_read_by_fsspec(file, tmp_path, helpers, partition_size):
    group = vzr.scan(file)
    write_parquet(group, tmp_path / "set.parq", zarr_format=2, partition_size=partition_size)
    store = through_fsspec(tmp_path / "set.parq")
    for name, values in true_values(file).items():
        np.testing.assert_array_equal(store[name][...], values, err_msg=name)
    helpers.same_values(helpers.read_all(open_refs(tmp_path / "set.parq").to_store()), true_values(file))
    sparse = sorted(path.name for path in (tmp_path / "set.parq" / "sparse").iterdir())
    assert sparse == {2: ["refs.1.parq"], 3: ["refs.0.parq"], 1000: ["refs.0.parq"]}[partition_size]


def test_our_sets_read_by_kerchunks_engine(file, tmp_path):
    write_parquet(vzr.scan(file), tmp_path / "set.parq", zarr_format=2)
    options = {"remote_protocol": "file"}  # else fsspec looks for it in all keys, and fails at those of nested groups
    with xr.open_dataset(str(tmp_path / "set.parq"), engine="kerchunk", storage_options=options) as dataset:
        np.testing.assert_array_equal(dataset["v"], true_values(file)["v"])


def test_inline_chunks_stay_in_the_tables(helpers, tmp_path):
    chunks = {(0,): InlineChunk(b"ab"), (1,): VirtualChunk("/a", ByteRange(0, 0))}
    metadata = helpers.describe("uint8", RegularGrid((4,), (2,)))
    array = VirtualArray(metadata, Manifest.from_chunks((2,), chunks))
    write_parquet(helpers.group(x=array), tmp_path / "set.parq", zarr_format=2, inline_threshold=0)
    assert sorted(path.name for path in (tmp_path / "set.parq").iterdir()) == [".zmetadata", "x"]
    mapper = LazyReferenceMapper(str(tmp_path / "set.parq"), fsspec.filesystem("file"))
    assert (mapper["x/0"], mapper["x/1"]) == (b"ab", b"")
    found = open_refs(tmp_path / "set.parq")["x"].manifest
    assert (found.chunk((0,)), found.chunk((1,))) == (InlineChunk(b"ab"), InlineChunk(b""))


def test_what_zarr_v2_cannot_carry_is_refused_by_name(helpers, tmp_path):
    rectilinear = VirtualArray(helpers.describe("uint8", RectilinearGrid((7,), ((3, 4),))), Manifest.missing((2,)))
    crop = {"name": "virtualzarr_refs.crop", "configuration": {"stored_chunk_shape": [4]}}
    cropped = VirtualArray(
        helpers.describe("uint8", RegularGrid((3,), (3,)), codecs=[crop, {"name": "bytes"}]), Manifest.missing((1,))
    )
    mixed = {"name": "virtualzarr_refs.mixed", "configuration": {"variants": [{"codecs": [{"name": "bytes"}]}] * 2}}
    missing = Manifest.missing((1,))
    variants = Manifest(missing.urls, missing.url_id, missing.offset, missing.length, np.zeros(1, np.uint16))
    varied = VirtualArray(helpers.describe("uint8", RegularGrid((3,), (3,)), codecs=[mixed]), variants)
    group = helpers.group(
        a=rectilinear, b=cropped, c=varied, d=VirtualArray(helpers.describe("uint8", RegularGrid((1,), (1,))), missing)
    )
    for write in (write_parquet, vzr.write_json):
        with pytest.raises(
            NotRepresentableError, match=r"(?s)a: .*b: .*crop.*c: .*materialise.*zarr_format=3"
        ) as caught:
            write(group, tmp_path / "set", zarr_format=2)
        assert "d: " not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_reference_to_a_whole_file(helpers, tmp_path, file):
    write_parquet(helpers.group(x=one_chunk(helpers, "/a", 3)), tmp_path / "set.parq", zarr_format=2)
    (tmp_path / "whole").write_bytes(b"abc")
    table = {"path": [str(tmp_path / "whole")], "offset": [0], "size": [0], "raw": pa.array([None], pa.binary())}
    pq.write_table(pa.table(table), tmp_path / "set.parq" / "x" / "refs.0.parq")
    opened = open_refs(tmp_path / "set.parq")
    assert opened["x"].manifest.chunk((0,)) == VirtualChunk(str(tmp_path / "whole"), ByteRange(0, 3))
    assert opened.urls == (str(tmp_path / "whole"),)


def one_chunk(helpers, url, size):
    manifest = Manifest.from_chunks((1,), {(0,): VirtualChunk(url, ByteRange(5, size))})
    return VirtualArray(helpers.describe("uint8", RegularGrid((size,), (size,))), manifest)


@pytest.mark.parametrize(
    "table",
    [
        {"path": [1], "offset": [0], "size": [1]},
        {"path": ["/a"], "offset": [-1], "size": [1]},
        {"path": ["/a"], "offset": ["x"], "size": [1]},
        {"path": ["/a"], "offset": [None], "size": [1]},
        {"path": ["/a"], "size": [1]},
        {"path": ["/a"], "offset": [2**63 - 1], "size": [1]},
        {"raw": [1]},
        {"path": pa.array([], pa.string()), "offset": pa.array([], pa.int64()), "size": pa.array([], pa.int64())},
    ],
)
def test_tables_that_are_damaged(helpers, tmp_path, table):
    write_parquet(helpers.group(x=one_chunk(helpers, "/a", 3)), tmp_path / "set.parq", zarr_format=2)
    pq.write_table(pa.table(table), tmp_path / "set.parq" / "x" / "refs.0.parq")
    with pytest.raises(ReferenceSetError, match="node x"):
        open_refs(tmp_path / "set.parq")["x"].manifest.chunk((0,))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"metadata": {}, "record_size": 0}', '{"metadata": 3, "record_size": 1}']
)
def test_metadata_that_are_damaged(tmp_path, text):
    (tmp_path / "set.parq").mkdir()
    (tmp_path / "set.parq" / ".zmetadata").write_text(text)
    with pytest.raises(ReferenceSetError):
        open_refs(tmp_path / "set.parq")


# ── replacing ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("first", [2, 3])
@pytest.mark.parametrize("second", [2, 3])
def test_sets_of_either_format_replace_each_other(helpers, tmp_path, first, second):
    path = tmp_path / "set.parq"
    write_parquet(helpers.group(x=one_chunk(helpers, "/a", 3)), path, zarr_format=first)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_parquet(helpers.group(y=one_chunk(helpers, "/b", 3)), path, zarr_format=second)
    write_parquet(helpers.group(y=one_chunk(helpers, "/b", 3)), path, zarr_format=second, overwrite=True)
    opened = open_refs(path)
    assert list(opened.arrays) == ["y"]
    assert opened["y"].manifest.chunk((0,)).url == "/b"
    left = sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.is_file())
    partition = next(name for name in left if name.startswith("y/"))
    assert left == sorted(
        {2: [".zmetadata", partition], 3: [*[n for n in left if n.startswith("sources")], partition, "zarr.json"]}[
            second
        ]
    )
    assert [p.name for p in tmp_path.iterdir()] == ["set.parq"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_nothing_but_a_set_is_replaced(helpers, tmp_path, zarr_format):
    group = helpers.group(x=one_chunk(helpers, "/a", 3))
    (tmp_path / "file.parq").write_bytes(b"x")
    (tmp_path / "folder.parq").mkdir()
    (tmp_path / "folder.parq" / "precious").write_bytes(b"x")
    zarr.open_group(str(tmp_path / "store.zarr"), mode="w")
    zarr.open_group(str(tmp_path / "store2.zarr"), mode="w", zarr_format=2)
    for name in ("file.parq", "folder.parq", "store.zarr", "store2.zarr"):
        with pytest.raises(FileExistsError):
            write_parquet(group, tmp_path / name, zarr_format=zarr_format, overwrite=True)
    assert (tmp_path / "folder.parq" / "precious").read_bytes() == b"x"
    write_parquet(group, tmp_path / "set.parq")
    (tmp_path / "set.parq" / "precious").write_bytes(b"x")
    if zarr_format == 2:
        with pytest.raises(FileExistsError, match="precious"):
            write_parquet(group, tmp_path / "set.parq", zarr_format=2, overwrite=True)
    else:
        write_parquet(group, tmp_path / "set.parq", overwrite=True)
    assert (tmp_path / "set.parq" / "precious").read_bytes() == b"x"
    assert json.loads((tmp_path / "set.parq" / "zarr.json").read_text())
    assert [path.name for path in (tmp_path / "folder.parq").iterdir()] == ["precious"]
