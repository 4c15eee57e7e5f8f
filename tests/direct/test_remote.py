"""Reading remote chunks: how many requests, when, and what comes of failures."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xarray as xr

import virtualzarr_refs as vzr
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.errors import SourceError, SourceTruncatedError
from virtualzarr_refs.manifest import Manifest, VirtualChunk

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
VALUES = np.arange(1000 * 30, dtype="<i4").reshape(1000, 30)
CHUNK = VALUES[0].nbytes


FAR = 300_000
"""Bytes between two chunks that are too many to be fetched for nothing."""


def dataset(server, gap=0, files=1, **options):
    """A dataset of one row a chunk, dealt out among files, with bytes between them that belong to nobody."""
    values = VALUES[:20] if gap == FAR else VALUES
    names = [f"{server.url}/{number}.bin" for number in range(files)]
    for number, name in enumerate(names):
        content = b"".join(row.tobytes() + bytes(gap) for row in values[number::files])
        server.files[name.removeprefix(server.url)] = content
    chunks = {
        (row, 0): VirtualChunk(names[row % files], ByteRange(row // files * (CHUNK + gap), CHUNK))
        for row in range(len(values))
    }
    grid = RegularGrid(values.shape, (1, 30))
    metadata = vzr.ArrayMetadata("int32", grid, 0, (LITTLE,), dimension_names=("y", "x"))
    array = vzr.VirtualArray(metadata, Manifest.from_chunks(grid.grid_shape, chunks))
    group = vzr.VirtualGroup(arrays={"v": array})
    return xr.open_dataset(group, engine="virtualzarr_refs", cache=False, **options)


@pytest.mark.parametrize("backend", ["fsspec", "obstore"])
def test_neighbours_come_in_few_requests(server, backend):
    read = dataset(server, gap=100, backend=backend)["v"].to_numpy()
    np.testing.assert_array_equal(read, VALUES)
    assert len(server.requests) <= 20


def test_chunks_that_nobody_asked_for_are_not_fetched(server):
    read = dataset(server, gap=FAR)["v"][::2, 3].to_numpy()
    np.testing.assert_array_equal(read, VALUES[:20:2, 3])
    assert len(server.requests) == 10
    assert server.sent("/0.bin") == 10 * CHUNK


@pytest.mark.parametrize("files", [1, 8])
@pytest.mark.parametrize("backend", ["fsspec", "obstore"])
def test_scattered_chunks_come_at_the_same_time(server, backend, files):
    together = threading.Barrier(8, timeout=20)

    def wait_for_the_others(answer):
        together.wait()
        return answer

    data = dataset(server, gap=FAR, files=files, backend=backend)["v"]
    rows = np.arange(8) * 2
    server.spoil = wait_for_the_others
    np.testing.assert_array_equal(data[rows].to_numpy(), VALUES[rows])


def test_the_next_window_is_on_its_way_while_one_is_decoded(server, monkeypatch):
    monkeypatch.setattr("virtualzarr_refs.direct.fetching.WINDOW_SIZE", 100 * CHUNK)
    monkeypatch.setattr("virtualzarr_refs.direct.boxes.MAX_BOX", 50 * CHUNK)
    read = dataset(server, gap=10)["v"].to_numpy()
    np.testing.assert_array_equal(read, VALUES)
    assert len(server.requests) == 10


def test_many_threads_on_one_dataset(server):
    data = dataset(server, gap=50, files=3)["v"]
    rows = [slice(start, start + 90) for start in range(0, 900, 30)]
    with ThreadPoolExecutor(8) as threads:
        for where, read in zip(rows, threads.map(lambda where: data[where].to_numpy(), rows), strict=True):
            np.testing.assert_array_equal(read, VALUES[where])


def test_points(server):
    data = dataset(server, gap=FAR)["v"]
    rows, columns = xr.DataArray([5, 19, 11, 5]), xr.DataArray([0, 3, 29, 1])
    np.testing.assert_array_equal(data[rows, columns].to_numpy(), VALUES[rows.data, columns.data])
    assert len(server.requests) == 3


@pytest.mark.parametrize("backend", ["fsspec", "obstore"])
@pytest.mark.parametrize("number", [0, 1, 5])
def test_a_failure_on_the_way_is_no_value(server, backend, number):
    options = {"retry_config": {"max_retries": 0}} if backend == "obstore" else {}
    data = dataset(server, gap=FAR, backend=backend, storage_options=options)["v"]
    left = [number]

    def fail_later(answer):
        left[0] -= 1
        return answer if left[0] >= 0 else answer._replace(status=500)

    server.spoil = fail_later
    with pytest.raises(SourceError) as caught:
        data[::2].to_numpy()
    assert caught.value.url == f"{server.url}/0.bin"


def test_a_file_cut_short_is_no_value(server):
    data = dataset(server)["v"]
    server.files["/0.bin"] = server.files["/0.bin"][:-1]
    with pytest.raises(SourceTruncatedError) as caught:
        data.to_numpy()
    assert caught.value.offset == 999 * CHUNK


def with_coordinates(server, lengths=(8, 8, 8)):
    """Three coordinates, each of one chunk; the lengths are what the references say, in bytes."""
    server.files["/c.bin"] = np.arange(3, dtype="<i8").tobytes()
    arrays = {}
    for number, (name, length) in enumerate(zip("abc", lengths, strict=True)):
        chunks = {(0,): VirtualChunk(f"{server.url}/c.bin", ByteRange(8 * number, length))}
        metadata = vzr.ArrayMetadata("int64", RegularGrid((1,), (1,)), 0, (LITTLE,), dimension_names=(name,))
        arrays[name] = vzr.VirtualArray(metadata, Manifest.from_chunks((1,), chunks))
    return vzr.VirtualGroup(arrays=arrays)


def test_opening_fetches_all_coordinates_at_once(server):
    opened = xr.open_dataset(with_coordinates(server), engine="virtualzarr_refs", cache=False)
    assert [opened[name].item() for name in "abc"] == [0, 1, 2]
    assert len(server.requests) == 1


def test_a_broken_coordinate_spoils_no_other(server):
    group = with_coordinates(server, lengths=(8, 8, 9))
    opened = xr.open_dataset(group, engine="virtualzarr_refs", cache=False, drop_variables="c")
    assert [opened[name].item() for name in "ab"] == [0, 1]
    with pytest.raises(SourceTruncatedError) as caught:
        xr.open_dataset(group, engine="virtualzarr_refs", cache=False)
    assert caught.value.offset == 16
