"""Groups as references, and the comparison of what comes of them with what comes of values."""

from __future__ import annotations

import xarray as xr

import virtualzarr_refs as vzr
from virtualzarr_refs.scanning import scan


def virtual(path, **options):
    """A file as references."""
    return scan(path).to_xarray(virtual=True, **options)


def assert_same(references, expected, folder):
    """The group that comes of references holds what xarray has, directly and through a written set."""
    group = vzr.from_xarray(references)
    vzr.write_json(group, folder / "set.json", overwrite=True)
    for way in (group.to_xarray(), xr.open_dataset(folder / "set.json", engine="virtualzarr_refs")):
        found = way.load()
        xr.testing.assert_identical(found, expected)
        assert {name: _kind(v) for name, v in found.variables.items()} == {
            name: _kind(v) for name, v in expected.variables.items()
        }
    return group


def _kind(variable):
    """The type of values; xarray has text of an index in several."""
    return "text" if variable.dtype.kind in "OTU" else variable.dtype
