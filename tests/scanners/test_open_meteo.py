"""Every `.om` file reads as omfiles reads it, on every way to it, or is refused when it is scanned."""

from __future__ import annotations

import contextlib
import pickle
import struct
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import omfiles
import pytest
import xarray as xr
import zarr

import virtualzarr_refs as vzr
from scanners.open_meteo import OpenMeteoScanner
from scanners.open_meteo.lookup_table import read_chunks
from scanners.open_meteo.records import ArrayRecord
from scanners.open_meteo.window import Window
from tests.corpus import VARIABLE, corpus_files
from tests.open_meteo_files import (
    array_variable,
    arrays,
    old_file,
    pack_table,
    trailer,
    truth,
    values,
    write,
)
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RectilinearGrid, RegularGrid
from virtualzarr_refs.sources import open_source

FILES = corpus_files("om")
NOT_READ = {"v_f8"}
"""The only array of the corpus in a compression that omfiles writes wrongly."""


def scan(path) -> vzr.VirtualGroup:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vzr.SkippedNodeWarning)
        return vzr.scan(path)


def assert_equal(ours: np.ndarray, reader: omfiles.OmFileReader):
    theirs = truth(reader)
    assert ours.dtype == theirs.dtype
    if reader.compression_name.endswith("logarithmic"):
        np.testing.assert_allclose(ours, theirs, rtol=2e-7, atol=2e-7)
    else:
        assert ours.tobytes() == theirs.tobytes()


# ── Real files ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(not FILES, reason=f"NO CORPUS: set {VARIABLE}; nothing was tested on real files")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_real_files_equal_omfiles_on_every_way(path, tmp_path):
    group = scan(path)
    vzr.write_json(group, tmp_path / "refs.json")
    reopened = vzr.open_refs(tmp_path / "refs.json")
    assert {record.path for record in group.skipped} <= NOT_READ
    assert reopened.equals(group)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vzr.SkippedNodeWarning)
        tree = xr.open_datatree(path, engine="virtualzarr_refs")
    count = 0
    for name, reader in arrays(omfiles.OmFileReader.from_path(str(path))):
        if name not in NOT_READ:
            for hierarchy in (group, reopened):
                assert_equal(zarr.open_group(hierarchy.to_store(), mode="r")[name][...], reader)
            assert_equal(tree[name].values, reader)
            count += 1
    assert count == sum(1 for _ in group.walk_arrays())


# ── The tree ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["tail", "inline"])
def tree_file(request, tmp_path):
    path = tmp_path / "tree.om"
    writer = omfiles.OmFileWriter.at_path(str(path), metadata_placement=request.param)
    scalar = writer.write_scalar

    def array(shape, name, *children):
        return writer.write_array(np.ones(shape, "f4"), [min(2, n) for n in shape], name=name, children=list(children))

    wind = array((4, 6), "wind", scalar("lat lon", "coordinates"), scalar("m/s", "unit"), scalar(np.int16(7), "code"))
    odd = array((5, 6), "odd", scalar("lat lon", "coordinates"))
    few = array((5,), "few", scalar("lat lon", "coordinates"), array((3,), "within"))
    deep = writer.write_group("deep", [array((2,), "x"), writer.write_group("deeper", [scalar(np.float32(0.1), "f")])])
    twice = [array((2,), "twice"), array((3,), "twice"), array((2,), "a/b")]
    scalars = [scalar("Wetter, météo", "title"), scalar("", "empty"), scalar(np.uint64(2**63), "large")]
    nested = scalar("2020", "time", children=[scalar(3, "step")])
    writer.close(writer.write_group("", [wind, odd, few, deep, *twice, *scalars, nested, scalar("again", "title")]))
    return path


def test_groups_arrays_and_attributes(tree_file):
    group = scan(tree_file)
    assert {path for path, _ in group.walk()} == {
        "", "wind", "odd", "few", "within", "twice", "deep", "deep/x", "deep/deeper",
    }  # fmt: skip
    assert group.attributes == {"title": "Wetter, météo", "empty": "", "large": 2**63, "time": "2020"}
    assert group["wind"].metadata.typed_attributes() == {"unit": "m/s", "code": 7}
    assert group["wind"].metadata.typed_attributes()["code"].dtype == np.int16
    assert group["deep/deeper"].attributes["f"].dtype == np.float32


def test_dimension_names(tree_file):
    group = scan(tree_file)
    assert group["wind"].metadata.dimension_names == ("lat", "lon")
    assert group["odd"].metadata.dimension_names is None  # another length of lat in the same group
    assert group["few"].metadata.dimension_names is None
    assert group["few"].metadata.typed_attributes() == {"coordinates": "lat lon"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vzr.SkippedNodeWarning)
        assert xr.open_dataset(tree_file, engine="virtualzarr_refs")["wind"].dims == ("lat", "lon")


def test_what_is_left_out_is_named(tree_file):
    reasons = {record.path: record.reason for record in scan(tree_file).skipped}
    assert set(reasons) == {"twice", "a/b", "@time", "@title"}
    with pytest.raises(vzr.UnsupportedError):
        vzr.scan(tree_file, strict=True)


