"""Every real NetCDF classic file reads as netCDF4-python reads it; every broken one is refused."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import virtualzarr_refs as vzr
from tests.corpus import VARIABLE, corpus_files, corpus_folder
from tests.scanners.netcdf3.comparing import (
    assert_attributes_equal,
    assert_equal,
    read,
    read_with_netcdf4,
)

FILES = corpus_files("netcdf3")
SMALL = [path for path in FILES if path.stat().st_size < 100_000]
BROKEN = [path for path in corpus_files("bad") if path.parent.name == "netcdf3"]
ENGINES = ("netcdf4", "virtualzarr_refs")

needs_corpus = pytest.mark.skipif(not FILES, reason=f"NO CORPUS: set {VARIABLE}; nothing was tested on real files")


def name(path: Path) -> str:
    folder = corpus_folder()
    return str(path.relative_to(folder)) if folder else path.name


def loaded(path: Path, **options) -> xr.Dataset:
    """A dataset, of large files only the first records. Real files have dates and units that xarray warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xr.open_dataset(path, **options) as dataset:
            records = {} if path in SMALL else dict.fromkeys(dataset.encoding["unlimited_dims"], slice(50))
            return dataset.isel(records, missing_dims="ignore").load()


def is_decodable(path: Path) -> bool:
    """Whether xarray can decode the times, some of which are in the year 0."""
    try:
        loaded(path, engine="netcdf4")
    except ValueError:
        return False
    return True


@needs_corpus
@pytest.mark.parametrize("path", FILES, ids=name)
def test_equal_to_netcdf4(path, tmp_path):
    group = vzr.scan(path, strict=True)
    expected = read_with_netcdf4(path)
    if path in SMALL:  # a chunk for each record, of which the others have ten thousands
        assert_equal(read(group), expected)
        assert_equal(read(vzr.scan(path, target_chunk_size=1000)), expected)
    vzr.write_json(group, tmp_path / "refs.json")
    reopened = vzr.open_refs(tmp_path / "refs.json")
    assert_equal(read(reopened), expected)
    assert_attributes_equal(reopened, path)


@needs_corpus
@pytest.mark.parametrize("path", FILES, ids=name)
def test_xarray_shows_the_same(path):
    options = {} if is_decodable(path) else {"decode_times": False}
    theirs, ours = (loaded(path, engine=engine, **options) for engine in ENGINES)
    xr.testing.assert_identical(ours, theirs)
    assert ours.encoding["unlimited_dims"] == theirs.encoding["unlimited_dims"]
    for variable in theirs.variables:
        stored = [np.dtype(ds[variable].encoding["dtype"]).newbyteorder("=") for ds in (ours, theirs)]
        assert stored[0] == stored[1]


@needs_corpus
@pytest.mark.parametrize("path", SMALL, ids=name)
def test_xarray_shows_the_same_without_decoding(path):
    theirs, ours = (loaded(path, engine=engine, decode_cf=False) for engine in ENGINES)
    xr.testing.assert_identical(ours, theirs)


@needs_corpus
@pytest.mark.parametrize("path", BROKEN, ids=name)
def test_broken_files_are_refused(path):
    with pytest.raises(vzr.FormatError) as caught:
        vzr.scan(path)
    assert caught.value.url == str(path)
    assert caught.value.offset is not None
