"""Filter pipelines that look native and are not."""

from __future__ import annotations

import h5py
import hdf5plugin
import numpy as np
import pytest
import zarr

import virtualzarr_refs as vzr


@pytest.mark.parametrize("compressor", ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"])
def test_every_compressor_of_blosc(tmp_path, compressor):
    values = np.arange(4096, dtype="i4").reshape(64, 64)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(16, 64), compression=hdf5plugin.Blosc(cname=compressor))
    group = vzr.scan(tmp_path / "x.h5", strict=True)
    assert np.array_equal(zarr.open_group(group.to_store(), mode="r")["x"][...], values)


def test_a_chunk_too_short_for_its_checksum(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        options = {"chunks": (4,), "compression": "lzf", "fletcher32": True}
        file.create_dataset("x", (4,), "i4", **options).id.write_direct_chunk((0,), b"abcd")
    group = vzr.scan(tmp_path / "x.h5", strict=True)
    with pytest.raises(vzr.DecodeError):
        zarr.open_group(group.to_store(), mode="r")["x"][...]
