"""A new first axis, whatever codecs chunks went through."""

import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, BytesCodec, ShardingCodec, TransposeCodec, ZstdCodec
from zarr.codecs.numcodecs import Delta, FixedScaleOffset, Shuffle, Zlib
from zarr.storage import MemoryStore

from virtualzarr_refs.combine.expanding import expand
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.metadata import decode_metadata

VALUES = np.arange(7 * 5 * 3, dtype="i4").reshape(7, 5, 3)

PIPELINES = {
    "bytes": {"compressors": None},
    "big-endian": {"serializer": BytesCodec(endian="big"), "compressors": [ZstdCodec()]},
    "blosc": {"compressors": [BloscCodec(cname="zstd")]},
    "shuffle and deflate": {"compressors": [Shuffle(elementsize=4), Zlib(level=1)]},
    "transposed": {"filters": [TransposeCodec(order=(2, 0, 1))]},
    "delta": {"filters": [Delta(dtype="<i4")]},
    "scaled after a transposition": {
        "filters": [TransposeCodec(order=(1, 0, 2)), FixedScaleOffset(offset=0, scale=1, dtype="<i4", astype="<i4")]
    },
    "shards": {"serializer": ShardingCodec(chunk_shape=(2, 1, 3)), "compressors": None, "filters": None},
}


def virtual(values, chunks, **pipeline):
    store = MemoryStore()
    array = zarr.create_array(store, shape=values.shape, chunks=chunks, dtype=values.dtype, **pipeline)
    array[...] = values
    metadata = decode_metadata(store._store_dict["zarr.json"].to_bytes())
    grid_shape = metadata.chunk_grid.grid_shape
    chunks = {
        position: store._store_dict[key].to_bytes()
        for position, key in enumerate(map(metadata.chunk_key_encoding.encode, np.ndindex(*grid_shape)))
        if key in store._store_dict
    }
    return VirtualArray(metadata, Manifest.from_inline(grid_shape, chunks))


def read(array):
    return zarr.open_group(VirtualGroup(arrays={"a": array}).to_store(), mode="r")["a"][...]


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification")
@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_values_are_repeated(pipeline, length):
    array = virtual(VALUES, (4, 2, 3) if pipeline == "shards" else (4, 2, 2), **PIPELINES[pipeline])
    found = expand(array, "run", length)
    np.testing.assert_array_equal(read(found), np.broadcast_to(VALUES, (length, *VALUES.shape)))
    assert found.metadata.dimension_names == ("run", None, None, None)
    np.testing.assert_array_equal(read(expand(found, "more", 2))[1], np.broadcast_to(VALUES, (length, *VALUES.shape)))


def test_a_scalar_becomes_an_axis():
    np.testing.assert_array_equal(read(expand(virtual(np.array(5.5), ()), "run", 3)), [5.5, 5.5, 5.5])
