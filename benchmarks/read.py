"""Opening and reading local files through xarray, and one chunk out of many through zarr."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import ujson
import xarray as xr
import zarr

import virtualzarr_refs as vzr
from benchmarks.rows import OURS, Race, Row

NETCDF, KERCHUNK, H5PY = "netcdf4", "kerchunk", "h5py"

_TARGETS: dict[str, dict[str, float]] = {
    "frames.nc": {NETCDF: 2.5, KERCHUNK: 3},
    "tiles.nc": {NETCDF: 2.5, KERCHUNK: 6},
    "raw.nc": {NETCDF: 2},
    "tiny.h5": {H5PY: 1, KERCHUNK: 20},
}

_VARIABLES = {"tiny.h5": "v"}


def rows(folder: Path) -> Iterable[Row]:
    """Whole variables, opening, and one chunk of 200,000."""
    with tempfile.TemporaryDirectory() as scratch:
        yield from (_read(folder / name, Path(scratch)).run() for name in _TARGETS)
        yield from (_open(folder / name).run() for name in ("frames.nc", "tiles.nc", "raw.nc"))
        yield _one_chunk(folder / "index_btree1.h5").run()


def _read(path: Path, scratch: Path) -> Race:
    """Open with references that are there already, and read one variable whole."""
    name = _VARIABLES.get(path.name, "t2m")
    references = scratch / f"{path.name}.json"
    vzr.write_json(vzr.scan(path), references)
    stored = {"mask_and_scale": False}  # kerchunk takes the fill value of HDF5 for CF's, and so zeros for missing
    subjects: dict[str, Callable[[], Any]] = {OURS: lambda: _values(references, name, "virtualzarr_refs", stored)}
    if path.suffix == ".nc":
        subjects[NETCDF] = lambda: _values(path, name, NETCDF, stored)
    else:
        subjects[H5PY] = lambda: _with_h5py(path, name)
    if find_spec("kerchunk") is not None:
        theirs = _kerchunk_references(path, scratch)
        subjects[KERCHUNK] = lambda: _values(theirs, name, KERCHUNK, stored)
    return Race("read", path.name, subjects, np.array_equal, _TARGETS[path.name])


def _values(path: Path, name: str, engine: str, options: dict[str, Any]) -> Any:  # noqa: ANN401  of any type
    with xr.open_dataset(str(path), engine=engine, cache=False, **options) as dataset:
        return dataset[name].to_numpy()


def _with_h5py(path: Path, name: str) -> Any:  # noqa: ANN401  an array of any type
    with h5py.File(path) as file:
        return file[name][...]


def _kerchunk_references(path: Path, scratch: Path) -> Path:
    from kerchunk.hdf import SingleHdf5ToZarr  # noqa: PLC0415  a peer that may not be there

    target = scratch / f"{path.name}.kerchunk.json"
    target.write_text(ujson.dumps(SingleHdf5ToZarr(str(path)).translate()))
    return target


def _open(path: Path) -> Race:
    """Scan and open in one step, as another engine opens a file; at most 1.5 times as long."""
    subjects = {OURS: lambda: _shape(path, "virtualzarr_refs"), NETCDF: lambda: _shape(path, "netcdf4")}
    return Race("open", path.name, subjects, lambda a, b: a == b, {NETCDF: 1 / 1.5}, rounds=10)


def _shape(path: Path, engine: str) -> dict[str, int]:
    with xr.open_dataset(path, engine=engine, cache=False) as dataset:
        return dict(dataset.sizes)


def _one_chunk(path: Path) -> Race:
    array = zarr.open_group(vzr.scan(path).to_store(), mode="r")["x"]
    file = h5py.File(path)
    subjects = {OURS: lambda: array[123_456], H5PY: lambda: file["x"][123_456]}
    return Race("read one chunk", path.name, subjects, np.array_equal, rounds=200, limit=1e-3)
