"""HDF5 files of one chunk, made by hand: libhdf5 finds in them what was put in."""

from __future__ import annotations

import io

import h5py
import numpy as np
import pytest
from h5py import h5t

from virtualzarr_refs.codecs.hdf5_filters import DEFLATE, HDF5Filter
from virtualzarr_refs.codecs.hdf5_image import chunk_image

NAMED = np.dtype([("a", "<i4"), ("nested", [("b", ">f8"), ("c", "S3")])])


def image(values: np.ndarray, *filters: HDF5Filter) -> bytes:
    message = h5t.py_create(values.dtype, logical=True).encode()[2:]
    return chunk_image(values.tobytes(), values.shape, message, values.dtype.itemsize, filters)


@pytest.mark.parametrize("shape", [(1,), (300,), (3, 4), (70_000, 1), (1,) * 31])
@pytest.mark.parametrize("dtype", ["u1", "<f8", ">i2", NAMED], ids=str)
def test_values(shape, dtype):
    count = int(np.prod(shape))
    values = np.frombuffer(np.arange(count * np.dtype(dtype).itemsize, dtype="u4").astype("u1"), dtype).reshape(shape)
    with h5py.File(io.BytesIO(image(values))) as file:
        dataset = file["x"]
        assert dataset.shape == dataset.chunks == shape
        assert dataset.dtype == values.dtype
        assert dataset[...].tobytes() == values.tobytes()


def test_filters_stay_as_they_are():
    steps = [HDF5Filter(DEFLATE, 1, (6,)), HDF5Filter(32000, 0, (4, 261, 99)), HDF5Filter(65535, 1, ((1 << 32) - 1,))]
    with h5py.File(io.BytesIO(image(np.zeros(4, "u1"), *steps))) as file:
        properties = file["x"].id.get_create_plist()
        found = [properties.get_filter(i)[:3] for i in range(properties.get_nfilters())]
    assert found == [(step.id, step.flags, step.values) for step in steps]


def test_the_chunk_is_stored_as_it_is():
    values = np.arange(12, dtype="<i2").reshape(3, 4)
    with h5py.File(io.BytesIO(image(values, HDF5Filter(DEFLATE, 0, (6,))))) as file:
        assert file["x"].id.read_direct_chunk((0, 0)) == (0, values.tobytes())
