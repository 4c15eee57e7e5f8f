"""Reading Open-Meteo's files whole, beside omfiles: with the compiled decoder, and with that in NumPy."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import omfiles
from numpy.typing import NDArray

import virtualzarr_refs as vzr
from benchmarks.rows import OURS, Race, Row
from virtualzarr_refs.codecs import open_meteo_numpy, open_meteo_values

OMFILES = "omfiles"
SHAPE, CHUNKS = (40, 80, 1008), (4, 8, 252)

_CASES: dict[str, dict[str, Any]] = {
    "packed as 16-bit integers": {"compression": "pfor_delta_2d_int16", "scale_factor": 20.0},
    "packed as 32-bit integers": {"compression": "pfor_delta_2d", "scale_factor": 1000.0},
    "floats": {"compression": "fpx_xor_2d"},
}


def rows(_: Path) -> Iterable[Row]:
    """Every compression, by either decoder."""
    with tempfile.TemporaryDirectory() as scratch:
        for number, (case, options) in enumerate(_CASES.items()):
            path = _write(Path(scratch) / f"{number}.om", options)
            yield _race(path, case, lambda path=path: _values(path), 1 / 2)
            yield _race(path, f"{case}, in NumPy", lambda path=path: _in_numpy(path), 1 / 15)


def _write(path: Path, options: dict[str, Any]) -> Path:
    """A field that changes smoothly in time, as published ones do."""
    noise = np.random.default_rng(0).normal(size=SHAPE).cumsum(axis=-1)
    writer = omfiles.OmFileWriter.at_path(str(path))
    writer.close(writer.write_array((280 + noise / 4).astype("f4"), chunks=list(CHUNKS), name="v", **options))
    return path


def _race(path: Path, case: str, ours: Callable[[], Any], target: float) -> Row:
    subjects = {OURS: ours, OMFILES: lambda: omfiles.OmFileReader.from_path(str(path)).read_array(...)}
    return Race("read Open-Meteo", case, subjects, np.array_equal, {OMFILES: target}).run()


def _values(path: Path) -> NDArray[Any]:
    return vzr.scan(path).to_xarray()["v"].to_numpy()


def _in_numpy(path: Path) -> NDArray[Any]:
    with patch.object(open_meteo_values, "steps", lambda: open_meteo_numpy):
        return _values(path)
