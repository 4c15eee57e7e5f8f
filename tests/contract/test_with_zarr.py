"""Reading hierarchies with zarr, as a user would, through each thing that serves them."""

import gzip
import threading
import zlib
from contextlib import contextmanager
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
import zarr
from zarr.storage import FsspecStore

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RectilinearGrid, RegularGrid
from virtualzarr_refs.errors import SourceError
from virtualzarr_refs.filesystem import VirtualFileSystem
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import InlineChunk, Manifest, VirtualChunk
from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata
from virtualzarr_refs.sources import SourcePool
from virtualzarr_refs.store import VirtualStore

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
GZIP = {"name": "gzip", "configuration": {"level": 5}}
ZLIB = {"name": "numcodecs.zlib", "configuration": {"level": 1}}

OPENERS = {
    "store": VirtualStore,
    "fsspec store": lambda group, **options: FsspecStore(
        VirtualFileSystem(group, asynchronous=True, **options), read_only=True, path=""
    ),
    "mapper": lambda group, **options: VirtualFileSystem(group, **options).get_mapper(),
}


@pytest.fixture(params=OPENERS)
def opened(request, options):
    """Opens a hierarchy with zarr."""
    return lambda group: zarr.open_group(OPENERS[request.param](group, **options), mode="r")


@pytest.fixture(params=["BatchedCodecPipeline", "FusedCodecPipeline"], autouse=True)
def pipeline(request):
    with zarr.config.set({"codec_pipeline.path": f"zarr.core.codec_pipeline.{request.param}"}):
        yield


class Archive:
    """Files of chunks, and references to them."""

    def __init__(self, folder):
        self.folder = folder

    def array(self, values, grid, codecs, encode, *, data_type=None, fill_value=0, missing=(), inline=()):
        """Store an array chunk by chunk in one file, padded as HDF5 pads; every chunk 7 bytes after the last."""
        path = self.folder / f"{len(list(self.folder.iterdir()))}.bin"
        data, chunks = bytearray(b"head"), {}
        for index in product(*map(range, grid.grid_shape)):
            stored = encode(_chunk(values, grid, index, fill_value))
            if index in inline:
                chunks[index] = InlineChunk(stored)
            elif index not in missing:
                chunks[index] = VirtualChunk(str(path), ByteRange(len(data), len(stored)))
                data += stored + b"between"
        path.write_bytes(data)
        names = tuple(f"d{i}" for i in range(values.ndim)) or None
        metadata = ArrayMetadata(
            data_type or values.dtype.name, grid, fill_value, tuple(codecs), {"units": "m"}, dimension_names=names
        )
        return VirtualArray(metadata, Manifest.from_chunks(grid.grid_shape, chunks))

    def shard(self, values, chunk_shape):
        """Let zarr write one shard, and refer to it as a whole."""
        written = zarr.create_array(
            self.folder / "shard.zarr", shape=values.shape, shards=values.shape, chunks=chunk_shape, dtype=values.dtype
        )
        written[:] = values
        (path,) = (path for path in (self.folder / "shard.zarr" / "c").rglob("*") if path.is_file())
        document = written.metadata.to_dict()
        grid = RegularGrid(values.shape, values.shape)
        chunk = VirtualChunk(str(path), ByteRange(0, path.stat().st_size))
        metadata = ArrayMetadata(values.dtype.name, grid, 0, tuple(document["codecs"]))
        return VirtualArray(metadata, Manifest.from_chunks(grid.grid_shape, {(0,) * values.ndim: chunk}))

    def clear(self):
        for path in self.folder.rglob("*"):
            if path.is_file():
                path.unlink()


def _chunk(values, grid, index, fill_value):
    lengths = [[grid.encoded_shape((0,) * axis + (i,) + (0,) * (values.ndim - axis - 1))[axis] for i in range(n)]
               for axis, n in enumerate(grid.grid_shape)]  # fmt: skip
    starts = [sum(lengths[axis][:i]) for axis, i in enumerate(index)]
    part = values[tuple(slice(s, s + lengths[axis][i]) for axis, (s, i) in enumerate(zip(starts, index, strict=True)))]
    whole = np.full(grid.encoded_shape(index), fill_value, values.dtype)
    whole[tuple(map(slice, part.shape))] = part
    return whole


@pytest.fixture
def archive(tmp_path):
    return Archive(tmp_path)


def little(chunk):
    return chunk.astype(chunk.dtype.newbyteorder("<")).tobytes()


def big(chunk):
    return chunk.astype(chunk.dtype.newbyteorder(">")).tobytes()


def numbers(shape, dtype):
    return np.random.default_rng(1).integers(1, 100, shape).astype(dtype)


GRID = RegularGrid((10, 7), (4, 3))
ROWS = RectilinearGrid((10, 7), ((1, 2, 2, 5), 3))
CASES = {
    "little": (GRID, [LITTLE], little),
    "big": (GRID, [BIG], big),
    "gzip": (GRID, [BIG, GZIP], lambda chunk: gzip.compress(big(chunk))),
    "zlib": (GRID, [LITTLE, ZLIB], lambda chunk: zlib.compress(little(chunk))),
    "rectilinear": (ROWS, [LITTLE], little),
    "rectilinear zlib": (ROWS, [BIG, ZLIB], lambda chunk: zlib.compress(big(chunk))),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["int16", "float64"])
