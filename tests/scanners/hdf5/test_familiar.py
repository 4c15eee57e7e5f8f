"""What is remembered of object headers must be what libhdf5 tells, for every file."""

from __future__ import annotations

import warnings

import h5py
import numpy as np
import pytest

import virtualzarr_refs as vzr
from scanners.hdf5 import attributes, properties, tree
from scanners.hdf5.attribute_messages import attribute_messages
from scanners.hdf5.familiar import Memory
from scanners.hdf5.global_heap import GlobalHeaps
from scanners.hdf5.header import HeaderReader
from tests.corpus import corpus_files, corpus_folder
from virtualzarr_refs.sources import open_source

FILES = corpus_files("hdf5", "netcdf4")


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """Nothing is remembered from other tests."""
    for module, name in [(attributes, "_known"), (properties, "_known"), (tree, "_extents")]:
        monkeypatch.setattr(module, name, Memory())


def scanned(path):
    with warnings.catch_warnings(action="ignore"):
        try:
            return vzr.scan(path)
        except vzr.VirtualZarrError as error:
            return type(error)


def same(a, b):
    """Reasons may differ in their words."""
    return a == b if isinstance(a, type) or isinstance(b, type) else a.equals(b) and left_out(a) == left_out(b)


def left_out(group):
    return {(record.path, record.loses_data) for record in group.skipped}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(corpus_folder() or "/")))
def test_corpus(path, monkeypatch):
    first, again = scanned(path), scanned(path)
    monkeypatch.setattr(tree.Walk, "_header", lambda *_: None)
    told_by_libhdf5 = scanned(path)
    assert same(first, told_by_libhdf5)
    assert same(again, told_by_libhdf5)


def write(path, libver="earliest", units="m", count=3):
    with h5py.File(path, "w", libver=libver) as file:
        for number in range(count):
            dataset = file.create_dataset(f"v{number}", data=np.arange(20.0) + number, chunks=(6,), compression=1)
            dataset.attrs.update({"units": units, "valid_min": np.float32(number // 2)})
            dataset.attrs["flags"] = np.arange(3, dtype=">i2")
            dataset.attrs["names"] = ["a", "", "ü"]
            dataset.attrs["fixed"] = np.bytes_("fixed")


def test_libhdf5_is_asked_once_about_what_is_alike(tmp_path, monkeypatch):
    write(tmp_path / "a.h5")
    write(tmp_path / "b.h5")
    first = scanned(tmp_path / "a.h5")
    monkeypatch.setattr("scanners.hdf5.records.DatasetHandle._open", lambda _: pytest.fail("libhdf5 was asked"))
    again = scanned(tmp_path / "b.h5")
    assert [array.metadata for _, array in again.walk_arrays()] == [array.metadata for _, array in first.walk_arrays()]
    assert len(again.arrays) == 3


def test_values_of_variable_length_tell_attributes_apart(tmp_path):
    write(tmp_path / "a.h5", units="m")
    write(tmp_path / "b.h5", units="s")
    units = [scanned(tmp_path / name)["v0"].metadata.attributes["units"] for name in ("a.h5", "b.h5")]
    assert units == ["m", "s"]


def test_what_is_remembered_cannot_be_changed(tmp_path):
    write(tmp_path / "a.h5")
    scanned(tmp_path / "a.h5")["v0"].metadata.attributes["names"].append("more")
    assert scanned(tmp_path / "a.h5")["v0"].metadata.attributes["names"] == ["a", "", "ü"]


def messages_of(path, name):
    with h5py.File(path) as file:
        headers = HeaderReader.of(file, open_source(str(path), backend="local"))
        found = attribute_messages(headers.read(h5py.h5g.get_objinfo(file[name].id).objno[0]))
        return found, GlobalHeaps(headers)


def test_references_are_asked_for_each_time(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = 1
        file["x"].attrs["link"] = file["x"].ref
        sequences = np.empty(2, object)
        sequences[:] = [np.arange(2), np.arange(3)]
        file["x"].attrs.create("sequence", sequences, dtype=h5py.vlen_dtype(np.dtype("i8")))
        file["x"].attrs["pair"] = np.array((1, "s"), [("n", "i4"), ("s", h5py.string_dtype())])
    found, heaps = messages_of(tmp_path / "a.h5", "x")
    assert {name: message.key(heaps) for name, message in found.items()} == dict.fromkeys(
        (b"link", b"pair", b"sequence")
    )


def test_attributes_outside_of_the_header_are_libhdf5s(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        file["x"] = 1
        file["x"].attrs.update({f"a{number}": number for number in range(20)})
    found, _ = messages_of(tmp_path / "a.h5", "x")
    assert found is None
    assert len(scanned(tmp_path / "a.h5")["x"].metadata.attributes) == 20
