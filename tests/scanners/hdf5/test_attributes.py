"""Attributes: as h5py reads them, through the text of a ``zarr.json``."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5a, h5s, h5t

import virtualzarr_refs as vzr
from tests.scanners.hdf5.comparison import opened, packed, reasons, scan
from tests.scanners.hdf5.test_datatypes import ARRAYS, ENUMS, LEFT_OUT, TYPES, noise
from virtualzarr_refs.data_types import split_axes


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.h5"


def read(path) -> dict[str, Any]:
    """The root's attributes, as a reference set brings them back."""
    references = path.with_suffix(".json")
    vzr.write_json(scan(path), references)
    return vzr.open_refs(references).attributes


def write(path, type_: h5t.TypeID, raw: bytes, shape: tuple[int, ...] = ()) -> None:
    """An attribute of these very bytes on the root."""
    with h5py.File(path, "w") as file:
        space = h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR)
        attribute = h5a.create(file.id, b"x", type_, space)
        attribute.write(np.frombuffer(raw, f"V{type_.get_size()}").reshape(shape), type_)


def is_text(type_: h5t.TypeID) -> bool:
    element, _ = split_axes(type_.dtype)
    return element.kind == "S"


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1)], ids=str)
@pytest.mark.parametrize("name", [name for name, type_ in TYPES.items() if not is_text(type_)])
def test_any_bytes(path, name, shape):
    type_ = TYPES[name]
    write(path, type_, noise(type_)[: int(np.prod(shape)) * type_.get_size()], shape)
    ours = np.asarray(read(path)["x"])
    with h5py.File(path) as file:
        theirs = np.asarray(file.attrs["x"])
    assert ours.dtype == packed(theirs.dtype)
    assert np.array_equal(ours.reshape(-1), theirs.astype(ours.dtype).reshape(-1), equal_nan=ours.dtype.kind in "fcmM")
    assert ours.shape == (theirs.shape if theirs.size > 1 else ())


@pytest.mark.parametrize("name", ENUMS)
def test_enumerations_are_their_numbers(path, name):
    write(path, ENUMS[name], bytes(ENUMS[name].get_size()))
    assert read(path)["x"] == 0


