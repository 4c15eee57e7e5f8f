"""Arrays with other chunks hold the same values, or are refused for what byte ranges cannot do."""

from __future__ import annotations

import h5py
import netCDF4
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import virtualzarr_refs as vzr
from virtualzarr_refs import rechunking
from virtualzarr_refs.errors import NodeNotFoundError, UnsupportedError
from virtualzarr_refs.scanning import scan

SHAPE = (12, 4, 6)
DIMS = ("time", "y", "x")


@pytest.fixture
def nothing_is_small(monkeypatch):
    monkeypatch.setattr(rechunking, "MAX_INLINE", -1)


def write(path, *, values=None, start=0, **storage):
    values = np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE) if values is None else values
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("v", data=values, **storage)
        for axis, name in enumerate(DIMS):
            dataset.dims[axis].label = name
            scale = file.create_dataset(name, data=np.arange(values.shape[axis]) + start * (axis == 0))
            scale.make_scale(name)
            dataset.dims[axis].attach_scale(scale)
    return values


def lengths(group, name="v"):
    grid = group.arrays[name].metadata.chunk_grid
    return tuple(grid.chunk_lengths(axis) for axis in range(len(grid.shape)))


def assert_holds(group, values, name="v"):
    np.testing.assert_array_equal(zarr.open_group(group.to_store(), mode="r")[name][...], values)
    with group.to_xarray() as dataset:
        np.testing.assert_array_equal(dataset[name].values, values)


@pytest.mark.parametrize(
    ("stored", "chunks", "expected"),
    [
        (None, {"time": 3}, ((3,) * 4, (4,), (6,))),
        (None, {"time": 5}, ((5, 5, 2), (4,), (6,))),
        (None, {"time": [1, 4, 7]}, ((1, 4, 7), (4,), (6,))),
        (None, {"time": 1, "y": 2}, ((1,) * 12, (2, 2), (6,))),
        (None, {"time": 1, "y": 1, "x": [1, 5]}, ((1,) * 12, (1,) * 4, (1, 5))),
        ((5, 4, 6), {"time": 2}, ((2,) * 6, (4,), (6,))),
        ((5, 4, 6), {"time": 5}, ((5, 5, 2), (4,), (6,))),
        ((1, 4, 6), {"y": 3}, ((1,) * 12, (3, 1), (6,))),
        ((1, 3, 6), {"y": 1}, ((1,) * 12, (1,) * 4, (6,))),
        ((4, 3, 4), {"time": 2}, ((2,) * 6, (3, 1), (4, 2))),
    ],
)
@pytest.mark.usefixtures("nothing_is_small")
def test_chunks_are_cut(tmp_path, stored, chunks, expected):
    values = write(tmp_path / "a.h5", chunks=stored)
    group = vzr.rechunk(scan(tmp_path / "a.h5"), chunks)
    assert lengths(group) == expected
    assert not any(array.manifest.inline for array in group.arrays.values())
    assert_holds(group, values)


@pytest.mark.parametrize("chunks", [{"time": -1}, {"time": 7}, {"time": -1, "y": -1}, {"time": 100}])
@pytest.mark.usefixtures("nothing_is_small")
def test_neighbours_are_joined(tmp_path, chunks):
    values = write(tmp_path / "a.h5")
    fine = vzr.rechunk(scan(tmp_path / "a.h5"), {"time": 1, "y": 1})
    group = vzr.rechunk(fine, {"y": -1, **chunks})
    assert lengths(group)[1] == (4,)
    assert_holds(group, values)


@pytest.mark.parametrize("kind", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA", "NETCDF4"])
def test_formats(tmp_path, kind):
    values = np.arange(360, dtype="i2").reshape(30, 12)
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format=kind) as file:
        file.createDimension("time", 30)
        file.createDimension("x", 12)
        file.createVariable("v", "i2", ("time", "x"))[:] = values
        file.createVariable("x", "f8", ("x",))[:] = np.arange(12)
        if kind == "NETCDF4":
            file.createGroup("g").createVariable("v", "i2", ("time",))[:] = np.arange(30)
    group = vzr.rechunk(scan(tmp_path / "a.nc"), {"time": [3, 20, 7]})
    assert lengths(group)[0] == (3, 20, 7)
    assert lengths(group, "x") == ((12,),)
    assert_holds(group, values)
    if kind == "NETCDF4":
        assert group["g/v"].metadata.chunk_grid.chunk_lengths(0) == (3, 20, 7)


