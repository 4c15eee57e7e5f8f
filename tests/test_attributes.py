import base64
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from xarray.backends.zarr import FillValueCoder

from virtualzarr_refs.attributes import decode_attributes, encode_attributes, plain_fill_value
from virtualzarr_refs.errors import ReferenceSetError

SIMPLE = [np.dtype(t) for t in ("?", "i1", "<u2", ">i4", "u8", "f2", "<f4", ">f8", "c8", "c16", "S3", "V2", "U2")]
STRUCTS = [
    np.dtype([("a", "i4")]),
    np.dtype([("a", "S2"), ("b", "<f4")]),
    np.dtype([("a", [("b", "i2"), ("c", "c8")]), ("d", "u1")]),
    np.dtype([("a", "i4", (2,)), ("b", "f4")]),
    np.dtype([("a", "S2", (2, 2))]),
]
shapes = st.just(()) | npst.array_shapes(max_dims=3, min_side=1, max_side=3) | st.just((0,))


@st.composite
def arrays(draw):
    dtype, shape = draw(st.sampled_from([*SIMPLE, *STRUCTS])), draw(shapes)
    elements = st.text("aé", max_size=2) if dtype.kind == "U" else None
    if dtype.kind == "V":
        return np.frombuffer(draw(st.binary(min_size=dtype.itemsize * 27, max_size=dtype.itemsize * 27)), dtype)[
            : math.prod(shape)
        ].reshape(shape)
    return draw(npst.arrays(dtype, shape, elements=elements))


def round_trip(value, name="a", dtype=None):
    encoded, types = encode_attributes({name: value}, dtype)
    return decode_attributes(json.loads(json.dumps(encoded)), json.loads(json.dumps(types)), dtype)[name]


@given(arrays())
def test_arrays_and_scalars_come_back(array):
    value = array[()]
    again = round_trip(value)
    assert again.dtype == value.dtype
    assert again.shape == value.shape
    np.testing.assert_array_equal(again, value)


@pytest.mark.parametrize("value", ["", "grün", ["a", ""], [], 5, 1.5, True])
def test_plain_values_stay_as_they_are(value):
    encoded, types = encode_attributes({"a": value})
    assert encoded == {"a": value}
    assert not types
    assert round_trip(value) == value


def test_others_read_plain_json():
    attributes = {"scale_factor": np.float32(0.1), "flags": np.array([1, 2], "i1"), "n": np.uint64(2**64 - 1)}
    encoded, types = encode_attributes(attributes)
    assert encoded == {"scale_factor": float(np.float32(0.1)), "flags": [1, 2], "n": 2**64 - 1}
    assert types == {"scale_factor": "<f4", "flags": "|i1", "n": "<u8"}


def test_arrays_of_no_dimension_and_of_strings():
    assert round_trip(np.array(5.0)) == np.float64(5)
    names = round_trip(np.array(["a", "bc"], dtype=object))
    assert names.dtype == np.dtype(object)
    assert names.tolist() == ["a", "bc"]
    assert round_trip(np.bytes_(b"")) == b""


FILLS = [
    (np.float32(1e20), "f4"), (np.float32(np.nan), "f4"), (np.float64(1.1), "f8"), (np.float64(-np.inf), "f8"),
    (np.int32(3), "f4"), (np.int16(-9999), "i2"), (np.uint8(255), "i1"), (np.float32(7), "i4"), (np.float64(1.5), "i4"),
    (np.uint64(2**64 - 1), "f8"), (np.bytes_(b"x"), "S1"), (np.bytes_(b"xyz"), "S1"), (np.complex64(1 - 2j), "c8"),
    (np.complex64(1j), "f4"), ("text", "O"), (np.bool_(1), "?"), (np.void(b"\1\2"), "V2"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "dtype"), FILLS, ids=str)
def test_fill_values_come_back(value, dtype):
    again = round_trip(value, "_FillValue", np.dtype(dtype))
    assert type(again) is type(value)
    np.testing.assert_array_equal(again, value)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(np.float32(1e20), "f4"), (np.float64(np.nan), "f8"), (np.int16(-1), "i2"), (np.bytes_(b"x"), "S1")],
)
def test_fill_values_are_as_xarray_has_them(value, dtype):
    (encoded, _) = encode_attributes({"_FillValue": value}, np.dtype(dtype))
    assert encoded["_FillValue"] == FillValueCoder.encode(value, np.dtype(dtype))
    if dtype != "S1":  # xarray cannot decode what it encodes
        np.testing.assert_array_equal(FillValueCoder.decode(encoded["_FillValue"], np.dtype(dtype)), value)


@pytest.mark.parametrize(
    ("encoded", "expected"), [("NaN", math.nan), ("-Infinity", -math.inf), ("AAAAAAAA+D8=", 1.5), (2, 2)]
)
def test_fill_values_of_other_tools(encoded, expected):
    (value,) = decode_attributes({"_FillValue": encoded}, {}, np.dtype("f4")).values()
    np.testing.assert_equal(value, expected)


def test_a_fill_value_of_a_group_is_an_attribute_like_any_other():
    assert encode_attributes({"_FillValue": np.float32(1)})[0] == {"_FillValue": 1.0}


def test_fill_values_for_old_stores():
    encoded, _ = encode_attributes({"_FillValue": np.float32(1.5), "units": "m"}, np.dtype("f4"))
    assert plain_fill_value(encoded, np.dtype("f4")) == {"_FillValue": 1.5, "units": "m"}
    assert plain_fill_value({"units": "m"}, np.dtype("f4")) == {"units": "m"}


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("x", "<f4"),
        (["a", 1], "<i4"),
        (300, "|u1"),
        (1e39, "<f4"),
        (1, "nonsense"),
        (1, 5),
        (1, {}),
        (1, {"fields": 5}),
        (1, {"fields": [["a", "<i4"]]}),
        ([1, 2], {"fields": [["a", "<i4"]]}),
        ([1], "<c8"),
        ("???", "|S3"),
        ([[1], [2, 3]], "<i4"),
        ([[1, 2], 3], "<c8"),
        (1, ["<i4", "x"]),
    ],
    ids=str,
)
def test_what_does_not_fit_its_type(value, type_):
    with pytest.raises(ReferenceSetError, match="attribute 'a'"):
        decode_attributes({"a": value}, {"a": type_})


@pytest.mark.parametrize("value", ["not base64", base64.b64encode(b"abc").decode()])
def test_fill_values_that_cannot_be_read(value):
    with pytest.raises(ReferenceSetError, match="_FillValue"):
        decode_attributes({"_FillValue": value}, {}, np.dtype("f4"))
