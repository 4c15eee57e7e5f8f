import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from zarr.core.dtype import parse_dtype
from zarr.core.metadata.v3 import ArrayV3Metadata

from virtualzarr_refs.data_types import decode_data_type, decode_scalar, encode_data_type, encode_scalar
from virtualzarr_refs.errors import ReferenceSetError, UnsupportedError

NUMBERS = ["bool", *(f"{k}{n}" for k in ("int", "uint") for n in (8, 16, 32, 64)), "float16", "float32", "float64"]
PLAIN = [*NUMBERS, "complex64", "complex128", "S1", "S7", "U3", "V4", "M8[ns]", "M8[10s]", "m8[D]"]
STRUCTS = [[("a", "i4"), ("b", "f8")], [("a", "S3"), ("b", [("c", "u1"), ("d", "c8")])]]
DTYPES = [np.dtype(dtype) for dtype in (*PLAIN, *STRUCTS)]

dtypes = st.sampled_from(DTYPES)


@st.composite
def scalars(draw):
    """A type and a value of it; a value of bytes forgets the zero bytes at its end."""
    dtype = draw(dtypes.filter(lambda dtype: dtype.kind not in "bU"))
    return dtype, np.frombuffer(draw(st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize)), dtype)[0]


def through_json(value):
    return json.loads(json.dumps(value, allow_nan=False))


def quiet(value):
    with warnings.catch_warnings():  # zarr warns of every type that is not in the core specification
        warnings.simplefilter("ignore")
        return value()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types_round_trip(dtype):
    assert decode_data_type(through_json(encode_data_type(dtype))) == dtype


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types_are_those_of_zarr(dtype):
    assert encode_data_type(dtype) == through_json(
        quiet(lambda: parse_dtype(dtype, zarr_format=3).to_json(zarr_format=3))
    )


def test_strings():
    assert encode_data_type(np.dtype(object)) == "string"
    assert decode_data_type("string") == np.dtype(object)
    assert decode_data_type({"name": "string"}) == np.dtype(object)


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">c16", ">M8[s]"])
def test_byte_order_is_no_part_of_the_type(dtype):
    assert encode_data_type(np.dtype(dtype)) == encode_data_type(np.dtype(dtype).newbyteorder("<"))


@pytest.mark.parametrize("dtype", [np.longdouble, "S0", "U0", "V0", [("a", "i4", (2,))], ("i4", (2,))], ids=str)
def test_types_that_zarr_lacks(dtype):
    with pytest.raises(UnsupportedError):
        encode_data_type(np.dtype(dtype))


def sized(name, length):
    return {"name": name, "configuration": {"length_bytes": length}}


@pytest.mark.parametrize(
    "data_type",
    [
        None,
        5,
        "float128",
        "object",
        ["int8"],
        {},
        {"name": ["int8"]},
        {"name": "null_terminated_bytes"},
        sized("null_terminated_bytes", 0),
        sized("null_terminated_bytes", -1),
        sized("null_terminated_bytes", 10**12),
        sized("raw_bytes", "3"),
        sized("raw_bytes", 2.5),
        sized("fixed_length_utf32", 6),
        sized("fixed_length_utf32", 0),
        {"name": "struct"},
        {"name": "struct", "configuration": {"fields": 5}},
        {"name": "struct", "configuration": {"fields": [["a", "int8"], ["a", "int8"]]}},
        {"name": "struct", "configuration": {"fields": [["a"]]}},
        {"name": "numpy.datetime64", "configuration": {"unit": "fortnight", "scale_factor": 1}},
        {"name": "numpy.datetime64", "configuration": {}},
    ],
    ids=str,
)
def test_types_that_cannot_be_read(data_type):
    with pytest.raises(ReferenceSetError):
        decode_data_type(data_type)


@given(scalars())
def test_scalars_round_trip_bit_for_bit(case):
    dtype, scalar = case
    again = np.array(decode_scalar(through_json(encode_scalar(scalar, dtype)), dtype), dtype)
    if not _has_signalling_nan(np.array(scalar, dtype)):
        assert again.tobytes() == np.array(scalar, dtype).tobytes()


def _has_signalling_nan(array):
    """Whether copying alone changes the value: processors make such NaNs quiet."""
    return array.astype(array.dtype.newbyteorder(">")).astype(array.dtype).tobytes() != array.tobytes()


@given(dtypes.filter(lambda dtype: dtype.kind in "biufc").flatmap(lambda dtype: npst.arrays(dtype, ())))
def test_scalars_are_those_of_zarr(array):
    dtype = array.dtype
    document = {
        "zarr_format": 3, "node_type": "array", "shape": (), "data_type": encode_data_type(dtype),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": ()}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "fill_value": encode_scalar(array[()], dtype),
    }  # fmt: skip
    read = ArrayV3Metadata.from_dict(document)
    assert read.dtype.to_native_dtype() == dtype
    np.testing.assert_array_equal(read.fill_value, array)
    written = read.to_dict()["fill_value"]
    np.testing.assert_array_equal(decode_scalar(through_json(written), dtype), array)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("value", [0.0, -0.0, 1.1, math.inf, -math.inf, math.nan])
def test_floats_of_every_order(dtype, value):
    for order in "<>":
        scalar = np.array(value, f"{order}{dtype}")[()]
        again = decode_scalar(encode_scalar(scalar, np.dtype(f"{order}{dtype}")), np.dtype(dtype))
        assert again.tobytes() == np.array(value, dtype).tobytes()


def test_the_names_of_what_is_not_finite():
    assert [encode_scalar(x, np.dtype("f4")) for x in (math.nan, math.inf, -math.inf)] == [
        "NaN",
        "Infinity",
        "-Infinity",
    ]
    other = np.array([0x7FC00001], "u4").view("f4")[0]
    assert encode_scalar(other, other.dtype) == "0x7fc00001"


def test_text():
    assert decode_scalar("grün", np.dtype(object)) == "grün"
    assert decode_scalar("é", np.dtype("U3")) == "é"
    assert encode_scalar("é", np.dtype("U3")) == "é"


RAW = "AAAAAAAA"  # six bytes


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        *((value, "i4") for value in (None, True, "1", 1.5, 2**31, -(2**31) - 1, math.nan, math.inf, [], {})),
        *((value, "u1") for value in (-1, 256)),
        *((value, "f4") for value in (None, True, "1.5", "nan", 1e39, "0x7f", "0x7fc000007fc00000", "0xzz", [], {})),
        *((value, "f8") for value in (10**400, "0x7fc00000")),
        *((value, "?") for value in (None, 0, 1, "false", [])),
        *((value, "c8") for value in (None, 1, [1], [1, 2, 3], ["a", 1], [1e39, 0])),
        *((value, "S3") for value in (None, 5, "é", "AQ", RAW, ["AQ=="])),
        *((value, "V3") for value in (None, RAW)),
        *((value, "U2") for value in (None, 5, "abc")),
        *((value, "O") for value in (None, 0, b"x", [])),
        *((value, [("a", "i4")]) for value in (None, 5, {}, {"a": "x"}, {"b": 1}, [1], RAW)),
    ],
)
def test_scalars_that_do_not_fit(value, dtype):
    with pytest.raises(ReferenceSetError, match="does not fit"):
        decode_scalar(value, np.dtype(dtype))
