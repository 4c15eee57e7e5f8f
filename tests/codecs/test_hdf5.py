from __future__ import annotations

import base64
import pickle
from typing import Any

import h5py
import hdf5plugin  # noqa: F401  registers filters
import numpy as np
import pytest
import zarr
from h5py import h5t
from zarr.registry import get_codec_class

import virtualzarr_refs as vzr
from scanners.hdf5.pipelines import read_filters
from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.codecs.hdf5 import NAME, HDF5Codec
from virtualzarr_refs.codecs.hdf5_filters import FLETCHER32, HDF5Filter

LZF, NOBODYS = 32000, 999
INTEGERS = h5t.STD_I32BE.encode()
PIPELINES = [f"zarr.core.codec_pipeline.{name}" for name in ("BatchedCodecPipeline", "FusedCodecPipeline")]


@pytest.fixture(params=PIPELINES)
def pipeline(request):
    with zarr.config.set({"codec_pipeline.path": request.param}):
        yield


def stored(values: np.ndarray, **options: Any) -> tuple[bytes, HDF5Codec]:
    """A chunk as HDF5 keeps it, and the codec that decodes it."""
    with h5py.File("trial", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("x", data=values, chunks=values.shape, **options)
        _, data = dataset.id.read_direct_chunk((0,) * values.ndim)
        properties = dataset.id.get_create_plist()
        return data, HDF5Codec(dataset.id.get_type().encode(), read_filters(properties))


# ── Decoding ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("options", [{}, {"compression": "lzf"}, {"scaleoffset": 0}, {"shuffle": True}], ids=str)
def test_decodes_what_hdf5_stored(options):
    values = np.arange(12, dtype=">i4").reshape(3, 4)
    data, codec = stored(values, **options)
    assert codec.decode_chunk(data, (3, 4)).tolist() == values.tolist()


def test_decodes_the_same_chunk_over_and_over():
    """libhdf5 sorts the members of a type by offset when it first converts it."""
    padded = np.dtype({"names": ["b", "a"], "formats": ["<f4", ">i2"], "offsets": [4, 1], "itemsize": 9})
    values = np.zeros(3, padded)
    values["a"], values["b"] = [1, 2, 3], 0.5
    data, codec = stored(values)
    for _ in range(3):
        decoded = codec.decode_chunk(data, (3,))
        assert decoded.dtype.names == ("b", "a")
        assert decoded["a"].tolist() == [1, 2, 3]


def test_survives_pickling_before_and_after_use():
    data, codec = stored(np.arange(4), compression="lzf")
    fresh = pickle.loads(pickle.dumps(codec))
    codec.decode_chunk(data, (4,))
    used = pickle.loads(pickle.dumps(codec))
    assert fresh == used == codec
    assert used.decode_chunk(data, (4,)).tolist() == [0, 1, 2, 3]


# ── Chunks that do not decode ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("length", [0, 1, 15, 17, 32])
def test_wrong_length(length):
    with pytest.raises(vzr.DecodeError, match="4 elements of 4 bytes"):
        HDF5Codec(INTEGERS).decode_chunk(bytes(length), (4,))


@pytest.mark.parametrize("data", [b"", b"\0", b"\x07" * 40])
@pytest.mark.parametrize("number", [1, LZF, FLETCHER32])
def test_damaged(number, data):
    codec = HDF5Codec(INTEGERS, (HDF5Filter(number, 0, (4, 261, 16) if number == LZF else ()),))
    with pytest.raises(vzr.DecodeError, match="shape"):
        codec.decode_chunk(data, (4,))


def test_checksum_that_does_not_match():
    data, codec = stored(np.arange(4), fletcher32=True)
    with pytest.raises(vzr.DecodeError):
        codec.decode_chunk(b"\1" + data[1:], (4,))


def test_filter_that_nobody_has():
    codec = HDF5Codec(INTEGERS, (HDF5Filter(NOBODYS, 0, ()),))
    with pytest.raises(vzr.UnsupportedError, match="filter 999"):
        codec.decode_chunk(bytes(16), (4,))


@pytest.mark.parametrize(
    "type_",
    [
        h5t.py_create(h5py.string_dtype(), logical=True),
        h5t.STD_REF_OBJ,
        h5t.vlen_create(h5t.STD_I8LE),
        h5t.UNIX_D32LE,
    ],
    ids=["text", "reference", "sequence", "time"],
)
def test_types_whose_values_are_not_in_the_chunk(type_):
    """Their bytes would be taken for addresses in memory."""
    with pytest.raises(vzr.DecodeError, match="type"):
        HDF5Codec(type_.encode()).decode_chunk(b"A" * type_.get_size(), (1,))


@pytest.mark.parametrize("datatype", [b"", b"\3", b"no type", INTEGERS[:-4]])
def test_types_that_are_none(datatype):
    with pytest.raises(vzr.DecodeError, match="type"):
        HDF5Codec(datatype).decode_chunk(bytes(16), (4,))


@pytest.mark.usefixtures("pipeline")
@pytest.mark.parametrize("options", [{"compression": "lzf"}, {"scaleoffset": 0}], ids=str)
def test_an_error_of_ours_reaches_the_user(options, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", data=np.arange(40), chunks=(10,), **options)
        dataset.id.write_direct_chunk((10,), b"\0\0\0")
    array = zarr.open_array(vzr.scan(tmp_path / "x.h5").to_store(), path="x", mode="r")
    assert array[:10].tolist() == list(range(10))
    with pytest.raises(vzr.DecodeError):
        array[10:20]


@pytest.mark.usefixtures("pipeline")
def test_a_checksum_is_verified(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", data=np.arange(10), chunks=(10,), fletcher32=True)
        _, data = dataset.id.read_direct_chunk((0,))
        dataset.id.write_direct_chunk((0,), b"\1" + data[1:])
    array = zarr.open_array(vzr.scan(tmp_path / "x.h5").to_store(), path="x", mode="r")
    with pytest.raises(RuntimeError, match="checksum"):  # numcodecs' own
        array[:]


@pytest.mark.usefixtures("pipeline")
@pytest.mark.parametrize("count", [5, 11], ids=["short", "long"])
def test_a_chunk_of_another_length_is_never_read(count, tmp_path):
    """The codecs are zarr's own here, and so is the error."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", (10,), "<i4", chunks=(10,), compression="gzip")
        dataset.id.write_direct_chunk((0,), stored(np.arange(count, dtype="<i4"), compression="gzip")[0])
    array = zarr.open_array(vzr.scan(tmp_path / "x.h5").to_store(), path="x", mode="r")
    with pytest.raises(ValueError, match="reshape"):
        array[:]


@pytest.mark.usefixtures("pipeline")
@pytest.mark.parametrize("dtype", ["int64", "float32", "uint32"])
def test_a_chunk_of_another_type_is_refused(dtype, tmp_path):
    codec = HDF5Codec(INTEGERS).to_dict()
    metadata = vzr.ArrayMetadata(dtype, RegularGrid((4,), (4,)), 0, (codec,))
    array = vzr.VirtualArray(metadata, vzr.Manifest.from_inline((1,), {0: bytes(16)}))
    store = vzr.VirtualGroup(arrays={"x": array}).to_store()
    with pytest.raises(vzr.DecodeError, match="instead of"):
        zarr.open_array(store, path="x", mode="r")[:]


# ── Configuration ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_round_trip():
    codec = HDF5Codec(INTEGERS, (HDF5Filter(LZF, 1, (4, 261, 16)), HDF5Filter(FLETCHER32, 0, ())))
    document = codec.to_dict()
    assert HDF5Codec.from_dict(document) == codec
    assert document["name"] == NAME
    assert get_codec_class(NAME) is HDF5Codec


TYPE = base64.b64encode(INTEGERS).decode()


@pytest.mark.parametrize(
    "configuration",
    [
        None,
        [],
        {},
        {"datatype": TYPE},
        {"filters": []},
        {"datatype": "not base64!", "filters": []},
        {"datatype": 7, "filters": []},
        {"datatype": TYPE, "filters": None},
        {"datatype": TYPE, "filters": [7]},
        {"datatype": TYPE, "filters": [{"id": 1}]},
        {"datatype": TYPE, "filters": [{"id": 1, "flags": 0, "values": 7}]},
        {"datatype": TYPE, "filters": [{"id": "1", "flags": 0, "values": []}]},
        {"datatype": TYPE, "filters": [{"id": -1, "flags": 0, "values": []}]},
        {"datatype": TYPE, "filters": [{"id": 1 << 16, "flags": 0, "values": []}]},
        {"datatype": TYPE, "filters": [{"id": 1, "flags": -1, "values": []}]},
        {"datatype": TYPE, "filters": [{"id": 1, "flags": 0, "values": [1 << 32]}]},
        {"datatype": TYPE, "filters": [{"id": 1, "flags": 0, "values": [0.5]}]},
        {"datatype": TYPE, "filters": [{"id": 1, "flags": 0, "values": []}] * 33},
    ],
    ids=str,
)
def test_misconfigured(configuration):
    with pytest.raises(vzr.ReferenceSetError, match=NAME):
        HDF5Codec.from_dict({"name": NAME, "configuration": configuration})


def test_is_read_only():
    codec = HDF5Codec(INTEGERS)
    with pytest.raises(vzr.UnsupportedError):
        codec.compute_encoded_size(4, None)
