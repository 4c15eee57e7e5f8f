"""A check finds every difference between references and files, and none where there is none."""

from __future__ import annotations

import json
import os
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import h5py
import netCDF4
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import virtualzarr_refs as vzr
from virtualzarr_refs.checking import CheckReport, array_check
from virtualzarr_refs.checking.boxes import Box, Cuts
from virtualzarr_refs.checking.comparison import equal_elements, same_type, shown
from virtualzarr_refs.chunk_grid import RectilinearGrid, RegularGrid
from virtualzarr_refs.manifest import Manifest

RECORD = np.dtype({"names": ["a", "b"], "formats": [">i2", "<f8"], "offsets": [0, 8], "itemsize": 16})


def make_file(path: Path) -> Path:
    """A file with every kind of storage and type that is compared in a way of its own."""
    rng = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        plain = file.create_dataset("plain", data=np.arange(35, dtype="<i4").reshape(5, 7), chunks=(2, 3))
        plain.attrs["units"] = "m"
        file.create_dataset("deflated", data=rng.normal(size=(9, 4)), chunks=(4, 4), compression="gzip", shuffle=True)
        file.create_dataset("big", data=np.arange(6, dtype=">f4"))
        file.create_dataset("scalar", data=np.float64(7))
        file.create_dataset("nan", data=np.array([0x7FF8000000000001, 0x7FF8000000000002], "u8").view("f8"))
        file.create_dataset("texts", data=["a", "ß", ""], dtype=h5py.string_dtype())
        file.create_dataset("fixed", data=np.array([b"ab", b"c"]))
        file.create_dataset("records", data=np.array([(1, 2.0), (3, 4.0)], RECORD))
        file.create_dataset("pairs", data=np.zeros(3, "i2"), dtype=np.dtype("i2"))
        file.create_dataset("tuples", (3,), np.dtype(("<i4", (2,))))[:] = np.arange(6).reshape(3, 2)
        file.create_dataset("raw", data=np.array([b"\0\1\2"], "V3"))
        file.create_dataset("flags", data=np.array([True, False]))
        file.create_dataset("sparse", (6, 6), "f4", chunks=(2, 2), fillvalue=-1)[4:, 4:] = 3
        file.create_dataset("empty", (0, 3), "f4", maxshape=(None, 3))
        file["group/refs"] = np.array([plain.ref, h5py.Reference()], h5py.ref_dtype)
    return path


@pytest.fixture
def source(tmp_path):
    return make_file(tmp_path / "data.h5")


@pytest.fixture
def refs(source, tmp_path):
    """The reference set of the file."""
    path = tmp_path / "refs.json"
    vzr.write_json(vzr.scan(source), path)
    return path


def edit(path: Path, key: str, change: Any) -> None:
    """Change one reference of a set."""
    document = json.loads(path.read_text())
    document["refs"][key] = change(document["refs"][key])
    if document["refs"][key] is None:
        del document["refs"][key]
    path.write_text(json.dumps(document))


def report_of(report: CheckReport, path: str):
    return next(array for array in report.arrays if array.path == path)


def failing(report: CheckReport) -> set[str]:
    return {array.path for array in report.arrays if not array.ok}


# ── Nothing is wrong ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", ["file", "set", "group", "document"])
def test_what_was_scanned_is_equal(source, refs, way):
    given_ = {"file": source, "set": refs, "group": vzr.scan(source), "document": json.loads(refs.read_text())}[way]
    report = vzr.check(given_)
    assert report.ok
    assert report.problems == ()
    assert {array.path for array in report.arrays} == {path for path, _ in vzr.scan(source).walk_arrays()}
    for array in report.arrays:
        assert (array.equal, array.different, array.undecodable, array.not_compared) == (array.chunks, 0, 0, 0)
        assert array.source == str(source)
    assert [(s.url, s.size, s.error) for s in report.sources] == [(str(source), source.stat().st_size, "")]


