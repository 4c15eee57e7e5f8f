"""Comparison with netCDF4-python, element by element."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import zarr

import virtualzarr_refs as vzr


def scan(path: Path, **options: Any) -> vzr.VirtualGroup:
    """Scan a file, without warnings of what is skipped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vzr.SkippedNodeWarning)
        return vzr.scan(path, **options)


def read(group: vzr.VirtualGroup) -> dict[str, np.ndarray]:
    """The values of every array."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zarr.errors.UnstableSpecificationWarning)
        with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.FusedCodecPipeline"}):
            opened = zarr.open_group(group.to_store(), mode="r")
            return {name: np.asarray(opened[name][...]) for name in group.arrays}


def read_with_netcdf4(path: Path) -> dict[str, np.ndarray]:
    """The stored values of every variable."""
    with netCDF4.Dataset(path) as dataset:
        dataset.set_auto_maskandscale(False)
        dataset.set_auto_chartostring(False)
        return {name: np.asarray(variable[...]) for name, variable in dataset.variables.items()}


def assert_equal(values: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Assert that the same arrays have the same types, shapes and bits."""
    assert list(values) == list(expected)
    for name, theirs in expected.items():
        ours = values[name]
        assert (ours.dtype.newbyteorder("="), ours.shape) == (theirs.dtype.newbyteorder("="), theirs.shape), name
        assert ours.astype(theirs.dtype).tobytes() == theirs.tobytes(), name


def assert_attributes_equal(group: vzr.VirtualGroup, path: Path) -> None:
    """Assert that attributes and names of dimensions are as netCDF4-python gives them."""
    with netCDF4.Dataset(path) as dataset:
        assert_same_attributes(group.attributes, dataset)
        assert group.metadata.unlimited_dimensions == tuple(
            name for name, dimension in dataset.dimensions.items() if dimension.isunlimited()
        )
        for name, variable in dataset.variables.items():
            metadata = group.arrays[name].metadata
            assert metadata.dimension_names == variable.dimensions
            assert_same_attributes(metadata.typed_attributes(), variable)


def assert_same_attributes(ours: dict[str, Any], owner: Any) -> None:
    theirs = {name: owner.getncattr(name) for name in owner.ncattrs()}
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        assert type(ours[name]) is type(value), name
        if isinstance(value, str | bytes):
            assert ours[name] == value, name
        else:
            assert ours[name].dtype.newbyteorder("=") == value.dtype.newbyteorder("="), name
            np.testing.assert_array_equal(ours[name], value)
