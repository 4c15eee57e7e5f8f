"""Datasets with chunk indexes of every kind, and three ways to tell where their chunks lie."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np

from scanners.hdf5.chunks import ChunkTable, read_chunk_table
from scanners.hdf5.header import LAYOUT, HeaderReader
from scanners.hdf5.index import IndexFile, IndexRequest, read_index
from scanners.hdf5.layout import ChunkedLayout, IndexType, parse_chunked_layout
from scanners.hdf5.misplaced import MisplacedChunks, is_fault_present
from scanners.hdf5.superblock import chunk_tree_k
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.sources import Source
from virtualzarr_refs.sources.checks import require_within
from virtualzarr_refs.sources.identity import SourceIdentity

FILLED = 0x5EED
"""What is added to a chunk's number to give its values, so that none of them is 0."""


@dataclass
class MemorySource:
    """Bytes as a source; remembers what was read of them."""

    data: bytes | bytearray
    url: str = "memory"
    calls: list[list[ByteRange]] = field(default_factory=list)

    def identity(self) -> SourceIdentity:
        return SourceIdentity(len(self.data))

    def read(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        require_within(self.url, ranges, len(self.data))
        self.calls.append(list(ranges))
        return [memoryview(bytes(self.data[wanted.offset : wanted.stop])) for wanted in ranges]

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Spec:
    """A dataset to be made. `written` are numbers of chunks, in C order of the grid; None writes all of them."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    maxshape: tuple[int | None, ...] | None = None
    libver: str = "latest"
    filtered: bool = False
    written: tuple[int, ...] | None = None
    userblock: int = 0
    sizes: int = 8
    early: bool = False

    @property
    def grid(self) -> RegularGrid:
        return RegularGrid(self.shape, self.chunks)

    @property
    def numbers(self) -> Iterable[int]:
        return range(math.prod(self.grid.grid_shape)) if self.written is None else self.written


def make(path: Path, spec: Spec) -> None:
    """Write a file with one dataset, ``x``, whose chunks are filled with a number that tells them apart."""
    fcpl = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    # Lengths of 4 bytes cannot say "without limit".
    fcpl.set_sizes(spec.sizes, 8 if None in (spec.maxshape or ()) else spec.sizes)
    fcpl.set_userblock(spec.userblock)
    fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    bounds = {"earliest": h5py.h5f.LIBVER_EARLIEST, "v108": h5py.h5f.LIBVER_V18, "v110": h5py.h5f.LIBVER_V110}
    fapl.set_libver_bounds(bounds.get(spec.libver, h5py.h5f.LIBVER_LATEST), h5py.h5f.LIBVER_LATEST)
    with h5py.File(h5py.h5f.create(str(path).encode(), fcpl=fcpl, fapl=fapl)) as file:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk(spec.chunks)
        if spec.early:
            dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        if spec.filtered:
            dcpl.set_shuffle()
            dcpl.set_deflate(1)
        limits = tuple(h5py.h5s.UNLIMITED if n is None else n for n in spec.maxshape or spec.shape)
        space = h5py.h5s.create_simple(spec.shape, limits)
        dsid = h5py.h5d.create(file.id, b"x", h5py.h5t.STD_I64LE, space, dcpl)
        for number in spec.numbers:
            write_chunk(dsid, spec, number)


def write_chunk(dsid: h5py.h5d.DatasetID, spec: Spec, number: int) -> None:
    index = np.unravel_index(number, spec.grid.grid_shape)
    start = tuple(int(i) * n for i, n in zip(index, spec.chunks, strict=True))
    values = np.full(spec.chunks, number + FILLED, "<i8").tobytes()
    # Filter 0, the shuffle, is left out (mask 1), and the deflate of every third chunk as well.
    skips_all = number % 3 == 0
    data = values if skips_all or not spec.filtered else zlib.compress(values, 1)
    dsid.write_direct_chunk(start, data, 0 if not spec.filtered else 3 if skips_all else 1)


def request_for(dataset: h5py.Dataset, source: Source) -> IndexRequest:
    headers = HeaderReader.of(dataset.file, source)
    message = headers.read(h5py.h5g.get_objinfo(dataset.id).objno[0]).body(LAYOUT)
    assert message is not None
    layout = parse_chunked_layout(message, headers.offset_size, headers.length_size)
    file = IndexFile(source, headers.base, headers.offset_size, headers.length_size)
    filtered = dataset.id.get_create_plist().get_nfilters() > 0
    grid = RegularGrid(dataset.shape, dataset.chunks)
    return IndexRequest(layout, file, grid, dataset.maxshape, filtered, chunk_tree_k(headers))


@dataclass(frozen=True)
class Indexed:
    """A file in memory and the request to read its index."""

    source: MemorySource
    request: IndexRequest
    listed: ChunkTable

    @property
    def layout(self) -> ChunkedLayout:
        return self.request.layout

    def read(self) -> ChunkTable:
        return read_index(self.request)


def open_indexed(path: Path, name: str = "x") -> Indexed:
    source = MemorySource(path.read_bytes())
    with h5py.File(path) as file:
        request = request_for(file[name], source)
        listed = list_chunks(file[name], request)
    source.calls.clear()
    return Indexed(source, request, listed)


def list_chunks(dataset: h5py.Dataset, request: IndexRequest) -> ChunkTable:
    """What libhdf5 lists, put right."""
    limits = dataset.maxshape
    misplaced = None
    extends = request.layout.index_type is IndexType.EXTENSIBLE_ARRAY
    if extends and limits[0] is not None and is_fault_present():
        misplaced = MisplacedChunks.of(limits, dataset.chunks)
    return read_chunk_table(dataset.id, request.grid, misplaced)


def rows(table: ChunkTable) -> list[tuple[int, ...]]:
    """The table as rows in order, to compare."""
    columns = (*table.index.T, table.mask, table.offset, table.length)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def numbers_stored(indexed: Indexed) -> dict[int, int]:
    """Of each chunk in the table, its number by index, and by what is stored there."""
    table = indexed.read()
    found: dict[int, int] = {}
    for index, mask, offset, length in zip(table.index, table.mask, table.offset, table.length, strict=True):
        data = bytes(indexed.source.data[int(offset) : int(offset + length)])
        data = zlib.decompress(data) if indexed.request.is_filtered and mask == 1 else data
        values = np.frombuffer(data, "<i8")
        assert len(values) == math.prod(indexed.request.grid.chunk_shape)
        assert (values == values[0]).all()
        number = int(np.ravel_multi_index(tuple(index), indexed.request.grid.grid_shape))
        found[number] = int(values[0]) - FILLED
    assert len(found) == len(table.index)
    return found
