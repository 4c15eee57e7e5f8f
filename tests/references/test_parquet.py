"""Our own format in Parquet: round trips, and what is read when."""

import json
import pickle

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import virtualzarr_refs as vzr
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RectilinearGrid, RegularGrid
from virtualzarr_refs.errors import NotRepresentableError, ReferenceSetError, SourceMissingError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import InlineChunk, Manifest, VirtualChunk
from virtualzarr_refs.metadata import GroupMetadata, Skipped
from virtualzarr_refs.references import open_refs
from virtualzarr_refs.references.parquet.files import SetFiles
from virtualzarr_refs.references.parquet.writer import write_parquet

MIXED = {
    "name": "virtualzarr_refs.mixed",
    "configuration": {
        "variants": [
            {"codecs": [{"name": "bytes"}]},
            {"codecs": [{"name": "bytes", "configuration": {"endian": "big"}}], "data_type": "int16",
             "chunk_shape": [3], "scale_factor": 0.5, "add_offset": 1.0, "types": {"scale_factor": "<f8"}},
        ]
    },
}  # fmt: skip

chunks = st.none() | st.binary(max_size=3).map(InlineChunk) | st.builds(
    VirtualChunk,
    st.sampled_from(["s3://b/ü.nc", "/data/a.nc", "https://h/c.nc"]),
    st.builds(ByteRange, st.integers(0, 2**62), st.integers(0, 2**40)),
)  # fmt: skip


@pytest.fixture
def reads(monkeypatch):
    """Names of the files of sets that are read."""
    names = []
    read = SetFiles.read
    monkeypatch.setattr(SetFiles, "read", lambda self, name: (names.append(name), read(self, name))[1])
    return names


def line(helpers, manifest, **options):
    """An array of one axis with these chunks, of two elements each."""
    return VirtualArray(helpers.describe("uint8", RegularGrid((2 * manifest.size,), (2,)), **options), manifest)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(what=st.lists(chunks, max_size=12), partition_size=st.integers(1, 13), mixed=st.booleans())
def test_manifests_come_back_equal(helpers, tmp_path_factory, what, partition_size, mixed):
    path = tmp_path_factory.mktemp("sets") / "set.parq"
    manifest = Manifest.from_chunks((len(what),), {(i,): chunk for i, chunk in enumerate(what)})
    if mixed:
        variant = np.arange(len(what), dtype=np.uint16) % 2
        manifest = Manifest(manifest.urls, manifest.url_id, manifest.offset, manifest.length, variant, manifest.inline)
    group = helpers.group(x=line(helpers, manifest, codecs=[MIXED] if mixed else [{"name": "bytes"}]))
    write_parquet(group, path, partition_size=partition_size)
    opened = open_refs(path)
    helpers.same_group(group, opened)
    found = opened["x"].manifest
    assert (found.count, found.is_missing, found.is_full) == (manifest.count, manifest.is_missing, manifest.is_full)
    used = [chunk.url for chunk in what if isinstance(chunk, VirtualChunk)]
    assert set(found.urls) == set(used)


def test_everything_of_a_hierarchy_comes_back(helpers, tmp_path):
    grid = RectilinearGrid((7,), ((3, 4),))
    named = helpers.describe(
        "float32", grid, fill_value="NaN", attributes={"scale_factor": np.float32(0.5)}, names=["t"]
    )
    inner = helpers.group({"note": np.int16(3)}, deep=VirtualArray(named, Manifest.from_inline((2,), {1: bytes(16)})))
    scalar = VirtualArray(helpers.describe("uint8", RegularGrid((), ())), Manifest.from_inline((), {0: b"\x07"}))
    empty = line(helpers, Manifest.missing((0,)))
    root = GroupMetadata({"title": "ü"}, {}, ("t",), (Skipped("lost", "because"),))
    group = VirtualGroup(root, {"scalar": scalar, "empty": empty}, {"inner": inner, "none": VirtualGroup()})
    write_parquet(group, tmp_path / "set.parq")
    helpers.same_group(group, open_refs(tmp_path / "set.parq"))
    helpers.same_group(group, open_refs(f"{tmp_path}/set.parq/"))
    assert open_refs(tmp_path / "set.parq").skipped == root.skipped


def test_a_scanned_file_reads_as_it_does_itself(tmp_path):
    with h5py.File(tmp_path / "a.nc", "w") as file:
        values = np.arange(60, dtype="f4").reshape(6, 10)
        file.create_dataset("v", data=values, chunks=(2, 3), compression="gzip", shuffle=True)
        file.create_dataset("text", data=["a", "ü"], dtype=h5py.string_dtype())
    write_parquet(vzr.scan(tmp_path / "a.nc"), tmp_path / "a.parq")
    with xr.open_dataset(tmp_path / "a.parq", engine="virtualzarr_refs") as found:
        np.testing.assert_array_equal(found["v"], values)
        assert found["text"].values.tolist() == ["a", "ü"]
    assert open_refs(tmp_path / "a.parq").sources == vzr.open_refs(tmp_path / "a.parq").sources != {}
    assert [*open_refs(tmp_path / "a.parq").sources] == [str(tmp_path / "a.nc")]
    read = zarr.open_group(pickle.loads(pickle.dumps(open_refs(tmp_path / "a.parq"))).to_store(), mode="r")
    np.testing.assert_array_equal(read["v"][1:5, ::2], values[1:5, ::2])


