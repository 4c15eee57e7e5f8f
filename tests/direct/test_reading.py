"""The direct reader against zarr and NumPy, on arrays of all kinds."""

import itertools
import tempfile
import threading
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numcodecs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import virtualzarr_refs as vzr
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RectilinearGrid, RegularGrid
from virtualzarr_refs.data_types import encode_data_type, encode_scalar
from virtualzarr_refs.direct import boxes, fetching, reading
from virtualzarr_refs.errors import DecodeError, SourceChangedError, SourceTruncatedError
from virtualzarr_refs.lazy_array import LazyArray
from virtualzarr_refs.manifest import InlineChunk, Manifest, VirtualChunk


def shuffled(data, size):
    return np.frombuffer(data, np.uint8).reshape(-1, size).T.tobytes()


ENCODERS = {
    "numcodecs.zlib": ({"level": 1}, lambda data: zlib.compress(data, 1)),
    "numcodecs.fletcher32": ({}, lambda data: bytes(numcodecs.Fletcher32().encode(data))),
    "zstd": ({"level": 0, "checksum": False}, lambda data: numcodecs.Zstd(0).encode(data)),
    "gzip": ({"level": 1}, lambda data: bytes(numcodecs.GZip(1).encode(data))),
    "blosc": (
        {"typesize": 1, "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0},
        lambda data: bytes(numcodecs.Blosc().encode(np.frombuffer(data, np.uint8))),
    ),
}
PIPELINES = [
    (),
    ("numcodecs.zlib",),
    ("numcodecs.shuffle",),
    ("numcodecs.shuffle", "numcodecs.zlib"),
    ("numcodecs.shuffle", "numcodecs.zlib", "numcodecs.fletcher32"),
    ("numcodecs.fletcher32", "numcodecs.zlib"),
    ("numcodecs.zlib", "numcodecs.zlib"),
    ("zstd",),
    ("blosc",),
    ("gzip",),
    ("transpose", "numcodecs.zlib"),
]


@dataclass
class Pipeline:
    """Codecs, and their encoders."""

    names: tuple[str, ...]
    endian: str | None
    dtype: np.dtype

    def members(self, rank):
        order = (
            {"name": "bytes"} if self.endian is None else {"name": "bytes", "configuration": {"endian": self.endian}}
        )
        members = [order]
        for name in self.names:
            if name == "transpose":
                members.insert(0, {"name": name, "configuration": {"order": [*range(rank)][::-1]}})
            elif name == "numcodecs.shuffle":
                members.append({"name": name, "configuration": {"elementsize": self.dtype.itemsize}})
            else:
                members.append({"name": name, "configuration": ENCODERS[name][0]})
        return tuple(members)

    def encode(self, chunk):
        if "transpose" in self.names:
            chunk = chunk.T
        data = chunk.astype(self.dtype.newbyteorder("big" if self.endian == "big" else "little")).tobytes()
        for name in self.names:
            if name == "numcodecs.shuffle":
                data = shuffled(data, self.dtype.itemsize)
            elif name != "transpose":
                data = ENCODERS[name][1](data)
        return data


@st.composite
def grids(draw):
    shape = tuple(draw(st.lists(st.integers(0, 11), max_size=3)))
    if draw(st.booleans()):
        return RegularGrid(shape, tuple(draw(st.integers(1, max(1, n + 2))) for n in shape))
    edges = []
    for size in shape:
        lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
        lengths.append(max(1, size - sum(lengths) + draw(st.integers(0, 2))))
        edges.append(tuple(lengths))
    return RectilinearGrid(shape, tuple(edges))


@st.composite
def selections(draw, shape):
    return tuple(draw(_selectors(size)) for size in shape)


def _selectors(size):
    ends = st.none() | st.integers(-size - 2, size + 2)
    choices = [st.builds(slice, ends, ends, st.none() | st.integers(1, size + 2))]
    if size:
        inside = st.integers(-size, size - 1)
        choices += [inside, st.lists(inside, max_size=6).map(lambda values: np.array(values, np.intp))]
    return st.one_of(choices)


DTYPES = ["i1", "u2", "i4", "u8", "f4", "f8", "c8", "?", "M8[s]", "S3", "U2"]


@st.composite
def cases(draw):
    grid = draw(grids())
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    numbers = rng.integers(0, 120, grid.shape)
    values = np.asarray(
        numbers % 2 == 0 if dtype.kind == "b" else numbers.astype("U2" if dtype.kind in "SU" else dtype)
    )
    values = values.astype(dtype)
    endians = ["little", "big"] if dtype.itemsize > 1 and dtype.kind != "S" else [None]
    pipelines = [
        Pipeline(draw(st.sampled_from(PIPELINES)), draw(st.sampled_from(endians)), dtype)
        for _ in range(draw(st.integers(1, 3)))
    ]
    kinds = draw(st.lists(st.sampled_from(["here", "elsewhere", "inline", "missing"]), min_size=1, max_size=5))
    order = draw(st.booleans())
    return Case(grid, values, pipelines, kinds, order), draw(selections(grid.shape))


@dataclass
class Case:
    """An array that is to be stored."""

    grid: Any
    values: Any
    pipelines: list[Pipeline]
    kinds: list[str]
    is_reversed: bool = False

    def stored(self, folder):
        """The array, its chunks in two files and inline, and the values that it has."""
        expected = np.full(self.values.shape, self.fill, self.values.dtype)
        files = {"here": bytearray(b"head"), "elsewhere": bytearray()}
        chunks, variants = {}, np.zeros(self.grid.grid_shape, np.uint16)
        indexes = list(itertools.product(*map(range, self.grid.grid_shape)))
        for i, index in enumerate(reversed(indexes) if self.is_reversed else indexes):
            kind, variant = self.kinds[i % len(self.kinds)], i % len(self.pipelines)
            where, chunk = self._chunk(index)
            data = self.pipelines[variant].encode(chunk)
            variants[index] = variant
            if kind == "missing":
                continue
            expected[where] = self.values[where]
            if kind == "inline":
                chunks[index] = InlineChunk(data)
                continue
            chunks[index] = VirtualChunk(str(folder / kind), ByteRange(len(files[kind]), len(data)))
            files[kind] += data + b"x" * (i % 3)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        return self._array(chunks, variants), expected

    @property
    def fill(self):
        return np.ones((), self.values.dtype)[()]

    def _array(self, chunks, variants):
        manifest = Manifest.from_chunks(self.grid.grid_shape, chunks)
        rank = self.values.ndim
        codecs = self.pipelines[0].members(rank)
        if len(self.pipelines) > 1:
            members = [{"codecs": list(pipeline.members(rank))} for pipeline in self.pipelines]
            codecs = ({"name": "virtualzarr_refs.mixed", "configuration": {"variants": members}},)
            columns = (manifest.urls, manifest.url_id, manifest.offset, manifest.length, variants)
            manifest = Manifest(*columns, inline=manifest.inline)
        dtype = self.values.dtype
        data_type, fill = encode_data_type(dtype), encode_scalar(self.fill, dtype)
        return vzr.VirtualArray(vzr.ArrayMetadata(data_type, self.grid, fill, codecs), manifest)

    def _chunk(self, index):
        """Where a chunk lies in the array, and the whole of it, padded."""
        lengths = self.grid.encoded_shape(index)
        starts = []
        for axis, i in enumerate(index):
            edge = self.grid.chunk_shape[axis] if isinstance(self.grid, RegularGrid) else self.grid.edges[axis]
            starts.append(i * edge if isinstance(edge, int) else sum(edge[:i]))
        where = tuple(slice(s, s + n) for s, n in zip(starts, lengths, strict=True))
        part = self.values[where]
        whole = np.full(lengths, self.fill, self.values.dtype)
        whole[tuple(map(slice, part.shape))] = part
        return where, whole


def lazy(array, *, direct=True, backend="auto"):
    reader = LazyArray(array, vzr.VirtualGroup(arrays={"v": array}).to_store(backend=backend), "v", {})
    if not direct:
        reader.__dict__["_direct"] = None
    return reader


def expected_of(values, selection):
    """What a selection takes, axis by axis."""
    for axis, selector in reversed(list(enumerate(selection))):
        values = values[(slice(None),) * axis + (selector,)]
    return values


LIMITS = [(1, 1, 10**9), (10**9, 10**9, 10**9), (10**9, 40, 0), (10**9, 200, 10**9), (0, 1, 0)]


@given(cases(), st.sampled_from(LIMITS), st.sampled_from(["auto", "auto", "fsspec"]))
@settings(max_examples=200)
def test_as_zarr_and_numpy(drawn, limits, backend):
    case, selection = drawn
    small, most, threaded = limits
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(boxes, "SMALL_CHUNK", small),
        patch.object(boxes, "MAX_BOX", most),
        patch.object(reading, "THREADED_CHUNK", threaded),
        patch.object(fetching, "WINDOW_SIZE", most),
    ):
        array, values = case.stored(Path(folder))
        reader = lazy(array, backend=backend)
        assert reader._direct is not None
        read = reader.read(selection)
        expected = expected_of(values, selection)
        assert (read.dtype, read.shape) == (values.dtype, np.shape(expected))
        np.testing.assert_array_equal(read, expected)
        np.testing.assert_array_equal(lazy(array, direct=False).read(selection), expected)


