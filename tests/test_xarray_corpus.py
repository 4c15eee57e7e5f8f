"""Every real HDF5 and NetCDF4 file looks through our engine as it looks through xarray's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin  # noqa: F401  registers the filters that h5netcdf needs
import numpy as np
import pytest
import xarray as xr

import virtualzarr_refs as vzr
from tests.corpus import VARIABLE, corpus_files, corpus_folder

LARGE = 64 * 1024 * 1024
ENCODED = ("dtype", "scale_factor", "add_offset", "_FillValue", "missing_value", "units", "calendar", "original_shape")
NETCDF4_CRASHES = ("tfloat16_be.h5", "tldouble.h5", "tstr.h5", "indexes_2_1.h5", "smpl_compound_chunked.h5")
"""Files on which netCDF-C takes the process with it."""

FILES = [path for path in corpus_files("netcdf4", "hdf5") if h5py.is_hdf5(path)]
LIBRARIES = {"h5netcdf": {"phony_dims": "sort"}, "netcdf4": {}}
needs_corpus = pytest.mark.skipif(not FILES, reason=f"NO CORPUS: set {VARIABLE}; nothing was tested on real files")


class DifferenceError(AssertionError):
    """The two differ."""


def name(path: Path) -> str:
    folder = corpus_folder()
    return str(path.relative_to(folder)) if folder else path.name


def attempt(opener: Callable[..., Any], path: Path, **options: Any) -> Any:
    """What a library opens, or None; what they raise for odd files is without end."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return opener(path, **options)
        except Exception:  # noqa: BLE001
            return None


def check(same: Any, *what: Any) -> None:
    if not same:
        raise DifferenceError(*what)


# ── What may differ by design ────────────────────────────────────────────────────────────────────────────────────────


def plain(dtype: Any) -> Any:
    """A type without padding and byte order."""
    if dtype is str:
        return str
    dtype = np.dtype(dtype)
    if dtype.names is not None:
        return [(field, plain(dtype[field])) for field in dtype.names]
    return dtype.newbyteorder("=").str, dtype.shape


def is_shown_otherwise(theirs: xr.Variable) -> bool:
    """Whether DESIGN has another form for these values: array types, references, and big-endian records."""
    dtype = np.dtype(theirs.encoding.get("dtype", theirs.dtype))
    is_odd_object = theirs.dtype == object and theirs.encoding.get("dtype") is not str
    return dtype.subdtype is not None or is_odd_object or dtype.kind == "V"


def attributes(shown: dict[str, Any]) -> dict[str, Any]:
    return {key: comparable(value) for key, value in shown.items()}


def comparable(value: Any) -> Any:
    """An attribute in a form that can be compared; text that is no UTF-8 is read in as many ways as libraries."""
    if isinstance(value, str | bytes):
        text = value if isinstance(value, str) else value.decode("ascii", "replace")
        return "".join(letter if letter.isascii() else "?" for letter in text)
    if isinstance(value, list | tuple):
        return [comparable(item) for item in value]
    array = np.asarray(value)
    return plain(array.dtype), array.size, array.astype(array.dtype.newbyteorder("=")).tolist().__repr__()


# ── The comparison ───────────────────────────────────────────────────────────────────────────────────────────────────


def compare_variables(ours: xr.Variable, theirs: xr.Variable) -> None:
    check(ours.dims == theirs.dims, "dimensions", ours.dims, theirs.dims)
    check(ours.dtype == theirs.dtype, "type", ours.dtype, theirs.dtype)
    check(attributes(ours.attrs) == attributes(theirs.attrs), "attributes", ours.attrs, theirs.attrs)
    for key in ENCODED:
        mine, other = ours.encoding.get(key), theirs.encoding.get(key)
        same = plain(mine) == plain(other) if key == "dtype" else comparable(mine) == comparable(other)
        check(same, f"encoding {key}", mine, other)
    if ours.size * ours.dtype.itemsize <= LARGE:
        compare_values(ours, theirs)


def compare_values(ours: xr.Variable, theirs: xr.Variable) -> None:
    with warnings.catch_warnings(action="ignore"):
        try:
            expected = xr.Variable(theirs.dims, theirs.values)
        except (OSError, RuntimeError):  # such as external storage, which h5netcdf looks for elsewhere
            return
    try:
        xr.testing.assert_identical(xr.Variable(ours.dims, ours.values), expected)
    except AssertionError as error:
        raise DifferenceError("values", str(error)) from error


def compare_datasets(ours: xr.Dataset, theirs: xr.Dataset, skipped: set[str]) -> None:
    check(attributes(ours.attrs) == attributes(theirs.attrs), "attributes", ours.attrs, theirs.attrs)
    check(ours.encoding["unlimited_dims"] == theirs.encoding["unlimited_dims"], "unlimited dimensions")
    names = {key for key, variable in theirs.variables.items() if key not in skipped}
    check(set(ours.variables) == names, "variables", set(ours.variables) ^ names)
    for key in names:
        if not is_shown_otherwise(theirs.variables[key]):
            try:
                compare_variables(ours.variables[key], theirs.variables[key])
            except DifferenceError as error:
                error.add_note(f"variable {key}")
                raise


def compare(ours: Any, theirs: Any, skipped: set[str]) -> None:
    if isinstance(ours, xr.Dataset):
        compare_datasets(ours, theirs, {path for path in skipped if "/" not in path})
        return
    groups = {node.path: node for node in theirs.subtree}
    check({node.path for node in ours.subtree} == set(groups), "groups")
    for node in ours.subtree:
        prefix = node.path.strip("/") + "/" if node.path != "/" else ""
        beneath = {path.removeprefix(prefix) for path in skipped if path.startswith(prefix)}
        group = groups[node.path].to_dataset(inherit=False)
        compare_datasets(node.to_dataset(inherit=False), group, {path for path in beneath if "/" not in path})


def libraries(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for engine, options in LIBRARIES.items():
        if engine != "netcdf4" or path.name not in NETCDF4_CRASHES:
            yield engine, options


@needs_corpus
@pytest.mark.parametrize(
    ("opener", "options"),
    [(xr.open_dataset, {}), (xr.open_dataset, {"decode_cf": False}), (xr.open_datatree, {})],
    ids=["decoded", "raw", "tree"],
)
@pytest.mark.parametrize("path", FILES, ids=name)
def test_as_a_library_shows_it(path, opener, options):
    with warnings.catch_warnings(action="ignore"):
        skipped = {record.path for record in vzr.scan(path).skipped if record.loses_data}
        ours = opener(path, engine="virtualzarr_refs", **options)
    differences: list[DifferenceError] = []
    for engine, own in libraries(path):
        theirs = attempt(opener, path, engine=engine, **own, **options)
        if theirs is None:
            continue
        try:
            compare(ours, theirs, skipped)
        except DifferenceError as error:
            error.add_note(engine)
            differences.append(error)
        else:
            return
        finally:
            theirs.close()
    if differences:
        raise ExceptionGroup("no library shows this", differences)
    pytest.skip("no library opens it")