@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
def test_arrays(opened, archive, case, dtype):
    values = numbers((10, 7), dtype)
    array = opened(VirtualGroup(arrays={"a": archive.array(values, *CASES[case])}))["a"]
    assert array.dtype == values.dtype
    np.testing.assert_array_equal(array[:], values)
    np.testing.assert_array_equal(array[3:9:2, 5], values[3:9:2, 5])
    assert array[9, 6] == values[9, 6]


def test_missing_and_inline_chunks(opened, archive):
    values = numbers((10, 7), "int32")
    stored = archive.array(values, GRID, [LITTLE], little, fill_value=-1, missing={(0, 1), (2, 2)}, inline={(1, 0)})
    expected = values.copy()
    expected[:4, 3:6] = expected[8:, 6:] = -1
    np.testing.assert_array_equal(opened(VirtualGroup(arrays={"a": stored}))["a"][:], expected)


def test_scalars(opened, archive):
    group = VirtualGroup(arrays={"a": archive.array(numbers((), "float32"), RegularGrid((), ()), [BIG], big)})
    assert opened(group)["a"][()] == numbers((), "float32")


def test_shards(opened, archive):
    values = numbers((12, 10), "int32")
    array = opened(VirtualGroup(arrays={"a": archive.shard(values, (3, 5))}))["a"]
    np.testing.assert_array_equal(array[:], values)
    np.testing.assert_array_equal(array[2:7, 4:6], values[2:7, 4:6])


def test_groups(opened, archive):
    leaf = archive.array(numbers((10, 7), "int8"), GRID, [LITTLE], little)
    inner = VirtualGroup(GroupMetadata({"level": 2}), arrays={"leaf": leaf}, groups={"void": VirtualGroup()})
    root = opened(VirtualGroup(GroupMetadata({"level": 1}), groups={"inner": inner}))
    assert dict(root.attrs) == {"level": 1}
    assert dict(root["inner"].attrs) == {"level": 2}
    assert dict(root["inner/leaf"].attrs) == {"units": "m"}
    assert root["inner/leaf"].metadata.dimension_names == ("d0", "d1")
    assert sorted(name for name, _ in root.members(max_depth=None)) == ["inner", "inner/leaf", "inner/void"]
    assert list(root["inner"].array_keys()) == ["leaf"]
    assert list(root["inner"].group_keys()) == ["void"]
    assert "nowhere" not in root
    assert root["inner/leaf"].nchunks_initialized == 9


def test_sizes_are_known_without_reading(opened, archive):
    array = archive.array(numbers((10, 7), "int8"), GRID, [LITTLE], little, missing={(0, 0)})
    archive.clear()
    opened_array = opened(VirtualGroup(arrays={"a": array}))["a"]
    document = len(array.resolve("zarr.json").parts[0])
    assert opened_array.nbytes_stored() == 8 * 12 + document


def test_writing_is_refused(opened, archive):
    array = opened(VirtualGroup(arrays={"a": archive.array(numbers((10, 7), "int8"), GRID, [LITTLE], little)}))["a"]
    with pytest.raises((ValueError, NotImplementedError), match=r"read-only|cannot be written"):
        array[:] = 0


@contextmanager
def fails_to_read():
    """What is read raises SourceError, which zarr puts into a group of exceptions where it gathers ranges."""
    with pytest.raises((SourceError, ExceptionGroup)) as caught:
        yield
    error = caught.value
    assert isinstance(error.exceptions[0] if isinstance(error, ExceptionGroup) else error, SourceError)


@pytest.mark.parametrize("selection", [np.s_[:], np.s_[3:5, 2:4], np.s_[9, 6]])
@pytest.mark.parametrize("form", ["plain", "rectilinear", "shard"])
def test_a_missing_source_is_an_error_and_never_fill_values(opened, archive, form, selection):
    values = numbers((10, 8), "float32")
    array = {
        "plain": lambda: archive.array(values, RegularGrid((10, 8), (4, 3)), [LITTLE], little, fill_value="NaN"),
        "rectilinear": lambda: archive.array(values, RectilinearGrid((10, 8), ((1, 9), 8)), [LITTLE], little),
        "shard": lambda: archive.shard(values, (5, 4)),
    }
    group = VirtualGroup(arrays={"a": array[form]()})
    archive.clear()
    with fails_to_read():
        opened(group)["a"][selection]


def test_a_shard_whose_source_goes_away_between_index_and_data(opened, archive):
    values = numbers((10, 8), "float32")
    array = opened(VirtualGroup(arrays={"a": archive.shard(values, (5, 4))}))["a"]
    read, count = SourcePool.read, iter(range(100))

    def clear_before_the_second_read(pool, url, ranges):
        if next(count) == 1:
            archive.clear()
        return read(pool, url, ranges)

    with patch.object(SourcePool, "read", clear_before_the_second_read), fails_to_read():
        array[:3, :3]


def test_threads_that_read_one_array(opened, archive):
    values = numbers((10, 7), "int32")
    array = opened(VirtualGroup(arrays={"a": archive.array(values, ROWS, [LITTLE], little)}))["a"]
    wrong = []

    def read():
        wrong.extend(row for row in range(10) if not np.array_equal(array[row], values[row]))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
