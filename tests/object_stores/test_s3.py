"""A real S3 server on this machine: scanning, writing and reading references through s3fs and obstore."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import s3fs
import xarray as xr

import virtualzarr_refs as vzr

moto = pytest.importorskip("moto.server")

VALUES = np.arange(480.0).reshape(48, 10)
KEY, SECRET = "the-key-hush", "the-secret-hush"


@pytest.fixture(scope="module")
def endpoint():
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture(scope="module")
def options(endpoint):
    """What each backend takes to reach the server."""
    return {
        "fsspec": {
            "key": KEY,
            "secret": SECRET,
            "client_kwargs": {"endpoint_url": endpoint, "region_name": "eu-west-1"},
        },
        "obstore": {
            "endpoint": endpoint,
            "region": "eu-west-1",
            "access_key_id": KEY,
            "secret_access_key": SECRET,
            "client_options": {"allow_http": True},
            "retry_config": {"max_retries": 0},
        },
    }


@pytest.fixture(scope="module")
def bucket(options, tmp_path_factory):
    """A bucket with one file."""
    path = tmp_path_factory.mktemp("s3") / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=VALUES, chunks=(12, 10), compression="gzip")
    files = s3fs.S3FileSystem(**options["fsspec"])
    files.mkdir("archive")
    files.pipe_file("archive/a.h5", Path(path).read_bytes())
    return files


@pytest.mark.parametrize("backend", ["fsspec", "obstore"])
def test_scan_and_read(bucket, options, backend):
    group = vzr.scan("s3://archive/a.h5", backend=backend, storage_options=options[backend])
    assert group.urls == ("s3://archive/a.h5",)
    opened = group.to_xarray(storage_options=options[backend], backend=backend)
    np.testing.assert_array_equal(opened["v"], VALUES)


def test_references_in_the_bucket(bucket, options):
    own = options["fsspec"]
    group = vzr.scan("s3://archive/a.h5", storage_options=own)
    vzr.write_json(group, "s3://archive/refs/a.json", storage_options=own)
    assert b"hush" not in bucket.cat_file("archive/refs/a.json")
    again = vzr.open_refs("s3://archive/refs/a.json", storage_options=own)
    assert again.equals(group)
    opened = xr.open_dataset("s3://archive/refs/a.json", engine="virtualzarr_refs", storage_options=own, chunks={})
    np.testing.assert_array_equal(opened["v"], VALUES)


def test_sidecars_in_the_bucket(bucket, options, monkeypatch):
    own = options["fsspec"]
    first = vzr.scan("s3://archive/a.h5", storage_options=own, cache="sidecar")
    assert b"hush" not in bucket.cat_file("archive/a.h5.vzmeta")
    monkeypatch.setattr("virtualzarr_refs.scanning.find_scanner", lambda _: pytest.fail("scanned again"))
    assert vzr.scan("s3://archive/a.h5", storage_options=own, cache="sidecar").equals(first)
    other = vzr.scan("s3://archive/a.h5", storage_options=options["obstore"], cache="sidecar", backend="obstore")
    assert other.equals(first)


@pytest.mark.parametrize("backend", ["fsspec", "obstore"])
def test_missing_keys_and_buckets(bucket, options, backend):
    for url in ("s3://archive/none.h5", "s3://nowhere/none.h5"):
        with pytest.raises(vzr.SourceMissingError) as caught:
            vzr.scan(url, backend=backend, storage_options=options[backend])
        assert "hush" not in f"{caught.value!r} {caught.value}"
