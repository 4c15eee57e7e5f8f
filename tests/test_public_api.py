"""The names that users rely on, and what importing the package costs and changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import virtualzarr_refs as vzr

NAMES = {
    "ArrayMetadata",
    "ByteRange",
    "CacheWarning",
    "Comparison",
    "DecodeError",
    "FormatError",
    "GroupMetadata",
    "IncompatibleError",
    "InlineChunk",
    "Manifest",
    "NodeNotFoundError",
    "NotRepresentableError",
    "ReferenceSetError",
    "ScanOptions",
    "Scanner",
    "SetLockedError",
    "Skipped",
    "SkippedFileWarning",
    "SkippedNodeWarning",
    "SourceChangedError",
    "SourceChangedWarning",
    "SourceError",
    "SourceMissingError",
    "SourceNotFoundError",
    "SourceTruncatedError",
    "UnsupportedError",
    "VirtualArray",
    "VirtualChunk",
    "VirtualFileSystem",
    "VirtualGroup",
    "VirtualStore",
    "VirtualiZarrParser",
    "from_virtualizarr",
    "VirtualZarrError",
    "WorkerLostError",
    "__version__",
    "check",
    "compare",
    "concat",
    "append",
    "keep_vars",
    "drop_vars",
    "from_xarray",
    "combine_by_coords",
    "combine_nested",
    "merge",
    "stack",
    "open_icechunk",
    "to_shards",
    "open_refs",
    "rechunk",
    "scan",
    "scan_many",
    "write_icechunk",
    "write_json",
    "write_parquet",
}


def run(code: str, **environment: str) -> str:
    """What a fresh Python prints."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("ZARR_")} | environment
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)  # noqa: S603  ours
    return done.stdout.strip()


def test_public_names():
    assert set(vzr.__all__) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_is_there(name):
    assert getattr(vzr, name) is not None
    assert name in dir(vzr)


def test_unknown_names_raise():
    with pytest.raises(AttributeError, match="no_such_name"):
        vzr.no_such_name  # noqa: B018


def test_importing_is_cheap():
    slow = ("zarr", "xarray", "h5py", "fsspec", "pyarrow", "kerchunk", "numcodecs", "scanners", "numpy")
    code = f"import sys, json, virtualzarr_refs; print(json.dumps([m for m in {slow!r} if m in sys.modules]))"
    assert json.loads(run(code)) == []


def test_the_core_scans_without_zarr_and_xarray():
    code = "import sys, virtualzarr_refs.scanning; print([m for m in ('zarr', 'xarray', 'h5py') if m in sys.modules])"
    assert run(code) == "[]"


@pytest.mark.parametrize("order", ["import virtualzarr_refs, zarr", "import zarr, virtualzarr_refs"])
def test_importing_turns_on_rectilinear_chunks(order):
    assert run(f"{order}; print(zarr.config.get('array.rectilinear_chunks'))") == "True"


def test_a_setting_of_the_users_own_stands():
    code = "import virtualzarr_refs, zarr; print(zarr.config.get('array.rectilinear_chunks'))"
    assert run(code, ZARR_ARRAY__RECTILINEAR_CHUNKS="False") == "False"


def test_importing_changes_nothing_else_of_zarr():
    code = (
        "import json, zarr; before = json.dumps(zarr.config.to_dict(), default=str, sort_keys=True);"
        "import virtualzarr_refs, virtualzarr_refs.store, virtualzarr_refs.xarray_backend;"
        "zarr.config.set({'array.rectilinear_chunks': False});"
        "print(before == json.dumps(zarr.config.to_dict(), default=str, sort_keys=True))"
    )
    assert run(code) == "True"


@pytest.mark.parametrize(
    ("group", "name"),
    [
        ("virtualzarr_refs.scanners", "hdf5"),
        ("zarr.codecs", "virtualzarr_refs.hdf5"),
        ("zarr.codecs", "virtualzarr_refs.mixed"),
        ("xarray.backends", "virtualzarr_refs"),
        ("fsspec.specs", "vzrefs"),
        ("console_scripts", "vzrefs"),
    ],
)
def test_entry_points_load(group, name):
    (point,) = entry_points(group=group, name=name)
    assert point.load() is not None
