"""What xarray may do to references, and what is refused."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import xarray as xr

import virtualzarr_refs as vzr
from tests.combine.files import Recipe, opened, write_series
from tests.virtual_xarray.files import assert_same, virtual
from virtualzarr_refs import rechunking
from virtualzarr_refs.errors import NotRepresentableError, UnsupportedError
from virtualzarr_refs.virtual_xarray.duck_array import DuckArray

BASE = Recipe(chunks=(2, 5, 3))
PACKED = BASE.but(dtype="i2", packing={"scale_factor": 0.01, "add_offset": 270.0}, fill=3)


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch):
    monkeypatch.setattr(rechunking, "MAX_INLINE", -1)


@pytest.fixture
def path(tmp_path):
    return PACKED.write(tmp_path / "a.nc")


REFUSED = {
    "arithmetic": lambda ds: ds.v + 1,
    "reduction": lambda ds: ds.v.mean(),
    "comparison by size": lambda ds: ds.v > 3,
    "filling": lambda ds: ds.v.fillna(0),
    "masking": lambda ds: ds.v.where(ds.x > 2),
    "transposing": lambda ds: ds.v.transpose("x", "y", "time"),
    "a new inner axis": lambda ds: ds.v.expand_dims("run", axis=1),
    "cast to less": lambda ds: ds.v.astype("f4"),
    "cast": lambda ds: vzr.from_xarray(ds.assign(v=ds.v.astype("c16"))),
    "part of a chunk": lambda ds: ds.isel(time=slice(1, 3)),
    "an element of a chunk": lambda ds: ds.isel(time=0),
    "steps": lambda ds: ds.isel(time=slice(1, None, 2)),
    "two lists": lambda ds: ds.v[[0, 1], [0]],
    "points": lambda ds: ds.v.isel(time=xr.DataArray([0, 1], dims="p"), y=xr.DataArray([0, 1], dims="p")),
    "reindexing": lambda ds: ds.reindex(x=[0.5, 2.5]),
    "dask": lambda ds: vzr.from_xarray(ds.chunk()),
    "an attribute of packing": lambda ds: vzr.from_xarray(ds.assign(v=ds.v.assign_attrs(scale_factor=2))),
    "objects": lambda ds: vzr.from_xarray(ds.assign_coords(y=("y", np.array([{}] * 5, object)))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_values_is_refused(name, path):
    dataset = virtual(path).assign_coords(x=np.arange(6.0))
    with pytest.raises((UnsupportedError, TypeError)) as caught:
        REFUSED[name](dataset)
    assert isinstance(caught.value, UnsupportedError), caught.value


def test_attributes_that_cannot_be_written_are_refused(path):
    with pytest.raises(NotRepresentableError, match="'made'"):
        vzr.from_xarray(virtual(path).assign_attrs(made=object()))


def test_values_in_memory_may_not_be_many(path, monkeypatch):
    from virtualzarr_refs.virtual_xarray import writing

    monkeypatch.setattr(writing, "MAX_READ", 100)
    with pytest.raises(UnsupportedError, match="too many") as caught:
        vzr.from_xarray(virtual(path).assign(many=("x", np.zeros((6), "c16") + 1), more=("n", np.zeros(1000))))
    assert caught.value.node == "more"


def test_what_cannot_be_joined_is_refused_with_its_file(tmp_path):
    paths = write_series(tmp_path, BASE, BASE.but(chunks=(2, 4, 3)), BASE)
    with pytest.raises(UnsupportedError, match="do not line up") as caught:
        xr.concat([virtual(p) for p in paths], "time", data_vars="minimal")
    assert caught.value.url.endswith("1.nc")


def test_a_missing_variable_is_refused(tmp_path):
    paths = write_series(tmp_path, BASE, BASE.but(lacks=("v",), steps=2), BASE)
    with pytest.raises(UnsupportedError):
        xr.concat([virtual(p) for p in paths], "time", data_vars="minimal")


def test_it_is_an_array_that_can_be_copied_and_sent(path):
    array = virtual(path)["v"].data
    assert copy.deepcopy(array) is copy.copy(array) is array
    assert (array.ndim, array.size, array.nbytes) == (3, 120, 960)
    assert "references to 4 chunks" in repr(virtual(path))
    assert repr(array).startswith("DuckArray(float64 (4, 5, 6)")
    again = pickle.loads(pickle.dumps(array))
    np.testing.assert_array_equal(np.asarray(again), opened(path)["v"].values)
    np.testing.assert_array_equal(np.asarray(array, "f4"), opened(path)["v"].values.astype("f4"))


@pytest.mark.parametrize("compat", ["no_conflicts", "equals", "broadcast_equals", "identical", "override"])
def test_merge(compat, path, tmp_path):
    def merged(open_):
        one, other = open_(path), open_(path)
        parts = [one[["v"]], other[["w"]].rename(w="z"), other[["v", "w"]]]
        return xr.merge(parts, compat=compat, join="exact", combine_attrs="override")

    assert_same(merged(virtual), merged(opened), tmp_path)


def test_merging_what_differs_fails_as_in_memory(tmp_path):
    paths = [PACKED.write(tmp_path / "0.nc"), PACKED.but(unwritten=2).write(tmp_path / "1.nc")]
    with pytest.raises(xr.MergeError):
        xr.merge([virtual(p)[["v"]] for p in paths], compat="equals", join="override")
    with pytest.raises(UnsupportedError, match="cannot be filled or mixed"):
        xr.merge([virtual(p)[["v"]] for p in reversed(paths)], compat="no_conflicts", join="override")
    whole = xr.merge([virtual(p)[["v"]] for p in paths], compat="no_conflicts", join="override")
    expected = xr.merge([opened(p)[["v"]] for p in paths], compat="no_conflicts", join="override")
    xr.testing.assert_equal(vzr.from_xarray(whole).to_xarray().load(), expected)


def test_values_in_memory_are_joined_to_references(tmp_path):
    paths = write_series(tmp_path, PACKED, PACKED)
    parts = [virtual(paths[0]), opened(paths[1])]
    expected = xr.concat([opened(p) for p in paths], "time", data_vars="minimal")
    assert_same(xr.concat(parts, "time", data_vars="minimal"), expected, tmp_path)


ALONE = {
    "plain": (BASE.but(chunks=(1, 5, 3)),),
    "libhdf5": (BASE.but(chunks=(1, 5, 3), storage={"compression": "szip"}),),
    "uncompressed": (BASE.but(storage={}),),
    "contiguous": (BASE.but(storage={}, chunks=None, format="NETCDF3_64BIT_OFFSET"),),
    "mixed": (BASE.but(chunks=(1, 5, 3)), PACKED.but(chunks=(1, 5, 3))),
    "cropped": (BASE.but(chunks=(1, 5, 6)), BASE.but(chunks=(1, 4, 6), shape=(5, 6), storage={"zlib": True})),
}


@pytest.mark.parametrize("name", ALONE)
def test_one_element_along_an_axis(name, tmp_path):
    paths = write_series(tmp_path, *ALONE[name])
    options = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "override"}
    if name == "cropped":
        references = xr.concat([virtual(p).isel(y=slice(0, 4)) for p in paths[1:]], "time", **options)
        expected = xr.concat([opened(p).isel(y=slice(0, 4)) for p in paths[1:]], "time", **options)
    else:
        references = xr.concat([virtual(p) for p in paths], "time", **options)
        expected = xr.concat([opened(p) for p in paths], "time", **options)
    for number in (0, -1):
        found = references.isel(time=number)
        assert isinstance(found["v"].data, DuckArray)
        assert_same(found.drop_vars("w"), expected.isel(time=number).drop_vars("w"), tmp_path)
