"""Open-Meteo's files along time, alone and after files of other formats, against omfiles."""

from __future__ import annotations

import netCDF4
import numpy as np
import omfiles
import pytest
import xarray as xr
import zarr

import virtualzarr_refs as vzr
from scanners.open_meteo import with_time
from tests.open_meteo_files import truth, values, write

META = {"temporal_resolution_seconds": 3600, "chunk_time_length": 10}


def series(folder, lengths, chunks, options=({},), first=50):
    paths = []
    for number, length in enumerate(lengths):
        folder.joinpath("temperature").mkdir(exist_ok=True)
        path = folder / "temperature" / f"chunk_{first + number}.om"
        field = values("smooth", (5, 7, length), "f4", seed=number)
        paths.append(
            write(path, field, (*chunks[:2], min(chunks[2], length)), "temperature", **options[number % len(options)])
        )
    return paths


def read(paths):
    return np.concatenate([truth(omfiles.OmFileReader.from_path(str(path))) for path in paths], axis=-1)


@pytest.mark.parametrize("chunks", [(2, 3, 4), (5, 7, 10), (3, 4, 1)], ids=str)
@pytest.mark.parametrize(
    "options",
    [
        ({"scale_factor": 20.0, "compression": "pfor_delta_2d_int16"},),
        ({"compression": "fpx_xor_2d"},),
        (
            {"scale_factor": 20.0, "compression": "pfor_delta_2d_int16"},
            {"scale_factor": 50.0, "compression": "pfor_delta_2d"},
        ),
    ],
    ids=["packed", "floats", "packed differently"],
)
def test_files_of_a_series(options, chunks, tmp_path):
    paths = series(tmp_path, (10, 10, 7), chunks, options)
    group = vzr.concat([with_time(vzr.scan(path), META, path) for path in paths], "time")
    vzr.write_json(group, tmp_path / "set.json")
    expected = read(paths)
    for found in (group.to_xarray(), xr.open_dataset(tmp_path / "set.json", engine="virtualzarr_refs")):
        assert found["temperature"].dtype == expected.dtype
        np.testing.assert_array_equal(found["temperature"], expected)
        np.testing.assert_array_equal(found["temperature"][1:4, 2, 8:23], expected[1:4, 2, 8:23])
        start = np.datetime64("1970-01-01") + np.timedelta64(500, "h")
        np.testing.assert_array_equal(found["time"], start + np.arange(27) * np.timedelta64(1, "h"))
        found.close()
    np.testing.assert_array_equal(zarr.open_group(group.to_store(), mode="r")["temperature"][...], expected)


def test_a_year_of_uneven_chunks_and_the_next(tmp_path):
    paths = []
    for year, days in ((2023, 365), (2024, 366)):
        paths.append(tmp_path / f"year_{year}.om")
        write(paths[-1], values("smooth", (1, 2, days * 24), "f4", seed=year), (1, 2, 504), "data", scale_factor=20.0)
    meta = {"temporal_resolution_seconds": 3600, "chunk_time_length": 504}
    group = vzr.concat([with_time(vzr.scan(path), meta, path) for path in paths], "time")
    found = group.to_xarray()
    (name,) = found.data_vars
    np.testing.assert_array_equal(found[name], read(paths))
    assert found["time"].to_numpy()[8760] == np.datetime64("2024-01-01")
    assert group[name].metadata.chunk_grid.chunk_lengths(2)[16:19] == (504, 192, 504)


def test_after_a_netcdf_file(tmp_path):
    (path,) = series(tmp_path, (7,), (2, 3, 4), ({"scale_factor": 20.0},), first=51)
    field = values("noise", (5, 7, 10), "f8")
    with netCDF4.Dataset(tmp_path / "before.nc", "w") as file:
        for name, size in (("y", 5), ("x", 7), ("time", 10)):
            file.createDimension(name, size)
        time = file.createVariable("time", "i4", ("time",))
        time.units = "hours since 1970-01-01"
        time[:] = np.arange(500, 510)
        data = file.createVariable(
            "temperature", ">f8", ("y", "x", "time"), zlib=True, chunksizes=(2, 3, 4), endian="big"
        )
        data[:] = field
    group = vzr.concat([vzr.scan(tmp_path / "before.nc"), with_time(vzr.scan(path), META, path)], "time")
    found = group.to_xarray()
    np.testing.assert_array_equal(found["temperature"], np.concatenate([field, read([path])], axis=-1))
    assert found["temperature"].dtype == np.float64
    assert found["time"].to_numpy()[-1] == np.datetime64("1970-01-01") + np.timedelta64(516, "h")
