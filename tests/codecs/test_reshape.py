"""The codec ``reshape``: as the Zarr extensions define it."""

import numpy as np
import pytest
import zarr
from zarr.codecs import ZstdCodec

from virtualzarr_refs.codecs.reshape import ReshapeCodec
from virtualzarr_refs.errors import DecodeError, ReferenceSetError


def codec(shape):
    return ReshapeCodec.from_dict({"name": "reshape", "configuration": {"shape": shape}})


@pytest.mark.parametrize("shape", [[[0, 1], [2]], [[0], [1, 2]], [[0, 1, 2]], [6, 4], [-1], [[0], -1], [2, [0], -1]])
def test_values_come_back(shape):
    values = np.arange(2 * 9 * 4, dtype="i4").reshape(2, 9, 4)
    array = zarr.create_array(
        {}, shape=values.shape, chunks=(2, 3, 4), dtype="i4", filters=[codec(shape)], compressors=[ZstdCodec()]
    )
    array[...] = values
    np.testing.assert_array_equal(zarr.open_array(array.store, mode="r")[...], values)
    assert array.metadata.codecs[0].to_dict() == {"name": "reshape", "configuration": {"shape": shape}}


@pytest.mark.parametrize(
    "configuration",
    [{}, None, {"shape": 3}, {"shape": [[1, 0]]}, {"shape": [[0, 2]]}, {"shape": [-1, -1]}, {"shape": [0]},
     {"shape": ["x"]}, {"shape": [[0], [0]]}, {"shape": [[-1]]}, {"shape": [True]}],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_understood_is_refused(configuration):
    with pytest.raises(ReferenceSetError, match="reshape"):
        ReshapeCodec.from_dict({"name": "reshape", "configuration": configuration})


@pytest.mark.parametrize("shape", [[[0], [1], [2], [3]], [5, [2]], [[0]]])
def test_chunks_of_another_size_are_refused(shape):
    values = np.arange(24, dtype="i4").reshape(2, 3, 4)
    with pytest.raises(DecodeError, match="reshape"):
        zarr.create_array({}, shape=values.shape, chunks=values.shape, dtype="i4", filters=[codec(shape)])[...] = values
