"""Groups that tile dimensions, and groups of other variables, equal what xarray gives, or are refused."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import virtualzarr_refs as vzr
from tests.combine.files import Recipe, assert_same, opened
from virtualzarr_refs.errors import IncompatibleError, UnsupportedError

COLUMNS = (15, 15, 14, 14, 14)
STEPS = (4, 3, 1)
WORDS = {
    "data_vars": "minimal",
    "coords": "minimal",
    "compat": "override",
    "join": "exact",
    "combine_attrs": "override",
}


def write_tile(path, time, x, storage=None, y=6):
    """A part of one field that is known everywhere."""
    field = 1000 * time[:, None, None] + 10 * np.arange(y)[None, :, None] + x[None, None, :] / 100
    dataset = xr.Dataset(
        {"v": (("time", "y", "x"), field.astype("f4")), "w": ("time", time * 2), "area": ("x", x * 3)},
        {"time": ("time", time, {"units": "days since 2000-01-01"}), "x": x, "y": np.arange(y)},
    )
    chunks = {"zlib": True, "chunksizes": (min(3, time.size), 4, min(8, x.size))}
    storage = {**storage, "chunksizes": tuple(map(min, storage["chunksizes"], field.shape))} if storage else storage
    dataset.to_netcdf(path, encoding={"v": chunks if storage is None else storage}, engine="netcdf4")
    return path


def write_tiles(folder, steps=STEPS, columns=COLUMNS, storage=None):
    """Files as ranks of a parallel run write them: a row of paths for each range of times."""
    ends = np.cumsum(steps), np.cumsum(columns)
    rows = []
    for i, j in itertools.product(range(len(steps)), range(len(columns))):
        time, x = (np.arange(end[k] - n[k], end[k]) for end, n, k in zip(ends, (steps, columns), (i, j), strict=True))
        path = write_tile(folder / f"{i}-{j}.nc", time, x, storage)
        rows = [*rows, [path]] if j == 0 else [*rows[:-1], [*rows[-1], path]]
    return rows


def scanned(rows):
    return [[vzr.scan(path) for path in row] for row in rows]


@pytest.mark.parametrize("storage", [None, {}, {"chunksizes": (2, 6, 14)}], ids=["compressed", "contiguous", "chunked"])
@pytest.mark.parametrize("dims", [["time", "x"], ["x", "time"]], ids="-".join)
def test_tiles_in_any_order_of_dimensions(storage, dims, tmp_path):
    rows = write_tiles(tmp_path, storage=storage)
    rows = rows if dims[0] == "time" else [list(column) for column in zip(*rows, strict=True)]
    expected = xr.combine_nested([[opened(path) for path in row] for row in rows], dims, **WORDS)
    try:
        found = vzr.combine_nested(scanned(rows), dims, compat="override")
    except IncompatibleError as error:
        assert storage is None
        assert "do not line up" in str(error)  # noqa: PT017
    else:
        assert_same(found, expected, tmp_path)


def test_ranks_that_cut_columns_alike(tmp_path):
    columns = (15, 15, 14, 14, 14)
    storage = {"zlib": True, "chunksizes": (2, 6, 5)}
    rows = write_tiles(tmp_path, columns=columns, storage=storage)
    expected = xr.combine_nested([[opened(path) for path in row] for row in rows], ["time", "x"], **WORDS)
    assert_same(vzr.combine_nested(scanned(rows), ["time", "x"], compat="override"), expected, tmp_path)


def test_a_new_dimension_outside(tmp_path):
    rows = [
        [write_tile(tmp_path / f"{run}-{i}.nc", np.arange(3 * i, 3 * i + 3), np.arange(8)) for i in range(2)]
        for run in range(2)
    ]
    index = pd.Index([1, 2], name="run")
    runs = [xr.concat([opened(path) for path in row], "time", **WORDS) for row in rows]
    expected = xr.concat(runs, index, data_vars="all", coords="different", compat="equals", join="exact")
    assert_same(vzr.combine_nested(scanned(rows), [index, "time"]), expected, tmp_path)


def test_none_merges(tmp_path):
    time, x = np.arange(4), np.arange(8)
    paths = [[write_tile(tmp_path / f"{i}.nc", time + 4 * i, x), tmp_path / f"{i}p.nc"] for i in range(2)]
    for i, (path, other) in enumerate(paths):
        opened(path)[["v"]].rename(v="p").drop_vars(["y"]).to_netcdf(other, unlimited_dims="time" if i else ())
    expected = xr.combine_nested([[opened(path) for path in row] for row in paths], ["time", None], **WORDS)
    assert_same(vzr.combine_nested(scanned(paths), ["time", None], compat="override"), expected, tmp_path)


def test_lists_have_to_be_as_deep_as_there_are_dimensions(tmp_path):
    group = vzr.scan(write_tile(tmp_path / "a.nc", np.arange(3), np.arange(8)))
    for nested, dims in (([group], ["time", "x"]), ([[group]], "time"), (group, "time")):
        with pytest.raises(ValueError, match="nested as deep"):
            vzr.combine_nested(nested, dims)


def test_order_and_tiling_come_from_coordinates(tmp_path):
    paths = list(
        itertools.chain(*write_tiles(tmp_path, columns=(16, 8), storage={"zlib": True, "chunksizes": (3, 6, 8)}))
    )
    paths = paths[::2] + paths[1::2]
    expected = xr.combine_by_coords([opened(path) for path in paths], **WORDS)
    found = vzr.combine_by_coords([vzr.scan(path) for path in paths], compat="override")
    assert_same(found, expected, tmp_path)
    assert found["v"].shape == (sum(STEPS), 6, 24)


def test_coordinates_that_fall(tmp_path):
    paths = [write_tile(tmp_path / f"{i}.nc", np.arange(3), np.arange(8)[::-1] - 8 * i) for i in (1, 0)]
    expected = xr.combine_by_coords([opened(path) for path in paths], **WORDS)
    assert_same(vzr.combine_by_coords([vzr.scan(path) for path in paths]), expected, tmp_path)


def test_files_of_other_variables_are_put_side_by_side(tmp_path):
    paths = [write_tile(tmp_path / f"{i}.nc", np.arange(4) + 4 * i, np.arange(8)) for i in range(2)]
    others = [tmp_path / f"p{i}.nc" for i in range(2)]
    for path, other in zip(paths, others, strict=True):
        (opened(path)[["v"]].rename(v="p") * 2).to_netcdf(other)
    mixed = [others[1], paths[0], paths[1], others[0]]
    expected = xr.combine_by_coords([opened(path) for path in mixed], **{**WORDS, "compat": "no_conflicts"})
    found = vzr.combine_by_coords([vzr.scan(path) for path in mixed])
    xr.testing.assert_equal(found.to_xarray().load(), expected)


def test_gaps_and_doubles_between_tiles_are_named(tmp_path):
    rows = write_tiles(tmp_path, columns=(8, 8))
    groups = list(itertools.chain(*scanned(rows)))
    with pytest.raises(IncompatibleError, match=r"'time', 'x'.*\(2, 1\) is missing"):
        vzr.combine_by_coords(groups[:-1])
    with pytest.raises(IncompatibleError, match=r"same coordinates along 'time', 'x' as .*0-0\.nc"):
        vzr.combine_by_coords([*groups, groups[0]])
    with pytest.raises(IncompatibleError, match="tells the groups apart"):
        vzr.combine_by_coords([groups[0], groups[0]])


def test_merge_equals_xarray(tmp_path):
    Recipe(lacks=("w",)).write(tmp_path / "a.nc")
    Recipe(lacks=("v",)).write(tmp_path / "b.nc")
    paths = [tmp_path / "a.nc", tmp_path / "b.nc"]
    expected = xr.merge([opened(path) for path in paths], compat="no_conflicts", join="exact", combine_attrs="override")
    assert_same(vzr.merge([vzr.scan(path) for path in paths]), expected, tmp_path)


def test_merge_refuses_what_differs(tmp_path):
    base = Recipe(lacks=("w",)).write(tmp_path / "a.nc")
    groups = {
        "values": vzr.scan(Recipe(lacks=("w",), start=3).write(tmp_path / "values.nc")),
        "labels": vzr.scan(Recipe(lacks=("v",), latitude=5).write(tmp_path / "labels.nc")),
        "length": vzr.scan(Recipe(lacks=("v",), steps=3).write(tmp_path / "length.nc")),
    }
    for name, message in (
        ("values", "v: it differs"),
        ("labels", "y: it differs, and indexes are not aligned"),
        ("length", "'time' has 3 elements, and 4"),
    ):
        with pytest.raises(IncompatibleError, match=f"{message}.*{name}.nc"):
            vzr.merge([vzr.scan(base), groups[name]])
    assert vzr.merge([vzr.scan(base), groups["labels"]], join="override")["y"].equals(vzr.scan(base)["y"])
    with pytest.raises(UnsupportedError, match="compat='minimal'"):
        vzr.merge([vzr.scan(base)], compat="minimal")