TEXTS = {
    "text": ("Grüße", "Grüße"),
    "empty": ("", ""),
    "bytes": (np.bytes_(b"ab"), "ab"),
    "bytes in Latin-1": (np.bytes_(b"caf\xe9"), "café"),
    "with a null": (np.bytes_(b"a\0b"), "a\0b"),
    "list": (["a", "", "ü"], ["a", "", "ü"]),
    "list of one": (["a"], "a"),
    "list of bytes": (np.array([b"a", b"bcd"]), ["a", "bcd"]),
    "table": ([["a", "b"], ["c", "d"]], [["a", "b"], ["c", "d"]]),
    "longer than 64 kB": ("x" * 100_000, "x" * 100_000),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(path, name):
    value, expected = TEXTS[name]
    with h5py.File(path, "w", libver="latest") as file:
        file.attrs["x"] = value
    assert read(path)["x"] == opened(scan(path)).attrs["x"] == expected


def test_texts_of_variable_length_in_latin_1_and_null(path):
    with h5py.File(path, "w") as file:
        file.attrs.create("x", np.array([b"caf\xe9", b""], object), dtype=h5py.string_dtype("ascii"))
        h5a.create(file.id, b"unset", h5t.py_create(h5py.string_dtype(), logical=True), h5s.create_simple((2,)))
    assert read(path) == {"x": ["café", ""], "unset": ["", ""]}


def test_array_of_texts(path):
    write(path, ARRAYS["strings"], (b"caf\xe9\0??" * 6), ())
    assert read(path)["x"] == [["café"] * 3] * 2


@pytest.mark.parametrize("space", [h5s.create(h5s.NULL), h5s.create_simple((0,))], ids=["null space", "no values"])
@pytest.mark.parametrize("name", ["STD_I16BE", "IEEE_F64LE", "nested", "array of arrays"])
def test_without_values(path, name, space):
    with h5py.File(path, "w") as file:
        h5a.create(file.id, b"x", TYPES[name], space)
    value = read(path)["x"]
    assert value.size == 0
    assert value.dtype == packed(split_axes(TYPES[name].dtype)[0])


def test_texts_without_values(path):
    with h5py.File(path, "w") as file:
        file.attrs["fixed"] = h5py.Empty("S3")
        file.attrs["variable"] = h5py.Empty(h5py.string_dtype())
        file.attrs["none"] = np.array([], "S3")
        file.attrs["reference"] = h5py.Empty(h5py.ref_dtype)
    assert read(path) == {"fixed": "", "variable": "", "none": [], "reference": ""}


def test_references_are_paths(path):
    with h5py.File(path, "w") as file:
        file["a/ü"] = 1
        file.attrs["one"] = file["a/ü"].ref
        file.attrs["more"] = np.array([file.ref, h5py.Reference()], h5py.ref_dtype)
    assert read(path) == {"one": "/a/ü", "more": ["/", ""]}


@pytest.mark.parametrize(
    "value", [np.float32("nan"), np.inf, -0.0, 2**63 - 1, np.uint64(2**64 - 1), np.int64(-(2**63))]
)
def test_numbers_that_json_has_trouble_with(path, value):
    with h5py.File(path, "w") as file:
        file.attrs["x"] = value
    ours, theirs = read(path)["x"], np.asarray(value)
    assert ours.dtype == theirs.dtype
    assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("name", sorted(LEFT_OUT.keys() - {"compound with an array"}))
def test_left_out_with_a_reason(path, name):
    type_, _ = LEFT_OUT[name]
    with h5py.File(path, "w") as file:
        file["data"] = 1
        for holder in (file, file["data"]):
            holder.attrs["sound"] = 1
            h5a.create(holder.id, b"x", type_, h5s.create_simple((2,)))
    group = scan(path)
    assert set(reasons(group)) == {"@x", "data@x"}
    assert group.attributes == group["data"].metadata.typed_attributes() == {"sound": 1}
    with pytest.raises(vzr.VirtualZarrError, match="@x"):
        vzr.scan(path, strict=True)


@pytest.mark.parametrize("name", ["DIMENSION_LIST", "REFERENCE_LIST", "x"])
def test_a_type_that_claims_to_be_python_objects(path, name):
    """h5py would take the eight bytes for the address of an object."""
    type_, _ = LEFT_OUT["a tag of objects"]
    with h5py.File(path, "w") as file:
        file["data"] = [1]
        attribute = h5a.create(file["data"].id, name.encode(), type_, h5s.create_simple((1,)))
        attribute.write(np.full(1, 0x41, "u8").view("V8"), type_)
    assert list(scan(path).arrays) == ["data"]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("count", [1, 100])
def test_many_and_large(path, count, libver):
    """Eight or more, or large ones, are kept apart from the header where the format is new."""
    with h5py.File(path, "w", libver=libver) as file:
        for number in range(count):
            file.attrs[f"a{number}"] = number
        if libver == "latest":
            file.attrs["large"] = np.arange(20_000)
    attributes = read(path)
    assert [attributes[f"a{number}"] for number in range(count)] == list(range(count))
    if libver == "latest":
        assert attributes["large"].tolist() == list(range(20_000))


@pytest.mark.parametrize("name", [" ", "a/b", "..", "zarr.json", "🎉", "\n", "x" * 300])
def test_odd_names(path, name):
    with h5py.File(path, "w") as file:
        file.attrs[name] = 7
    assert read(path) == opened(scan(path)).attrs.asdict() == {name: 7}


def test_names_in_latin_1(path):
    with h5py.File(path, "w") as file:
        for name, value in ((b"caf\xe9", 1), ("café".encode(), 2)):
            h5a.create(file.id, name, h5t.NATIVE_INT32, h5s.create(h5s.SCALAR)).write(np.array(value, "i4"))
    assert read(path)["café"] in (1, 2)
    assert "another" in reasons(scan(path))["@café"]
