import json
import zlib

import numcodecs
import numpy as np
import pytest
from zarr.registry import get_codec_class

from virtualzarr_refs.codecs.zarr_v2 import NAME, ZarrV2Codec
from virtualzarr_refs.errors import DecodeError, ReferenceSetError, UnsupportedError


def codec(dtype="<f4", order="C", codecs=()):
    return ZarrV2Codec.from_dict({"name": NAME, "configuration": {"dtype": dtype, "order": order, "codecs": codecs}})


def decode(data, shape, **members):
    return codec(**members).decode_chunk(np.frombuffer(data, np.uint8), shape)


def test_it_is_registered_and_survives_json():
    made = codec([["a", "<i4"], ["b", [["c", ">f8"]]]], "F", [{"id": "zlib", "level": 1}])
    assert get_codec_class(NAME) is ZarrV2Codec
    assert ZarrV2Codec.from_dict(json.loads(json.dumps(made.to_dict()))) == made


def test_codecs_are_undone_from_the_last_to_the_first():
    values = np.arange(6, dtype=">i4")
    steps = [{"id": "shuffle", "elementsize": 4}, {"id": "zlib", "level": 1}]
    data = zlib.compress(bytes(numcodecs.Shuffle(4).encode(values.tobytes())))
    np.testing.assert_array_equal(decode(data, (2, 3), dtype=">i4", codecs=steps), values.reshape(2, 3))
    np.testing.assert_array_equal(
        decode(data, (2, 3), dtype=">i4", order="F", codecs=steps), values.reshape((2, 3), order="F")
    )


@pytest.mark.parametrize(
    ("data", "members"),
    [
        (b"12345678", {"dtype": "<f4"}),
        (b"123", {"dtype": "<f4"}),
        (b"", {"dtype": "<f4"}),
        (b"rubbish", {"codecs": [{"id": "zlib"}]}),
        (b"rubbish", {"codecs": [{"id": "blosc"}]}),
        (b"rubbish", {"codecs": [{"id": "zstd"}]}),
        (b"rubbish", {"codecs": [{"id": "lzma"}]}),
        (b"rubbish", {"codecs": [{"id": "gzip"}]}),
        (b"1234", {"codecs": [{"id": "delta", "dtype": "<f8"}]}),
        (b"1234", {"codecs": [{"id": "fletcher32"}]}),
    ],
)
def test_what_does_not_decode_is_our_error(data, members):
    with pytest.raises(DecodeError):
        decode(data, (1,), **members)


@pytest.mark.parametrize(
    "members", [{"dtype": "rubbish"}, {"dtype": 5}, {"dtype": [["a"]]}, {"order": "X"}, {"codecs": 5}, {"codecs": [5]}]
)
def test_malformed_configurations(members):
    with pytest.raises(ReferenceSetError, match=NAME):
        codec(**members)


def test_parameters_that_a_codec_does_not_have():
    with pytest.raises(ReferenceSetError, match=NAME):
        decode(b"1234", (1,), codecs=[{"id": "zlib", "speed": 3}])


@pytest.mark.parametrize("id_", ["pickle", "json2", "vlen-utf8", "no_such_codec", None, 5, ("x",)])
def test_codecs_that_are_never_used(id_):
    with pytest.raises(UnsupportedError, match="codec "):
        codec(codecs=[{"id": id_}])


def test_a_codec_whose_package_is_not_installed(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "eccodes", None)
    with pytest.raises(UnsupportedError, match="not installed"):
        decode(b"GRIB", (1,), codecs=[{"id": "grib", "var": "t"}])


def test_nothing_is_encoded():
    with pytest.raises(UnsupportedError):
        codec().compute_encoded_size(1, None)
