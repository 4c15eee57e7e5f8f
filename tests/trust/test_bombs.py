"""Chunks that decode to far more than their array says are refused, before the memory is taken."""

import bz2
import gzip
import json
import lzma
import tracemalloc
import zlib

import numcodecs
import numpy as np
import pyarrow as pa
import pytest
import zarr

import virtualzarr_refs as vzr
from virtualzarr_refs.codecs.bytes_steps import declared_zstd

SIZE = 32 * 1024 * 1024
ZEROS = bytes(SIZE)
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
SHUFFLE = {"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}
BLOSC = {"typesize": 4, "cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0}
ZSTD = {"level": 1, "checksum": False}


def streamed_zstd(data):
    """A frame that does not say how long it is."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


COMPRESSORS = {
    "blosc": ("blosc", BLOSC, lambda data: bytes(numcodecs.Blosc("lz4", shuffle=0).encode(data))),
    "bz2": ("numcodecs.bz2", {"level": 9}, bz2.compress),
    "gzip": ("gzip", {"level": 1}, lambda data: gzip.compress(data, 1)),
    "lz4": ("numcodecs.lz4", {"acceleration": 1}, lambda data: bytes(numcodecs.LZ4().encode(data))),
    "lzma": ("numcodecs.lzma", {"preset": 0}, lambda data: lzma.compress(data, preset=0)),
    "zlib": ("numcodecs.zlib", {"level": 1}, lambda data: zlib.compress(data, 1)),
    "zstd": ("zstd", ZSTD, lambda data: bytes(numcodecs.Zstd(1).encode(data))),
    "zstd, streamed": ("zstd", ZSTD, streamed_zstd),
}


def stored(name, data, before=(), after=()):
    """A hierarchy of one array `a` of 100 numbers, whose one chunk is `data` encoded by a compressor."""
    codec, configuration, encode = COMPRESSORS[name]
    array = {
        "zarr_format": 3, "node_type": "array", "shape": [100], "data_type": "int32", "fill_value": 0, "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [100]}},
        "chunk_key_encoding": {"name": "default"}, "dimension_names": ["x"],
        "codecs": [LITTLE, *before, {"name": codec, "configuration": configuration}, *after],
    }  # fmt: skip
    refs = {"zarr.json": '{"zarr_format":3,"node_type":"group"}', "a/zarr.json": json.dumps(array)}
    chunk = encode(data)
    for _ in after:
        chunk = bytes(numcodecs.Fletcher32().encode(chunk))
    return vzr.open_refs({"version": 1, "refs": refs | {"a/c/0": chunk}})


def by_zarr(group):
    return zarr.open_group(group.to_store(), mode="r")["a"][...]


def by_xarray(group):
    return group.to_xarray()["a"].to_numpy()


FLETCHER = {"name": "numcodecs.fletcher32", "configuration": {}}


@pytest.mark.parametrize("read", [by_zarr, by_xarray])
@pytest.mark.parametrize("before", [(), (SHUFFLE,)])
@pytest.mark.parametrize("after", [(), (FLETCHER,)])
@pytest.mark.parametrize("name", COMPRESSORS)
@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr")
def test_an_honest_chunk_is_read(name, before, after, read):
    values = np.arange(100, dtype="<i4")
    data = bytes(numcodecs.Shuffle(4).encode(values.tobytes())) if before else values.tobytes()
    np.testing.assert_array_equal(read(stored(name, data, before, after)), values)


@pytest.mark.parametrize("read", [by_zarr, by_xarray])
@pytest.mark.parametrize("name", COMPRESSORS)
@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr")
def test_a_bomb_is_refused_before_it_takes_memory(name, read):
    group = stored(name, ZEROS)
    by_xarray(stored(name, bytes(400)))  # imports
    tracemalloc.start()
    try:
        with pytest.raises(vzr.DecodeError):
            read(group)
        assert tracemalloc.get_traced_memory()[1] < SIZE / 4
    finally:
        tracemalloc.stop()


def test_streams_that_follow_each_other_are_read_like_one():
    values = np.arange(100, dtype="<i4").tobytes()
    for name in ("gzip", "bz2"):
        codec, configuration, encode = COMPRESSORS[name]
        COMPRESSORS["twice"] = codec, configuration, lambda data, encode=encode: encode(data[:99]) + encode(data[99:])
        try:
            np.testing.assert_array_equal(by_xarray(stored("twice", values)), np.arange(100))
        finally:
            del COMPRESSORS["twice"]


@pytest.mark.parametrize("length", [0, 1, 255, 256, 300, 65_791, 65_792, 1 << 20])
def test_the_length_that_a_frame_of_zstd_says(length):
    assert declared_zstd(bytes(numcodecs.Zstd(1).encode(bytes(length)))) == length


@pytest.mark.parametrize("data", [b"", b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd\xe0\x01", b"\x00" * 20])
def test_what_is_no_whole_frame_says_no_length(data):
    assert declared_zstd(data) is None
