"""A file that changed since its references were made is refused by whatever reads: never values, never NaN."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import dask
import fsspec
import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

import virtualzarr_refs as vzr
from tests.combine.files import Recipe

STEPS = 8


def write_file(path, seed=0):
    """A file of one size whatever the seed, with chunks that are read directly and strings that zarr reads."""
    rng = np.random.default_rng(seed)
    with h5py.File(path, "w", track_order=True) as file:
        options = {"compression": "gzip", "compression_opts": 0}
        file.create_dataset("v", data=rng.random((STEPS, 50)), chunks=(2, 50), fillvalue=np.nan, **options)
        file.create_dataset("raw", data=rng.random((STEPS, 50)))
        file.create_dataset("names", data=rng.integers(97, 123, (STEPS, 4), "u1").view("S4"), chunks=(3, 1))
        file.create_dataset("record", data=np.zeros(STEPS, [("a", "i4"), ("b", "f8")]), chunks=(4,))
    return path


@pytest.fixture
def path(tmp_path):
    return write_file(tmp_path / "a.h5")


@pytest.fixture
def refs(tmp_path, path):
    vzr.write_json(vzr.scan(path), tmp_path / "a.json")
    return str(tmp_path / "a.json")


def by_store(refs, **options):
    return lambda name: zarr.open_group(vzr.open_refs(refs).to_store(**options), mode="r")[name][...]


def by_zarrs_own_store(refs, **options):
    files = vzr.VirtualFileSystem(refs=refs, asynchronous=True, **options)
    return lambda name: zarr.open_group(zarr.storage.FsspecStore(files, read_only=True, path=""), mode="r")[name][...]


def by_engine(refs, **options):
    dataset = xr.open_dataset(refs, engine="virtualzarr_refs", **options)
    return lambda name: dataset[name].to_numpy()


def by_xarrays_zarr_engine(refs, **options):
    store = vzr.open_refs(refs).to_store(**options)
    dataset = xr.open_dataset(store, engine="zarr", consolidated=False, drop_variables=["names", "record"])
    return lambda name: dataset[name].to_numpy()


def by_dask(refs, **options):
    dataset = xr.open_dataset(refs, engine="virtualzarr_refs", chunks={}, **options)

    def read(name):
        with dask.config.set(scheduler="threads"):
            return dataset[name].to_numpy()

    return read


def by_pickled_engine(refs, **options):
    dataset = pickle.loads(pickle.dumps(xr.open_dataset(refs, engine="virtualzarr_refs", **options)))
    return lambda name: dataset[name].to_numpy()


def by_pickled_store(refs, **options):
    store = pickle.loads(pickle.dumps(vzr.open_refs(refs).to_store(**options)))
    return lambda name: zarr.open_group(store, mode="r")[name][...]


def by_mapper(refs, **options):
    keys = vzr.VirtualFileSystem(refs=refs, **options).get_mapper("")

    def read(name):
        found = [keys.get(f"{name}/c/{i}/0") for i in range(2)]  # None for what is not there
        return np.array([value for value in found if value is not None])

    return read


READERS = [
    by_store, by_zarrs_own_store, by_engine, by_xarrays_zarr_engine, by_dask, by_pickled_engine, by_pickled_store,
    by_mapper,
]  # fmt: skip

same_place_new_time = lambda path: os.utime(path, (1, 1))  # noqa: E731
CHANGES = {
    "other values, same size": lambda path: write_file(path, seed=1),
    "another time": same_place_new_time,
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"more"),
    "cut short": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("reader", READERS)
def test_what_changed_is_refused(reader, path, refs, change):
    read = reader(refs)
    os.utime(path, (2, 2))  # for changes within the resolution of the clock
    change(path)
    for name in ("v", "raw"):
        with pytest.raises(vzr.SourceChangedError) as caught:
            read(name)
        assert caught.value.url == str(path)


@pytest.mark.parametrize("reader", READERS)
def test_what_is_gone_is_refused(reader, path, refs):
    read = reader(refs)
    path.unlink()
    with pytest.raises(vzr.SourceMissingError) as caught:
        read("v")
    assert caught.value.url == str(path)
    assert not isinstance(caught.value, FileNotFoundError | KeyError)


@pytest.mark.parametrize("change", [*CHANGES.values(), os.unlink], ids=[*CHANGES, "gone"])
@pytest.mark.parametrize("reader", READERS)
def test_what_changes_while_it_is_open_is_refused(reader, path, refs, change):
    read = reader(refs)
    before = read("v")
    assert before.size
    change(path)
    with pytest.raises((vzr.SourceChangedError, vzr.SourceMissingError)):
        read("raw" if reader is not by_mapper else "v")


@pytest.mark.parametrize("name", ["names", "record"])
def test_what_zarr_reads_for_the_engine(path, refs, name):
    dataset = xr.open_dataset(refs, engine="virtualzarr_refs")
    write_file(path, seed=1)
    os.utime(path, (1, 1))
    with pytest.raises(vzr.SourceChangedError):
        dataset[name].to_numpy()


@pytest.mark.parametrize("on_change", ["warn", "ignore"])
@pytest.mark.parametrize("reader", [by_store, by_engine, by_dask, by_pickled_engine, by_zarrs_own_store])
def test_it_is_read_on_request(reader, path, refs, on_change):
    expected = h5py.File(write_file(path, seed=1))["v"][...]
    os.utime(path, (1, 1))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", vzr.SourceChangedWarning)
        np.testing.assert_array_equal(reader(refs, on_change=on_change)("v"), expected)
    assert {each.category for each in told} == ({vzr.SourceChangedWarning} if on_change == "warn" else set())


def test_other_words_are_refused(refs):
    with pytest.raises(ValueError, match="on_change"):
        vzr.open_refs(refs).to_store(on_change="raise")


def test_threads(path, refs):
    dataset = xr.open_dataset(refs, engine="virtualzarr_refs")
    same_place_new_time(path)
    with ThreadPoolExecutor(8) as threads:
        outcomes = [threads.submit(lambda i=i: dataset.v[i].to_numpy()) for i in range(STEPS)]
    assert all(isinstance(outcome.exception(), vzr.SourceChangedError) for outcome in outcomes)


def test_only_the_file_that_changed_is_refused(tmp_path):
    paths = [Recipe(start=4 * n).write(tmp_path / f"{n}.nc") for n in range(3)]
    whole = vzr.concat(map(vzr.scan, paths), "time")
    same_place_new_time(paths[1])
    dataset = whole.to_xarray()
    assert np.isfinite(dataset.v[:4].to_numpy()).all()
    assert np.isfinite(dataset.v[8:].to_numpy()).all()
    with pytest.raises(vzr.SourceChangedError) as caught:
        dataset.v[4:8].to_numpy()
    assert caught.value.url == str(paths[1])


def test_coordinates_of_a_changed_file_are_not_put_together(tmp_path):
    paths = [Recipe(start=4 * n).write(tmp_path / f"{n}.nc") for n in range(2)]
    groups = [vzr.scan(path) for path in paths]
    same_place_new_time(paths[1])
    for combine in (lambda: vzr.concat(groups, "time"), lambda: vzr.combine_by_coords(groups)):
        with pytest.raises(vzr.SourceChangedError):
            combine()


def test_a_file_on_a_server(server, tmp_path):
    server.files["/a.h5"] = write_file(tmp_path / "a.h5").read_bytes()
    group = vzr.scan(f"{server.url}/a.h5")
    server.files["/a.h5"] = write_file(tmp_path / "a.h5", seed=1).read_bytes()
    with pytest.raises(vzr.SourceChangedError):
        group.to_xarray().v.load()
    del server.files["/a.h5"]
    with pytest.raises(vzr.SourceMissingError):
        group.to_xarray().v.load()


def test_a_file_in_another_filesystem(tmp_path):
    data = write_file(tmp_path / "a.h5").read_bytes()
    files = fsspec.filesystem("memory")
    files.pipe_file("/changing.h5", data)
    group = vzr.scan("memory://changing.h5")
    files.pipe_file("/changing.h5", data[:-100])
    with pytest.raises(vzr.SourceChangedError):
        group.to_xarray().v.load()


def test_cutting_a_mapped_file_short_ends_no_process(path, refs):
    code = (
        "import os, sys, virtualzarr_refs as vzr, xarray as xr\n"
        f"dataset = xr.open_dataset({refs!r}, engine='virtualzarr_refs')\n"
        f"dataset.raw.load(); os.truncate({str(path)!r}, 0)\n"
        "try: dataset.v.load()\n"
        "except vzr.SourceChangedError: print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603  ours
    assert done.stdout.strip() == "refused"