@pytest.mark.parametrize(("name", "shown"), [("", "data"), ("t2m", "t2m")])
def test_an_array_at_the_root(name, shown, tmp_path):
    path = write(tmp_path / "a.om", np.ones((3, 4), "f4"), (3, 4), name=name)
    assert list(scan(path).arrays) == [shown]


def test_grids(tmp_path):
    whole = scan(write(tmp_path / "a.om", np.ones((4, 6), "f4"), (2, 6)))["data"].metadata
    assert whole.chunk_grid == RegularGrid((4, 6), (2, 6))
    edged = scan(write(tmp_path / "b.om", np.ones((4, 7), "f4"), (2, 3)))["data"].metadata
    assert edged.chunk_grid == RectilinearGrid((4, 7), (2, (3, 3, 1)))


# ── Lookup tables ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [1, 2, 62, 63, 64, 65, 126, 127, 128, 129, 191, 192, 1000])
def test_numbers_of_chunks_around_a_block_of_the_table(count, tmp_path):
    array = values("spikes", (count * 3 - 1,), "i4", count)
    path = write(tmp_path / "a.om", array, [min(3, array.size)])
    group = scan(path)
    assert group["data"].manifest.grid_shape == (-(-array.size // 3),)
    assert (zarr.open_group(group.to_store(), mode="r")["data"][...] == array).all()


def table_file(path, boundaries, shape, chunks):
    """A file that consists of a table of chunks that are not there, so that it is quickly made."""
    table = pack_table(boundaries)
    variable = array_variable(20, 0, (boundaries[-1], len(table)), shape, chunks)
    end = boundaries[-1] + len(table)
    with path.open("wb") as file:
        file.write(b"OM\x03")
        file.truncate(boundaries[-1])
        file.seek(boundaries[-1])
        file.write(table + variable + trailer(end, len(variable)))


def test_large_tables_take_little_memory(tmp_path):
    count = 500_000
    lengths = np.random.default_rng(0).integers(20, 300, count)
    boundaries = np.concatenate(([3], 3 + np.cumsum(lengths))).tolist()
    path = tmp_path / "a.om"
    table_file(path, boundaries, (1000, 500), (1, 1))
    vzr.scan(path)  # imports are not to count
    tracemalloc.start()
    group = vzr.scan(path)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    manifest = group["data"].manifest
    assert manifest.offset.ravel().tolist() == boundaries[:-1]
    assert manifest.length.ravel().tolist() == lengths.tolist()
    # 20 million chunks, an ERA5-Land year, then keep 240 MB; a piece of the table takes the same for any number.
    assert kept < 12.1 * count + 100_000
    assert peak < 12.1 * count + 45_000_000


def test_chunks_longer_than_32_bits_say(tmp_path):
    path = tmp_path / "a.om"
    table_file(path, [3, 10, 10 + 2**33, 17 + 2**33], (3,), (1,))
    manifest = vzr.scan(path)["data"].manifest
    assert manifest.length.tolist() == [7, 2**33, 7]


def test_short_lengths_are_as_good_as_long_ones(tmp_path):
    path = tmp_path / "a.om"
    table_file(path, [3, 2**32, 2**33 - 9, 2**33], (3,), (1,))
    manifest = vzr.scan(path)["data"].manifest
    assert manifest.length.dtype == np.uint32
    assert manifest.nbytes == 2**33 - 3
    long = replace(manifest, length=manifest.length.astype(np.uint64))
    assert manifest.equals(long)
    assert long.equals(pickle.loads(pickle.dumps(manifest)))
    assert manifest.chunk((1,)) == vzr.VirtualChunk(str(path), ByteRange(2**32, 2**32 - 9))


@pytest.mark.parametrize(
    ("boundaries", "shape"),
    [([3, 20, 10, 30], (3,)), ([3, 10, 20, 1 << 60], (3,)), ([3, 10, 20, 30], (65,)), ([3] * 4, (10**9,))],
)
def test_tables_that_lie_are_refused(boundaries, shape, tmp_path):
    table = pack_table(boundaries)
    variable = array_variable(20, 0, (3, len(table)), shape, (1,))
    path = tmp_path / "a.om"
    path.write_bytes(b"OM\x03" + table + variable + trailer(3 + len(table), len(variable)))
    with pytest.raises(vzr.FormatError):
        vzr.scan(path, strict=True)
    assert scan(path).skipped[0].path == "data"


# ── Versions 1 and 2 ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("version", "compression", "name"),
    [(1, 0, "pfor_delta_2d_int16"), (2, 0, "pfor_delta_2d_int16"), (2, 1, "fpx_xor_2d"), (2, 2, "pfor_delta_2d"),
     (2, 3, "pfor_delta_2d_int16_logarithmic")],
)  # fmt: skip
@pytest.mark.parametrize("chunks", [(5, 20), (3, 7), (1, 1), (1, 100)])
def test_old_versions(version, compression, name, chunks, tmp_path):
    """Chunks are the same in all versions, so those that omfiles wrote are put into an older file."""
    array = np.abs(values("smooth", (5, 100), "f4"))
    new = scan(write(tmp_path / "new.om", array, chunks, compression=name, scale_factor=20.0))
    store, keys = new.to_store(), new["data"].chunk_keys()
    data = [store.get_sync(f"data/{key}").to_bytes() for key in keys]
    path = tmp_path / "old.om"
    stored = 77 if version == 1 else compression  # which version 1 does not use
    path.write_bytes(old_file(version, stored, 20.0, (5, 100), chunks, data))
    reader = omfiles.OmFileReader.from_path(str(path))
    assert reader.shape == (5, 100)
    assert_equal(zarr.open_group(scan(path).to_store(), mode="r")["data"][...], reader)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"OM",
        b"OM\x03" + bytes(100),
        b"OM\x02",
        old_file(2, 0, 1.0, (5, 5), (6, 5), [b"a"]),
        old_file(2, 0, 1.0, (5, 5), (0, 5), [b"a"]),
        old_file(2, 9, 1.0, (5, 5), (5, 5), [b"a"]),
        old_file(2, 0, 1.0, (1 << 40, 1 << 40), (1, 1), [b"a"]),
        old_file(2, 0, 1.0, (5, 5), (5, 5), [b"abc"])[:-1],
        old_file(2, 0, 0.0, (5, 5), (5, 5), [b"abc"]),
    ],
)
def test_files_that_are_cut_short_or_lie_are_refused(content, tmp_path):
    path = tmp_path / "a.om"
    path.write_bytes(content)
    with pytest.raises((vzr.FormatError, vzr.UnsupportedError)) as caught:
        vzr.scan(path, scanner="open_meteo", strict=True)
    assert str(path) in str(caught.value)


