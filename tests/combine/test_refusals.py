"""What cannot be put together is refused, and the message names the file, the variable and the way out."""

from __future__ import annotations

import os
import re

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

import virtualzarr_refs as vzr
from tests.combine.files import Recipe, joined_by_us, opened, write_series
from virtualzarr_refs.errors import DecodeError, IncompatibleError, SourceError, UnsupportedError

BASE = Recipe()


def refusal(paths, **options):
    with pytest.raises(IncompatibleError) as caught:
        joined_by_us(paths, **options)
    return caught.value


@pytest.mark.parametrize(
    ("odd", "variable", "message"),
    [
        (BASE.but(units="degC"), "v", "its units differ: 'K' and 'degC'; convert one of them, or drop it"),
        (BASE.but(latitude=1), "y", "indexes are not aligned; select the same labels, or pass join='override'"),
        (BASE.but(shape=(4, 6), chunks=(2, 4, 6)), "v", "its size beside the axis that is joined differs: 5 and 4"),
        (BASE.but(chunks=(2, 3, 6)), "v", "its chunks do not line up along axis 1.*rechunk one of the files"),
        (BASE.but(calendar="noleap", start=4), "time", "calendars differ: standard and noleap; drop the variable"),
        (
            BASE.but(start=2),
            "time",
            "it starts at 2.0, before or where .*0.nc ends, 3.0; pass overlap='first' or 'last'",
        ),
        (BASE.but(start=-9), "time", "out of order; pass sort=True"),
        (BASE.but(time_units="months since 2024-01-01", start=4), "time", "times in 'months' cannot be converted"),
        (BASE.but(time_units="1", start=4), "time", "it counts time in some files and not in others"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_names_file_variable_and_way_out(odd, variable, message, tmp_path):
    paths = write_series(tmp_path, BASE, odd, BASE.but(start=100))
    error = refusal(paths)
    found = next(finding for finding in error.comparison.refused if finding.path == variable)
    assert re.search(message, found.detail)
    assert found.files == (str(paths[1]),)
    assert error.node in {finding.path for finding in error.comparison.refused}
    assert variable in str(error)


def test_a_report_tells_of_every_variable(tmp_path):
    paths = write_series(tmp_path, BASE, BASE.but(units="degC", latitude=1, storage={"zlib": True, "complevel": 4}))
    comparison = vzr.compare([vzr.scan(path) for path in paths], "time")
    assert not comparison.is_compatible
    assert {finding.path: finding.status.value for finding in comparison.findings} == {
        "v": "refused", "w": "equal", "y": "refused", "time": "equal",
    }  # fmt: skip
    assert all(finding.files == (str(paths[1]),) for finding in comparison.refused)
    for line in ("2 groups along 'time'", "variable", "v ", "y "):
        assert line in str(comparison)


def test_a_report_names_the_odd_one_among_many(tmp_path):
    paths = write_series(
        tmp_path, BASE, BASE, BASE.but(dtype="f8"), BASE, BASE.but(storage={"zlib": True, "complevel": 3})
    )
    comparison = vzr.compare([vzr.scan(path) for path in paths], "time")
    (v,) = (finding for finding in comparison.findings if finding.path == "v")
    assert v.status.value == "variant"
    assert v.files == (str(paths[2]),)
    assert "the data type differs" in v.text
    assert "compression levels differ, which does not matter" in v.text


def write_types(path, values):
    with h5py.File(path, "w") as file:
        time = file.create_dataset("time", data=np.arange(2.0))
        time.make_scale("time")
        data = file.create_dataset("v", data=values)
        data.dims[0].attach_scale(time)
    return path


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.arange(2.0), np.array([b"a", b"b"])),
        (np.arange(2.0), np.array(["a", "b"], h5py.string_dtype())),
        (np.zeros(2, [("a", "i4")]), np.zeros(2, [("b", "i4")])),
        (np.zeros(2, [("a", "i4")]), np.arange(2)),
    ],
    ids=["number and bytes", "number and text", "two compounds", "compound and number"],
)
def test_types_that_nothing_holds(one, other, tmp_path):
    paths = [write_types(tmp_path / "a.h5", one), write_types(tmp_path / "b.h5", other)]
    groups = [vzr.drop_vars(vzr.scan(path), "time") for path in paths]
    with pytest.raises(IncompatibleError, match="v: "):
        vzr.concat(groups, "time")


