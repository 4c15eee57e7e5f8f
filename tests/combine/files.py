"""Files of a series, and what xarray makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import xarray as xr

import virtualzarr_refs as vzr


@dataclass(frozen=True)
class Recipe:
    """One file of a series: `steps` steps of a field over y and x."""

    steps: int = 4
    start: float = 0
    dtype: str = "f4"
    chunks: tuple[int, int, int] | None = (2, 5, 6)
    shape: tuple[int, int] = (5, 6)
    storage: dict[str, Any] = field(default_factory=lambda: {"zlib": True, "complevel": 1})
    fill: Any = None
    packing: dict[str, Any] = field(default_factory=dict)
    units: str = "K"
    time_units: str = "hours since 2024-01-01"
    calendar: str = "standard"
    time_type: str = "f8"
    latitude: float = 0
    lacks: tuple[str, ...] = ()
    format: str = "NETCDF4"
    unwritten: int = 0

    def write(self, path: Path) -> Path:
        ny, nx = self.shape
        values = np.arange(self.steps * ny * nx).reshape(self.steps, ny, nx) % 97 + self.start
        with netCDF4.Dataset(path, "w", format=self.format) as file:
            file.set_auto_maskandscale(False)
            file.title = path.name
            file.createDimension("time", None)
            file.createDimension("y", ny)
            file.createDimension("x", nx)
            y = file.createVariable("y", "f4", ("y",))
            y[:] = np.arange(ny) + self.latitude
            time = file.createVariable("time", self.time_type, ("time",))
            time.units, time.calendar = self.time_units, self.calendar
            time[:] = self.start + np.arange(self.steps)
            if "v" not in self.lacks:
                storage = dict(self.storage) if self.format.startswith("NETCDF4") else {}
                if self.chunks and self.format.startswith("NETCDF4"):
                    storage["chunksizes"] = self.chunks
                storage |= {"endian": "big"} if self.dtype.startswith(">") else {}
                dimensions = ("time", "y", "x")
                v = file.createVariable("v", np.dtype(self.dtype), dimensions, fill_value=self.fill, **storage)
                v.set_auto_maskandscale(False)
                v.units = self.units
                v.setncatts(self.packing)
                written = self.steps - self.unwritten
                if written:
                    v[:written] = values[:written]
            if "w" not in self.lacks:
                w = file.createVariable("w", "i4", ("time",))
                w[:] = np.arange(self.steps)
        return path

    def but(self, **changes: Any) -> Recipe:
        return replace(self, **changes)


def write_series(folder: Path, *recipes: Recipe) -> list[Path]:
    """The files, each beginning where the last one ended unless it says otherwise."""
    start, paths = 0, []
    for number, recipe in enumerate(recipes):
        placed = recipe if recipe.start else recipe.but(start=start)
        paths.append(placed.write(folder / f"{number}.nc"))
        start = placed.start + placed.steps
    return paths


def opened(path: Path) -> xr.Dataset:
    """What xarray reads from a file, in memory."""
    with xr.open_dataset(path, engine="netcdf4") as dataset:
        return dataset.load()


def joined_by_xarray(paths: list[Path], dim: str = "time", **options: Any) -> xr.Dataset:
    """What xarray makes of the files, in memory."""
    choice = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "override"}
    return xr.concat([opened(path) for path in paths], dim, **{**choice, "combine_attrs": "override", **options})


def joined_by_us(paths: list[Path], dim: str = "time", **options: Any) -> vzr.VirtualGroup:
    return vzr.concat([vzr.scan(path) for path in paths], dim, **options)


def assert_same(group: vzr.VirtualGroup, expected: xr.Dataset, folder: Path) -> None:
    """The group holds what xarray has, directly and through written sets."""
    for opened_again in ways(group, folder):
        found = opened_again.load()
        opened_again.close()
        xr.testing.assert_equal(found, expected)
        assert {name: v.dtype for name, v in found.variables.items()} == {
            name: v.dtype for name, v in expected.variables.items()
        }


def ways(group: vzr.VirtualGroup, folder: Path) -> Iterator[xr.Dataset]:
    """The group as a dataset: as it is, through JSON, and through Parquet."""
    yield group.to_xarray()
    for name, write in (("set.json", vzr.write_json), ("set.parq", vzr.write_parquet)):
        write(group, folder / name, overwrite=True)
        yield xr.open_dataset(folder / name, engine="virtualzarr_refs")
