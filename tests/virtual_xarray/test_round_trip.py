"""What xarray does to references, it does to values: the same operations on both give the same datasets."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from tests.combine.files import Recipe, opened, write_series
from tests.virtual_xarray.files import assert_same, virtual
from virtualzarr_refs import rechunking
from virtualzarr_refs.virtual_xarray.duck_array import DuckArray

BASE = Recipe()
PACKED = {"scale_factor": 0.01, "add_offset": 270.0}
SHORT = BASE.but(dtype="i2", packing=PACKED, fill=7)
ALONG_TIME = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "override"}


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch):
    monkeypatch.setattr(rechunking, "MAX_INLINE", -1)


CASES = {
    "equal": (BASE, BASE),
    "another length": (BASE, BASE.but(steps=6)),
    "padded": (BASE.but(steps=3), BASE),
    "another level": (BASE, BASE.but(storage={"zlib": True, "complevel": 9})),
    "another codec": (BASE, BASE.but(storage={"zlib": True, "shuffle": True})),
    "uncompressed": (BASE.but(storage={}, steps=3), BASE.but(storage={})),
    "big-endian": (BASE, BASE.but(dtype=">f4")),
    "float64": (BASE, BASE.but(dtype="f8")),
    "int16": (BASE.but(dtype="i2"), BASE),
    "packed alike": (
        BASE.but(dtype="i2", packing=PACKED, fill=-32768),
        BASE.but(dtype="i2", packing=PACKED, fill=-32768),
    ),
    "packed": (BASE, BASE.but(dtype="i2", packing=PACKED, fill=-32768)),
    "packed in two ways": (
        BASE.but(dtype="i2", packing=PACKED, fill=7),
        BASE.but(dtype="i2", packing={"scale_factor": 0.5}),
    ),
    "filled": (BASE.but(fill=5), BASE.but(fill=6)),
    "other units of time": (BASE, BASE.but(time_units="minutes since 2024-01-02", start=40)),
    "another calendar": (BASE.but(calendar="noleap"), BASE.but(calendar="noleap", time_type="i4")),
    "unwritten": (BASE.but(unwritten=2), BASE.but(fill=3, unwritten=4)),
    "classic": (BASE.but(format="NETCDF3_CLASSIC"), BASE),
}


@pytest.mark.parametrize("case", CASES)
def test_concat(case, tmp_path):
    paths = write_series(tmp_path, *CASES[case], BASE)
    if case == "another calendar":
        paths.pop()
    references = xr.concat([virtual(path) for path in paths], "time", **ALONG_TIME)
    expected = xr.concat([opened(path) for path in paths], "time", **ALONG_TIME)
    assert isinstance(references["v"].data, DuckArray)
    assert references["v"].dtype == expected["v"].dtype
    assert_same(references, expected, tmp_path)


@pytest.mark.parametrize("case", ["equal", "packed", "packed in two ways", "big-endian", "another codec"])
def test_concat_along_a_new_dimension(case, tmp_path):
    paths = [recipe.write(tmp_path / f"{number}.nc") for number, recipe in enumerate(CASES[case])]
    options = {"data_vars": "all", "coords": "different", "compat": "equals", "join": "override"}
    references = xr.concat([virtual(path) for path in paths], "run", **options)
    expected = xr.concat([opened(path) for path in paths], "run", **options)
    assert_same(references, expected, tmp_path)


OPERATIONS = {
    "nothing": lambda ds: ds,
    "isel": lambda ds: ds.isel(time=slice(2, 6)),
    "isel to the end": lambda ds: ds.isel(time=slice(4, None)),
    "isel of nothing": lambda ds: ds.isel(time=slice(0, 0)),
    "isel by chunks": lambda ds: ds.isel(time=[4, 5, 0, 1]),
    "isel by steps": lambda ds: ds.isel(time=slice(None, None, 2)),
    "isel by mask": lambda ds: ds.isel(time=np.arange(8) // 2 % 2 == 0),
    "isel of one row": lambda ds: ds.isel(y=0),
    "isel of two": lambda ds: ds.isel(time=slice(2, 6), y=slice(1, 4)),
    "sel": lambda ds: ds.sel(y=slice(1, 3)),
    "head": lambda ds: ds.head(time=3),
    "rename": lambda ds: ds.rename(v="temperature", time="t", x="lon"),
    "swap": lambda ds: ds.rename_dims(x="column").assign_coords(column=("column", np.arange(6) * 2.5)),
    "attributes": lambda ds: ds.assign_attrs(title="new", number=np.int16(4)),
    "attributes of a variable": lambda ds: ds.assign(v=ds.v.assign_attrs(units="degC", flags=[1, 2])),
    "drop": lambda ds: ds.drop_vars("w"),
    "expand": lambda ds: ds.expand_dims("run"),
    "expand with a label": lambda ds: ds.expand_dims(run=["a"]),
    "repeat": lambda ds: ds.expand_dims(run=3),
    "scalar": lambda ds: ds.assign_coords(run=4, when=np.datetime64("2024-02-03T04:05:06", "ns")),
    "coordinate": lambda ds: ds.set_coords("w"),
    "in memory": lambda ds: ds.assign(new=("x", np.arange(6.0))),
    "times": lambda ds: ds.assign_coords(time=ds.time + np.timedelta64(90, "s")),
    "array and back": lambda ds: ds.v.to_dataset(name="v"),
    "copy": lambda ds: ds.copy(deep=True),
    "load": lambda ds: ds.load(),
    "one of each": lambda ds: ds.isel(time=[0, 1]).expand_dims("run").isel(run=0),
}


@pytest.fixture(params=["NETCDF4", "NETCDF3_CLASSIC"])
def single(request, tmp_path):
    chunks = (2, 1, 3)
    storage = {"zlib": True}
    recipe = BASE.but(steps=8, chunks=chunks, storage=storage, dtype="i2", packing=PACKED, fill=3, format=request.param)
    return recipe.write(tmp_path / "a.nc")


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name, single, tmp_path):
    change = OPERATIONS[name]
    group = assert_same(change(virtual(single)), change(opened(single)), tmp_path)
    found = next(array for name, array in group.arrays.items() if name in ("v", "temperature"))
    assert not found.manifest.inline
