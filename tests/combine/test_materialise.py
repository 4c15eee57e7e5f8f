"""Chunks of files that differ, written in one way for other readers."""

from __future__ import annotations

import pytest
import xarray as xr
import zarr

import virtualzarr_refs as vzr
from tests.combine.files import Recipe, joined_by_us, joined_by_xarray, write_series
from virtualzarr_refs.errors import NotRepresentableError

BASE = Recipe(steps=6)
PACKED = {"scale_factor": 0.5}
ODD = {
    "another codec": BASE.but(steps=2, storage={"zlib": True, "shuffle": True}),
    "another type": BASE.but(steps=2, dtype="f8"),
    "big-endian": BASE.but(steps=2, dtype=">f4"),
    "padded": BASE.but(steps=3),
    "other chunks": BASE.but(steps=4, chunks=(4, 5, 6), storage={"zlib": True, "shuffle": True}),
    "another fill value": BASE.but(steps=2, fill=5),
    "packed": BASE.but(steps=2, dtype="i2", packing=PACKED, fill=7),
}


@pytest.mark.parametrize("how", ["inline", "sidecar"])
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["set.json", "set.parq"])
def test_values_stay_or_it_is_refused(odd, how, name, tmp_path):
    paths = write_series(tmp_path, BASE, ODD[odd], BASE)
    group = joined_by_us(paths)
    write = vzr.write_json if name == "set.json" else vzr.write_parquet
    try:
        write(group, tmp_path / name, materialise=how)
    except NotRepresentableError as error:
        assert odd in {"another type", "packed", "another fill value", "padded"}
        assert "'v'" in str(error)  # noqa: PT017
        assert "materialise=None" in str(error)  # noqa: PT017
        return
    found = vzr.open_refs(tmp_path / name)
    assert not any(array.manifest.has_variants for _, array in found.walk_arrays())
    expected = joined_by_xarray(paths)
    xr.testing.assert_equal(found.to_xarray().load(), expected)
    assert zarr.open_group(found.to_store(), mode="r")["v"].shape == expected["v"].shape
