"""Scanning and reading on a dask cluster of several processes."""

from __future__ import annotations

import pickle

import h5py
import numpy as np
import pytest
import xarray as xr

import virtualzarr_refs as vzr
from tests.many.files import Killer, write

distributed = pytest.importorskip("distributed")

pytestmark = [
    # distributed's own, in shutting down clusters
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*unclosed.*"),
]


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def workers(client):
    return set(client.run(lambda: __import__("os").getpid()).values())


def test_equals_scans_one_after_another(client, tmp_path):
    paths = write(tmp_path, 30, bad=[7])
    with pytest.warns(vzr.SkippedFileWarning, match=r"7\.h5"):
        found = vzr.scan_many(paths, executor=client, on_error="skip", cache=tmp_path / "cache")
    expected = [vzr.scan(path) for path in paths if path.stem != "7"]
    assert all(a.equals(b) for a, b in zip(found, expected, strict=True))
    assert len(list((tmp_path / "cache").rglob("*.vzmeta"))) == 29


def test_a_killed_worker_changes_nothing(client, tmp_path):
    paths = write(tmp_path, 12)
    flag = tmp_path / "flag"
    flag.touch()
    before = workers(client)
    found = vzr.scan_many(paths, executor=client, scanner=Killer("5.h5", str(flag)))
    assert not flag.exists()
    client.wait_for_workers(2)
    assert workers(client) != before
    assert all(a.equals(vzr.scan(path)) for a, path in zip(found, paths, strict=True))


def test_datasets_compute_on_the_cluster(client, tmp_path):
    path = tmp_path / "a.nc"
    values = np.arange(240.0).reshape(24, 10)
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=values, chunks=(6, 10), compression="gzip")
    group = vzr.scan(path)
    vzr.write_json(group, tmp_path / "a.json")
    for opened in (
        xr.open_dataset(tmp_path / "a.json", engine="virtualzarr_refs", chunks={}),
        xr.open_dataset(path, engine="virtualzarr_refs", chunks={}),
        xr.open_zarr(group.to_store(), consolidated=False, chunks={}),
        pickle.loads(pickle.dumps(group.to_xarray(chunks={}))),
    ):
        future = client.compute(opened["v"].sum())
        assert float(future.result()) == values.sum()
