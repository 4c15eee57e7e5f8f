"""Whatever h5py writes, its references read as h5py does: types, layouts, filters, edges, fills, sizes, masks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from numcodecs.checksum32 import jenkins_lookup3

from tests.scanners.hdf5.comparison import assert_reads_as_h5py, opened, reasons, scan

LIBVERS = ["earliest", "v110", "latest"]
NEVER, ALLOC, IFSET = h5d.FILL_TIME_NEVER, h5d.FILL_TIME_ALLOC, h5d.FILL_TIME_IFSET

# ── A dataset, and how it is written ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Recipe:
    """How a dataset comes to be: created, written in places, resized, written again."""

    dtype: np.dtype
    shape: tuple[int, ...]
    chunks: tuple[int, ...] | None = None
    max_shape: tuple[int | None, ...] | None = None
    libver: str = "earliest"
    filters: tuple[str, ...] = ()
    fill_value: Any = None
    fill_time: int = IFSET
    early: bool = False
    compact: bool = False
    tracked: bool = False
    written: tuple[tuple[slice, ...], ...] = ((),)
    resized: tuple[tuple[int, ...], ...] = ()
    seed: int = 0

    def create(self, file: h5py.File) -> h5py.Dataset:
        properties = self.properties()
        limits = tuple(h5s.UNLIMITED if n is None else n for n in self.max_shape or self.shape)
        space = h5s.create_simple(self.shape, limits)
        type_ = h5t.py_create(self.dtype, logical=True)
        try:
            return h5py.Dataset(h5d.create(file.id, b"x", type_, space, properties))
        except (ValueError, RuntimeError):  # a filter does not take chunks of this type or size
            reject()

    def properties(self) -> h5p.PropDCID:
        properties = h5p.create(h5p.DATASET_CREATE)
        properties.set_fill_time(self.fill_time)
        properties.set_obj_track_times(self.tracked)
        if self.tracked:  # longer messages in the header
            properties.set_attr_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
        if self.fill_value is not None:
            properties.set_fill_value(np.asarray(self.fill_value, self.dtype))
        if self.chunks is not None:
            properties.set_chunk(self.chunks)
        if self.compact:
            properties.set_layout(h5d.COMPACT)
        elif self.early:
            properties.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        for name in self.filters:
            FILTERS[name](properties)
        return properties

    def write(self, path: Path) -> None:
        rng = np.random.default_rng(self.seed)
        with h5py.File(path, "w", libver=self.libver) as file:
            dataset = self.create(file)
            for region in self.written:
                dataset[region] = noise(rng, dataset[region].shape, self.dtype)
            for shape in self.resized:
                dataset.resize(shape)
                corner = tuple(slice(n // 2, None) for n in shape)
                dataset[corner] = noise(rng, dataset[corner].shape, self.dtype)


def noise(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Values of every kind, with long runs so that compressors find something to do."""
    count = math.prod(shape)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "S":
        return np.array([b"ab"[: i % 3] for i in range(count)], dtype).reshape(shape)
    if dtype.names:
        values = np.zeros(shape, dtype)
        for name in dtype.names:
            values[name] = noise(rng, shape, dtype[name])
        return values
    smooth = np.repeat(rng.integers(0, 100, -(-count // 4)), 4)[:count].astype(dtype)
    wild = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype)
    return np.where(rng.random(count) < rng.choice([0, 0.5, 1]), wild, smooth).reshape(shape)


def plugin(settings: Mapping[str, Any], flags: int = h5z.FLAG_OPTIONAL) -> Callable[[h5p.PropDCID], None]:
    number, values = settings["compression"], settings["compression_opts"]
    return lambda properties: properties.set_filter(number, flags, values)


FILTERS: Mapping[str, Callable[[h5p.PropDCID], None]] = {
    "gzip": lambda p: p.set_deflate(6),
    "shuffle": lambda p: p.set_shuffle(),
    "fletcher32": lambda p: p.set_fletcher32(),
    "lzf": lambda p: p.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL),
    "szip": lambda p: p.set_szip(h5z.SZIP_NN_OPTION_MASK, 8),
    "scaleoffset": lambda p: p.set_scaleoffset(h5z.SO_INT, 0),
    "scaleoffset-float": lambda p: p.set_scaleoffset(h5z.SO_FLOAT_DSCALE, 3),
    "nbit": lambda p: p.set_filter(h5z.FILTER_NBIT, h5z.FLAG_OPTIONAL),
    "bzip2": plugin(hdf5plugin.BZip2()),
    "lz4": plugin(hdf5plugin.LZ4()),
    "zstd": plugin(hdf5plugin.Zstd()),
    "blosc-lz4": plugin(hdf5plugin.Blosc(cname="lz4")),
    "blosc-zlib-bits": plugin(hdf5plugin.Blosc(cname="zlib", shuffle=hdf5plugin.Blosc.BITSHUFFLE)),
    "blosc2": plugin(hdf5plugin.Blosc2()),
    "bitshuffle": plugin(hdf5plugin.Bitshuffle()),
    "bitshuffle-zstd": plugin(hdf5plugin.Bitshuffle(cname="zstd")),
    "zfp": plugin(hdf5plugin.Zfp(accuracy=0.1)),
    "zfp-reversible": plugin(hdf5plugin.Zfp(reversible=True)),
}
LOSSY = {"scaleoffset-float", "zfp", "zfp-reversible"}
BLOSC = {"blosc-lz4", "blosc-zlib-bits", "blosc2"}
GENERAL = sorted(FILTERS.keys() - LOSSY - BLOSC - {"scaleoffset", "nbit", "szip"})

DTYPES = [
    *map(np.dtype, "|b1 |i1 |u1 <i2 >u2 <u4 >i4 <i8 >u8 <f2 >f2 <f4 >f4 <f8 >f8 <c8 >c16 |S1 |S3 |V5".split()),
    np.dtype([("a", "<i2"), ("b", "<f4")]),
    np.dtype({"names": ["b", "a"], "formats": ["S2", ">i4"], "offsets": [6, 0], "itemsize": 9}),
]

# ── Strategies ───────────────────────────────────────────────────────────────────────────────────────────────────────


def fill_values(dtype: np.dtype) -> st.SearchStrategy[Any]:
    """Nothing, or a value; those that are easily lost on the way through JSON among them."""
    special: dict[str, list[Any]] = {
        "f": [math.nan, -0.0, math.inf, -math.inf, 1.5],
        "c": [complex(math.nan, -0.0), 1j],
        "u": [0, 1, np.iinfo(dtype).max if dtype.kind == "u" else 0],
        "i": [-1, np.iinfo(dtype).min if dtype.kind == "i" else 0],
        "b": [True],
        "S": [b"", b"z"],
    }
    if dtype.names:
        return st.sampled_from([None, np.frombuffer(bytes(range(65, 65 + dtype.itemsize)), dtype)[0]])
    if dtype.kind == "V":
        return st.sampled_from([None, np.void(b"fill!")])
    return st.sampled_from([None, *special[dtype.kind]])


def pipelines(dtype: np.dtype) -> st.SearchStrategy[tuple[str, ...]]:
    """Up to three filters in any order, but for those that only make sense, or only work, as the first."""
    firsts = [None, *sorted(BLOSC)]
    if dtype.kind in "iu":
        firsts += ["scaleoffset", "nbit", "szip"]
    if dtype.kind == "f" and dtype.itemsize >= 4:
        firsts += ["nbit", "szip", *sorted(LOSSY)]
    first = st.sampled_from(firsts)
    rest = st.lists(st.sampled_from(GENERAL), max_size=2, unique_by=lambda name: name.partition("-")[0])
    return st.tuples(first, rest).map(lambda both: tuple(filter(None, (both[0], *both[1]))))


def slices(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[slice, ...]]:
    return st.tuples(*(st.tuples(st.integers(0, n), st.integers(0, n)).map(sorted) for n in shape)).map(
        lambda bounds: tuple(slice(*pair) for pair in bounds)
    )


@st.composite
def chunked(draw: st.DrawFn) -> Recipe:
    dtype = draw(st.sampled_from(DTYPES))
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    limits = tuple(draw(st.sampled_from([n, n + 4, None])) for n in shape)
    chunks = tuple(draw(st.integers(1, 12 if limit is None else limit)) for limit in limits)
    allowed = st.tuples(*(st.integers(1, limit or 14) for limit in limits))
    resized = tuple(draw(st.lists(allowed, max_size=2)))
    filters = draw(pipelines(dtype))
    return Recipe(
        dtype=dtype,
        shape=shape,
        chunks=chunks,
        max_shape=limits,
        libver=draw(st.sampled_from(LIBVERS)),
        filters=filters,
        fill_value=draw(fill_values(dtype)),
        fill_time=draw(st.sampled_from([IFSET, ALLOC, NEVER])),
        early=draw(st.booleans()),
        tracked=draw(st.booleans()),
        written=tuple(draw(st.lists(slices(shape), max_size=3))),
        resized=resized,
        seed=draw(st.integers(0, 3)),
    )


@st.composite
def unchunked(draw: st.DrawFn) -> Recipe:
    dtype = draw(st.sampled_from(DTYPES))
    shape = tuple(draw(st.lists(st.integers(0, 9), max_size=3)))
    compact = draw(st.booleans())
    return Recipe(
        dtype=dtype,
        shape=shape,
        libver=draw(st.sampled_from(LIBVERS)),
        fill_value=draw(fill_values(dtype)),
        fill_time=draw(st.sampled_from([IFSET, ALLOC, NEVER])),
        early=draw(st.booleans()),
        compact=compact,
        written=tuple(draw(st.lists(slices(shape), max_size=2))) if all(shape) else (),
        seed=draw(st.integers(0, 3)),
    )


EXAMPLES = settings(derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@settings(EXAMPLES, max_examples=700)
@given(recipe=chunked())
def test_chunked(recipe, tmp_path):
    recipe.write(tmp_path / "x.h5")
    assert_reads_as_h5py(tmp_path / "x.h5")


@settings(EXAMPLES, max_examples=250)
@given(recipe=unchunked(), target=st.sampled_from([1, 16, 1 << 20]))
def test_unchunked(recipe, target, tmp_path):
    recipe.write(tmp_path / "x.h5")
    assert_reads_as_h5py(tmp_path / "x.h5", target_chunk_size=target)


# ── Chunks of one dataset that went through different filters ────────────────────────────────────────────────────────


def stored_chunk(values: np.ndarray, filters: tuple[str, ...], mask: int) -> tuple[bytes, int]:
    """The bytes of a chunk that went without the filters of a mask, and the mask with those that failed."""
    applied = [i for i in range(len(filters)) if not mask >> i & 1]
    recipe = Recipe(values.dtype, values.shape, values.shape, filters=tuple(filters[i] for i in applied))
    with h5py.File("trial", "w", driver="core", backing_store=False) as file:
        dataset = recipe.create(file)
        dataset[...] = values
        failed, data = dataset.id.read_direct_chunk((0,) * values.ndim)
    return data, mask | sum(1 << i for position, i in enumerate(applied) if failed >> position & 1)


@st.composite
def masked(draw: st.DrawFn) -> tuple[Recipe, tuple[int, ...]]:
    dtype = draw(st.sampled_from(DTYPES))
    filters = draw(pipelines(dtype).filter(bool))
    recipe = Recipe(
        dtype, (70,), (16,), libver=draw(st.sampled_from(LIBVERS)), filters=filters, seed=draw(st.integers(0, 3))
    )
    return recipe, tuple(draw(st.lists(st.integers(0, 2 ** len(filters) - 1), min_size=5, max_size=5)))


@settings(EXAMPLES, max_examples=250)
@given(case=masked())
def test_filter_masks(case, tmp_path):
    recipe, masks = case
    rng = np.random.default_rng(recipe.seed)
    with h5py.File(tmp_path / "x.h5", "w", libver=recipe.libver) as file:
        dataset = recipe.create(file)
        for number, wanted in enumerate(masks):
            data, mask = stored_chunk(noise(rng, (16,), recipe.dtype), recipe.filters, wanted)
            dataset.id.write_direct_chunk((16 * number,), data, mask)
    assert_reads_as_h5py(tmp_path / "x.h5")


# ── Partial chunks at the edges that are left unfiltered ─────────────────────────────────────────────────────────────


def leave_edges_unfiltered(path: Path) -> None:
    """Set the flag of the layout message for which h5py has no call (HDF5 File Format 3.0, IV.A.2.i)."""
    with h5py.File(path) as file:
        address = h5py.h5o.get_info(file["x"].id).addr
    data = bytearray(path.read_bytes())
    header = data[address:]
    assert header[:5] == b"OHDR\2"
    times, width = 16 if header[5] & 32 else 0, 1 << (header[5] & 3)
    start = 6 + times + width
    length = int.from_bytes(header[6 + times : start], "little")
    position = start
    while header[position] != 8:
        position += 4 + int.from_bytes(header[position + 1 : position + 3], "little")
    version, layout_class = header[position + 4 : position + 6]
    assert version in (4, 5)
    assert layout_class == 2
    header[position + 6] |= 1
    checksum = jenkins_lookup3(bytes(header[: start + length]), 0)
    header[start + length : start + length + 4] = checksum.to_bytes(4, "little")
    data[address:] = header
    path.write_bytes(data)


@pytest.mark.parametrize("libver", ["v110", "latest"])
@pytest.mark.parametrize("limits", [(7, 5), (None, 5), (7, None), (None, None)], ids=str)
@pytest.mark.parametrize("filters", [("gzip",), ("shuffle", "lzf"), ("fletcher32",)], ids=str)
def test_unfiltered_edges(limits, filters, libver, tmp_path):
    values = np.arange(35, dtype="<i4").reshape(7, 5)
    recipe = Recipe(values.dtype, (7, 5), (3, 2), limits, libver=libver, filters=filters)
    with h5py.File(tmp_path / "x.h5", "w", libver=libver) as file:
        dataset = recipe.create(file)
        for row, column in np.ndindex(3, 3):
            chunk = np.zeros((3, 2), "<i4")
            part = values[3 * row : 3 * row + 3, 2 * column : 2 * column + 2]
            chunk[: part.shape[0], : part.shape[1]] = part
            data, mask = (chunk.tobytes(), 0) if part.shape != (3, 2) else stored_chunk(chunk, filters, 0)
            dataset.id.write_direct_chunk((3 * row, 2 * column), data, mask)
    leave_edges_unfiltered(tmp_path / "x.h5")
    group = assert_reads_as_h5py(tmp_path / "x.h5")
    assert opened(group)["x"][...].tolist() == values.tolist()


# ── Many chunks, and none ────────────────────────────────────────────────────────────────────────────────────────────

MANY = {
    "B-tree of several levels": ("earliest", (400,), (None,)),
    "fixed array of pages": ("latest", (1100,), (1100,)),
    "fixed array with room": ("latest", (30, 10), (60, 20)),
    "extensible array": ("latest", (700,), (None,)),
    "extensible array, second axis": ("latest", (3, 200), (4, None)),
    "extensible array, middle axis": ("latest", (2, 100, 2), (3, None, 2)),
    "version 2 B-tree": ("latest", (25, 25), (None, None)),
}


@pytest.mark.parametrize("filters", [(), ("gzip",)], ids=str)
@pytest.mark.parametrize("kind", MANY)
def test_many_chunks(kind, filters, tmp_path):
    libver, shape, limits = MANY[kind]
    dtype, ones = np.dtype("<i4"), (1,) * len(shape)
    Recipe(dtype, shape, ones, limits, libver, filters).write(tmp_path / "x.h5")
    assert_reads_as_h5py(tmp_path / "x.h5")


GIANTS = {
    "contiguous": ((2**60,), None, None),
    "contiguous, of prime length": ((2**61 - 1,), None, None),
    "contiguous, of two axes": ((2**31, 2**29), None, None),
    "chunked": ((2**61,), (None,), (1024,)),
    "of many axes": ((1,) * 32, None, None),
    "of many axes, chunked": ((2,) * 3 + (1,) * 29, None, (1,) * 32),
}


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("kind", GIANTS)
def test_never_written(kind, libver, tmp_path):
    shape, limits, chunks = GIANTS[kind]
    with h5py.File(tmp_path / "x.h5", "w", libver=libver) as file:
        Recipe(np.dtype("<i4"), shape, chunks, limits, fill_value=7).create(file)
    array = opened(scan(tmp_path / "x.h5", strict=True))["x"]
    assert array.shape == shape
    assert array[tuple(slice(n - 1, n) for n in shape)].tolist() == np.full((1,) * len(shape), 7).tolist()


@pytest.mark.parametrize("shape", [(2**60,), (2**31, 2**31)])
def test_grids_too_large_to_count(shape, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        Recipe(np.dtype("<i4"), shape, (1,) * len(shape)).create(file)
    assert "too large" in reasons(scan(tmp_path / "x.h5"))["x"]


# ── Every filter of hdf5plugin ───────────────────────────────────────────────────────────────────────────────────────

PLUGINS = {
    "bitshuffle": (hdf5plugin.Bitshuffle(), "<i2"),
    "bitshuffle-zstd": (hdf5plugin.Bitshuffle(cname="zstd"), ">f8"),
    **{f"blosc-{name}": (hdf5plugin.Blosc(cname=name), "<i4") for name in "blosclz lz4 lz4hc snappy zlib zstd".split()},
    **{f"blosc2-{name}": (hdf5plugin.Blosc2(cname=name), "<i4") for name in "blosclz lz4 lz4hc zlib zstd".split()},
    "blosc of long elements": (hdf5plugin.Blosc(), "S300"),
    "bzip2": (hdf5plugin.BZip2(), "<u8"),
    "fcidecomp": (hdf5plugin.FciDecomp(), "<u2"),
    "lz4": (hdf5plugin.LZ4(), "<f4"),
    "sperr": (hdf5plugin.Sperr(), "<f4"),
    "sz": (hdf5plugin.SZ(absolute=0.1), "<f4"),
    "sz3": (hdf5plugin.SZ3(absolute=0.1), "<f8"),
    "zfp-accuracy": (hdf5plugin.Zfp(accuracy=0.1), "<f4"),
    "zfp-precision": (hdf5plugin.Zfp(precision=10), "<f8"),
    "zfp-rate": (hdf5plugin.Zfp(rate=8), "<i4"),
    "zfp-reversible": (hdf5plugin.Zfp(reversible=True), "<i8"),
    "zstd": (hdf5plugin.Zstd(), "<i4"),
    "zstd-fast": (hdf5plugin.Zstd(clevel=-5), "<i4"),
}


@pytest.mark.parametrize("name", PLUGINS)
def test_plugins(name, tmp_path):
    settings, dtype = PLUGINS[name]
    values = np.add.outer(np.arange(40), np.arange(50)).astype(dtype)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(16, 32), **settings)
        file.create_dataset("shuffled", data=values, chunks=(16, 32), shuffle=True, fletcher32=True, **settings)
        assert file["x"].id.get_chunk_info(0).filter_mask == 0
    assert_reads_as_h5py(tmp_path / "x.h5")


def test_filters_with_more_parameters_than_h5py_tells(tmp_path):
    dtype = np.dtype([(f"m{number}", "<i4") for number in range(60)])
    with h5py.File(tmp_path / "x.h5", "w") as file:
        Recipe(dtype, (9,), (4,), filters=("nbit",)).create(file)
        file["sound"] = 1
    group = scan(tmp_path / "x.h5")
    assert list(group.arrays) == ["sound"]
    assert "parameters" in reasons(group)["x"]