# ── Damage ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_damaged_metadata_is_read_or_refused(tree_file):
    """Any byte of the tree may be anything: that is our error, or a scan whose chunks lie inside the file."""
    content = tree_file.read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(600):
        damaged = bytearray(content)
        for place in rng.integers(3, len(content), rng.integers(1, 5)):
            damaged[place] = rng.choice([0, 1, 255, rng.integers(256)])
        tree_file.write_bytes(bytes(damaged))
        try:
            group = scan(tree_file)
        except vzr.VirtualZarrError:
            refused += 1
            continue
        for _, array in group.walk_arrays():
            assert int((array.manifest.offset + array.manifest.length).max()) <= len(content)
            with contextlib.suppress(vzr.VirtualZarrError, xr.MergeError):
                array.resolve("zarr.json")
    assert refused > 20


def test_variables_within_themselves_are_refused(tmp_path):
    variable = struct.pack("<BBHIQQ", 0, 0, 0, 1, 24, 3)
    path = tmp_path / "a.om"
    path.write_bytes(b"OM\x03" + variable + bytes(5000) + trailer(3, 24))
    with pytest.raises(vzr.FormatError, match="within themselves"):
        vzr.scan(path)


def test_variables_that_are_shared_without_end_are_refused(tmp_path):
    size, content = 8 + 16 * 40, b"OM\x03"
    for level in range(30):
        child = 3 + max(level - 1, 0) * size
        record = struct.pack("<BBHI", 0, 0, 0, 40 if level else 0) + struct.pack("<80Q", *[size] * 40, *[child] * 40)
        content += record
    path = tmp_path / "a.om"
    path.write_bytes(content + trailer(3 + 29 * size, size))
    with pytest.raises(vzr.FormatError, match="too many"):
        vzr.scan(path)


# ── Parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_recognises():
    scanner = OpenMeteoScanner()
    assert all(scanner.recognises(b"OM" + bytes([version]), "") for version in (1, 2, 3))
    assert not any(scanner.recognises(head, "") for head in (b"", b"OM", b"OM\x04", b"OM\x00", b"CDF\x01"))


def test_a_window_reads_what_is_far_from_the_end(tmp_path):
    content = np.random.default_rng(0).bytes(600_000)
    path = tmp_path / "a"
    path.write_bytes(content)
    window = Window.of(open_source(str(path)))
    places = [(0, 10), (599_990, 10), (300_000, 299_000), (0, 10), (600_000, 0)]
    assert window.read([ByteRange(*place) for place in places]) == [content[o : o + n] for o, n in places]
    with pytest.raises(vzr.FormatError):
        window.read([ByteRange(599_990, 11)])


def test_a_table_is_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("scanners.open_meteo.lookup_table.PIECE", 2)
    boundaries = np.concatenate(([3], 3 + np.cumsum(np.random.default_rng(0).integers(0, 99, 1000)))).tolist()
    path = tmp_path / "a.om"
    table_file(path, boundaries, (1000,), (1,))
    table = pack_table(boundaries)
    record = ArrayRecord(np.dtype("f4"), (1000,), (1,), "", 1.0, 0.0, ByteRange(boundaries[-1], len(table)))
    offsets, lengths = read_chunks(Window.of(open_source(str(path))), record)
    assert offsets.tolist() == boundaries[:-1]
    assert lengths.tolist() == np.diff(boundaries).tolist()
