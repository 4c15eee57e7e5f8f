"""A file with arrays of every kind that matters to a server, and its hierarchy."""

import h5py
import numpy as np
import pytest

import virtualzarr_refs as vzr


@pytest.fixture
def values():
    return np.random.default_rng(0).standard_normal((50, 30)).round(2).astype("f4").cumsum(0)


@pytest.fixture
def archive(tmp_path, values):
    path = tmp_path / "archive-in-secret-place.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("raw", data=values, chunks=(16, 16))
        file.create_dataset("deflated", data=values, chunks=(16, 16), compression="gzip")
        file.create_dataset("shuffled", data=values, chunks=(16, 16), compression="gzip", shuffle=True)
        file.create_dataset("big_endian", data=values, dtype=">f4", chunks=(16, 16))
        file["deep/line\nbreak %2F ü"] = np.arange(5, dtype="<i2")
        file["raw"].attrs["missing_value"] = np.float32("nan")
        file["raw"].attrs["valid_range"] = np.array([-np.inf, np.inf])
        file["null"] = h5py.Empty("f4")
    return path


@pytest.fixture
def group(archive):
    with pytest.warns(vzr.SkippedNodeWarning):
        return vzr.scan(archive)
