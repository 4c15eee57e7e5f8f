"""Opening a set in Parquet. Its partitions are read when they are asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self, cast

from virtualzarr_refs.errors import ReferenceSetError, SourceMissingError, VirtualZarrError
from virtualzarr_refs.hierarchy import METADATA_KEY, VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.metadata import ArrayMetadata
from virtualzarr_refs.partitioned_manifest import PartitionedManifest
from virtualzarr_refs.references.documents import ZMETADATA, read_documents
from virtualzarr_refs.references.nodes import assemble, has_mixed_codec, parse_nodes
from virtualzarr_refs.references.parquet.files import SetFiles
from virtualzarr_refs.references.parquet.index import DATA, MEMBER, ArrayIndex, SetIndex, partition_name, sources_name
from virtualzarr_refs.references.parquet.kerchunk_reader import read_kerchunk
from virtualzarr_refs.references.parquet.partition import decode
from virtualzarr_refs.references.parquet.sources_table import decode_sources
from virtualzarr_refs.references.source_columns import read_columns
from virtualzarr_refs.references.trust import Trust, as_prefixes
from virtualzarr_refs.references.urls import SetUrls
from virtualzarr_refs.sharding import check_shards, is_sharded
from virtualzarr_refs.sources.redaction import redact


def read_parquet(
    url: str, *, storage_options: Mapping[str, object] | None, allow: Iterable[str] | None, mask_fill_value: bool
) -> VirtualGroup:
    """Open a set in Parquet, ours or kerchunk's; see `virtualzarr_refs.references.open_refs`."""
    files = SetFiles(url, storage_options)
    prefixes = None if allow is None else [*as_prefixes(allow), files.url(DATA)]
    urls = SetUrls(url, Trust.in_set_at(files.url(METADATA_KEY), prefixes), storage_options=storage_options)
    root = files.find(METADATA_KEY)
    if root is not None:
        return _read(_parse(root), files, urls)
    metadata = files.find(ZMETADATA)
    if metadata is None:
        raise SourceMissingError(f"there is neither {METADATA_KEY} nor {ZMETADATA}, so this is no reference set")
    return read_kerchunk(metadata, files, urls, mask_fill_value=mask_fill_value)


def read_index(files: SetFiles) -> SetIndex | None:
    """What the root of a set in our format says about its files; None if there is no such set."""
    root = files.find(METADATA_KEY)
    return None if root is None else SetIndex.parse(_parse(root).get(MEMBER))


def _parse(root: bytes | memoryview) -> dict[str, object]:
    try:
        document = json.loads(bytes(root))
    except (ValueError, RecursionError) as error:
        raise ReferenceSetError(f"{METADATA_KEY} is not JSON: {error}") from error
    if not isinstance(document, dict) or MEMBER not in document:
        raise ReferenceSetError(f"{METADATA_KEY} is not that of a reference set: it has no member {MEMBER!r}")
    return cast("dict[str, object]", document)


def _read(root: dict[str, object], files: SetFiles, urls: SetUrls) -> VirtualGroup:
    index = SetIndex.parse(root.pop(MEMBER))
    nodes = parse_nodes(read_documents({METADATA_KEY: root}, urls), mask_fill_value=False)
    names, columns = decode_sources(files.read(sources_name(index.generation)), index.set_id)
    stored = StoredSet.of(index, files, urls, _resolved(names, index, urls))
    arrays = {
        path: _array(path, node.metadata, index.arrays.get(path, ArrayIndex()), stored)
        for path, node in nodes.items()
        if isinstance(node.metadata, ArrayMetadata)
    }
    return replace(assemble(nodes, arrays), sources=read_columns(columns, urls))


def _resolved(names: list[str], index: SetIndex, urls: SetUrls) -> tuple[str, ...]:
    """The urls of the sources. That an array points to one which it may not is an error."""
    resolved = [urls.permitted(name) or "" for name in names]
    for path, array in index.arrays.items():
        for start, stop in array.sources:
            if stop > len(names):
                raise ReferenceSetError("it points to sources that are not in the table", node=path)
            if "" in resolved[start:stop]:
                urls.resolve(names[resolved.index("", start)])
    return tuple(resolved)


def _array(path: str, metadata: ArrayMetadata, array: ArrayIndex, stored: StoredSet) -> VirtualArray:
    try:
        manifest = PartitionedManifest(
            metadata.chunk_grid.grid_shape,
            stored.partition_size,
            StoredPartitions(path, metadata, array, stored),
            array.partitions,
            has_mixed_codec(metadata),
            array.has_inline,
            is_sharded(metadata),
        )
    except ValueError as error:
        raise ReferenceSetError(str(error), node=path) from error
    return VirtualArray(metadata, manifest)


@dataclass(frozen=True, slots=True)
class StoredSet:
    """What all arrays of a set share.

    Parameters
    ----------
    files : SetFiles
        Its folder.
    urls : SetUrls
        Where urls in it point.
    set_id : str
        What its partitions have to say they belong to.
    partition_size : int
        In chunks.
    sources : tuple of str
        The table of sources.
    known : frozenset of str
        The same.
    """

    files: SetFiles
    urls: SetUrls
    set_id: str
    partition_size: int
    sources: tuple[str, ...]
    known: frozenset[str]

    @classmethod
    def of(cls, index: SetIndex, files: SetFiles, urls: SetUrls, sources: tuple[str, ...]) -> Self:
        """The set with this index."""
        return cls(files, urls, index.set_id, index.partition_size, sources, frozenset(sources))


@dataclass(frozen=True, slots=True)
class StoredPartitions:
    """The partitions of one array, in files.

    Parameters
    ----------
    path : str
        Of the array.
    metadata : ArrayMetadata
        Of the array.
    index : ArrayIndex
        What the root says of the files.
    stored : StoredSet
        The set.
    """

    path: str
    metadata: ArrayMetadata
    index: ArrayIndex
    stored: StoredSet

    @property
    def urls(self) -> tuple[str, ...]:
        """See `Partitions.urls`."""
        return tuple(url for start, stop in self.index.sources for url in self.stored.sources[start:stop])

    @property
    def count(self) -> int | None:
        """See `Partitions.count`."""
        return self.index.count

    def load(self, number: int, size: int) -> Manifest:
        """See `Partitions.load`.

        Raises
        ------
        ReferenceSetError
            If the file is malformed, or belongs to a newer set.
        SourceError
            If it cannot be read.
        """
        name, files = partition_name(self.path, number, self.index.generation), self.stored.files
        kept = files.cache.get(name)
        if kept is not None and kept.size == size:
            return kept
        try:
            partition = self._read(name, size)
            start = number * self.stored.partition_size
            check_shards(self.metadata, {start + place: inner for place, inner in partition.inner_chunks.items()})
        except VirtualZarrError as error:
            raise error.at(url=redact(files.url(name)), node=self.path) from error.__cause__
        files.cache.put(name, partition)
        return partition

    def _read(self, name: str, size: int) -> Manifest:
        data = self.stored.files.read(name)
        partition, set_id = decode(data, size, self.stored.urls.resolve, most=self.stored.partition_size)
        if set_id != self.stored.set_id.encode():
            raise ReferenceSetError("the partition belongs to another set; was this one replaced? Open it again")
        if not self.stored.known.issuperset(partition.urls):
            raise ReferenceSetError("the partition points to a source that is not in the table of sources")
        return partition
