"""A remote file gives what the same file on disk gives, in few requests."""

import threading
from pathlib import Path

import h5py
import numpy as np
import pytest

import virtualzarr_refs as vzr
from virtualzarr_refs.errors import SourceError
from virtualzarr_refs.sources import read_ahead
from virtualzarr_refs.sources.remote import RemoteSource

SAMPLES = sorted((Path(__file__).parents[3] / "sample_data").glob("*.nc"))
BACKENDS = ["fsspec", "obstore"]


def many_chunks(path, libver="earliest", chunks=3000):
    """Chunks with metadata between them: nothing lies together."""
    with h5py.File(path, "w", libver=libver) as file:
        for name in "ab":
            file.create_dataset(name, (0, 4), "<i4", chunks=(1, 4), maxshape=(None, 4), compression="gzip")
        for start in range(0, chunks, 500):
            for name in "ab":
                file[name].resize((start + 500, 4))
                file[name][start:] = np.arange(2000).reshape(500, 4) + start


def many_datasets(path):
    with h5py.File(path, "w") as file:
        for number in range(60):
            dataset = file.create_dataset(f"g{number % 4}/g/v{number}", data=np.arange(4000) + number, chunks=(1000,))
            dataset.attrs["units"] = "m"
            dataset.attrs["number"] = number


MAKERS = {
    "datasets": many_datasets,
    "btree1": many_chunks,
    "extensible": lambda path: many_chunks(path, "latest"),
}


@pytest.fixture(params=MAKERS)
def path(request, tmp_path):
    path = tmp_path / "file.h5"
    MAKERS[request.param](path)
    return path


@pytest.fixture
def tight(monkeypatch):
    """As if files were a thousand times as large."""
    for name, size in {"PAGE": 256, "WINDOW": 4096, "SMALL_FILE": 0, "MAX_GAP": 512, "MAX_AHEAD": 16_384}.items():
        monkeypatch.setattr(read_ahead, name, size)


def columns(group):
    return {
        path: (array.metadata, array.manifest.offset.tolist(), array.manifest.length.tolist(), array.manifest.inline)
        for path, array in group.walk_arrays()
    }


def assert_same(remote, local):
    assert remote.metadata == local.metadata
    assert columns(remote) == columns(local)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_samples(server, sample, backend):
    name = f"/{backend}/{sample.name}"
    server.files[name] = sample.read_bytes()
    assert_same(vzr.scan(server.url + name, backend=backend), vzr.scan(sample))
    assert server.sent(name) <= sample.stat().st_size


def test_nothing_is_fetched_twice_and_little_is_waited_for(server, path, tight):
    server.files["/once.h5"] = path.read_bytes()
    assert_same(vzr.scan(f"{server.url}/once.h5"), vzr.scan(path))
    assert server.sent("/once.h5") <= 1.05 * path.stat().st_size


@pytest.fixture
def trips(monkeypatch):
    """What was fetched together, one after the other; other threads fetch at the same time."""
    made, fetch = [], RemoteSource.fetch

    def noted(source, spans):
        if threading.current_thread() is threading.main_thread():
            made.append(spans)
        return fetch(source, spans)

    monkeypatch.setattr(RemoteSource, "fetch", noted)
    return made


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_what_lies_apart_is_fetched_level_by_level(server, tmp_path, tight, trips, libver):
    path = tmp_path / "apart.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for number in range(60):
            name = f"g{number % 4}/g/v{number}"
            options = {"chunks": (50,), "maxshape": (None,), "compression": 1}
            dataset = file.create_dataset(name, data=np.random.default_rng(0).random(8000), **options)
            dataset.attrs["units"] = f"m{number}"
    server.files["/apart.h5"] = path.read_bytes()
    assert_same(vzr.scan(f"{server.url}/apart.h5"), vzr.scan(path))
    assert len(trips) <= 15


@pytest.mark.parametrize("number", range(0, 12, 2))
@pytest.mark.parametrize("status", [500, 403])
def test_a_failure_on_the_way_is_ours_and_names_the_file(server, path, tight, number, status):
    server.files["/a.h5"] = path.read_bytes()
    left = [number]

    def fail_later(answer):
        left[0] -= 1
        return answer if left[0] >= 0 else answer._replace(status=status)

    server.spoil = fail_later
    with pytest.raises(SourceError) as caught:
        vzr.scan(f"{server.url}/a.h5", storage_options={"retry_config": {"max_retries": 0}})
    assert caught.value.url == f"{server.url}/a.h5"
