"""A known array, cut into files at random and put together again, is the array."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import xarray as xr
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import virtualzarr_refs as vzr

SHAPE = (4, 6)


def known(steps: int, seed: int) -> np.ndarray:
    """Multiples of a half, which every type and packing below holds exactly; some are missing."""
    values = np.random.default_rng(seed).integers(0, 200, (steps, *SHAPE)) / 2
    values[values == 7] = np.nan
    return values


ENCODINGS: list[dict[str, Any]] = [
    {"dtype": "f8"},
    {"dtype": "<f4"},
    {"dtype": ">f4"},
    {"dtype": "f4", "fill": np.float32(-9)},
    {"dtype": ">f8", "fill": -9.0},
    {"dtype": "i2", "scale_factor": 0.5, "add_offset": 10.0, "fill": np.int16(-999)},
    {"dtype": "i2", "scale_factor": np.float32(0.5), "fill": np.int16(-999)},
    {"dtype": "i4", "scale_factor": 0.25, "fill": np.int32(-999)},
    {"dtype": "u1", "scale_factor": 0.5, "fill": np.uint8(255)},
]
STORAGE: list[dict[str, Any]] = [
    {},
    {"compression": "gzip", "compression_opts": 1},
    {"compression": "gzip", "compression_opts": 9, "shuffle": True},
    {"fletcher32": True},
    {"compression": "szip", "compression_opts": ("nn", 2)},
]

files = st.fixed_dictionaries(
    {
        "steps": st.integers(1, 7),
        "encoding": st.sampled_from(ENCODINGS),
        "storage": st.sampled_from(STORAGE),
        "chunk": st.integers(0, 5),
        "format": st.sampled_from(["HDF5", "HDF5", "HDF5", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA"]),
    }
)


def packed(values: np.ndarray, encoding: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]]:
    """What a file holds of some values, and its attributes."""
    attributes = {name: encoding[name] for name in ("scale_factor", "add_offset") if name in encoding}
    stored = (values - attributes.get("add_offset", 0)) / attributes.get("scale_factor", 1)
    if "fill" in encoding:
        attributes["_FillValue"] = np.dtype(encoding["dtype"]).newbyteorder("=").type(encoding["fill"])
        stored = np.where(np.isnan(stored), float(encoding["fill"]), stored)
    return stored.astype(encoding["dtype"]), attributes


def write(path: Path, values: np.ndarray, start: int, choice: dict[str, Any], borders: tuple[int, int]) -> None:
    stored, attributes = packed(values, choice["encoding"])
    if choice["format"] == "HDF5":
        write_hdf5(path, stored, attributes, start, choice, borders)
    else:
        is_byte = choice["format"] == "NETCDF3_CLASSIC" and stored.dtype == "u1"
        write_classic(path, stored.astype("i2") if is_byte else stored, attributes, start, choice["format"])


def write_hdf5(path, stored, attributes, start, choice, borders):
    chunk = choice["chunk"] or None
    with h5py.File(path, "w") as file:
        time = file.create_dataset("time", data=np.arange(start, start + len(stored)), maxshape=(None,), chunks=(8,))
        time.make_scale("time")
        options = {"chunks": (chunk or 3, *borders), "maxshape": (None, *SHAPE), **choice["storage"]}
        data = file.create_dataset("v", data=stored, **(options if chunk or choice["storage"] else {}))
        data.dims[0].attach_scale(time)
        for axis, (label, size) in enumerate(zip("yx", SHAPE, strict=True), 1):
            scale = file.create_dataset(label, data=np.arange(size, dtype="i4"))
            scale.make_scale(label)
            data.dims[axis].attach_scale(scale)
        data.attrs.update(attributes)


def write_classic(path, stored, attributes, start, format_):
    with netCDF4.Dataset(path, "w", format=format_) as file:
        file.set_auto_maskandscale(False)
        file.createDimension("time", None)
        for label, size in zip("yx", SHAPE, strict=True):
            file.createDimension(label, size)
            file.createVariable(label, "i4", (label,))[:] = np.arange(size)
        file.createVariable("time", "i4", ("time",))[:] = np.arange(start, start + len(stored))
        native = stored.dtype.newbyteorder("=")
        names = ("time", "y", "x")
        fill = attributes.pop("_FillValue", None)
        v = file.createVariable("v", native, names, fill_value=None if fill is None else native.type(fill))
        v.set_auto_maskandscale(False)
        v.setncatts(attributes)
        v[:] = stored


def unpacked(path: Path) -> xr.Dataset:
    with xr.open_dataset(path, engine="netcdf4") as dataset:
        return dataset.load()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    choices=st.lists(files, min_size=2, max_size=5),
    borders=st.sampled_from([(4, 6), (2, 3), (3, 6), (4, 4)]),
    seed=st.integers(0, 100),
    data=st.data(),
)
def test_the_whole_is_the_known_array(choices, borders, seed, data):
    is_whole = any(c["format"] != "HDF5" or not (c["chunk"] or c["storage"]) for c in choices)
    values = known(sum(choice["steps"] for choice in choices), seed)
    with tempfile.TemporaryDirectory() as name:
        start, paths = 0, []
        for number, choice in enumerate(choices):
            paths.append(Path(name) / f"{number}.nc")
            end = start + choice["steps"]
            write(paths[-1], values[start:end], start, choice, SHAPE if is_whole else borders)
            start = end
        group = vzr.concat([vzr.scan(path) for path in paths], "time")
        vzr.write_json(group, Path(name) / "set.json")
        expected = xr.concat([unpacked(path) for path in paths], "time", join="override", compat="override",
                             coords="minimal", data_vars="minimal")  # fmt: skip
        whole = expected["v"].to_numpy()
        np.testing.assert_array_equal(whole, values)
        for opened in (group.to_xarray(), xr.open_dataset(Path(name) / "set.json", engine="virtualzarr_refs")):
            found = opened["v"]
            assert found.dtype == whole.dtype
            box = tuple(slice(*sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))) for n in whole.shape)
            np.testing.assert_array_equal(found[box], whole[box])
            np.testing.assert_array_equal(found, whole)
            opened.close()
        through_zarr = zarr.open_group(group.to_store(), mode="r")["v"][...]
        assert through_zarr.shape == whole.shape


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    columns=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    chunk=st.integers(1, 4),
    storage=st.lists(st.sampled_from(STORAGE), min_size=12, max_size=12),
    turned=st.booleans(),
)
def test_tiles_of_the_known_array(steps, columns, chunk, storage, turned):
    values = np.random.default_rng(0).integers(0, 1000, (sum(steps), 3, sum(columns))).astype("i4")
    times, lines = np.cumsum([0, *steps]), np.cumsum([0, *columns])
    with tempfile.TemporaryDirectory() as name:
        rows = []
        for i in range(len(steps)):
            rows.append([])
            for j in range(len(columns)):
                tile = values[times[i] : times[i + 1], :, lines[j] : lines[j + 1]]
                path = Path(name) / f"{i}-{j}.nc"
                options = {"chunks": (chunk, 2, tile.shape[2]), "maxshape": (None, 3, None)}
                with h5py.File(path, "w") as file:
                    file.create_dataset("v", data=tile, **options, **storage[i * 4 + j])
                    for axis, label in enumerate(("time", "y", "x")):
                        file["v"].dims[axis].label = label
                        scale = file.create_dataset(
                            label, data=np.arange(tile.shape[axis]) + (times[i], 0, lines[j])[axis]
                        )
                        scale.make_scale(label)
                        file["v"].dims[axis].attach_scale(scale)
                rows[-1].append(vzr.scan(path))
        nested = [list(column) for column in zip(*rows, strict=True)] if turned else rows
        found = vzr.combine_nested(nested, ["x", "time"] if turned else ["time", "x"])
        np.testing.assert_array_equal(found.to_xarray()["v"], values)
        np.testing.assert_array_equal(zarr.open_group(found.to_store(), mode="r")["v"][...], values)
        assert vzr.combine_by_coords([group for row in rows for group in row])["v"].shape == values.shape