def test_a_variable_without_a_missing_value_cannot_be_absent(tmp_path):
    paths = [write_types(tmp_path / "a.h5", np.array([True, False])), write_types(tmp_path / "b.h5", np.arange(2.0))]
    groups = [vzr.drop_vars(vzr.scan(path), "time") for path in paths]
    groups[1] = vzr.drop_vars(groups[1], "v")
    with pytest.raises(IncompatibleError, match="has no missing value; drop it, or these files"):
        vzr.concat([groups[0], vzr.VirtualGroup(arrays={"u": vzr.scan(paths[1])["v"]})], "time")


def test_options_that_are_none(tmp_path):
    paths = write_series(tmp_path, BASE)
    for options in ({"compat": "minimal"}, {"join": "both"}, {"overlap": "mean"}, {"data_vars": "most"}):
        with pytest.raises(UnsupportedError, match="is not supported; choose one of"):
            joined_by_us(paths, **options)
    with pytest.raises(TypeError, match="no option 'axis'"):
        joined_by_us(paths, axis=0)
    with pytest.raises(ValueError, match="no groups"):
        vzr.concat([], "time")


def test_a_coordinate_cannot_be_absent(tmp_path):
    groups = [vzr.scan(path) for path in write_series(tmp_path, BASE, BASE)]
    groups[1] = vzr.drop_vars(groups[1], "time")
    with pytest.raises(IncompatibleError, match=r"time: it is a coordinate, and some files lack it.*1\.nc"):
        vzr.concat(groups, "time")


def test_a_file_that_is_gone_is_no_refusal(tmp_path):
    paths = write_series(tmp_path, BASE, BASE)
    groups = [vzr.scan(path) for path in paths]
    paths[1].unlink()
    with pytest.raises(SourceError, match=r"1\.nc"):
        vzr.concat(groups, "time")


def test_a_coordinate_that_is_damaged_is_no_refusal(tmp_path):
    paths = [tmp_path / "a.h5", tmp_path / "b.h5"]
    for path in paths:
        with h5py.File(path, "w") as file:
            time = file.create_dataset("time", data=np.arange(4.0), chunks=(4,), compression="gzip")
            time.make_scale("time")
            offset = time.id.get_chunk_info(0).byte_offset
    groups = [vzr.scan(path) for path in paths]
    damaged = bytearray(paths[1].read_bytes())
    damaged[offset : offset + 8] = b"\xff" * 8
    stamp = paths[1].stat()
    paths[1].write_bytes(damaged)
    os.utime(paths[1], ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    with pytest.raises(DecodeError, match=r"b\.h5, node time"):
        vzr.concat(groups, "time")


# ── overlap and order ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("chunks", [(1, 5, 6), (2, 5, 6)], ids=["single steps", "two steps"])
@pytest.mark.parametrize("overlap", ["first", "last"])
def test_overlaps_are_settled(overlap, chunks, tmp_path):
    base = BASE.but(chunks=chunks)
    paths = [
        base.but(start=start, steps=steps).write(tmp_path / f"{start}.nc") for start, steps in ((0, 6), (4, 6), (8, 4))
    ]
    found = joined_by_us(paths, overlap=overlap).to_xarray().load()
    parts = [opened(path) for path in paths]
    order = parts if overlap == "first" else parts[::-1]
    expected = xr.concat(order, "time", data_vars="minimal", coords="minimal", compat="override", join="override")
    expected = expected.drop_duplicates("time", keep="first").sortby("time")
    xr.testing.assert_equal(found, expected)


def test_an_overlap_inside_a_chunk_is_read_if_it_is_small(tmp_path, monkeypatch):
    base = BASE.but(chunks=(4, 5, 6), dtype="i2", packing={"scale_factor": 0.5}, fill=7)
    paths = [base.but(start=start).write(tmp_path / f"{start}.nc") for start in (0, 2)]
    found = joined_by_us(paths, overlap="first").to_xarray().load()
    parts = [opened(paths[0]), opened(paths[1]).isel(time=slice(2, None))]
    expected = xr.concat(parts, "time", data_vars="minimal", coords="minimal", compat="override", join="override")
    xr.testing.assert_identical(found, expected)
    monkeypatch.setattr("virtualzarr_refs.combine.selecting.MAX_CUT", 100)
    with pytest.raises(IncompatibleError, match=r"v: .*lies inside a chunk, which cannot be cut there"):
        joined_by_us(paths, overlap="first")


def test_sorting_equals_sorted_files(tmp_path):
    paths = write_series(tmp_path, BASE, BASE.but(steps=3), BASE.but(steps=6))
    mixed = [paths[2], paths[0], paths[1]]
    assert joined_by_us(mixed, sort=True).to_xarray().load().equals(joined_by_us(paths).to_xarray().load())


# ── attributes ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["override", "drop", "no_conflicts", "drop_conflicts", "identical"])
def test_attributes_are_combined_as_xarray_does(how, tmp_path):
    paths = write_series(tmp_path, BASE, BASE)
    for number, path in enumerate(paths):
        with netCDF4.Dataset(path, "a") as file:
            if how in {"no_conflicts", "identical"}:
                file.title = "same"
            if how != "identical":
                file.setncattr(f"only_{number}", np.float32(number))
                file["v"].setncattr(f"only_{number}", "text")
    words = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "override"}
    expected = xr.concat([opened(path) for path in paths], "time", combine_attrs=how, **words)
    found = joined_by_us(paths, combine_attrs=how).to_xarray().load()
    assert found.attrs == expected.attrs
    assert found["v"].attrs == expected["v"].attrs
    if how == "drop":
        return
    xr.testing.assert_equal(found, expected)


