from __future__ import annotations

import pickle

import numpy as np
import pytest
import zarr
from zarr.registry import get_codec_class

import virtualzarr_refs as vzr
from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.codecs.mixed import NAME, MixedCodec

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
ZLIB = {"name": "numcodecs.zlib", "configuration": {"level": 1}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}
VARIANTS = ({"codecs": [LITTLE]}, {"codecs": [TRANSPOSE, BIG]}, {"codecs": ["bytes"]})
PIPELINES = [f"zarr.core.codec_pipeline.{name}" for name in ("BatchedCodecPipeline", "FusedCodecPipeline")]
VALUES = np.arange(6, dtype="<i4").reshape(2, 3)


@pytest.fixture(params=PIPELINES)
def _pipeline(request):
    with zarr.config.set({"codec_pipeline.path": request.param}):
        yield


def array(*chunks: bytes, variants=VARIANTS[:2]) -> zarr.Array:
    """An array of these stored chunks, one row of chunks each."""
    grid = RegularGrid((2 * len(chunks), 3), (2, 3))
    metadata = vzr.ArrayMetadata("int32", grid, 0, (MixedCodec(variants).to_dict(),))
    manifest = vzr.Manifest.from_inline(grid.grid_shape, dict(enumerate(chunks)))
    group = vzr.VirtualGroup(arrays={"x": vzr.VirtualArray(metadata, manifest)})
    return zarr.open_array(group.to_store(), path="x", mode="r")


@pytest.mark.usefixtures("_pipeline")
def test_every_chunk_is_decoded_with_its_variant():
    chunks = array(b"\0\0" + VALUES.tobytes(), b"\1\0" + VALUES.T.astype(">i4").tobytes())
    assert chunks[:2].tolist() == chunks[2:].tolist() == VALUES.tolist()


@pytest.mark.usefixtures("_pipeline")
@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", "lacks"), (b"\0", "lacks"), (b"\2\0" + bytes(24), "variant 2 of 2"), (b"\xff\xff", "variant 65535")],
)
def test_chunks_that_name_no_variant(data, message):
    with pytest.raises(vzr.DecodeError, match=message):
        array(data)[:]


@pytest.mark.usefixtures("_pipeline")
@pytest.mark.parametrize("data", [b"", bytes(20), bytes(23), bytes(48)], ids=len)
def test_chunks_of_another_length(data):
    with pytest.raises(vzr.DecodeError, match="variant 0"):
        array(b"\0\0" + data)[:]


@pytest.mark.usefixtures("_pipeline")
def test_chunks_that_do_not_decompress():
    with pytest.raises(vzr.DecodeError, match="variant 0"):
        array(b"\0\0garbage", variants=({"codecs": [LITTLE, ZLIB]},))[:]


# ── Configuration ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_round_trip():
    codec = MixedCodec(VARIANTS)
    parsed = MixedCodec.from_dict(codec.to_dict())
    assert pickle.loads(pickle.dumps(parsed)) == parsed == codec
    assert get_codec_class(NAME) is MixedCodec


@pytest.mark.parametrize(
    "configuration",
    [
        None,
        {},
        {"variants": None},
        {"variants": []},
        {"variants": [7]},
        {"variants": ["codecs"]},
        {"variants": [{}]},
        {"variants": [{"codecs": [LITTLE]}, {}]},
        {"variants": [{"codecs": [LITTLE], "shape": [1]}]},
        {"variants": [{"codecs": None}]},
        {"variants": [{"codecs": []}]},
        {"variants": [{"codecs": [ZLIB]}]},
        {"variants": [{"codecs": [LITTLE, BIG]}]},
        {"variants": [{"codecs": [ZLIB, LITTLE]}]},
        {"variants": [{"codecs": [7]}]},
        {"variants": [{"codecs": [{}]}]},
        {"variants": [{"codecs": [{"name": "nobody.knows"}]}]},
        {"variants": [{"codecs": [{"name": "bytes", "configuration": {"endian": "middle"}}]}]},
    ],
    ids=str,
)
def test_misconfigured(configuration):
    with pytest.raises(vzr.ReferenceSetError, match=NAME):
        MixedCodec.from_dict({"name": NAME, "configuration": configuration})


def test_is_read_only():
    with pytest.raises(vzr.UnsupportedError):
        MixedCodec(VARIANTS).compute_encoded_size(4, None)