def test_only_the_partitions_that_a_read_touches_are_loaded(build, helpers, tmp_path, reads):
    values = np.arange(40, dtype="u2")
    group = helpers.group(x=build.array(values, helpers.describe("uint16", RegularGrid((40,), (2,)))))
    write_parquet(group, tmp_path / "set.parq", partition_size=3)
    reads.clear()
    opened = open_refs(tmp_path / "set.parq")
    assert reads == ["zarr.json", "sources.parq"]
    array = zarr.open_group(opened.to_store(), mode="r")["x"]
    assert array[15] == 15
    assert set(reads[2:]) == {"x/refs.2.parq"}
    assert array[14:20].tolist() == values[14:20].tolist()
    assert reads[2:].count("x/refs.2.parq") == 1
    with xr.open_dataset(opened, engine="virtualzarr_refs") as dataset:
        assert dataset["x"][39].item() == 39
    assert set(reads[2:]) == {"x/refs.2.parq", "x/refs.3.parq", "x/refs.6.parq"}


def test_partitions_without_a_chunk_have_no_file(helpers, tmp_path):
    manifest = Manifest.from_chunks((1000, 1000), {(500, 1): VirtualChunk("/a", ByteRange(1, 2))})
    metadata = helpers.describe("uint8", RegularGrid((1000, 1000), (1, 1)))
    write_parquet(helpers.group(x=VirtualArray(metadata, manifest)), tmp_path / "set.parq")
    assert sorted(p.name for p in (tmp_path / "set.parq" / "x").iterdir()) == [f"refs.{500001 // 2**16}.parq"]
    found = open_refs(tmp_path / "set.parq")["x"].manifest
    assert list(found.indexes()) == [(500, 1)]
    assert found.chunk((0, 0)) is None


def test_large_inline_chunks_go_to_files_of_the_set(helpers, tmp_path):
    group = helpers.group(x=line(helpers, Manifest.from_inline((2,), {0: b"ab", 1: b"cd"})))
    write_parquet(group, tmp_path / "set.parq", inline_threshold=3)
    (file,) = (tmp_path / "set.parq" / "data").iterdir()
    assert file.read_bytes() == b"abcd"
    (tmp_path / "set.parq").rename(tmp_path / "moved.parquet")
    opened = open_refs(tmp_path / "moved.parquet", allow=["s3://bucket"])
    assert zarr.open_group(opened.to_store(), mode="r")["x"][...].tobytes() == b"abcd"
    write_parquet(opened, tmp_path / "moved.parquet", overwrite=True, inline_threshold=3)
    assert next((tmp_path / "moved.parquet" / "data").iterdir()).name == file.name
    assert zarr.open_group(open_refs(tmp_path / "moved.parquet").to_store(), mode="r")["x"][...].tobytes() == b"abcd"
    write_parquet(group, tmp_path / "moved.parquet", overwrite=True)
    assert not (tmp_path / "moved.parquet" / "data").exists()


def test_relative_urls_start_at_the_folder_of_the_set(build, helpers, tmp_path):
    array = build.array(np.arange(4, dtype="u1"), helpers.describe("uint8", RegularGrid((4,), (2,))))
    relative = VirtualArray(
        array.metadata, array.manifest.rename_urls(lambda url: f"../sources/{url.rpartition('/')[2]}")
    )
    write_parquet(helpers.group(x=relative), tmp_path / "set.parq")
    assert open_refs(tmp_path / "set.parq").urls == array.manifest.urls


def test_other_zarr_readers_refuse_the_set_instead_of_showing_fill_values(helpers, tmp_path):
    write_parquet(helpers.group(x=line(helpers, Manifest.from_inline((1,), {0: b"ab"}))), tmp_path / "set.parq")
    with pytest.raises(Exception, match=r"unexpected|virtualzarr_refs\.partitions"):
        zarr.open_group(str(tmp_path / "set.parq"), mode="r")


def test_secrets_are_refused(helpers, tmp_path):
    manifest = Manifest.from_chunks((1,), {(0,): VirtualChunk("https://u:p@h/a", ByteRange(0, 2))})
    with pytest.raises(NotRepresentableError, match="credentials"):
        write_parquet(helpers.group(x=line(helpers, manifest)), tmp_path / "set.parq")
    assert list(tmp_path.iterdir()) == []


