"""Headers that are odd, and headers that lie."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import virtualzarr_refs as vzr
from scanners.netcdf3 import NetCDF3Scanner
from scanners.netcdf3.header import FIRST_READ, HEADER_LIMIT, read_header
from tests.scanners.netcdf3.comparing import assert_attributes_equal, assert_equal, read, read_with_netcdf4, scan
from tests.scanners.netcdf3.crafted import (
    NC_BYTE,
    NC_CHAR,
    NC_DOUBLE,
    NC_INT,
    NC_INT64,
    NC_SHORT,
    NC_USHORT,
    File,
    Var,
    padded,
)
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.sources import open_source

VERSIONS = (1, 2, 5)


@pytest.fixture
def save(tmp_path):
    def save(content: bytes, size: int | None = None) -> Path:
        path = tmp_path / "crafted.nc"
        path.write_bytes(content)
        if size is not None:
            with path.open("r+b") as file:
                file.truncate(size)
        return path

    return save


def two_records(version: int, records: int = 2) -> bytes:
    """Two record variables, the first of them of odd size."""
    file = File(
        version,
        records,
        [(b"time", 0), (b"x", 3)],
        variables=[(b"a", Var(NC_SHORT, [0, 1], 512)), (b"b", Var(NC_DOUBLE, [0], 520))],
    )
    body = b"".join(struct.pack(">4hd", *range(i, i + 3), 0, i) for i in range(2))
    return file.header().ljust(512, b"\0") + body


# ── What is recognised ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("head", [b"CDF\1", b"CDF\2", b"CDF\5" + b"\0" * 28])
def test_recognises(head):
    assert NetCDF3Scanner().recognises(head, "file")


@pytest.mark.parametrize("head", [b"", b"CDF", b"CDF\3", b"CDF\0", b"\x89HDF", b"cdf\1"])
def test_does_not_recognise(head):
    assert not NetCDF3Scanner().recognises(head, "file")


def test_another_format_is_refused(save):
    with pytest.raises(vzr.FormatError, match="does not begin with"):
        vzr.scan(save(b"CDF\3" + b"\0" * 28), scanner="netcdf3")


# ── Odd, but sound ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_file(save, version):
    group = vzr.scan(save(File(version).header()), strict=True)
    assert (dict(group.arrays), group.attributes) == ({}, {})


@pytest.mark.parametrize("version", VERSIONS)
def test_space_between_the_header_and_the_values(save, version):
    path = save(two_records(version))
    values = read(vzr.scan(path, strict=True))
    assert_equal(values, read_with_netcdf4(path))
    assert values["a"].tolist() == [[0, 1, 2], [1, 2, 3]]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_number_of_records_follows_from_the_size(save, version):
    streaming = (1 << (64 if version == 5 else 32)) - 1
    content = two_records(version, streaming)
    path = save(content)
    assert read(vzr.scan(path, strict=True))["b"].tolist() == [0, 1]
    path = save(content[:-1])
    values = read(vzr.scan(path, strict=True))
    assert values["a"].shape == (1, 3)
    assert values["b"].tolist() == [0]
    path = save(content[:512])
    assert read(vzr.scan(path, strict=True))["b"].size == 0


def test_an_unknown_number_of_records_of_one_variable(save):
    file = File(1, 0xFFFFFFFF, [(b"t", 0)], variables=[(b"a", Var(NC_SHORT, [0], 128))])
    path = save(file.header().ljust(128, b"\0") + np.arange(5, dtype=">i2").tobytes() + b"\0")
    assert read(vzr.scan(path, strict=True))["a"].tolist() == [0, 1, 2, 3, 4]


def test_an_unknown_number_of_records_without_record_variables(save):
    path = save(File(1, 0xFFFFFFFF, [(b"t", 0)]).header())
    assert vzr.scan(path, strict=True).metadata.unlimited_dimensions == ("t",)


def test_padding_after_the_last_record_may_be_missing(save):
    variables = [(b"b", Var(NC_INT, [0], 256)), (b"a", Var(NC_SHORT, [0], 260))]
    header = File(1, 2, [(b"time", 0)], variables=variables).header().ljust(256, b"\0")
    path = save(header + struct.pack(">ihhih", 1, 2, 0, 3, 4))
    values = read(vzr.scan(path, strict=True))
    assert_equal(values, read_with_netcdf4(path))
    assert (values["b"].tolist(), values["a"].tolist()) == ([1, 3], [2, 4])


@pytest.mark.parametrize("size", [0, 5, 0xFFFFFFFF])
def test_a_wrong_vsize_does_not_matter(save, size):
    variables = [(b"a", Var(NC_INT, [0], 128, size=size)), (b"b", Var(NC_INT, [], 140, size=size))]
    header = File(1, 0, [(b"x", 3)], variables=variables).header().ljust(128, b"\0")
    path = save(header + np.arange(4, dtype=">i4").tobytes())
    values = read(vzr.scan(path, strict=True))
    assert_equal(values, read_with_netcdf4(path))
    assert values["b"] == 3


@pytest.mark.parametrize("records", [0, 1, 3])
def test_zero_and_more_records(save, records):
    content = two_records(2, records) + b"\0" * 16
    path = save(content)
    assert_equal(read(vzr.scan(path, strict=True)), read_with_netcdf4(path))


def test_a_variable_of_four_gigabytes(save):
    # The last fixed variable may be larger than vsize can say. The file has a hole in it.
    variables = [(b"a", Var(NC_BYTE, [0], 128)), (b"b", Var(NC_INT, [0], 132, size=0xFFFFFFFF))]
    length = (1 << 30) + 1
    header = File(2, 0, [(b"x", length)], variables=variables).header()
    with pytest.raises(vzr.FormatError, match="lie over"):
        vzr.scan(save(header))
    variables[1][1].begin = 128 + length + 3
    header = File(2, 0, [(b"x", length)], variables=variables).header()
    stop = variables[1][1].begin + 4 * length
    group = vzr.scan(save(header, stop), strict=True)
    assert group.arrays["b"].manifest.nbytes == 4 * length
    group = scan(save(header, stop - 1))
    assert list(group.arrays) == ["a"]


def test_names_and_texts_that_are_not_ascii(save):
    attributes = {
        "größe".encode(): (NC_CHAR, 3, "µm".encode()),
        "größe".encode("latin-1"): (NC_CHAR, 2, "µm".encode("latin-1")),
        b"null": (NC_CHAR, 4, b"a\0b\0"),
        b"empty": (NC_CHAR, 0, b""),
        b"none": (NC_SHORT, 0, b""),
        b"one": (NC_SHORT, 1, b"\0\1"),
        b"two": (NC_SHORT, 2, b"\0\1\0\2"),
    }
    del attributes["größe".encode("latin-1")]
    latin = {"länge".encode("latin-1"): (NC_CHAR, 2, "µm".encode("latin-1"))}
    variables = [("höhe".encode(), Var(NC_INT, [0], 1024, attributes)), (b"z\0y", Var(NC_INT, [], 1032, latin))]
    file = File(1, 0, [("tür".encode(), 2)], attributes, variables)
    path = save(file.header().ljust(1036, b"\0"))
    group = vzr.scan(path, strict=True)
    assert list(group.arrays) == ["höhe", "z"]
    assert group.arrays["höhe"].metadata.dimension_names == ("tür",)
    assert group.arrays["z"].metadata.typed_attributes() == {"länge": "µm"}
    assert group.attributes["null"] == "ab"
    assert group.attributes["one"].dtype == "i2"
    del variables[1][1].attributes["länge".encode("latin-1")]
    assert_attributes_equal(vzr.scan(save(file.header().ljust(1036, b"\0"))), path)


@pytest.mark.parametrize("name", [b"", b"a/b", b"..", b"zarr.json"])
def test_a_name_that_zarr_cannot_have_is_skipped(save, name):
    variables = [(name, Var(NC_INT, [], 128)), (b"b", Var(NC_INT, [], 132))]
    path = save(File(1, variables=variables).header().ljust(136, b"\0"))
    group = scan(path)
    assert list(group.arrays) == ["b"]
    assert [record.path for record in group.skipped] == [name.decode()]


def test_more_axes_than_numpy_has_are_skipped(save):
    variables = [(b"a", Var(NC_INT, [0] * 65, 512)), (b"b", Var(NC_INT, [0] * 64, 516))]
    path = save(File(1, 0, [(b"x", 1)], variables=variables).header().ljust(1024, b"\0"))
    variables[0][1].begin, variables[1][1].begin = 1016, 1020
    path = save(File(1, 0, [(b"x", 1)], variables=variables).header().ljust(1024, b"\0"))
    group = scan(path)
    assert list(group.arrays) == ["b"]
    assert "65 axes" in group.skipped[0].reason


def test_a_long_header_is_read_in_growing_pieces(save):
    count = 6 * FIRST_READ
    file = File(1, 0, [], {b"long": (NC_CHAR, count, b"x" * count)}, [(b"v", Var(NC_INT, [], 7 * FIRST_READ))])
    path = save(file.header().ljust(7 * FIRST_READ, b"\0") + struct.pack(">i", 7))
    reads = []

    class Counting:
        url = str(path)

        def identity(self):
            return source.identity()

        def read(self, ranges):
            reads.extend(ranges)
            return source.read(ranges)

    source = open_source(str(path))
    header = read_header(Counting())
    assert len(header.attributes["long"]) == count
    assert reads[0] == ByteRange(0, FIRST_READ)
    assert [r.offset for r in reads[1:]] == [r.stop for r in reads[:-1]]
    assert len(reads) == 3
    assert reads[-1].stop < 2 * header.size


def test_the_fill_value_of_what_is_missing(save):
    fill = {b"_FillValue": (NC_SHORT, 1, b"\0\7")}
    variables = [
        (b"given", Var(NC_SHORT, [0], 512, fill)),
        (b"default", Var(NC_SHORT, [0], 512)),
        (b"other", Var(NC_INT, [0], 512, fill)),
        (b"char", Var(NC_CHAR, [0], 512, {b"_FillValue": (NC_CHAR, 1, b"*")})),
        (b"odd", Var(NC_CHAR, [0], 512, {b"_FillValue": (NC_CHAR, 2, b"**")})),
        (b"text", Var(NC_DOUBLE, [0], 512, {b"_FillValue": (NC_CHAR, 1, b"*")})),
    ]
    for i, (_, variable) in enumerate(variables):
        variable.begin += 4 * i
    path = save(File(1, 0, [(b"t", 0)], variables=variables).header().ljust(600, b"\0"))
    group = vzr.scan(path, strict=True)
    fills = {name: array.metadata.fill_value for name, array in group.arrays.items()}
    assert fills == {
        "given": 7,
        "default": -32767,
        "other": -2147483647,
        "char": "Kg==",
        "odd": "",
        "text": 9.969209968386869e36,
    }
    assert group.arrays["char"].metadata.typed_attributes() == {"_FillValue": b"*"}


# ── Lies ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def x_by(length: int, *variables: Var, records: int = 0, version: int = 1) -> File:
    named = [(f"v{i}".encode(), variable) for i, variable in enumerate(variables)]
    return File(version, records, [(b"t", 0), (b"x", length)], variables=named)


LIES = {
    "a dimension twice": File(1, 0, [(b"x", 1), (b"x", 2)]),
    "a variable twice": File(1, 0, [], {}, [(b"v", Var(NC_INT, [], 256)), (b"v", Var(NC_INT, [], 260))]),
    "two record dimensions": File(1, 0, [(b"x", 0), (b"y", 0)]),
    "a dimension that is not there": x_by(3, Var(NC_INT, [2], 256)),
    "a negative dimension": x_by(3, Var(NC_INT, [0xFFFFFFFF], 256)),
    "the record dimension second": x_by(3, Var(NC_INT, [1, 0], 256)),
    "type 0": x_by(3, Var(0, [1], 256)),
    "type 12": x_by(3, Var(12, [1], 256), version=5),
    "a type of CDF-5": x_by(3, Var(NC_USHORT, [1], 256)),
    "a type of CDF-5 in an attribute": x_by(3, Var(NC_INT, [1], 256, {b"a": (NC_INT64, 1, b"\0" * 8)}), version=2),
    "an attribute longer than the file": File(1, 0, [], {b"a": (NC_INT, 0x7FFFFFFF, b"")}),
    "a negative offset": x_by(3, Var(NC_INT, [1], 0xFFFFFF00)),
    "a negative large offset": x_by(3, Var(NC_INT, [1], 1 << 63), version=5),
    "an offset in the header": x_by(3, Var(NC_INT, [1], 64)),
    "no offset": x_by(3, Var(NC_INT, [1], 0)),
    "one variable over another": x_by(3, Var(NC_INT, [1], 256), Var(NC_INT, [1], 264)),
    "one variable inside another": x_by(30, Var(NC_INT, [1], 256), Var(NC_INT, [], 300)),
    "a variable among records": x_by(3, Var(NC_INT, [0, 1], 256), Var(NC_INT, [], 280), records=4),
    "records over each other": x_by(3, Var(NC_INT, [0, 1], 256), Var(NC_INT, [0], 272)),
    "record variables over each other": x_by(3, Var(NC_INT, [0, 1], 256), Var(NC_INT, [0], 264)),
    "a variable too large for CDF-1": x_by(1 << 30, Var(NC_INT, [1], 256), Var(NC_INT, [], 1 << 20)),
    "a record too large for CDF-1": x_by(1 << 30, Var(NC_INT, [0, 1], 256), Var(NC_INT, [0], 1 << 20)),
    "records after a variable that is too large": x_by(1 << 30, Var(NC_INT, [1], 256), Var(NC_INT, [0], 1 << 20)),
    "more bytes than offsets can say": x_by(1 << 40, Var(NC_INT, [1, 1], 256), version=5),
    "more bytes than offsets can say in no records": x_by(1 << 40, Var(NC_INT, [0, 1, 1], 256), version=5),
    "too many axes": x_by(1, Var(NC_INT, [1] * 1025, 5000)),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused(save, lie):
    path = save(LIES[lie].header(), 8192)
    with pytest.raises(vzr.FormatError) as caught:
        vzr.scan(path)
    assert caught.value.offset is not None
    assert caught.value.url == str(path)


def test_an_attribute_twice_is_refused(save):
    member = struct.pack(">I", 1) + b"a\0\0\0" + struct.pack(">III", NC_INT, 1, 5)
    with pytest.raises(vzr.FormatError, match="have the name 'a'"):
        vzr.scan(save(b"CDF\1" + bytes(12) + struct.pack(">II", 12, 2) + 2 * member + bytes(8)))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [1 << 31, (1 << 32) - 1, 1 << 63])
def test_a_count_takes_no_memory(save, version, count):
    number = struct.pack(">Q", count) if version == 5 else struct.pack(">I", count & 0xFFFFFFFF or 1 << 31)
    zero = bytes(len(number))
    start = b"CDF" + bytes([version]) + zero
    absent = bytes(4) + zero
    for content in (
        start + struct.pack(">I", 10) + number,
        start + absent + struct.pack(">I", 12) + number,
        start + absent * 2 + struct.pack(">I", 11) + number,
        start + struct.pack(">I", 10) + number[:-1] + b"\1" + number,
    ):
        with pytest.raises(vzr.FormatError):
            vzr.scan(save(content + bytes(64)))


def test_a_header_longer_than_all_bounds(save):
    size = HEADER_LIMIT + 1024
    header = File(1, 0, [], {b"a": (NC_CHAR, HEADER_LIMIT, b"")}).header()
    with pytest.raises(vzr.FormatError, match="longer than"):
        vzr.scan(save(header, size))


def test_the_padding_of_names_may_hold_anything(save):
    assert padded(b"x") == b"x\0\0\0"
    content = File(1, 0, [(b"x", 2)], variables=[(b"v", Var(NC_INT, [0], 128))]).header().ljust(136, b"\0")
    path = save(content.replace(b"x\0\0\0", b"xyz\xff"))
    assert_equal(read(vzr.scan(path, strict=True)), read_with_netcdf4(path))


# ── Strict ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_strict_raises_for_values_beyond_the_end(save):
    content = two_records(1)
    path = save(content[:-1])
    group = scan(path)
    assert list(group.arrays) == ["a"]
    assert [record.path for record in group.skipped] == ["b"]
    assert group.skipped[0].loses_data
    with pytest.warns(vzr.SkippedNodeWarning, match="cut short"):
        vzr.scan(path)
    with pytest.raises(vzr.FormatError, match="cut short") as caught:
        vzr.scan(path, strict=True)
    assert (caught.value.node, caught.value.offset) == ("b", len(content) - 1)
