"""Groups along a new dimension equal what xarray gives, or are refused."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import virtualzarr_refs as vzr
from tests.combine.files import Recipe, assert_same, opened
from virtualzarr_refs.errors import IncompatibleError, NodeNotFoundError, UnsupportedError

BASE = Recipe()
CASES = {
    "equal": BASE,
    "padded": BASE.but(chunks=(3, 5, 6)),
    "unlike chunks beside": BASE.but(chunks=(2, 4, 6)),
    "another codec": BASE.but(storage={"zlib": True, "shuffle": True}),
    "decoded by libhdf5": BASE.but(storage={"compression": "szip"}),
    "uncompressed": BASE.but(storage={}),
    "contiguous": BASE.but(storage={}, chunks=None),
    "big-endian": BASE.but(dtype=">f4"),
    "packed": BASE.but(dtype="i2", packing={"scale_factor": 0.01, "add_offset": 270.0}, fill=-32768),
    "classic": BASE.but(format="NETCDF3_CLASSIC"),
    "lacks the variable": BASE.but(lacks=("v",)),
}
BORDERS = {"padded", "unlike chunks beside", "contiguous", "classic"}
"""Cases whose chunks end elsewhere along the axes that files share."""


def stacked_by_xarray(paths, dim, **options):
    choice = {"data_vars": "all", "coords": "different", "compat": "equals", "join": "exact"}
    return xr.concat([opened(path) for path in paths], dim, **{**choice, "combine_attrs": "override", **options})


def write(folder, *recipes):
    return [recipe.write(folder / f"{number}.nc") for number, recipe in enumerate(recipes)]


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations_with_replacement(CASES, 2)], ids=str)
def test_equals_xarray_or_is_refused_for_its_borders(one, other, tmp_path):
    paths = write(tmp_path, CASES[one], CASES[other])
    groups = [vzr.scan(path) for path in paths]
    if one == other == "lacks the variable":
        assert "v" not in vzr.stack(groups, "run").arrays
    elif one != other and {one, other} & BORDERS:
        try:
            assert_same(vzr.stack(groups, "run"), stacked_by_xarray(paths, "run"), tmp_path)
        except IncompatibleError as error:
            assert "do not line up" in str(error)  # noqa: PT017
            assert str(paths[1]) in str(error)  # noqa: PT017
    else:
        assert_same(vzr.stack(groups, "run"), stacked_by_xarray(paths, "run"), tmp_path)


@pytest.mark.parametrize(
    "index",
    [
        pd.Index([3, 7], name="run"),
        pd.Index(["control", "forced"], name="run"),
        pd.DatetimeIndex(["2024-01-01", "2024-01-01T12:00"], name="run"),
        xr.DataArray([0.5, 1.5], dims="run", attrs={"units": "m", "positive": "up"}),
        xr.Variable("run", np.array([1, 2], "i2")),
    ],
    ids=["integers", "texts", "times", "array", "variable"],
)
def test_values_become_a_coordinate(index, tmp_path):
    paths = write(tmp_path, BASE, BASE)
    group = vzr.stack([vzr.scan(path) for path in paths], index)
    named = index if isinstance(index, pd.Index) else xr.DataArray(index, dims="run", name="run")
    expected = stacked_by_xarray(paths, named)
    if isinstance(index, xr.DataArray | xr.Variable):
        expected = expected.assign_coords(run=("run", np.asarray(index), getattr(index, "attrs", {})))
    found = group.to_xarray().load()
    xr.testing.assert_equal(found, expected)
    assert found["run"].attrs == expected["run"].attrs


def with_scalar(path, name, value):
    dataset = xr.Dataset({"v": ("x", np.arange(4.0))}, {name: value, "height": 2.0, "x": np.arange(4)})
    dataset.to_netcdf(path, engine="netcdf4")
    return path


def test_a_scalar_of_that_name_becomes_the_coordinate(tmp_path):
    paths = [with_scalar(tmp_path / f"{run}.nc", "run", run) for run in (5, 3, 4)]
    groups = [vzr.scan(path) for path in paths]
    assert_same(vzr.stack(groups, "run"), stacked_by_xarray(paths, "run"), tmp_path)
    ordered = vzr.stack(groups, "run", sort=True).to_xarray()
    assert ordered["run"].to_numpy().tolist() == [3, 4, 5]
    assert ordered.sizes == {"run": 3, "x": 4}


def differing(folder):
    """Two files that only differ in `w`."""
    paths = write(folder, BASE, BASE)
    with xr.open_dataset(paths[1]) as dataset:
        changed = dataset.load()
    changed["w"] = changed["w"] + 1
    changed.to_netcdf(paths[1])
    return paths


@pytest.mark.parametrize("data_vars", ["all", "different", ["w"]])
def test_which_variables_get_the_dimension(data_vars, tmp_path):
    paths = differing(tmp_path)
    found = vzr.stack([vzr.scan(path) for path in paths], "run", data_vars=data_vars)
    assert_same(found, stacked_by_xarray(paths, "run", data_vars=data_vars), tmp_path)


def test_no_variable_gets_it_on_request(tmp_path):
    paths = differing(tmp_path)
    groups = [vzr.scan(path) for path in paths]
    found = vzr.stack(groups, pd.Index([1, 2], name="run"), data_vars="minimal", compat="override")
    assert_same(found, opened(paths[0]).assign_coords(run=[1, 2]), tmp_path)
    with pytest.raises(IncompatibleError, match="w: it differs"):
        vzr.stack(groups, "run", data_vars="minimal")


def test_variables_without_an_existing_dimension_are_repeated_along_it_on_request(tmp_path):
    paths = write(tmp_path, BASE, BASE.but(steps=3, start=4))
    for number, path in enumerate(paths):
        with xr.open_dataset(path, decode_times=False) as dataset:
            changed = dataset.load().assign(mask=(("y", "x"), np.full((5, 6), number)))
        changed.to_netcdf(path, unlimited_dims="time")
    groups = [vzr.scan(path) for path in paths]
    with pytest.raises(IncompatibleError, match="mask: it differs"):
        vzr.concat(groups, "time")
    found = vzr.concat(groups, "time", data_vars="all")
    expected = xr.concat(
        [opened(path) for path in paths], "time", data_vars="all", coords="minimal", compat="override", join="override"
    )
    assert_same(found, expected, tmp_path)


def test_a_coordinate_that_differs_beside_it_is_refused(tmp_path):
    paths = write(tmp_path, BASE, BASE.but(latitude=1))
    with pytest.raises(IncompatibleError, match=r"y: it differs.*1\.nc"):
        vzr.stack([vzr.scan(path) for path in paths], "run")


def test_stacked_groups_can_be_put_together_again(tmp_path):
    first = write(tmp_path, BASE.but(chunks=(3, 5, 6)), BASE.but(chunks=(3, 5, 6), storage={"shuffle": True}))
    (tmp_path / "b").mkdir()
    second = write(tmp_path / "b", BASE.but(start=4, chunks=(3, 5, 6)), BASE.but(start=4, chunks=(3, 5, 6), fill=9))
    halves = [vzr.stack([vzr.scan(path) for path in paths], "run") for paths in (first, second)]
    expected = xr.concat(
        [stacked_by_xarray(paths, "run") for paths in (first, second)],
        "time",
        data_vars="minimal",
        coords="minimal",
        compat="override",
        join="override",
    )
    assert_same(vzr.concat(halves, "time"), expected, tmp_path)


def test_mistakes_are_named(tmp_path):
    (path,) = write(tmp_path, BASE)
    group = vzr.scan(path)
    with pytest.raises(UnsupportedError, match="use concat"):
        vzr.stack([group], "time")
    with pytest.raises(ValueError, match="1 groups, and 2 values"):
        vzr.stack([group], pd.Index([1, 2], name="run"))
    with pytest.raises(ValueError, match="no name"):
        vzr.stack([group], pd.Index([1]))
    with pytest.raises(NodeNotFoundError, match="nothing"):
        vzr.stack([group], "run", data_vars=["nothing"])
    with pytest.raises(TypeError, match="no option 'sorted'"):
        vzr.stack([group], "run", sorted=True)
    with pytest.raises(ValueError, match="no groups"):
        vzr.stack([], "run")
