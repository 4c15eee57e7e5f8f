"""Parts of references hold what the same parts of values hold, or are refused."""

from __future__ import annotations

from functools import partial

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import event, given, settings
from hypothesis import strategies as st

from virtualzarr_refs import rechunking
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.scanning import scan
from virtualzarr_refs.virtual_xarray.duck_array import DuckArray

STORAGE = [{}, {"compression": "gzip"}, {"compression": "gzip", "shuffle": True}, {"scaleoffset": 0}]


@pytest.fixture(scope="module", autouse=True)
def nothing_is_small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rechunking, "MAX_INLINE", -1)
        yield


@st.composite
def selectors(draw, size):
    """What may stand for one axis of this length."""
    borders = st.integers(-size - 1, size + 1) | st.none()
    kinds = ["slice", "whole"] + (["number", "list"] if size else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "number":
        return draw(st.integers(-size, size - 1))
    if kind == "list":
        return draw(st.lists(st.integers(-size, size - 1), max_size=5))
    return slice(draw(borders), draw(borders), draw(st.sampled_from([None, 1, 2]))) if kind == "slice" else slice(None)


def read(variable):
    """The values, as zarr reads them from a group of the references."""
    data = variable.data
    assert isinstance(data, DuckArray)
    return zarr.open_group(VirtualGroup(arrays={"v": data.array}).to_store(), mode="r")["v"][...]


def doubled(name, variable):
    return xr.Variable.concat([variable, variable], name)


@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_selections(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("index") / "a.h5"
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3), "shape"))
    chunks = tuple(data.draw(st.integers(1, 3), "chunk") for _ in shape)
    values = np.random.default_rng(2).integers(0, 1000, shape).astype("i4")
    storage = data.draw(st.sampled_from(STORAGE), "storage")
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=values, chunks=tuple(map(min, chunks, shape)), fillvalue=9, **storage)
    names = [f"d{axis}" for axis in range(len(shape))]
    references = xr.Variable(names, DuckArray.of(scan(path).arrays["v"]))
    expected = xr.Variable(names, values)
    for step in range(data.draw(st.integers(1, 3), "steps")):
        name = data.draw(st.sampled_from(list(expected.dims)), "dimension") if expected.dims else None
        action = data.draw(st.sampled_from(["select", "concat", "expand"]), "action")
        if action == "expand" or name is None:
            change = partial(xr.Variable.set_dims, dim=(f"new{step}", *expected.dims))
        elif action == "concat":
            change = partial(doubled, name)
        else:
            change = partial(xr.Variable.isel, indexers={name: data.draw(selectors(expected.sizes[name]), "selector")})
        expected = change(expected)
        try:
            references = change(references)
        except UnsupportedError:
            event("refused")
            return
    assert references.dims == expected.dims
    np.testing.assert_array_equal(read(references), expected.values)
    event("compared")


@pytest.mark.parametrize(
    "change",
    [
        lambda v: doubled("d0", v.isel(d0=slice(0, 0))),
        lambda v: doubled("d0", v).isel(d0=slice(0, 0)),
        lambda v: doubled("d0", v.isel(d0=slice(0, 0))).isel(d1=slice(2, None)),
    ],
)
def test_nothing_at_all(change, tmp_path):
    values = np.arange(12).reshape(3, 4)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(2, 2), compression="gzip")
    references = xr.Variable(("d0", "d1"), DuckArray.of(scan(tmp_path / "a.h5").arrays["v"]))
    found, expected = read(change(references)), change(xr.Variable(("d0", "d1"), values)).values
    assert found.shape == expected.shape
    assert found.size == 0
