"""Fetching the metadata of a remote file before libhdf5 asks for it, one piece after the other.

Where each object lies is known from the links of its group, and where its chunk index and its strings begin from its
header. So the tree is walked level by level, and what belongs to a level is fetched at once. Nothing is decided here:
what is not understood is not fetched ahead.

HDF5 File Format Specification 3.0, III.A.1 "Version 1 B-trees", IV.A.2.c "The Link Info Message", IV.A.2.r "The Symbol
Table Message".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

import h5py
from h5py import h5g, h5l

from scanners.hdf5.attribute_messages import attribute_messages
from scanners.hdf5.header import FILTERS, LAYOUT, HeaderReader, ObjectHeader
from scanners.hdf5.index import IndexFile, IndexRequest, read_index
from scanners.hdf5.layout import IndexType, parse_chunked_layout
from scanners.hdf5.opening import HDF5_ERRORS
from scanners.hdf5.records import DatasetRecord, GroupRecord
from scanners.hdf5.stored import SourceFacts
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.errors import FormatError, UnsupportedError
from virtualzarr_refs.sources import Source
from virtualzarr_refs.sources.read_ahead import ReadAhead

_LINK_INFO = 2
_SYMBOL_TABLE = 17

_HEADER = 2048
"""Bytes of an object header that are fetched; most are shorter."""

_BLOCK = 4096
"""Bytes of any other block: a node of an index, a heap."""

_NO_INDEX = frozenset({IndexType.SINGLE_CHUNK, IndexType.IMPLICIT})
"""Kinds whose address is that of the chunks themselves."""

_INDEXES_AT_ONCE = 32
"""Chunk indexes that are fetched at the same time."""

_MAX_GROUPS = 100_000
"""Groups that are looked into; links may lead in circles."""


def prefetch(file: h5py.File, headers: HeaderReader, source: Source) -> None:
    """Fetch what the scan of a file is going to read, if the file is remote and too large to be fetched whole.

    Raises
    ------
    SourceError
        If it cannot be fetched.
    """
    if isinstance(source, ReadAhead) and not source.is_whole:
        _Prefetch(headers, source).tree(file)


@dataclass(frozen=True, slots=True)
class _Prefetch:
    headers: HeaderReader
    source: ReadAhead
    seen: set[int] = field(default_factory=set[int])

    def tree(self, file: h5py.File) -> None:
        with suppress(*HDF5_ERRORS):
            level = [h5g.open(file.id, b"/")]
            while level and len(self.seen) < _MAX_GROUPS:
                level = self._below(level)

    def _below(self, groups: list[h5g.GroupID]) -> list[h5g.GroupID]:
        """Fetch what the links of groups lead to, and open the groups among that."""
        links = {address: (gid, name) for gid in groups for name, address in _hard_links(gid)}
        for address in self.seen & links.keys():
            del links[address]
        self.seen.update(links)
        self._fetch(links, _HEADER)
        headers = {address: header for address in links if (header := self._header(address)) is not None}
        self._fetch((start for header in headers.values() for start in _parts(header)), _BLOCK)
        tables = [place for header in headers.values() for place in _symbol_tables(header)]
        self._fetch((child for tree in tables for child in self._children(tree)), _BLOCK)
        return [h5g.open(*links[address]) for address, header in headers.items() if _is_group(header)]

    def _fetch(self, addresses: Iterable[int], length: int) -> None:
        self.source.prefetch(ByteRange(self.headers.base + address, length) for address in set(addresses))

    def _header(self, address: int) -> ObjectHeader | None:
        with suppress(FormatError):
            return self.headers.read(address)
        return None

    def _children(self, tree: int) -> Iterator[int]:
        """Nodes beneath one of a group's B-tree: a head, then keys and addresses in turns."""
        width, key = self.headers.offset_size, self.headers.length_size
        with suppress(ValueError):
            node = self.headers.piece(tree, _BLOCK)
            for number in range(int.from_bytes(node[6:8], "little") if node[:4] == b"TREE" else 0):
                start = 8 + 2 * width + key + number * (key + width)
                yield int.from_bytes(node[start : start + width], "little")


def _hard_links(gid: h5g.GroupID) -> Iterator[tuple[bytes, int]]:
    names: list[bytes] = []
    gid.links.iterate(names.append)
    for name in names:
        info = gid.links.get_info(name)
        if info.type == h5l.TYPE_HARD:
            yield name, int(info.u)


def _is_group(header: ObjectHeader) -> bool:
    return any(message.kind in (_LINK_INFO, _SYMBOL_TABLE) for message in header.messages)


def _parts(header: ObjectHeader) -> Iterator[int]:
    """Where the blocks begin that an object consists of."""
    yield from _symbol_tables(header)
    yield from _heaps_of_links(header)
    with suppress(FormatError, UnsupportedError):
        yield from _index(header)
    for attribute in (attribute_messages(header) or {}).values():
        yield from attribute.heaps(header.offset_size)


def _symbol_tables(header: ObjectHeader) -> Iterator[int]:
    """A B-tree; after it the address of a heap."""
    body, width = header.body(_SYMBOL_TABLE), header.offset_size
    if body is not None:
        yield int.from_bytes(body[:width], "little")
        yield int.from_bytes(body[width : 2 * width], "little")


def _heaps_of_links(header: ObjectHeader) -> Iterator[int]:
    """A heap and a B-tree of names; before them, if the flag says so, the highest number of a link."""
    body, width = header.body(_LINK_INFO), header.offset_size
    if body is not None and len(body) > 2:
        start = 10 if body[1] & 1 else 2
        yield int.from_bytes(body[start : start + width], "little")
        yield int.from_bytes(body[start + width : start + 2 * width], "little")


def _index(header: ObjectHeader) -> Iterator[int]:
    message = header.body(LAYOUT)
    if message is not None:
        layout = parse_chunked_layout(message, header.offset_size, header.length_size)
        if layout.index_type not in _NO_INDEX:
            yield layout.address


# ── Chunk indexes ────────────────────────────────────────────────────────────────────────────────────────────────────


def prefetch_indexes(root: GroupRecord, facts: SourceFacts, source: Source) -> None:
    """Fetch all chunk indexes at the same time, each of them level by level, if the file is remote and not here.

    They are read here only to be fetched, whatever comes of it.

    Raises
    ------
    SourceError
        If they cannot be fetched.
    """
    if not isinstance(source, ReadAhead) or source.is_whole:
        return
    records = [record for record in root.walk_datasets() if record.header is not None]
    with ThreadPoolExecutor(_INDEXES_AT_ONCE) as threads:
        for _ in threads.map(lambda record: _fetch_index(record, facts), records if len(records) > 1 else ()):
            pass


def _fetch_index(record: DatasetRecord, facts: SourceFacts) -> None:
    header, headers = record.header, facts.headers
    message = None if header is None else header.body(LAYOUT)
    if header is None or message is None:
        return
    with suppress(FormatError, UnsupportedError, ValueError):
        layout = parse_chunked_layout(message, header.offset_size, header.length_size)
        if layout.index_type in _NO_INDEX or len(layout.chunk_shape) != len(record.shape):
            return
        file = IndexFile(headers.source, headers.base, headers.offset_size, headers.length_size)
        grid = RegularGrid(record.shape, layout.chunk_shape)
        is_filtered, k = header.body(FILTERS) is not None, facts.chunk_tree_k
        read_index(IndexRequest(layout, file, grid, record.max_shape, is_filtered, k))
