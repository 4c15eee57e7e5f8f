"""Which variables are references, which are read, and that both come back as they were."""

from __future__ import annotations

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

import virtualzarr_refs as vzr
from tests.combine.files import Recipe, opened
from tests.virtual_xarray.files import assert_same, virtual
from virtualzarr_refs.errors import NodeNotFoundError, UnsupportedError
from virtualzarr_refs.scanning import scan
from virtualzarr_refs.virtual_xarray import opening
from virtualzarr_refs.virtual_xarray.duck_array import DuckArray


def references(dataset):
    return {name for name, variable in dataset.variables.items() if isinstance(variable.data, DuckArray)}


@pytest.fixture
def mixed(tmp_path):
    """A file with a variable of every kind that xarray decodes in its own way."""
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("y", 3)
        file.createDimension("letters", 4)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.bounds = "days since 2000-01-01", "time_bounds"
        time[:] = [0, 1, 2]
        file.createDimension("two", 2)
        file.createVariable("time_bounds", "f8", ("time", "two"))[:] = np.arange(6).reshape(3, 2)
        file.createVariable("y", "i2", ("y",), fill_value=-1)[:] = np.ma.masked_equal([4, 5, -1], -1)
        file.createVariable("names", "S1", ("y", "letters"))[:] = np.array([*"abcdefghijkl"], "S1").reshape(3, 4)
        file.createVariable("marks", "S1", ("y",))[:] = np.array([*"xyz"], "S1")
        file.createVariable("text", str, ("y",))[:] = np.array(["one", "two", "drei"], object)
        flag = file.createVariable("flag", "i1", ("y",))
        flag.setncattr("dtype", "bool")
        flag[:] = [0, 1, 1]
        file.createVariable("scalar", "i4", ()).assignValue(7)
        moment = file.createVariable("moment", "i8", ("time", "y"))
        moment.units = "seconds since 1999-01-01"
        moment[:] = np.arange(9).reshape(3, 3)
        late = file.createVariable("late", "f4", ("time", "y"), fill_value=9)
        late[:1] = 1
        v = file.createVariable("v", "i2", ("time", "y"), fill_value=-7)
        v.scale_factor, v.coordinates = np.float32(0.5), "scalar height"
        v[:] = np.ma.masked_equal(np.arange(9).reshape(3, 3) - 1, -1)
        file.createVariable("height", "f4", ("y",))[:] = [1, 2, 3]
        file.createVariable("days", "i4", ("y",)).units = "days"
    return tmp_path / "a.nc"


def test_what_is_shown_is_what_xarray_shows(mixed):
    found, expected = virtual(mixed), opened(mixed)
    assert references(found) == {"late", "v", "days"}
    assert found.sizes == expected.sizes
    assert set(found.coords) == set(expected.coords)
    for name, variable in expected.variables.items():
        assert found[name].dims == variable.dims
        assert found[name].attrs == variable.attrs
        assert found[name].dtype == variable.dtype or variable.dtype.kind in "OTU"
        np.testing.assert_array_equal(found[name].values, variable.values)


def test_everything_comes_back(mixed, tmp_path):
    assert_same(virtual(mixed), opened(mixed), tmp_path)


def test_everything_comes_back_from_what_was_read(mixed, tmp_path):
    found = virtual(mixed, loadable_variables=["v", "late", "days"])
    assert references(found) == set()
    assert_same(found, opened(mixed), tmp_path)


def test_variables_that_end_before_their_dimension_are_as_long_as_it(tmp_path):
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("time", None)
        file.createVariable("long", "f4", ("time",), chunksizes=(2,))[:] = np.arange(7)
        file.createVariable("short", "f4", ("time",), chunksizes=(2,), zlib=True, fill_value=3)[:3] = np.arange(3)
    found = virtual(tmp_path / "a.nc")
    assert found["short"].shape == (7,)
    assert_same(found, opened(tmp_path / "a.nc"), tmp_path)


def test_large_coordinates_stay_references_and_are_compared_by_their_values(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "MAX_LOADED", 0)
    paths = []
    for number in range(3):
        values = np.arange(12.0).reshape(3, 4) + (number == 2)
        field = xr.Dataset({"v": (("t", "y", "x"), np.full((1, 3, 4), number))}, {"lat": (("y", "x"), values)})
        field.lat[0, 0] = np.nan
        field.to_netcdf(tmp_path / f"{number}.nc")
        paths.append(tmp_path / f"{number}.nc")
    options = {"data_vars": "minimal", "coords": "minimal", "compat": "equals", "join": "exact"}
    same = xr.concat([virtual(path) for path in paths[:2]], "t", **options)
    assert references(same) == {"lat", "v"}
    assert_same(same, xr.concat([opened(path) for path in paths[:2]], "t", **options), tmp_path)
    with pytest.raises(xr.MergeError, match="lat"):
        xr.concat([virtual(path) for path in paths], "t", **options)
    options["coords"] = "different"
    apart = xr.concat([virtual(path) for path in paths], "t", **options)
    assert_same(apart, xr.concat([opened(path) for path in paths], "t", **options), tmp_path)


def test_trees(tmp_path):
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("x", 3)
        file.createVariable("x", "f4", ("x",))[:] = np.arange(3)
        file.createGroup("one").createVariable("v", "i4", ("x",))[:] = 1
        file.createGroup("one/two").createVariable("v", "f4", ("x",), fill_value=5)[:] = 2
    group = scan(tmp_path / "a.nc")
    tree = xr.DataTree.from_dict({path: group.to_xarray(virtual=True, path=path) for path in ("/", "/one", "/one/two")})
    found = vzr.from_xarray(tree)
    assert isinstance(tree["one/two/v"].data, DuckArray)
    expected = xr.open_datatree(tmp_path / "a.nc", engine="netcdf4").load()
    xr.testing.assert_identical(xr.open_datatree(found, engine="virtualzarr_refs").load(), expected)
    expected.close()


def test_what_was_skipped_stays_on_record(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = np.arange(3)
        file["g"] = np.zeros(2, np.dtype("f16"))
    with pytest.warns(vzr.SkippedNodeWarning):
        group = scan(tmp_path / "a.h5")
    assert group.skipped
    assert vzr.from_xarray(group.to_xarray(virtual=True)).skipped == group.skipped


def test_what_is_too_large_to_be_read_is_refused(mixed, monkeypatch):
    monkeypatch.setattr(opening, "MAX_READ", 40)
    with pytest.raises(UnsupportedError, match="drop_variables") as caught:
        virtual(mixed)
    assert caught.value.node == "time_bounds"
    assert "moment" not in virtual(mixed, drop_variables=["moment", "time_bounds", "text"])


def test_unknown_names_are_refused(mixed):
    with pytest.raises(NodeNotFoundError, match="no such variable"):
        virtual(mixed, loadable_variables=["wind"])
    with pytest.raises(NodeNotFoundError):
        scan(mixed).to_xarray(virtual=True, path="nowhere")


def test_packing_is_that_of_the_references(tmp_path):
    path = Recipe(dtype="i2", packing={"scale_factor": 0.5}, fill=3).write(tmp_path / "a.nc")
    found = virtual(path)
    found["v"].encoding = {"scale_factor": 7.0}
    assert_same(found, opened(path), tmp_path)
    attributes = vzr.from_xarray(found)["v"].metadata.attributes
    assert attributes["scale_factor"] == 0.5
