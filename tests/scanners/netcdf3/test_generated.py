"""Files of every version, type and layout that netCDF4-python writes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import virtualzarr_refs as vzr
from tests.scanners.netcdf3.comparing import assert_attributes_equal, assert_equal, read, read_with_netcdf4

CLASSIC = ("i1", "S1", "i2", "i4", "f4", "f8")
FORMATS = {
    "NETCDF3_CLASSIC": CLASSIC,
    "NETCDF3_64BIT_OFFSET": CLASSIC,
    "NETCDF3_64BIT_DATA": (*CLASSIC, "u1", "u2", "u4", "i8", "u8"),
}


def random_values(seed: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Any bits at all, NaN of every kind among them."""
    raw = np.random.default_rng(seed).bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize)
    return np.frombuffer(raw, dtype).reshape(shape)


@st.composite
def attribute_values(draw: Any, dtypes: tuple[str, ...]) -> Any:
    dtype = draw(st.sampled_from(dtypes))
    if dtype == "S1":
        letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
        return draw(st.text(letters, max_size=9))
    return random_values(draw(st.integers(0, 999)), dtype, (draw(st.integers(1, 5)),))


@st.composite
def attributes(draw: Any, dtypes: tuple[str, ...]) -> dict[str, Any]:
    return draw(st.dictionaries(st.sampled_from(["units", "größe", "a b"]), attribute_values(dtypes), max_size=3))


@st.composite
def variables(draw: Any, dtypes: tuple[str, ...], names: list[str]) -> dict[str, Any]:
    """A variable: whether it has the record dimension, and how many of its records are written."""
    dimensions = draw(st.lists(st.sampled_from(names), max_size=3, unique=True)) if names else []
    return {
        "dtype": draw(st.sampled_from(dtypes)),
        "dimensions": (["time"] if draw(st.booleans()) else []) + dimensions,
        "records": draw(st.integers(0, 5)),
        "seed": draw(st.integers(0, 999)),
        "attributes": draw(attributes(dtypes)),
        "fill": draw(st.booleans()),
    }


@st.composite
def files(draw: Any) -> dict[str, Any]:
    format_ = draw(st.sampled_from(list(FORMATS)))
    dtypes = FORMATS[format_]
    lengths = draw(st.dictionaries(st.sampled_from(["x", "y", "höhe"]), st.integers(1, 5)))
    return {
        "format": format_,
        "lengths": lengths,
        "attributes": draw(attributes(dtypes)),
        "variables": draw(st.lists(variables(dtypes, list(lengths)), max_size=5)),
    }


def write(path: Path, plan: dict[str, Any]) -> None:
    with netCDF4.Dataset(path, "w", format=plan["format"]) as dataset:
        dataset.setncatts(plan["attributes"])
        dataset.createDimension("time", None)
        for name, length in plan["lengths"].items():
            dataset.createDimension(name, length)
        for i, one in enumerate(plan["variables"]):
            add_variable(dataset, f"v{i}", one, plan["lengths"])


def add_variable(dataset: netCDF4.Dataset, name: str, plan: dict[str, Any], lengths: dict[str, int]) -> None:
    dtype, dimensions = plan["dtype"], plan["dimensions"]
    fill = random_values(plan["seed"] + 1, dtype, (1,))[0] if plan["fill"] and dtype != "S1" else None
    variable = dataset.createVariable(name, dtype, dimensions, fill_value=fill)
    variable.set_auto_maskandscale(False)
    variable.setncatts(plan["attributes"])
    shape = tuple(plan["records"] if d == "time" else lengths[d] for d in dimensions)
    if np.prod(shape):
        variable[...] = random_values(plan["seed"], dtype, shape)


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(plan=files(), target=st.sampled_from([1, 20, 1 << 20]))
def test_equal_to_netcdf4(folder, plan, target):
    path = folder / "generated.nc"
    write(path, plan)
    group = vzr.scan(path, strict=True, target_chunk_size=target)
    expected = read_with_netcdf4(path)
    assert_equal(read(group), expected)
    assert_attributes_equal(group, path)
    vzr.write_json(group, folder / "refs.json", overwrite=True)
    reopened = vzr.open_refs(folder / "refs.json")
    assert_equal(read(reopened), expected)
    assert_attributes_equal(reopened, path)


@pytest.mark.parametrize("format_", FORMATS)
def test_every_type_in_records_and_out_of_them(tmp_path, format_):
    for records in (0, 1, 3):
        plan = {"format": format_, "lengths": {"x": 3}, "attributes": {}, "variables": []}
        plan["variables"] = [
            {
                "dtype": dtype,
                "dimensions": dimensions,
                "records": records,
                "seed": i,
                "attributes": {"valid_min": random_values(i, dtype, (1,))} if dtype != "S1" else {"comment": "ä"},
                "fill": False,
            }
            for i, dtype in enumerate(FORMATS[format_])
            for dimensions in (["time", "x"], ["time"], ["x"], [])
        ]
        write(tmp_path / "all.nc", plan)
        group = vzr.scan(tmp_path / "all.nc", strict=True)
        assert_equal(read(group), read_with_netcdf4(tmp_path / "all.nc"))
        assert_attributes_equal(group, tmp_path / "all.nc")


@pytest.mark.parametrize("dtype", ["i1", "S1", "i2", "f8"])
@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_the_only_record_variable_has_no_padding(tmp_path, dtype, length):
    one = {"dtype": dtype, "dimensions": ["time", "x"], "records": 7, "seed": 1, "attributes": {}, "fill": False}
    other = {**one, "dimensions": ["x"]}
    plan = {"format": "NETCDF3_CLASSIC", "lengths": {"x": length}, "attributes": {}, "variables": [one, other]}
    write(tmp_path / "one.nc", plan)
    for target in (1, length * 7 * np.dtype(dtype).itemsize):
        group = vzr.scan(tmp_path / "one.nc", strict=True, target_chunk_size=target)
        assert_equal(read(group), read_with_netcdf4(tmp_path / "one.nc"))
    assert group.arrays["v0"].manifest.size == 1
