"""How variables are cut into chunks, and where these lie."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import virtualzarr_refs as vzr
from tests.scanners.netcdf3.crafted import NC_BYTE, NC_DOUBLE, NC_FLOAT, NC_SHORT, File, Var
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.manifest import VirtualChunk


def save(path: Path, file: File, begin: int, size: int) -> Path:
    path.write_bytes(file.header())
    assert len(file.header()) <= begin
    with path.open("r+b") as opened:
        opened.truncate(begin + size)
    return path


def many_records(path: Path, count: int) -> Path:
    """A file of three record variables: 4, 8 and 8 bytes in a record."""
    variables = [
        (b"a", Var(NC_SHORT, [0], 512)),
        (b"b", Var(NC_DOUBLE, [0], 516)),
        (b"c", Var(NC_FLOAT, [0, 1], 524)),
    ]
    return save(path, File(2, count, [(b"t", 0), (b"x", 2)], variables=variables), 512, 20 * count)


def shape_of_chunks(group: vzr.VirtualGroup, name: str) -> Any:
    return group.arrays[name].metadata.chunk_grid.chunk_shape


def test_a_fixed_variable_is_cut_along_its_first_axis(tmp_path):
    file = File(1, 0, [(b"y", 12), (b"x", 10)], variables=[(b"v", Var(NC_FLOAT, [0, 1], 256))])
    path = save(tmp_path / "fixed.nc", file, 256, 480)
    assert shape_of_chunks(vzr.scan(path), "v") == (12, 10)
    group = vzr.scan(path, target_chunk_size=120)
    assert shape_of_chunks(group, "v") == (3, 10)
    assert group.arrays["v"].manifest.offset.tolist() == [[256], [376], [496], [616]]
    assert shape_of_chunks(vzr.scan(path, target_chunk_size=20), "v") == (1, 5)


def test_a_chunk_for_each_record_where_records_have_several_variables(tmp_path):
    group = vzr.scan(many_records(tmp_path / "records.nc", 5))
    assert {name: shape_of_chunks(group, name) for name in "abc"} == {"a": (1,), "b": (1,), "c": (1, 2)}
    manifest = group.arrays["c"].manifest
    assert manifest.offset.tolist() == [[524 + 20 * i] for i in range(5)]
    assert manifest.length.tolist() == [[8]] * 5
    assert group.arrays["a"].manifest.chunk((4,)) == VirtualChunk(str(tmp_path / "records.nc"), ByteRange(592, 2))


def test_a_large_record_is_cut_too(tmp_path):
    variables = [(b"a", Var(NC_FLOAT, [0, 1, 2], 256)), (b"b", Var(NC_FLOAT, [0], 736))]
    file = File(1, 2, [(b"t", 0), (b"y", 12), (b"x", 10)], variables=variables)
    group = vzr.scan(save(tmp_path / "records.nc", file, 256, 2 * 484), target_chunk_size=120)
    assert shape_of_chunks(group, "a") == (1, 3, 10)
    expected = [[256 + 484 * record + 120 * part for part in range(4)] for record in range(2)]
    assert group.arrays["a"].manifest.offset[:, :, 0].tolist() == expected


@pytest.mark.parametrize(("target", "length"), [(1, 1), (3, 3), (9, 8), (1000, 24)])
def test_several_records_a_chunk_where_there_is_only_one_variable(tmp_path, target, length):
    file = File(1, 24, [(b"t", 0), (b"x", 3)], variables=[(b"v", Var(NC_BYTE, [0, 1], 256))])
    group = vzr.scan(save(tmp_path / "one.nc", file, 256, 72), target_chunk_size=target * 3)
    assert shape_of_chunks(group, "v") == (length, 3)


def test_no_records(tmp_path):
    group = vzr.scan(many_records(tmp_path / "none.nc", 0))
    assert group.arrays["c"].shape == (0, 2)
    assert group.arrays["c"].manifest.is_missing


def test_no_records_of_an_immense_size(tmp_path):
    # Nothing may be worked out by the length of an axis that the file does not have to hold.
    variables = [(b"a", Var(NC_BYTE, [0, 1], 256))]
    file = File(5, 0, [(b"t", 0), (b"x", (1 << 62) - 57)], variables=variables)
    group = vzr.scan(save(tmp_path / "none.nc", file, 256, 0), target_chunk_size=1)
    assert group.arrays["a"].shape == (0, (1 << 62) - 57)


def test_how_the_arrays_look_to_zarr(tmp_path):
    variables = [(b"a", Var(NC_SHORT, [0], 256)), (b"b", Var(NC_BYTE, [], 262))]
    path = save(tmp_path / "few.nc", File(1, 0, [(b"x", 3)], variables=variables), 256, 8)
    arrays = vzr.scan(path).arrays
    assert arrays["a"].metadata.codecs == ({"name": "bytes", "configuration": {"endian": "big"}},)
    assert arrays["b"].metadata.codecs == ({"name": "bytes"},)
    assert arrays["b"].shape == ()
    opened = zarr.open_group(vzr.scan(path).to_store(), mode="r")
    assert opened["a"].metadata.dimension_names == ("x",)


def test_a_hundred_thousand_records_cost_no_more_calls_than_a_hundred(tmp_path):
    few, many = (calls(many_records(tmp_path / f"{count}.nc", count)) for count in (100, 100_000))
    assert many <= few + 50
    manifest = vzr.scan(tmp_path / "100000.nc").arrays["b"].manifest
    assert np.array_equal(manifest.offset, 516 + 20 * np.arange(100_000))


def calls(path: Path) -> int:
    """How many functions are called in a scan, by Python code or of C code."""
    vzr.scan(path)
    counted = 0

    def count(*_: Any) -> None:
        nonlocal counted
        counted += 1

    sys.setprofile(count)
    try:
        vzr.scan(path)
    finally:
        sys.setprofile(None)
    return counted
