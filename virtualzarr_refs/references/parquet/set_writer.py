"""Writing one version of a set into its folder.

Files that a set has already are never changed, but for rows that follow those it knows of. What differs gets a name of
its own, and ``zarr.json`` is replaced last: a crash at any moment leaves the set that was there, whole.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import batched
from typing import Self

from virtualzarr_refs.chunk_manifest import ChunkManifest
from virtualzarr_refs.errors import SourceError
from virtualzarr_refs.hierarchy import METADATA_KEY, VirtualGroup
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.partitioned_manifest import runs_of
from virtualzarr_refs.references.documents import ZARRAY, ZMETADATA
from virtualzarr_refs.references.parquet.extension import unchanged_partitions
from virtualzarr_refs.references.parquet.files import SetFiles
from virtualzarr_refs.references.parquet.index import (
    DATA,
    MEMBER,
    ArrayIndex,
    SetIndex,
    is_own_file,
    partition_name,
    sources_name,
)
from virtualzarr_refs.references.parquet.kerchunk_reader import parse_zmetadata
from virtualzarr_refs.references.parquet.partition import encode, used_numbers
from virtualzarr_refs.references.parquet.reader import read_index
from virtualzarr_refs.references.parquet.sources_table import encode_sources
from virtualzarr_refs.references.sidecar import SidecarFile, is_sidecar_file
from virtualzarr_refs.references.target import Target
from virtualzarr_refs.sources.scanned import ScannedSource, Sources

_AT_ONCE = 4
"""Partitions that are encoded and written at the same time."""


@dataclass(slots=True)
class SourceTable:
    """The sources of a set.

    Parameters
    ----------
    rows : dict of str to int
        Their rows, by url.
    names : list of str
        What the set calls them.
    """

    rows: dict[str, int] = field(default_factory=dict[str, int])
    names: list[str] = field(default_factory=list[str])

    def rows_of(self, block: Manifest) -> list[int]:
        """Rows of the sources that a block points to; new ones are added."""
        return [self._row(block.urls[number]) for number in used_numbers(block).tolist()]

    def name_of(self, url: str) -> str:
        """What the set calls a source."""
        row = self.rows.get(url)
        return url if row is None else self.names[row]

    def with_scanned(self, scanned: Sources) -> tuple[list[str], list[ScannedSource | None]]:
        """All names, also of sources that only something is known of, and what is known of each."""
        for url in scanned:
            self._row(url)
        urls = {row: url for url, row in self.rows.items()}
        return self.names, [scanned.get(urls.get(row, "")) for row in range(len(self.names))]

    def _row(self, url: str) -> int:
        row = self.rows.setdefault(url, len(self.names))
        if row == len(self.names):
            self.names.append(url)
        return row


@dataclass(slots=True)
class SetWriter:
    """Writes one version of a set.

    Parameters
    ----------
    target : Target
        Where its folder is.
    files : SetFiles
        The folder.
    index : SetIndex
        Of the set that is extended; or of a new one, without arrays.
    generation : int
        Of the names of new files that would replace others.
    before : mapping of str to ChunkManifest
        The arrays of the set that is extended, by path.
    sources : SourceTable
        Those of the set that is extended, to begin with.
    """

    target: Target
    files: SetFiles
    index: SetIndex
    generation: int
    before: Mapping[str, ChunkManifest] = field(default_factory=dict[str, ChunkManifest])
    sources: SourceTable = field(default_factory=SourceTable)

    @classmethod
    def over(cls, target: Target, files: SetFiles, partition_size: int) -> Self:
        """A writer of a set that takes the place of whatever set is in the folder."""
        old = read_index(files)
        generation = 0 if old is None else old.last_generation + 1
        if files.find(ZMETADATA) is not None:
            generation = max(generation, 1)
        return cls(target, files, SetIndex(uuid.uuid4().hex, partition_size, generation, {}), generation)

    def write(self, group: VirtualGroup, data: Mapping[str, SidecarFile]) -> None:
        """Write everything, the root last, and then remove what no set needs any more.

        Parameters
        ----------
        group : VirtualGroup
            As the set has it.
        data : mapping of str to SidecarFile
            What goes to the folder `DATA`.
        """
        replaced = self._replaced_arrays()
        self._write_data(data)
        arrays = {path: self._write_array(path, array.manifest) for path, array in group.walk_arrays()}
        index = replace(self.index, arrays=arrays)
        names, scanned = self.sources.with_scanned(group.sources)
        self._put(sources_name(index.generation), encode_sources(names, scanned, index.set_id))
        self._put(METADATA_KEY, encode_root(group, index))
        with suppress(OSError, SourceError):  # the new set is in place and whole; what is left over does no harm
            self._remove_stale(index, [*index.arrays, *replaced])

    def _replaced_arrays(self) -> list[str]:
        """Paths of the arrays of the set that is in the folder, which may be kerchunk's."""
        old, metadata = read_index(self.files), self.files.find(ZMETADATA)
        if metadata is None:
            return [] if old is None else [*old.arrays]
        keys = (key.rpartition("/") for key in parse_zmetadata(metadata)[0])
        return [path for path, _, name in keys if name == ZARRAY]

    def _write_data(self, data: Mapping[str, SidecarFile]) -> None:
        if not data:
            return
        folder = self.files.url(DATA)
        self.target.make_folder(folder)
        there = set(self.target.names(folder))
        for name, file in data.items():
            if name not in there:  # it is named after its content
                self._put(f"{DATA}/{name}", b"".join(file.chunks))

    def _write_array(self, path: str, manifest: ChunkManifest) -> ArrayIndex:
        size, before, generation = self.index.partition_size, self.before.get(path), self.generation
        unchanged = None if before is None else unchanged_partitions(before, manifest, size)
        if unchanged is not None:
            generation = self.index.arrays[path].generation
        found = _Found()
        with ThreadPoolExecutor(_AT_ONCE) as workers:
            for batch in batched(manifest.blocks(size), 2 * _AT_ONCE):
                if not found.numbers:
                    self._make_folder(path)
                new: list[tuple[str, Manifest]] = []
                for start, block in batch:
                    number = start // size
                    found.add(number, block, self.sources.rows_of(block))
                    if number not in (unchanged or ()):
                        new.append((partition_name(path, number, generation), block))
                list(workers.map(self._write_block, new))
        return found.index(generation)

    def _write_block(self, named: tuple[str, Manifest]) -> None:
        name, block = named
        called = replace(block, urls=tuple(map(self.sources.name_of, block.urls)))
        self._put(name, encode(called, self.index.set_id))

    def _make_folder(self, path: str) -> None:
        names = path.split("/")
        for depth in range(len(names)):
            self.target.make_folder(self.files.url("/".join(names[: depth + 1])))

    def _put(self, name: str, data: bytes) -> None:
        self.target.write(self.files.url(name), data)

    def _remove_stale(self, index: SetIndex, paths: list[str]) -> None:
        needed = {*index.names(), *self.sources.names}
        for folder in dict.fromkeys(["", DATA, *paths]):
            url = self.files.url(folder) if folder else self.files.folder
            for name in self.target.names(url):
                full = f"{folder}/{name}" if folder else name
                if full not in needed and _is_removable(folder, name):
                    self.target.remove(self.files.url(full))


