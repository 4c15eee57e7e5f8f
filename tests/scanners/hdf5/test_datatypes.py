"""Every HDF5 datatype: equal to h5py's reading, or left out with a reason; however it is stored."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z

import virtualzarr_refs as vzr
from tests.scanners.hdf5.comparison import assert_reads_as_h5py, opened, reasons, scan

COUNT = 6

# ── How values are stored ────────────────────────────────────────────────────────────────────────────────────────────


def chunks(properties: h5p.PropDCID) -> None:
    properties.set_chunk((4,))


def gzip(properties: h5p.PropDCID) -> None:
    chunks(properties)
    properties.set_deflate(1)


def lzf(properties: h5p.PropDCID) -> None:
    chunks(properties)
    properties.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL)


LAYOUTS: dict[str, Callable[[h5p.PropDCID], None]] = {
    "contiguous": lambda _: None,
    "compact": lambda properties: properties.set_layout(h5d.COMPACT),
    "chunked": chunks,
    "gzip": gzip,
    "lzf": lzf,
}


def store(file: h5py.File, name: str, type_: h5t.TypeID, raw: bytes, layout: str = "contiguous") -> h5py.Dataset:
    """A one-dimensional dataset of these very bytes."""
    properties = h5p.create(h5p.DATASET_CREATE)
    LAYOUTS[layout](properties)
    space = h5s.create_simple((len(raw) // type_.get_size(),))
    dataset = h5d.create(file.id, name.encode(), type_, space, properties)
    dataset.write(h5s.ALL, h5s.ALL, np.frombuffer(raw, f"V{type_.get_size()}"), type_)
    return h5py.Dataset(dataset)


def noise(type_: h5t.TypeID) -> bytes:
    return np.random.default_rng(0).bytes(COUNT * type_.get_size())


# ── Types ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def number(base: h5t.TypeID, precision: int, offset: int = 0) -> h5t.TypeID:
    """An integer or bitfield that does not use all of its bits."""
    encoded = bytearray(base.encode())
    struct.pack_into("<HH", encoded, 10, offset, precision)  # behind `H5Tencode`'s 2 bytes and the message's 8
    return h5t.decode(bytes(encoded))


def integer(size: int) -> h5t.TypeID:
    type_ = h5t.STD_I64LE.copy()
    type_.set_size(size)
    return type_


def small_float(size: int, exponent: int, mantissa: int) -> h5t.TypeID:
    type_ = h5t.IEEE_F32LE.copy()
    type_.set_fields(exponent + mantissa, mantissa, exponent, 0, mantissa)
    type_.set_size(size)
    type_.set_ebias(2 ** (exponent - 1) - 1)
    return type_


def string(size: int, padding: int, charset: int = h5t.CSET_ASCII) -> h5t.TypeID:
    type_ = h5t.C_S1.copy()
    type_.set_size(size)
    type_.set_strpad(padding)
    type_.set_cset(charset)
    return type_


def enum(base: h5t.TypeID, **members: int) -> h5t.TypeID:
    type_ = h5t.enum_create(base)
    for name, value in members.items():
        type_.enum_insert(name.encode("latin-1"), value)
    return type_


def opaque(size: int, tag: bytes) -> h5t.TypeID:
    type_ = h5t.create(h5t.OPAQUE, size)
    type_.set_tag(tag)
    return type_


def compound(size: int, *members: tuple[bytes, int, h5t.TypeID]) -> h5t.TypeID:
    type_ = h5t.create(h5t.COMPOUND, size)
    for member in members:
        type_.insert(*member)
    return type_


PADDED = compound(24, (b"b", 8, h5t.IEEE_F64LE), (b"a", 1, h5t.STD_I16BE))
NULL_TERMINATED, NULL_PADDED, SPACE_PADDED = h5t.STR_NULLTERM, h5t.STR_NULLPAD, h5t.STR_SPACEPAD

NUMBERS = {
    name: getattr(h5t, name)
    for name in (
        "STD_I8LE STD_I16BE STD_I32LE STD_I64BE STD_U8LE STD_U16LE STD_U32BE STD_U64LE IEEE_F16LE IEEE_F16BE "
        "IEEE_F32LE IEEE_F32BE IEEE_F64LE IEEE_F64BE STD_B8LE STD_B16BE STD_B32LE STD_B64LE"
    ).split()
} | {
    "12 bits of 16": number(h5t.STD_I16LE, 12, 3),
    "12 bits of 16, unsigned, big-endian": number(h5t.STD_U16BE, 12, 3),
    "24 bits of 32": number(h5t.STD_I32LE, 24),
    "bfloat16": small_float(2, 8, 7),
    "float8": small_float(1, 4, 3),
}
COMPLEX = {
    "complex": compound(8, (b"r", 0, h5t.IEEE_F32LE), (b"i", 4, h5t.IEEE_F32LE)),
    "complex, big-endian": compound(16, (b"r", 0, h5t.IEEE_F64BE), (b"i", 8, h5t.IEEE_F64BE)),
    "complex, padded": compound(16, (b"r", 0, h5t.IEEE_F32LE), (b"i", 8, h5t.IEEE_F32LE)),
    "not complex: the parts swapped": compound(8, (b"i", 0, h5t.IEEE_F32LE), (b"r", 4, h5t.IEEE_F32LE)),
} | {
    name: getattr(h5t, name) for name in ("COMPLEX_IEEE_F32LE", "COMPLEX_IEEE_F64BE") if hasattr(h5t, name)
}  # libhdf5 2.0 brought them
TEXTS = {
    f"{size} bytes, padding {padding}, charset {charset}": string(size, padding, charset)
    for size in (1, 7)
    for padding in (NULL_TERMINATED, NULL_PADDED, SPACE_PADDED)
    for charset in (h5t.CSET_ASCII, h5t.CSET_UTF8)
}
ENUMS = {
    "bool": enum(h5t.STD_I8LE, FALSE=0, TRUE=1),
    "bool of other values": enum(h5t.STD_I8LE, FALSE=0, TRUE=2),
    "enum": enum(h5t.STD_I32LE, A=1, B=-7),
    "enum, big-endian": enum(h5t.STD_U16BE, A=1, B=700),
    "enum with a name in Latin-1": enum(h5t.STD_I8LE, A=1, É=2),
    "enum of 12 bits": enum(number(h5t.STD_I16LE, 12), A=1, B=2),
}
OPAQUES = {
    "opaque": opaque(5, b""),
    "datetime": opaque(8, b"NUMPY:<M8[us]"),
    "datetime, big-endian": opaque(8, b"NUMPY:>M8[s]"),
    "timedelta": opaque(8, b"NUMPY:<m8[3D]"),
}
COMPOUNDS = {
    "packed": compound(6, (b"a", 0, h5t.STD_I16LE), (b"b", 2, h5t.IEEE_F32LE)),
    "packed, big-endian": compound(6, (b"a", 0, h5t.STD_I16BE), (b"b", 2, h5t.IEEE_F32BE)),
    "of both orders": compound(6, (b"a", 0, h5t.STD_I16BE), (b"b", 2, h5t.IEEE_F32LE)),
    "padded, members out of order": PADDED,
    "nested": compound(40, (b"n", 8, PADDED), (b"s", 0, string(7, NULL_TERMINATED))),
    "nested, packed": compound(9, (b"n", 0, compound(8, (b"a", 0, h5t.STD_I64LE))), (b"s", 8, h5t.STD_U8LE)),
    "of an enum and a bitfield": compound(8, (b"e", 0, enum(h5t.STD_I32BE, A=1)), (b"f", 4, h5t.STD_B8LE)),
    "of strings": compound(9, (b"z", 0, string(3, NULL_PADDED)), (b"t", 3, string(6, SPACE_PADDED))),
}
ARRAYS = {
    "integers": h5t.array_create(h5t.STD_I16BE, (2, 3)),
    "odd integers": h5t.array_create(number(h5t.STD_I16LE, 12, 3), (2,)),
    "arrays": h5t.array_create(h5t.array_create(h5t.STD_I16BE, (2,)), (3,)),
    "compounds": h5t.array_create(PADDED, (2,)),
    "strings": h5t.array_create(string(7, NULL_TERMINATED), (2, 3)),
    "characters": h5t.array_create(h5t.array_create(string(1, NULL_TERMINATED), (2,)), (3,)),
    "booleans": h5t.array_create(ENUMS["bool"], (4,)),
}
TYPES = NUMBERS | COMPLEX | TEXTS | OPAQUES | COMPOUNDS | {f"array of {name}": t for name, t in ARRAYS.items()}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", TYPES)
def test_any_bytes(name, layout, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        store(file, "x", TYPES[name], noise(TYPES[name]), layout)
    assert_reads_as_h5py(tmp_path / "x.h5")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ENUMS)
def test_enumerations(name, layout, tmp_path):
    size = ENUMS[name].get_size()
    order = "big" if "big" in name else "little"
    raw = b"".join(value.to_bytes(size, order) for value in (0, 1, 1, 0, 2, 1))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        store(file, "x", ENUMS[name], raw, layout)
    assert_reads_as_h5py(tmp_path / "x.h5")


def test_boolean_of_four_bytes(tmp_path):
    raw = np.array([0, 1, 1], ">i4").tobytes()
    with h5py.File(tmp_path / "x.h5", "w") as file:
        store(file, "x", enum(h5t.STD_I32BE, FALSE=0, TRUE=1), raw)
    group = assert_reads_as_h5py(tmp_path / "x.h5")
    assert group["x"].dtype == bool


def test_names_of_values_become_attributes(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        store(file, "x", enum(h5t.STD_I8LE, RED=1, GRÜN=2), b"\1\2")
    attributes = opened(scan(tmp_path / "x.h5"))["x"].attrs.asdict()
    assert attributes == {"flag_values": [1, 2], "flag_meanings": "RED GRÜN"}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_opaque_with_a_foreign_tag_is_raw_bytes(layout, tmp_path):
    raw = noise(TYPES["opaque"])
    with h5py.File(tmp_path / "x.h5", "w") as file:
        store(file, "x", opaque(5, b"what only one program knows"), raw, layout)
    array = opened(scan(tmp_path / "x.h5", strict=layout != "compact"))
    if layout != "compact":
        assert array["x"][...].tobytes() == raw


LEFT_OUT = {
    "time": (h5t.UNIX_D32LE, "time datatype"),
    "long double": (h5t.NATIVE_LDOUBLE, "float128|float96"),
    "5 bits of 8": (number(h5t.STD_B8LE, 5), "bitfield datatype"),
    "9 bits of 16": (number(h5t.STD_B16LE, 9, 3), "bitfield datatype"),
    "datetime of 4 bytes": (opaque(4, b"NUMPY:<M8[us]"), "opaque datatype"),
    "a tag that is no type": (opaque(8, b"NUMPY:[no"), "opaque datatype"),
    "a tag of objects": (opaque(8, b"NUMPY:|O"), "Zarr has no such type"),
    "compound with a foreign opaque": (compound(8, (b"o", 1, opaque(5, b"?"))), "compound datatype"),
    "compound with an array": (compound(8, (b"o", 0, h5t.array_create(h5t.STD_I8LE, (3,)))), "compound member 'o'"),
    "compound with a bitfield": (compound(8, (b"o", 1, number(h5t.STD_B8LE, 5))), "compound datatype"),
    "compound with a name in Latin-1": (compound(8, (b"\xe9", 0, h5t.STD_I8LE)), "compound datatype"),
    "integer of 3 bytes": (integer(3), "integer datatype"),
    "integer of 16 bytes": (integer(16), "integer datatype"),
    "region reference": (h5t.STD_REF_DSETREG, "region reference"),
    "variable-length sequence": (h5t.vlen_create(h5t.STD_I32LE), "variable-length sequence"),
    "compound with text": (
        compound(24, (b"a", 0, h5t.STD_I64LE), (b"t", 8, h5t.py_create(h5py.string_dtype(), logical=True))),
        "members of variable length",
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", LEFT_OUT)
def test_left_out_with_a_reason(name, layout, tmp_path):
    type_, reason = LEFT_OUT[name]
    properties = h5p.create(h5p.DATASET_CREATE)
    LAYOUTS[layout](properties)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["sound"] = [1, 2]
        h5d.create(file.id, b"x", type_, h5s.create_simple((COUNT,)), properties)
    with pytest.warns(vzr.SkippedNodeWarning, match="x: "):
        group = vzr.scan(tmp_path / "x.h5")
    assert list(group.arrays) == ["sound"]
    assert reasons(group).keys() == {"x"}
    assert re.search(reason, reasons(group)["x"])
    with pytest.raises(vzr.UnsupportedError, match="node x"):
        vzr.scan(tmp_path / "x.h5", strict=True)


@pytest.mark.parametrize("name", TYPES)
def test_never_written(name, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        properties = h5p.create(h5p.DATASET_CREATE)
        h5d.create(file.id, b"contiguous", TYPES[name], h5s.create_simple((COUNT,)), properties)
        gzip(properties)
        h5d.create(file.id, b"chunked", TYPES[name], h5s.create_simple((COUNT,)), properties)
    assert_reads_as_h5py(tmp_path / "x.h5")


# ── Values that lie elsewhere in the file ────────────────────────────────────────────────────────────────────────────

STORAGE: list[dict[str, Any]] = [{}, {"chunks": (2,)}, {"chunks": (2,), "compression": "gzip", "shuffle": True}]


@pytest.mark.parametrize("options", STORAGE, ids=str)
@pytest.mark.parametrize("charset", ["ascii", "utf-8"])
def test_texts(charset, options, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", (5,), h5py.string_dtype(charset), **options)
        dataset[:3] = ["a", "", "longer than the others"]
        file.create_dataset("y", (2, 0), h5py.string_dtype(charset))
        file.create_dataset("z", data="Grüße" if charset == "utf-8" else "greetings", dtype=h5py.string_dtype(charset))
    assert_reads_as_h5py(tmp_path / "x.h5")


def test_texts_in_latin_1(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", (2,), h5py.string_dtype("ascii"))
        dataset[:] = np.array([b"caf\xe9", "café".encode()], object)
    assert opened(scan(tmp_path / "x.h5"))["x"][...].tolist() == ["café", "café"]


def test_array_of_texts(tmp_path):
    type_ = h5t.array_create(h5t.py_create(h5py.string_dtype(), logical=True), (2,))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        h5d.create(file.id, b"x", type_, h5s.create_simple((3,)))
    array = opened(scan(tmp_path / "x.h5"))["x"]
    assert array[...].tolist() == [["", ""]] * 3


@pytest.mark.parametrize("options", STORAGE, ids=str)
def test_object_references(options, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        targets = file.create_group("a/b"), file.create_dataset("a/ü", data=1)
        dataset = file.create_dataset("x", (4,), h5py.ref_dtype, **options)
        dataset[:3] = [node.ref for node in (*targets, file)]
        file["one"] = targets[0].ref
    group = assert_reads_as_h5py(tmp_path / "x.h5")
    assert opened(group)["x"][...].tolist() == ["/a/b", "/a/ü", "/", ""]


def test_reference_to_what_was_deleted(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        gone = file.create_dataset("gone", data=1)
        file["x"] = np.array([file.ref, gone.ref], h5py.ref_dtype)
        del file["gone"]
    assert opened(scan(tmp_path / "x.h5"))["x"][...].tolist() == ["/", ""]


# ── Spaces ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("type_", ["<i4", ">f8", "S3", h5py.string_dtype(), h5py.enum_dtype({"A": 1})], ids=str)
def test_scalars_and_empty_arrays(type_, tmp_path):
    value = "ab" if h5py.check_string_dtype(np.dtype(type_)) else 1
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("scalar", data=value, dtype=type_)
        file.create_dataset("empty", (0,), type_)
        file.create_dataset("flat", (3, 0, 2), type_)
        file.create_dataset("growing", (0, 2), type_, chunks=(4, 4), maxshape=(None, None), compression="gzip")
    assert_reads_as_h5py(tmp_path / "x.h5")


def test_null_space_is_left_out(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = h5py.Empty("f4")
    assert "null dataspace" in reasons(scan(tmp_path / "x.h5"))["x"]


def test_committed_type(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["type"] = PADDED.dtype
        file.create_dataset("x", (3,), file["type"], chunks=(2,), compression="gzip")[1] = (2.5, 7)
        file["type"].attrs["unit"] = "m"
    assert list(assert_reads_as_h5py(tmp_path / "x.h5").arrays) == ["x"]
