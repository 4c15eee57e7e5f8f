"""Every real HDF5 and NetCDF4 file reads as h5py reads it, or is refused when it is scanned."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin  # noqa: F401  registers the filters that h5py needs for its side
import numpy as np
import pytest
import zarr

import virtualzarr_refs as vzr
from tests.corpus import VARIABLE, corpus_files, corpus_folder

FILES = corpus_files("hdf5", "netcdf4", "bad")
LARGE = 64 * 1024 * 1024
SHARE = 0.97
SHARE_OF_ALL = 0.93

BY_CONTRACT = (
    "variable-length sequence",
    "region reference",
    "compound with members of variable length or references",
    "compound member",
    "null dataspace",
    "time datatype",
    "compound datatype",
    "float128",
)
"""Reasons for which the design has an HDF5 type left out: Zarr, or NumPy, has no such type."""


def name(path: Path) -> str:
    folder = corpus_folder()
    return str(path.relative_to(folder)) if folder else path.name


needs_corpus = pytest.mark.skipif(not FILES, reason=f"NO CORPUS: set {VARIABLE}; nothing was tested on real files")


def test_corpus_is_there_where_it_must_be():
    if os.environ.get("CI") and (Path(__file__).parents[2] / "shared").is_dir():
        assert len(FILES) > 150
    elif not FILES:
        warnings.warn(f"NO CORPUS: set {VARIABLE}; nothing was tested on real files", RuntimeWarning, stacklevel=1)


# ── What h5py reads ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Truth:
    """A dataset as h5py shows it."""

    dataset: h5py.Dataset

    def read(self, where: Any = ()) -> np.ndarray:
        dtype = self.dataset.dtype.base
        values = self._values(where)
        if h5py.check_string_dtype(dtype) is not None and dtype.hasobject:
            return as_text(values, decode)
        if h5py.check_ref_dtype(dtype) is not None:
            return as_text(values, lambda reference: self.dataset.file[reference].name)
        return values

    def _values(self, where: Any) -> np.ndarray:
        if self.dataset.dtype.kind == "V" and self.dataset.dtype.names is None:
            # h5py cannot convert opaque types whose tag is not its own; read them as they are stored.
            values = np.empty(self.dataset.shape, self.dataset.dtype)
            self.dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, values, self.dataset.id.get_type())
            return values[where]
        return np.asarray(self.dataset[where])

    def windows(self) -> Iterator[Any]:
        """Selections to compare: all of it, or, of what would not fit in memory, its corners and chunks."""
        shape, dtype = self.dataset.shape, self.dataset.dtype
        if np.prod(shape, dtype=float) * dtype.itemsize <= LARGE:
            yield ()
            return
        yield tuple(slice(0, min(n, 8)) for n in shape)
        yield tuple(slice(max(0, n - 8), n) for n in shape)
        found: list[tuple[int, ...]] = []
        if self.dataset.chunks:
            self.dataset.id.chunk_iter(lambda info: found.append(info.chunk_offset))
            for offset in found[:20]:
                ends = zip(offset, self.dataset.chunks, strict=True)
                yield tuple(slice(start, start + min(length, 64)) for start, length in ends)


def decode(raw: bytes | str) -> str:
    raw = raw.encode("utf-8", "surrogateescape") if isinstance(raw, str) else raw
    with contextlib.suppress(UnicodeDecodeError):
        return raw.decode()
    return raw.decode("latin-1")


def as_text(values: np.ndarray, text: Callable[[Any], str]) -> np.ndarray:
    flat = [text(value) if value else "" for value in values.reshape(-1)]
    return np.array(flat, dtype=object).reshape(values.shape)


def h5py_datasets(file: h5py.File) -> dict[str, Truth]:
    """Every dataset that can be reached, by path; groups are entered once on each way down."""
    found: dict[str, Truth] = {}
    waiting = [(file["/"], "", (file["/"],))]
    while waiting:
        group, prefix, above = waiting.pop()
        for link in members(group):
            path = f"{prefix}/{link}" if prefix else link
            with contextlib.suppress(KeyError, OSError, RuntimeError, ValueError):
                node = group[link]
                if isinstance(node, h5py.Dataset):
                    found[path] = Truth(node)
                elif isinstance(node, h5py.Group) and node not in above:
                    waiting.append((node, path, (*above, node)))
    return found


def members(group: h5py.Group) -> list[str]:
    with contextlib.suppress(RuntimeError):
        return list(group)
    return []


# ── What we read ─────────────────────────────────────────────────────────────────────────────────────────────────────


def scan(path: Path) -> vzr.VirtualGroup:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vzr.SkippedNodeWarning)
        return vzr.scan(path)


def scan_or_none(path: Path) -> vzr.VirtualGroup | None:
    try:
        return scan(path)
    except vzr.VirtualZarrError as error:
        return None if str(path) in str(error) else pytest.fail(f"the error does not name the file: {error}")


def is_skipped(group: vzr.VirtualGroup, path: str) -> bool:
    skipped = {record.path for record in group.skipped}
    parts = path.split("/")
    return any("/".join(parts[:i]) in skipped for i in range(1, len(parts) + 1))


def differences(group: vzr.VirtualGroup, file: h5py.File) -> Iterator[str]:
    root = zarr.open_group(group.to_store(), mode="r")
    for path, truth in h5py_datasets(file).items():
        if is_skipped(group, path):
            continue
        try:
            array = root[path.replace("_nc4_non_coord_", "")]
        except KeyError:
            yield f"{path}: neither an array nor skipped"
            continue
        for window in truth.windows():
            if problem := compare(truth, array, window):
                yield f"{path}{list(window)}: {problem}"


def compare(truth: Truth, array: zarr.Array, window: Any) -> str | None:
    try:
        expected = truth.read(window)
    except (OSError, KeyError, RuntimeError) as error:
        # What h5py cannot read, we may refuse too, with an error of ours, or read.
        with contextlib.suppress(vzr.VirtualZarrError):
            array[window or ...]
        return None if error else ""
    values = np.asarray(array[window or ...])
    if values.shape != expected.shape:
        return f"shape {values.shape}, h5py has {expected.shape}"
    if expected.dtype == object:
        return None if expected.tolist() == np.asarray(values, object).tolist() else "other texts"
    if not same_type(expected.dtype, values.dtype):
        return f"type {values.dtype}, h5py has {expected.dtype}"
    return None if expected.astype(values.dtype).tobytes() == values.tobytes() else "other values"


def same_type(one: np.dtype, other: np.dtype) -> bool:
    if one.names or other.names:
        return one.names == other.names and all(same_type(one[n], other[n]) for n in one.names)
    return one.newbyteorder("=") == other.newbyteorder("=")


# ── Tests ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@needs_corpus
@pytest.mark.parametrize("path", FILES, ids=name)
def test_equal_to_h5py(path, tmp_path, monkeypatch):
    monkeypatch.chdir(path.parent)  # h5py looks for external storage in the working directory
    if (group := scan_or_none(path)) is None:
        assert "bad" in name(path) or not h5py.is_hdf5(path)
        return
    with h5py.File(path) as file:
        assert not list(differences(group, file))
    vzr.write_json(group, tmp_path / "refs.json")
    reopened = vzr.open_refs(tmp_path / "refs.json")
    assert reopened.skipped == group.skipped
    with h5py.File(path) as file:
        assert not list(differences(reopened, file))


@needs_corpus
def test_share_of_arrays_that_are_read():
    shown = lost = excused = 0
    for path in corpus_files("hdf5", "netcdf4"):
        if (group := scan_or_none(path)) is not None:
            records = [r for r in group.skipped if r.loses_data and "@" not in r.path]
            by_contract = sum(any(reason in r.reason for reason in BY_CONTRACT) for r in records)
            shown += sum(1 for _ in group.walk_arrays())
            excused += by_contract
            lost += len(records) - by_contract
    assert shown / (shown + lost) >= SHARE, (shown, lost)
    assert shown / (shown + lost + excused) >= SHARE_OF_ALL, (shown, lost, excused)