@st.composite
def points(draw, shape):
    """Arrays of positions along each axis, which broadcast."""
    size = draw(st.integers(0, 9))
    rows = draw(st.integers(1, 3))
    shapes = [draw(st.sampled_from([(rows, size), (1, size), (size,), (1, 1)])) for _ in shape]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return tuple(rng.integers(-n, n, of) for n, of in zip(shape, shapes, strict=True))


@given(cases().filter(lambda drawn: drawn[0].values.size and drawn[0].values.ndim), st.data())
def test_points(drawn, data):
    case, _ = drawn
    where = data.draw(points(case.values.shape))
    with tempfile.TemporaryDirectory() as folder:
        array, values = case.stored(Path(folder))
        read = lazy(array).read_points(where)
        assert read.dtype == values.dtype
        np.testing.assert_array_equal(read, values[where])


# ── Faults ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def numbers(*names, shape=(64, 6), chunk_shape=(4, 6), kinds=("here",)):
    """An array of int32 that is stored with these codecs."""
    dtype = np.dtype("i4")
    values = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    return Case(RegularGrid(shape, chunk_shape), values, [Pipeline(names, "little", dtype)], list(kinds))


def replaced(array, index, data, path):
    """The array with one chunk replaced by other bytes, in a file of their own."""
    path.write_bytes(data)
    chunks = {i: array.manifest.chunk(i) for i in array.manifest.indexes()}
    chunks[index] = VirtualChunk(str(path), ByteRange(0, len(data)))
    return vzr.VirtualArray(array.metadata, Manifest.from_chunks(array.manifest.grid_shape, chunks))


LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
LONG = np.zeros(25, "i4").tobytes()

DAMAGE = [
    ((), LONG),
    ((), LONG[:92]),
    (("numcodecs.zlib",), zlib.compress(LONG)),
    (("numcodecs.zlib",), zlib.compress(LONG[:92])),
    (("numcodecs.zlib",), zlib.compress(LONG[:96])[:-3]),
    (("numcodecs.zlib",), b"no stream at all" * 9),
    (("numcodecs.zlib",), zlib.compress(bytes(10**8))),
    (("numcodecs.shuffle", "numcodecs.zlib"), zlib.compress(LONG)),
    (("numcodecs.shuffle", "numcodecs.zlib"), b""),
    (("numcodecs.fletcher32",), bytes(range(100))),
    (("zstd",), numcodecs.Zstd(1).encode(LONG)),
    (("blosc",), numcodecs.Blosc().encode(LONG)),
    (("gzip",), b"\x1f\x8b"),
    (("gzip",), numcodecs.GZip(1).encode(LONG)),
]


@pytest.mark.parametrize("limits", LIMITS[:2], ids=["one by one", "together"])
@pytest.mark.parametrize(
    ("names", "data"), DAMAGE, ids=lambda value: "-".join(value) if isinstance(value, tuple) else ""
)
def test_damaged_chunk(names, data, limits, tmp_path):
    array, values = numbers(*names).stored(tmp_path)
    reader = lazy(replaced(array, (3, 0), data, tmp_path / "damaged"))
    with patch.object(boxes, "SMALL_CHUNK", limits[0]), patch.object(boxes, "MAX_BOX", limits[1]):
        with pytest.raises(DecodeError, match=r"chunk \(3, 0\)|instead of") as caught:
            reader.read((slice(None), slice(None)))
        assert caught.value.node == "v"
        np.testing.assert_array_equal(reader.read((slice(0, 12), slice(None))), values[:12])