def test_a_set_in_a_bucket(helpers, memory_folder):
    group = helpers.group(
        x=line(helpers, Manifest.from_inline((2,), {0: b"ab", 1: b"cd"})),
    )
    url = f"{memory_folder}/set.parq"
    write_parquet(group, url, inline_threshold=0)
    opened = open_refs(url)
    assert zarr.open_group(opened.to_store(), mode="r")["x"][...].tobytes() == b"abcd"
    with pytest.raises(FileExistsError):
        write_parquet(group, url)
    write_parquet(helpers.group(y=group["x"]), url, overwrite=True)
    assert list(open_refs(url).arrays) == ["y"]


@pytest.fixture
def memory_folder():
    from fsspec.implementations.memory import MemoryFileSystem

    yield "memory://bucket"
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


# ── sets that are damaged, or not what they were ─────────────────────────────────────────────────────────────────────


@pytest.fixture
def written(helpers, tmp_path):
    manifest = Manifest.from_chunks((4,), {(i,): VirtualChunk(f"/{i}.nc", ByteRange(i, 2)) for i in range(4)})
    write_parquet(helpers.group(x=line(helpers, manifest)), tmp_path / "set.parq", partition_size=2)
    return tmp_path / "set.parq"


def change_root(path, change):
    document = json.loads((path / "zarr.json").read_text())
    change(document)
    (path / "zarr.json").write_text(json.dumps(document))


def test_a_set_that_was_replaced_is_not_mixed_with_the_new_one(helpers, written):
    old = open_refs(written)
    assert old["x"].manifest.chunk((0,)).url == "/0.nc"
    other = Manifest.from_chunks((4,), {(i,): VirtualChunk(f"/new{i}.nc", ByteRange(i, 2)) for i in range(4)})
    write_parquet(helpers.group(x=line(helpers, other)), written, partition_size=2, overwrite=True)
    with pytest.raises(SourceMissingError):
        old["x"].manifest.chunk((2,))
    assert open_refs(written)["x"].manifest.chunk((2,)).url == "/new2.nc"


def test_a_partition_of_another_set(written, helpers, tmp_path):
    write_parquet(open_refs(written), tmp_path / "other.parq", partition_size=2)
    (tmp_path / "other.parq" / "x" / "refs.1.parq").rename(written / "x" / "refs.1.parq")
    with pytest.raises(ReferenceSetError, match="belongs to another set"):
        open_refs(written)["x"].manifest.chunk((2,))


def test_a_partition_that_vanished_is_not_taken_for_one_without_chunks(written):
    (written / "x" / "refs.1.parq").unlink()
    with pytest.raises(SourceMissingError, match=r"refs\.1\.parq"):
        open_refs(written)["x"].manifest.chunk((2,))


def test_a_partition_that_is_damaged(written):
    data = (written / "x" / "refs.1.parq").read_bytes()
    for damaged in (b"", data[:50], data[:-20], b"PAR1" + bytes(100) + b"PAR1"):
        (written / "x" / "refs.1.parq").write_bytes(damaged)
        with pytest.raises(ReferenceSetError, match=r"(?s)Parquet.*refs\.1\.parq.*node x"):
            open_refs(written)["x"].manifest.chunk((2,))


def test_partitions_with_too_few_rows(written):
    change_root(written, lambda d: d["virtualzarr_refs.partitions"].update(partition_size=3))
    with pytest.raises(ReferenceSetError, match="2 rows, and 3 chunks"):
        open_refs(written)["x"].manifest.chunk((0,))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 2}, "version 2"),
        ({"partition_size": 0}, "partitions of 0"),
        ({"partition_size": 1 << 40}, "cannot be read"),
        ({"arrays": []}, "malformed"),
        ({"arrays": {"x": {}}}, "malformed"),
        (
            {"arrays": {"x": {"partitions": [[0, 9]], "sources": [], "count": 1, "inline": False, "generation": 0}}},
            "grid",
        ),
        (
            {"arrays": {"x": {"partitions": [], "sources": [[0, 9]], "count": 1, "inline": False, "generation": 0}}},
            "table",
        ),
        (
            {"arrays": {"x": {"partitions": [[1, 0]], "sources": [], "count": 1, "inline": 0, "generation": 0}}},
            "malformed",
        ),
        ({"generation": -1}, "malformed"),
        ({"set": "other"}, "another set"),
    ],
)
def test_a_root_that_is_damaged(written, change, reason):
    change_root(written, lambda d: d["virtualzarr_refs.partitions"].update(change))
    with pytest.raises(ReferenceSetError, match=reason):
        open_refs(written)


def test_a_folder_that_is_no_set(tmp_path):
    (tmp_path / "empty.parq").mkdir()
    with pytest.raises(SourceMissingError, match="no reference set"):
        open_refs(tmp_path / "empty.parq")
    zarr.open_group(str(tmp_path / "store"), mode="w")
    with pytest.raises(ReferenceSetError, match="not that of a reference set"):
        open_refs(tmp_path / "store")


def test_trust_holds_for_partitions_too(written):
    with pytest.raises(ReferenceSetError, match="allow"):
        open_refs(written, allow=["s3://bucket"])
