"""What the tests of the HDF5 scanner measure by: h5py's own reading of a file."""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin  # noqa: F401  h5py needs its filters
import numpy as np
import zarr
from h5py import h5d, h5p

import virtualzarr_refs as vzr


def scan(path: Path | str, **options: Any) -> vzr.VirtualGroup:
    """Scan without a word about what is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vzr.SkippedNodeWarning)
        return vzr.scan(path, **options)


def opened(group: vzr.VirtualGroup) -> zarr.Group:
    """The hierarchy as a user of zarr has it."""
    return zarr.open_group(group.to_store(), mode="r")


def reasons(group: vzr.VirtualGroup) -> dict[str, str]:
    """Why nodes were left out, by path."""
    return {record.path: record.reason for record in group.skipped}


def dataset_paths(file: h5py.File) -> list[str]:
    """Every dataset, once, by the first of its names."""
    found: list[str] = []
    file.visititems(lambda path, node: found.append(path) if isinstance(node, h5py.Dataset) else None)
    return found


def truth(path: Path | str, name: str) -> np.ndarray:
    """What h5py reads."""
    access = h5p.create(h5p.DATASET_ACCESS)
    access.set_efile_prefix(b"${ORIGIN}")
    with h5py.File(path) as file:
        dataset = h5py.Dataset(h5d.open(file.id, name.encode(), access))
        values = np.asarray(dataset[()], dtype=object if dataset.dtype.base.hasobject else None)
        if h5py.check_ref_dtype(dataset.dtype.base) is h5py.Reference:
            return as_text(values, lambda reference: file[reference].name)
        return as_text(values, as_utf8) if values.dtype.hasobject else values


def as_text(values: np.ndarray, text: Any) -> np.ndarray:
    flat = [text(value) if value else "" for value in values.reshape(-1)]
    return np.array(flat, dtype=object).reshape(values.shape)


def as_utf8(raw: bytes | str) -> str:
    return raw if isinstance(raw, str) else raw.decode()


def assert_equal(ours: Any, theirs: np.ndarray) -> None:
    """The same shape, type and bits; byte order and padding are not part of a type in Zarr."""
    ours = np.asarray(ours)
    assert ours.shape == theirs.shape
    if theirs.dtype == object:
        assert ours.astype(object).tolist() == theirs.tolist()
    else:
        assert ours.dtype == packed(theirs.dtype)
        assert ours.tobytes() == theirs.astype(ours.dtype).tobytes()


def packed(dtype: np.dtype) -> np.dtype:
    """A type in native byte order without padding."""
    if dtype.names is None:
        return np.dtype(dtype.newbyteorder("=").str)
    return np.dtype([(name, packed(dtype.fields[name][0])) for name in dtype.names])


def assert_reads_as_h5py(path: Path | str, **options: Any) -> vzr.VirtualGroup:
    """Every dataset of the file is shown, and equals what h5py reads."""
    group = scan(path, **options)
    assert not reasons(group)
    root = opened(group)
    with h5py.File(path) as file:
        names = dataset_paths(file)
    assert names
    for name in names:
        try:
            expected = truth(path, name)
        except OSError:  # some filters cannot undo what they did
            with contextlib.suppress(vzr.VirtualZarrError):
                root[name][...]
        else:
            assert_equal(root[name][...], expected)
    return group
