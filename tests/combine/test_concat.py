"""Concatenations equal what xarray gives for the same files, or are refused."""

from __future__ import annotations

import itertools

import netCDF4
import numpy as np
import pytest

from tests.combine.files import Recipe, assert_same, joined_by_us, joined_by_xarray, write_series
from virtualzarr_refs.combine.values import read_arrays

BASE = Recipe()
PACKED = {"scale_factor": 0.01, "add_offset": 270.0}

CASES = {
    "equal": BASE,
    "another length": BASE.but(steps=6),
    "a padded last chunk": BASE.but(steps=3),
    "one padded chunk": BASE.but(steps=1),
    "another level": BASE.but(storage={"zlib": True, "complevel": 9}),
    "another codec": BASE.but(storage={"zlib": True, "shuffle": True}),
    "uncompressed": BASE.but(storage={}),
    "contiguous chunks of another shape": BASE.but(storage={}, chunks=(4, 5, 6)),
    "other chunks": BASE.but(chunks=(3, 5, 6)),
    "unlike chunks": BASE.but(chunks=(4, 5, 6), storage={"zlib": True, "shuffle": True}),
    "checksums": BASE.but(storage={"fletcher32": True}),
    "big-endian": BASE.but(dtype=">f4"),
    "float64": BASE.but(dtype="f8"),
    "int16": BASE.but(dtype="i2"),
    "packed": BASE.but(dtype="i2", packing=PACKED, fill=-32768),
    "packed with float32": BASE.but(dtype="i2", packing={"scale_factor": 0.5}, fill=7),
    "with _FillValue": BASE.but(fill=5),
    "other units of time": BASE.but(time_units="days since 2023-12-31", start=40),
    "int64 times": BASE.but(time_type="i8"),
    "minutes": BASE.but(time_units="minutes since 2024-01-01", time_type="i4", start=9000),
    "lacks the variable": BASE.but(lacks=("v",)),
    "unwritten chunks": BASE.but(unwritten=4),
    "partly unwritten": BASE.but(unwritten=2),
    "classic": BASE.but(format="NETCDF3_CLASSIC"),
    "64-bit data": BASE.but(format="NETCDF3_64BIT_DATA", dtype="i2"),
}


@pytest.mark.parametrize("case", CASES)
def test_between_two_like_the_first(case, tmp_path):
    odd = CASES[case]
    last = BASE.but(start=10000) if odd.start or odd.time_units != BASE.time_units else BASE
    paths = write_series(tmp_path, BASE, odd, last)
    assert_same(joined_by_us(paths), joined_by_xarray(paths), tmp_path)


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(CASES, 2)], ids=str)
def test_in_pairs(one, other, tmp_path):
    first, second = CASES[one], CASES[other]
    if "units" in (one + other) or "minutes" in (one, other):
        first, second = first.but(start=10), second.but(start=20000)
    paths = write_series(tmp_path, first, second)
    assert_same(joined_by_us(paths), joined_by_xarray(paths), tmp_path)


def write_short(path, start, times, steps):
    """A file whose coordinate was written less far than its unlimited dimension reaches."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createVariable("time", "f8", ("time",))[:] = start + np.arange(times)
        file.createVariable("v", "f4", ("time",), chunksizes=(1,))[:] = start + np.arange(steps)
    return path


def test_nothing_is_dropped_where_a_coordinate_is_shorter_than_its_dimension(tmp_path):
    paths = [write_short(tmp_path / "0.nc", 0, 3, 5), write_short(tmp_path / "1.nc", 10, 4, 4)]
    found = joined_by_us(paths)
    assert_same(found, joined_by_xarray(paths), tmp_path)
    np.testing.assert_array_equal(found.to_xarray()["v"], [0, 1, 2, 3, 4, 10, 11, 12, 13])


def test_what_lies_beyond_a_short_coordinate_is_kept_with_its_end(tmp_path):
    paths = [write_short(tmp_path / "0.nc", 0, 4, 4), write_short(tmp_path / "1.nc", 2, 4, 6)]
    found = joined_by_us(paths, overlap="first").to_xarray()
    np.testing.assert_array_equal(found["v"], [0, 1, 2, 3, 4, 5, 6, 7])
    np.testing.assert_array_equal(found["time"][:6], [0, 1, 2, 3, 4, 5])


def test_a_coordinate_is_read_once(tmp_path, monkeypatch):
    minutes = BASE.but(time_units="minutes since 2024-01-01", start=9000)
    paths = write_series(tmp_path, BASE, BASE.but(steps=3), minutes)
    read = []

    def counted(arrays, *arguments):
        read.extend(
            url for array in arrays if array.metadata.dimension_names == ("time",) for url in array.manifest.urls
        )
        return read_arrays(arrays, *arguments)

    monkeypatch.setattr("virtualzarr_refs.combine.options.read_arrays", counted)
    joined_by_us(paths)
    assert read == [str(path) for path in paths]