@pytest.mark.parametrize("limits", LIMITS[:2], ids=["one by one", "together"])
@pytest.mark.parametrize("names", [(), ("numcodecs.zlib",)])
def test_source_cut_short(names, limits, tmp_path):
    array, _ = numbers(*names).stored(tmp_path)
    path = tmp_path / "here"
    path.write_bytes(path.read_bytes()[:-1])
    with patch.object(boxes, "SMALL_CHUNK", limits[0]), patch.object(boxes, "MAX_BOX", limits[1]):
        errors = []
        for direct in (True, False):
            with pytest.raises(SourceTruncatedError) as caught:
                lazy(array, direct=direct).read((slice(None), slice(None)))
            errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_source_that_changes(tmp_path):
    array, _ = numbers().stored(tmp_path)
    reader = lazy(array)
    reader.read((0, 0))
    path = tmp_path / "here"
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(SourceChangedError):
        reader.read((0, 0))


def test_missing_source(tmp_path):
    array, _ = numbers().stored(tmp_path)
    (tmp_path / "here").unlink()
    with pytest.raises(vzr.SourceError) as caught:
        lazy(array).read((0, 0))
    assert not isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("index", [64, -65])
def test_index_outside(index, tmp_path):
    array, _ = numbers().stored(tmp_path)
    with pytest.raises(IndexError):
        lazy(array).read((np.array([0, index]), slice(None)))


def test_variant_that_is_not_there(tmp_path):
    array, _ = numbers("numcodecs.zlib").stored(tmp_path)
    manifest = array.manifest
    variant = np.ones(manifest.grid_shape, np.uint16)
    columns = (manifest.urls, manifest.url_id, manifest.offset, manifest.length, variant)
    codecs = (
        {"name": "virtualzarr_refs.mixed", "configuration": {"variants": [{"codecs": [*array.metadata.codecs]}]}},
    )
    metadata = vzr.ArrayMetadata(array.metadata.data_type, array.metadata.chunk_grid, 0, codecs)
    with pytest.raises(DecodeError, match="variant 1 of 1"):
        lazy(vzr.VirtualArray(metadata, Manifest(*columns))).read((0, 0))


# ── Who reads ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_shards_are_left_to_zarr(tmp_path):
    array, _ = numbers().stored(tmp_path)
    inner = {"codecs": [LITTLE], "index_codecs": [LITTLE], "chunk_shape": [2, 3]}
    codecs = ({"name": "sharding_indexed", "configuration": inner},)
    metadata = vzr.ArrayMetadata(array.metadata.data_type, array.metadata.chunk_grid, 0, codecs)
    assert lazy(vzr.VirtualArray(metadata, array.manifest))._direct is None


def test_many_threads_on_one_reader(tmp_path):
    array, values = numbers("numcodecs.shuffle", "numcodecs.zlib", shape=(400, 60), chunk_shape=(7, 9)).stored(tmp_path)
    reader, wrong = lazy(array), []

    def read(first):
        for start in range(first, 400, 9):
            where = slice(start, start + 31), slice(first, None, 2)
            if not np.array_equal(reader.read(where), values[where]):
                wrong.append(where)

    with patch.object(boxes, "SMALL_CHUNK", 0), patch.object(reading, "THREADED_CHUNK", 0):
        threads = [threading.Thread(target=read, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_bytes_are_not_read_beyond_what_is_asked_for(tmp_path):
    """Only the chunks of a selection are looked at: the others may be damaged."""
    array, values = numbers("numcodecs.zlib").stored(tmp_path)
    damaged = replaced(array, (9, 0), b"damaged", tmp_path / "damaged")
    where = np.array([63, 0, 35, 41]), slice(None)
    np.testing.assert_array_equal(lazy(damaged).read(where), values[where])