def _is_removable(folder: str, name: str) -> bool:
    if folder == DATA and is_sidecar_file(name):
        return True
    return is_own_file(name) or (not folder and name == ZMETADATA) or (name.startswith(".") and name.endswith(".tmp"))


def encode_root(group: VirtualGroup, index: SetIndex) -> bytes:
    """The ``zarr.json`` of the root: its metadata, those of all nodes beneath, and the index of files."""
    root, *beneath = ((path, node.metadata.to_json()) for path, node in group.walk())
    consolidated = {"kind": "inline", "must_understand": False, "metadata": dict(beneath)}
    document = {**root[1], "consolidated_metadata": consolidated, MEMBER: index.to_json()}
    return json.dumps(document, separators=(",", ":")).encode()


@dataclass(slots=True)
class _Found:
    """What the partitions of an array were found to hold."""

    numbers: list[int] = field(default_factory=list[int])
    rows: set[int] = field(default_factory=set[int])
    count: int = 0
    has_inline: bool = False

    def add(self, number: int, block: Manifest, rows: list[int]) -> None:
        self.numbers.append(number)
        self.rows.update(rows)
        self.count += block.count
        self.has_inline |= block.has_inline

    def index(self, generation: int) -> ArrayIndex:
        return ArrayIndex(runs_of(self.numbers), runs_of(sorted(self.rows)), self.count, self.has_inline, generation)
