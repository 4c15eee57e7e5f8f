"""The files that benchmarks read: made once, about 600 MB, kept beneath a folder."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
from numpy.typing import NDArray

CHUNKS = 200_000
STEPS, ROWS, COLUMNS = 64, 721, 1440


def make_files(folder: Path) -> None:
    """Make the files that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in _FILES.items():
        target = folder / name
        if not target.exists():
            partial = target.with_name(target.name + ".part")
            make(partial)
            partial.rename(target)


def _indexed(libver: str, max_shape: tuple[int | None, ...] | None) -> Callable[[Path], None]:
    """Many small chunks; the version of the format and the limits decide which kind of index they have."""

    def make(path: Path) -> None:
        chunk = zlib.compress(np.arange(64, dtype="<i2").view(np.uint8).reshape(64, 2).T.tobytes(), 1)
        layout: dict[str, Any] = {"chunks": (1, 8, 8), "maxshape": max_shape, "shuffle": True, "compression": 1}
        with h5py.File(path, "w", libver=libver) as file:
            dataset = file.create_dataset("x", (CHUNKS, 8, 8), "<i2", **layout)
            for number in range(CHUNKS):
                dataset.id.write_direct_chunk((number, 0, 0), chunk)

    return make


def _many_datasets(path: Path) -> None:
    """As in a granule of an altimeter: beams, groups of variables, attributes."""
    values = np.linspace(0, 1, 50_000, dtype="<f4")
    with h5py.File(path, "w") as file:
        for number in range(720):
            name = f"beam{number // 120}/part{number // 20 % 6}/variable{number % 20:02}"
            dataset = file.create_dataset(name, data=values + number, chunks=(10_000,), shuffle=True, compression=4)
            dataset.attrs["long_name"] = f"quantity {number % 20}"
            dataset.attrs["units"] = "m"
            dataset.attrs["valid_min"] = np.float32(0)
            dataset.attrs["_FillValue"] = np.float32(1e30)


def _tiny_chunks(path: Path) -> None:
    values = np.random.default_rng(5).integers(0, 9, (20_000, 8)).astype("<i2")
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("v", data=values, chunks=(2, 8), compression="gzip")


def _temperatures(latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> NDArray[np.float32]:
    """A field in kelvin that compresses about as measured ones do: smooth, with noise, of two decimals."""
    noise = np.random.default_rng(7).normal(0, 0.3, (STEPS, ROWS, COLUMNS)).astype("<f4")
    zonal = 288 - 60 * np.sin(np.deg2rad(latitude)) ** 2
    waves = 5 * np.cos(np.deg2rad(longitude) + np.arange(STEPS)[:, None] / 5)
    return np.round(noise + zonal[:, None] + waves[:, None, :], 2).astype("<f4")


def _field(**storage: Any) -> Callable[[Path], None]:  # noqa: ANN401  netCDF4's own arguments
    """Temperatures over time, stored in one way or another."""

    def make(path: Path) -> None:
        latitude, longitude = np.linspace(90, -90, ROWS), np.arange(COLUMNS) / 4
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("time", None)
            for name, values in {"latitude": latitude, "longitude": longitude}.items():
                file.createDimension(name, len(values))
                file.createVariable(name, "f8", (name,))[:] = values
            time = file.createVariable("time", "f8", ("time",), chunksizes=(512,))
            time.units = "hours since 2024-01-01"
            time[:] = np.arange(STEPS)
            variable = file.createVariable("t2m", "f4", ("time", "latitude", "longitude"), **storage)
            variable.units = "K"
            variable[:] = _temperatures(latitude, longitude)

    return make


_DEFLATE: dict[str, Any] = {"zlib": True, "complevel": 1, "shuffle": True}

_FILES: dict[str, Callable[[Path], None]] = {
    "index_btree1.h5": _indexed("earliest", (None, 8, 8)),
    "index_btree2.h5": _indexed("latest", (None, None, 8)),
    "index_fixed.h5": _indexed("latest", None),
    "index_extensible.h5": _indexed("latest", (None, 8, 8)),
    "datasets.h5": _many_datasets,
    "tiny.h5": _tiny_chunks,
    "frames.nc": _field(chunksizes=(1, ROWS, COLUMNS), **_DEFLATE),
    "tiles.nc": _field(chunksizes=(4, 103, 160), **_DEFLATE),
    "raw.nc": _field(chunksizes=(1, ROWS, COLUMNS)),
}