def test_attributes_that_must_not_differ(tmp_path):
    paths = write_series(tmp_path, BASE, BASE)
    for how in ("identical", "no_conflicts"):
        with pytest.raises(IncompatibleError, match=f"'title' differ; choose another combine_attrs than '{how}'"):
            joined_by_us(paths, combine_attrs=how)


# ── trees ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def write_tree(path, start, steps, lacks=()):
    times = start + np.arange(steps)
    root = xr.Dataset({"a": ("time", times * 2.0)}, {"time": ("time", times, {"units": "hours since 2000-01-01"})})
    fine = xr.Dataset({"b": (("time", "x"), np.outer(times, np.arange(3)))}, {"x": np.arange(3)})
    deep = xr.Dataset({"c": ("time", times.astype("f4"))}, {"time": root["time"]})
    nodes = {"/": root, "/fine": fine, "/fine/deep": deep}
    xr.DataTree.from_dict({name: node for name, node in nodes.items() if name not in lacks}).to_netcdf(path)
    return path


def test_trees_are_put_together_node_by_node(tmp_path):
    paths = [write_tree(tmp_path / "a.nc", 0, 5), write_tree(tmp_path / "b.nc", 5, 3)]
    vzr.write_json(joined_by_us(paths), tmp_path / "set.json")
    with xr.open_datatree(tmp_path / "set.json", engine="virtualzarr_refs") as tree:
        trees = [xr.open_datatree(path).load() for path in paths]
        for node in ("/", "/fine", "/fine/deep"):
            parts = [other[node].to_dataset(inherit=False) for other in trees]
            expected = xr.concat(
                parts, "time", data_vars="minimal", coords="minimal", compat="override", join="override"
            )
            xr.testing.assert_equal(tree[node].to_dataset(inherit=False).load(), expected)
        for other in trees:
            other.close()


def test_a_node_that_some_files_lack_reads_as_missing(tmp_path):
    paths = [write_tree(tmp_path / "a.nc", 0, 5), write_tree(tmp_path / "b.nc", 5, 3, lacks=("/fine/deep",))]
    groups = [vzr.drop_vars(vzr.scan(path), "fine/deep/time", errors="ignore") for path in paths]
    found = vzr.concat(groups, "time")
    np.testing.assert_array_equal(found["fine/deep"].to_xarray()["c"], [*range(5), *[np.nan] * 3])
