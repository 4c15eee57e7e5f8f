"""Every real HDF5 and NetCDF4 file looks through our engine as it looks through xarray's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
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
NETCDF4_CRASHES = frozenset(
    {"tfloat16_be.h5", "tldouble.h5", "tstr.h5", "tloop.h5", "indexes_2_1.h5", "smpl_compound_chunked.h5"}
)
"""Files on which netCDF-C takes the process with it."""

FILES = [path for path in corpus_files("netcdf4", "hdf5") if h5py.is_hdf5(path)]
LIBRARIES = {"h5netcdf": {"phony_dims": "sort"}, "netcdf4": {}}
needs_corpus = pytest.mark.skipif(not FILES, reason=f"NO CORPUS: set {VARIABLE}; nothing was tested on real files")


class DifferenceError(AssertionError):
    """The two differ."""


def name(path: Path) -> str:
    folder = corpus_folder()
    return str(path.relative_to(folder)) if folder else path.name


def attempt(opener: Callable[..., Any], path: Any, **options: Any) -> Any:
    """What a library opens, or None; what they raise for odd files is without end."""
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


def compare_variables(ours: xr.Variable, theirs: xr.Variable, path: str, known: Known) -> None:
    check(known.dimensions(ours) == known.dimensions(theirs), "dimensions", ours.dims, theirs.dims)
    check(ours.dtype == theirs.dtype, "type", ours.dtype, theirs.dtype)
    compare_attributes(ours.attrs, theirs.attrs, path, known)
    for key in ENCODED:
        mine, other = ours.encoding.get(key), theirs.encoding.get(key)
        same = plain(mine) == plain(other) if key == "dtype" else comparable(mine) == comparable(other)
        check(same, f"encoding {key}", mine, other)
    if ours.size * ours.dtype.itemsize <= LARGE:
        compare_values(ours, theirs)


def compare_values(ours: xr.Variable, theirs: xr.Variable) -> None:
    try:
        expected = xr.Variable(ours.dims, theirs.values)
    except (OSError, RuntimeError):  # such as external storage, which h5netcdf looks for elsewhere
        return
    try:
        xr.testing.assert_identical(xr.Variable(ours.dims, ours.values), expected)
    except AssertionError as error:
        raise DifferenceError("values", str(error)) from error


@dataclass(frozen=True)
class Known:
    """What is known to differ.

    Parameters
    ----------
    skipped : set of str
        Paths of what the scan has left out; of an attribute, ``path@name``.
    is_netcdf4 : bool
        The library is netCDF4: it knows fewer types, and numbers the dimensions that it invents in another order.
    """

    skipped: set[str]
    is_netcdf4: bool

    def keys(self, ours: Iterable[str], theirs: Iterable[str], prefix: str) -> set[str]:
        """The names in which they differ."""
        wanted = {key for key in theirs if f"{prefix}{key}" not in self.skipped}
        return wanted - set(ours) if self.is_netcdf4 else wanted ^ set(ours)

    def dimensions(self, variable: xr.Variable) -> list[str]:
        """The dimensions; of those that netCDF4 invents only that they are."""
        is_free = [self.is_netcdf4 and name.startswith("phony_dim_") for name in variable.dims]
        return ["phony" if free else name for free, name in zip(is_free, variable.dims, strict=True)]

    def unlimited(self, names: Iterable[str]) -> set[str]:
        return {key for key in names if not (self.is_netcdf4 and key.startswith("phony_dim_"))}


def compare_attributes(ours: dict[str, Any], theirs: dict[str, Any], path: str, known: Known) -> None:
    differ = known.keys(ours, theirs, f"{path}@")
    check(not differ, "attributes", differ)
    for key in ours.keys() & theirs.keys():
        check(comparable(ours[key]) == comparable(theirs[key]), "attribute", key, ours[key], theirs[key])


def compare_datasets(ours: xr.Dataset, theirs: xr.Dataset, path: str, known: Known) -> None:
    compare_attributes(ours.attrs, theirs.attrs, path, known)
    unlimited = known.unlimited(theirs.encoding["unlimited_dims"])
    check(ours.encoding["unlimited_dims"] == unlimited, "unlimited dimensions", unlimited)
    prefix = f"{path}/" if path else ""
    differ = known.keys(ours.variables, theirs.variables, prefix)
    check(not differ, "variables", differ)
    for key in ours.variables.keys() & theirs.variables.keys():
        if not is_shown_otherwise(theirs.variables[key]):
            try:
                compare_variables(ours.variables[key], theirs.variables[key], prefix + key, known)
            except DifferenceError as error:
                error.add_note(f"variable {prefix}{key}")
                raise


def compare(ours: Any, theirs: Any, known: Known) -> None:
    """Raise DifferenceError if they differ."""
    if isinstance(ours, xr.Dataset):
        compare_datasets(ours, theirs, "", known)
        return
    groups = {node.path: node.to_dataset(inherit=False) for node in theirs.subtree}
    check({node.path for node in ours.subtree} == set(groups), "groups")
    for node in ours.subtree:
        compare_datasets(node.to_dataset(inherit=False), groups[node.path], node.path.strip("/"), known)


def libraries(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for engine, options in LIBRARIES.items():
        if engine != "netcdf4" or path.name not in NETCDF4_CRASHES:
            yield engine, options


@lru_cache(1)
def scanned(path: Path) -> vzr.VirtualGroup:
    return vzr.scan(path)


def differences(ours: Any, path: Path, opener: Callable[..., Any], options: dict[str, Any]) -> Iterator[Any]:
    """For each library that opens the file, how it shows something else; None if it does not."""
    skipped = {record.path for record in scanned(path).skipped if record.loses_data}
    for engine, own in libraries(path):
        theirs = attempt(opener, path, engine=engine, **own, **options)
        if theirs is not None:
            try:
                check(ours is not None, "not opened")
                compare(ours, theirs, Known(skipped, is_netcdf4=engine == "netcdf4"))
                yield None
            except DifferenceError as error:
                error.add_note(engine)
                yield error
            theirs.close()


@needs_corpus
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("opener", "options"),
    [(xr.open_dataset, {}), (xr.open_dataset, {"decode_cf": False}), (xr.open_datatree, {})],
    ids=["decoded", "raw", "tree"],
)
@pytest.mark.parametrize("path", FILES, ids=name)
def test_as_a_library_shows_it(path, opener, options):
    ours = attempt(opener, scanned(path), engine="virtualzarr_refs", **options)
    found: list[Exception] = []
    for difference in differences(ours, path, opener, options):
        if difference is None:
            return
        found.append(difference)
    if found:
        raise ExceptionGroup("no library shows this", found)
    pytest.skip("no library opens it")