def test_netcdf_names(tmp_path):
    path = tmp_path / "data.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createDimension("y", 2)
        # A variable with the name of a dimension that is not along it: stored as _nc4_non_coord_x.
        file.createVariable("x", "f4", ("y",))[:] = [1, 2]
        file.createVariable("v", "f4", ("x", "y"))[:] = np.arange(6).reshape(3, 2)
    with h5py.File(path) as file:
        assert "_nc4_non_coord_x" in file
    report = vzr.check(path)
    assert report.ok
    assert {array.path: array.equal for array in report.arrays} == {"x": 1, "v": 1}


def test_values_in_other_files(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    with h5py.File(tmp_path / "sub" / "other.h5", "w") as file:
        file["there"] = np.arange(4)
        file["link"] = np.arange(9)  # not what the link of that name leads to
    np.arange(5, dtype="<i4").tofile(tmp_path / "sub" / "outside.bin")
    path = tmp_path / "sub" / "main.h5"
    with h5py.File(path, "w") as file:
        file["own"] = np.arange(3)
        file["link"] = h5py.ExternalLink("other.h5", "/there")
        file.create_dataset("outside", (5,), "<i4", external=[("outside.bin", 0, 20)])
    vzr.write_json(vzr.scan(path), tmp_path / "refs.json")
    report = vzr.check(tmp_path / "refs.json")
    assert report.problems == ()
    assert all(array.equal == array.chunks == 1 for array in report.arrays)
    assert len(report.arrays) == 3


def test_chunks_of_a_nearly_empty_array_are_not_all_read(tmp_path):
    path = tmp_path / "large.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("nothing", (10**9, 10**6), "f8", chunks=(1, 1000), fillvalue=np.nan)
        file.create_dataset("little", (10**7,), "f8", chunks=(10,), maxshape=(None,))[123_456:123_460] = 1
    report = vzr.check(path)
    assert report.ok
    assert {array.path: array.equal for array in report.arrays} == {"nothing": 10**12, "little": 10**6}


def test_remote(source):
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/check/data.h5", source.read_bytes())
    report = vzr.check("memory://check/data.h5")
    assert report.problems == ()
    assert all(array.equal == array.chunks for array in report.arrays)


# ── Something is wrong ───────────────────────────────────────────────────────────────────────────────────────────────


def test_offset_off_by_one(refs, source):
    edit(refs, "plain/c/1/2", lambda ref: [ref[0], ref[1] + 1, ref[2]])
    report = vzr.check(refs)
    assert failing(report) == {"plain"}
    array = report_of(report, "plain")
    assert (array.equal, array.different) == (8, 1)
    first = array.first_difference
    assert (first.index, first.chunk, first.expected) == ((2, 6), (1, 2), "20")
    assert "plain: 1 of 9 chunks differ from the file, first at [2, 6] (chunk [1, 2])" in report.problems[0]


def test_dropped_reference(refs):
    edit(refs, "sparse/c/2/2", lambda _: None)
    report = vzr.check(refs)
    assert failing(report) == {"sparse"}
    assert report_of(report, "sparse").first_difference.index == (4, 4)


def test_invented_reference(refs):
    document = json.loads(refs.read_text())
    document["refs"]["sparse/c/0/1"] = document["refs"]["sparse/c/2/2"]
    refs.write_text(json.dumps(document))
    first = report_of(vzr.check(refs), "sparse").first_difference
    assert (first.index, first.found, first.expected) == ((0, 2), "3.0", "-1.0")


def test_other_fill_value(refs):
    edit(refs, "sparse/zarr.json", lambda text: text.replace('"fill_value":-1.0', '"fill_value":0.0'))
    array = report_of(vzr.check(refs), "sparse")
    assert (array.equal, array.different) == (1, 8)
    assert array.first_difference.index == (0, 0)


def test_other_inline_text(refs):
    edit(refs, "texts/c/0", lambda _: "base64:AwAAAAEAAABhAQAAAHMAAAAA")  # "a", "s", ""
    first = report_of(vzr.check(refs), "texts").first_difference
    assert (first.index, first.found, first.expected) == ((1,), "'s'", "'ß'")


def test_undecodable_chunk(refs):
    edit(refs, "deflated/c/1/0", lambda ref: [ref[0], ref[1], ref[2] - 3])
    report = vzr.check(refs)
    assert failing(report) == {"deflated"}
    array = report_of(report, "deflated")
    assert (array.equal, array.undecodable) == (2, 1)
    assert "chunk [1, 0]: " in array.errors[0]


def test_layout_of_the_file_changed(refs, source):
    with h5py.File(source, "w") as file:
        file["first"] = np.arange(1000)
        file.create_dataset("plain", data=np.arange(35, dtype="<i4").reshape(5, 7), chunks=(2, 3))
    report = vzr.check(refs)
    assert not report.ok
    assert report_of(report, "plain").different > 0
    assert "holds no array at this path" in report_of(report, "big").errors[0]


def test_source_is_something_else_now(refs, source):
    source.write_bytes(b"\x55" * source.stat().st_size)
    report = vzr.check(refs)
    assert {"plain", "big", "deflated", "scalar"} <= failing(report)
    assert "is of no known format" in report_of(report, "big").errors[0]


def test_source_is_corrupt_now(refs, source):
    data = bytearray(source.read_bytes())
    data[8:200] = b"\xff" * 192
    source.write_bytes(data)
    report = vzr.check(refs)
    assert not report.ok
    assert "libhdf5 cannot open the file" in report_of(report, "big").errors[0]
    assert report_of(report, "big").not_compared == 1


def test_source_is_gone(refs, source):
    source.unlink()
    report = vzr.check(refs)
    assert not report.ok
    assert report.sources[0].size is None
    assert "there is no such file" in report.problems[0]
    array = report_of(report, "plain")
    assert array.undecodable == array.chunks == 9
    assert array.errors == (f"9 chunks, the first [0, 0], lie in {source}, which cannot be read",)
    sparse = report_of(report, "sparse")
    assert (sparse.undecodable, sparse.not_compared) == (1, 8)


def test_source_was_cut_short(refs, source):
    document = json.loads(refs.read_text())["refs"]
    _, offset, length = max((ref for ref in document.values() if isinstance(ref, list)), key=lambda ref: ref[1])
    size = offset + length - 1
    source.write_bytes(source.read_bytes()[:size])
    report = vzr.check(refs, sample=1)  # byte ranges are checked for all chunks
    assert not report.ok
    assert any(f"beyond the end of its {size} bytes" in problem for problem in report.problems)


def test_byte_range_that_overflows(source):
    group = vzr.scan(source)
    array = group.arrays["big"]
    manifest = replace(array.manifest, offset=np.array([2**64 - 8], np.uint64))
    report = vzr.check(replace(group, arrays={**group.arrays, "big": replace(array, manifest=manifest)}))
    assert failing(report) == {"big"}
    assert report_of(report, "big").undecodable == 1


@pytest.mark.parametrize(
    ("key", "old", "new"),
    [
        ("big", '"shape":[6]', '"shape":[5]'),
        ("plain", '"shape":[5,7]', '"shape":[5,8]'),
        ("plain", '"data_type":"int32"', '"data_type":"uint32"'),
    ],
)
def test_other_shape_or_type(refs, key, old, new):
    edit(refs, f"{key}/zarr.json", lambda text: text.replace(old, new))
    report = vzr.check(refs)
    assert failing(report) == {key}
    assert "the array is" in report_of(report, key).errors[0]


def test_array_that_zarr_cannot_open(refs):
    edit(refs, "big/zarr.json", lambda text: text.replace('"name":"bytes"', '"name":"no_such_codec"'))
    report = vzr.check(refs)
    assert failing(report) == {"big"}
    assert report_of(report, "big").undecodable == 1
    assert "zarr cannot open the array" in report_of(report, "big").errors[0]


def test_file_that_h5py_cannot_read_either(tmp_path):
    path = tmp_path / "data.h5"
    with h5py.File(path, "w") as file:
        data = file.create_dataset("x", data=np.arange(4), chunks=(2,), fletcher32=True)
        offset = data.id.get_chunk_info(1).byte_offset
    damaged = bytearray(path.read_bytes())
    damaged[offset] ^= 1
    path.write_bytes(damaged)
    array = report_of(vzr.check(path), "x")
    assert (array.equal, array.undecodable) == (1, 1)


# ── Samples, several sources ─────────────────────────────────────────────────────────────────────────────────────────


def test_sample(refs):
    report = vzr.check(refs, sample=2)
    assert report.sample == 2
    assert {array.path: array.checked for array in report.arrays if array.chunks > 2} == dict.fromkeys(
        ("plain", "deflated", "sparse"), 2
    )
    assert report_of(report, "big").checked == 1
    assert report_of(report, "empty").checked == 0


def test_sample_depends_on_the_seed_alone(refs):
    for number in range(9):
        edit(refs, f"plain/c/{number // 3}/{number % 3}", lambda ref: [ref[0], ref[1] + 1, ref[2]])
    firsts = [report_of(vzr.check(refs, sample=1, seed=seed), "plain").first_difference.chunk for seed in range(8)]
    again = [report_of(vzr.check(refs, sample=1, seed=seed), "plain").first_difference.chunk for seed in range(8)]
    assert firsts == again
    assert len(set(firsts)) > 1


def test_sample_of_nothing(refs):
    with pytest.raises(ValueError, match="at least one chunk"):
        vzr.check(refs, sample=0)


def test_several_sources(tmp_path):
    for name in "ab":
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["x"] = np.arange(4)
    one, other = (vzr.scan(tmp_path / f"{name}.h5").arrays["x"] for name in "ab")
    chunks = {(i,): array.manifest.chunk((0,)) for i, array in enumerate((one, other))}
    metadata = replace(one.metadata, chunk_grid=RegularGrid((8,), (4,)))
    joined = vzr.VirtualArray(metadata, Manifest.from_chunks((2,), chunks))
    report = vzr.check(vzr.VirtualGroup(arrays={"x": joined}))
    array = report_of(report, "x")
    assert report.ok
    assert (array.not_compared, array.reason) == (2, "several sources")


def test_set_that_names_no_file(tmp_path):
    group = vzr.scan(make_file(tmp_path / "data.h5"))
    alone = vzr.VirtualGroup(arrays={"texts": group.arrays["texts"]})
    report = vzr.check(alone)
    assert report.ok
    assert report.arrays[0].reason == "the set does not say which file it is from"


def test_report_as_json(refs):
    edit(refs, "plain/c/1/2", lambda ref: [ref[0], ref[1] + 1, ref[2]])
    document = json.loads(json.dumps(vzr.check(refs).to_json()))
    assert list(document) == ["ok", "sample", "arrays", "sources", "skipped"]
    plain = next(array for array in document["arrays"] if array["path"] == "plain")
    assert plain["first_difference"]["index"] == [2, 6]
    assert not plain["ok"]
    assert not document["ok"]


# ── Any byte that differs is found ───────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=40)
@given(data=st.data())
def test_one_bit(tmp_path_factory, data):
    """Flip one bit of what a set holds: exactly one chunk differs, first at the element with that bit."""
    shape = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3), "shape")
    chunks = tuple(data.draw(st.integers(1, length), "chunk") for length in shape)
    dtype = np.dtype(data.draw(st.sampled_from(["u1", "<i2", ">i4", "<f8", ">f4", "c16", "S3"]), "dtype"))
    values = np.random.default_rng(0).integers(0, 200, (*shape, dtype.itemsize), "u1").view(dtype)[..., 0]
    path = tmp_path_factory.mktemp("one_bit") / "data.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=chunks)
        file["other"] = 1
    group = vzr.scan(path)
    array = group.arrays["x"]
    index = tuple(data.draw(st.integers(0, length - 1), "index") for length in shape)
    byte = data.draw(st.integers(0, dtype.itemsize - 1), "byte")
    chunk = tuple(i // length for i, length in zip(index, chunks, strict=True))
    within = np.ravel_multi_index([i % length for i, length in zip(index, chunks, strict=True)], chunks)
    place = array.manifest.chunk(chunk).byte_range
    stored = bytearray(path.read_bytes()[place.offset : place.stop])
    stored[int(within) * dtype.itemsize + byte] ^= 1 << data.draw(st.integers(0, 7), "bit")
    changed = {i: array.manifest.chunk(i) for i in np.ndindex(array.manifest.grid_shape)}
    changed[chunk] = vzr.InlineChunk(bytes(stored))
    array = replace(array, manifest=Manifest.from_chunks(array.manifest.grid_shape, changed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_check, "MAX_CHUNKS", data.draw(st.integers(1, 9), "chunks at once"))
        report = vzr.check(replace(group, arrays={**group.arrays, "x": array}))
    found = report_of(report, "x")
    assert (found.different, found.equal) == (1, found.chunks - 1)
    assert (found.first_difference.index, found.first_difference.chunk) == (index, chunk)


# ── Parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(1, 5), max_size=3))
def test_halves_are_all_chunks_in_c_order(grid_shape):
    waiting, found = [Box((0,) * len(grid_shape), tuple(grid_shape))], []
    while waiting:
        box = waiting.pop()
        if box.count == 1:
            found.append(box.start)
        else:
            waiting.extend(reversed(box.halves()))
    assert found == list(np.ndindex(*grid_shape))


def test_regions():
    regular, listed = RegularGrid((5, 4), (2, 3)), RectilinearGrid((6, 4), ((3, 1, 2, 5), 3))
    assert Cuts.of(regular).region(Box((1, 0), (3, 2))) == (slice(2, 5), slice(0, 4))
    assert Cuts.of(listed).region(Box((1, 1), (3, 2))) == (slice(3, 6), slice(3, 4))
    assert Cuts.of(listed).elements(Box((3, 0), (4, 2))) == 0


def test_bits_decide():
    one, other = (np.frombuffer(struct.pack("<Q", bits), "f8") for bits in (0x7FF8000000000001, 0x7FF8000000000002))
    assert equal_elements(one, one).all()
    assert not equal_elements(one, other).any()
    assert not equal_elements(np.array([0.0]), np.array([-0.0])).any()
    assert shown(one[0], other[0]) == ("nan (0x010000000000f87f)", "nan (0x020000000000f87f)")
    assert equal_elements(np.array([1, 2], "<i4"), np.array([1, 3], ">i4")).tolist() == [True, False]
    with pytest.raises(ValueError, match="no match"):
        equal_elements(np.zeros(1), np.zeros(2))


def test_types_but_for_byte_order_and_padding():
    packed = np.dtype([("a", "i2"), ("b", "f8")])
    assert same_type(RECORD, packed)
    assert not same_type(RECORD, np.dtype([("a", "i2"), ("c", "f8")]))
    assert not same_type(np.dtype("i4"), np.dtype("u4"))
    padded = np.array([(1, 2.0), (3, 4.0)], RECORD)
    assert equal_elements(padded.astype(packed), padded).all()
    assert equal_elements(np.array([(1, 2.5), (3, 4.0)], packed), padded).tolist() == [False, True]


def test_a_source_that_is_not_what_was_scanned_is_told(refs, source):
    assert vzr.check(refs).ok
    stamp = source.stat()
    os.utime(source, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 5 * 10**9))
    report = vzr.check(refs)
    assert not report.ok
    assert "the file changed" in report.problems[0]
    assert report_of(report, "plain").equal == 9