@pytest.mark.parametrize(
    ("storage", "chunks", "reason"),
    [
        ({"compression": "gzip", "chunks": (4, 4, 6)}, {"time": 2}, "zlib"),
        ({}, {"y": 2}, "ask for {'time': 1} as well"),
        ({"chunks": (1, 2, 6)}, {"time": 2, "y": 2}, "other bytes lie between"),
        ({"chunks": (2, 2, 6)}, {"y": 4}, "cannot be joined along 'y'"),
    ],
)
def test_what_byte_ranges_cannot_do_is_refused(tmp_path, nothing_is_small, storage, chunks, reason):
    write(tmp_path / "a.h5", **storage)
    with pytest.raises(UnsupportedError, match=reason) as caught:
        vzr.rechunk(scan(tmp_path / "a.h5"), chunks)
    assert caught.value.node == "v"
    assert caught.value.url.endswith("a.h5")


@pytest.mark.parametrize("text", [False, True])
def test_small_arrays_are_read_instead(tmp_path, text):
    values = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    values = values.astype(str).astype(object) if text else values.astype(">i4")
    write(tmp_path / "a.h5", values=values, **({} if text else {"compression": "gzip", "chunks": (5, 3, 4)}))
    group = vzr.rechunk(scan(tmp_path / "a.h5"), {"time": 5})
    assert lengths(group)[0] == (5, 5, 2)
    assert_holds(group, values)


@pytest.mark.usefixtures("nothing_is_small")
def test_missing_chunks_stay_missing(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        v = file.create_dataset("v", (12, 3), "f4", chunks=(3, 3), fillvalue=7)
        file.create_dataset("time", data=np.arange(12)).make_scale("time")
        v.dims[0].attach_scale(file["time"])
        v[3:6] = 1
        expected = v[...]
    group = vzr.rechunk(scan(tmp_path / "a.h5"), {"time": 1})
    assert group.arrays["v"].manifest.count == 3
    assert_holds(group, expected)
    with pytest.raises(UnsupportedError, match="one of them is missing"):
        vzr.rechunk(group, {"time": 6})


def test_files_that_differ_are_cut_after_they_were_put_together(tmp_path, nothing_is_small):
    for number, order in enumerate("><"):
        write(tmp_path / f"{number}.h5", values=np.full(SHAPE, number + 0.5, f"{order}f8"), start=12 * number)
    whole = vzr.concat([scan(tmp_path / f"{number}.h5") for number in range(2)], "time")
    group = vzr.rechunk(whole, {"time": 4})
    assert lengths(group)[0] == (4,) * 6
    assert_holds(group, np.repeat([0.5, 1.5], 12)[:, None, None] * np.ones(SHAPE[1:]))
    with pytest.raises(UnsupportedError, match="different ways"):
        vzr.rechunk(whole, {"time": 24})


def test_targets_are_checked(tmp_path):
    write(tmp_path / "a.h5")
    group = scan(tmp_path / "a.h5")
    for chunks in ({"time": 0}, {"time": -2}, {"time": [6, 5]}, {"time": [13, -1]}):
        with pytest.raises(ValueError, match="'time'"):
            vzr.rechunk(group, chunks)
    with pytest.raises(NodeNotFoundError, match="'level'"):
        vzr.rechunk(group, {"level": 1})


def test_chunks_that_are_so_already_are_left_alone(tmp_path):
    write(tmp_path / "a.h5", compression="gzip", chunks=(5, 4, 6))
    group = scan(tmp_path / "a.h5")
    assert vzr.rechunk(group, {"time": 5, "x": -1}).arrays["v"] is group.arrays["v"]


@st.composite
def cuts(draw, size):
    kind = draw(st.sampled_from(["length", "list", "none"]))
    if kind == "list":
        borders = sorted(draw(st.sets(st.integers(1, size - 1)))) if size > 1 else []
        return np.diff([0, *borders, size]).tolist()
    return draw(st.integers(1, size + 2)) if kind == "length" else -1


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_values_stay_whatever_the_chunks(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("rechunk") / "a.h5"
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=3, max_size=3), "shape"))
    stored = data.draw(st.none() | st.tuples(*(st.integers(1, size) for size in shape)), "stored")
    values = np.random.default_rng(1).integers(0, 1000, shape).astype(data.draw(st.sampled_from(["i2", ">f8"])))
    write(path, values=values, chunks=stored)
    group = scan(path)
    for _ in range(2):
        names = data.draw(st.sets(st.sampled_from(DIMS), min_size=1), "names")
        chunks = {name: data.draw(cuts(shape[DIMS.index(name)]), name) for name in sorted(names)}
        group = vzr.rechunk(group, chunks)
        for name, target in chunks.items():
            if isinstance(target, list):
                assert lengths(group)[DIMS.index(name)] == tuple(target)
    assert_holds(group, values)
