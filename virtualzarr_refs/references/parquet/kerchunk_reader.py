"""Reading kerchunk's sets in Parquet, which kerchunk, fsspec and VirtualiZarr write.

A folder with ``.zmetadata``, the metadata documents of Zarr v2 with the number of rows of a partition, and for each
array a folder of partitions, ``refs.0.parq``, ``refs.1.parq`` and so on. Of a partition in which no chunk is there,
there is no file.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from virtualzarr_refs.errors import ReferenceSetError, VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import MISSING, Manifest
from virtualzarr_refs.metadata import ArrayMetadata
from virtualzarr_refs.partitioned_manifest import PartitionedManifest
from virtualzarr_refs.references.documents import ZMETADATA, read_documents
from virtualzarr_refs.references.nodes import assemble, parse_nodes
from virtualzarr_refs.references.parquet.files import SetFiles
from virtualzarr_refs.references.parquet.index import MAX_PARTITION_SIZE, partition_name
from virtualzarr_refs.references.parquet.partition import decode
from virtualzarr_refs.references.urls import SetUrls
from virtualzarr_refs.sources.redaction import redact


def read_kerchunk(
    metadata: bytes | memoryview, files: SetFiles, urls: SetUrls, *, mask_fill_value: bool
) -> VirtualGroup:
    """Open a set of kerchunk's.

    Parameters
    ----------
    metadata : bytes
        The file ``.zmetadata``.
    files, urls : SetFiles, SetUrls
        The folder, and where urls in it point.
    mask_fill_value : bool
        See `virtualzarr_refs.references.open_refs`.

    Raises
    ------
    ReferenceSetError
        If the metadata are malformed.
    UnsupportedError
        If an array cannot be shown as Zarr v3.
    """
    documents, size = parse_zmetadata(metadata)
    nodes = parse_nodes(read_documents(documents, urls), mask_fill_value=mask_fill_value)
    arrays = {
        path: _array(path, node.metadata, size, files, urls)
        for path, node in nodes.items()
        if isinstance(node.metadata, ArrayMetadata)
    }
    return assemble(nodes, arrays)


def parse_zmetadata(metadata: bytes | memoryview) -> tuple[dict[str, object], int]:
    """The metadata documents of a set, by key, and its record size. Raises ReferenceSetError."""
    try:
        document = cast("dict[str, Any]", json.loads(bytes(metadata)))
        documents, size = dict(document["metadata"]), document["record_size"]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise ReferenceSetError(f"{ZMETADATA} is not that of a reference set: {error!r}") from error
    if type(size) is not int or not 1 <= size <= MAX_PARTITION_SIZE:
        raise ReferenceSetError(f"a record size of {size!r} rows cannot be read")
    return documents, size


def _array(path: str, metadata: ArrayMetadata, size: int, files: SetFiles, urls: SetUrls) -> VirtualArray:
    partitions = KerchunkPartitions(path, metadata.chunk_grid.grid_shape, size, files, urls)
    runs = ((0, count),) if (count := partitions.number) else ()
    return VirtualArray(metadata, PartitionedManifest(partitions.grid_shape, size, partitions, runs))


@dataclass(frozen=True, slots=True)
class KerchunkPartitions:
    """The partitions of one array of kerchunk's.

    Parameters
    ----------
    path : str
        Of the array.
    grid_shape : tuple of int
        Number of chunks along each axis.
    size : int
        Rows of each file.
    files : SetFiles
        The folder of the set.
    set_urls : SetUrls
        Where urls in it point.
    """

    path: str
    grid_shape: tuple[int, ...]
    size: int
    files: SetFiles
    set_urls: SetUrls

    @property
    def number(self) -> int:
        """Number of partitions."""
        return -(-self.chunks // self.size)

    @property
    def urls(self) -> tuple[str, ...]:
        """See `Partitions.urls`; all partitions are read, as kerchunk has no table of sources."""
        found: dict[str, None] = {}
        for number in range(self.number):
            size = min(self.size, self.chunks - number * self.size)
            found.update(dict.fromkeys(self.load(number, size).urls))
        return tuple(found)

    @property
    def count(self) -> int | None:
        """See `Partitions.count`."""
        return None

    def load(self, number: int, size: int) -> Manifest:
        """See `Partitions.load`.

        Raises
        ------
        ReferenceSetError
            If the file is malformed.
        SourceError
            If it cannot be read, or a reference has only the url of a source that cannot be looked at.
        """
        name = partition_name(self.path, number)
        kept = self.files.cache.get(name)
        if kept is not None:
            return kept
        try:
            partition = self._read(name, size)
        except VirtualZarrError as error:
            raise error.at(url=redact(self.files.url(name)), node=self.path) from error.__cause__
        self.files.cache.put(name, partition)
        return partition

    def _read(self, name: str, size: int) -> Manifest:
        data = self.files.find(name)
        if data is None:
            return Manifest.missing((size,))
        partition, _ = decode(data, size, self.set_urls.resolve, most=MAX_PARTITION_SIZE)
        return _with_lengths(partition, self.set_urls)

    @property
    def chunks(self) -> int:
        """Number of chunks of the grid."""
        return math.prod(self.grid_shape)


def _with_lengths(partition: Manifest, urls: SetUrls) -> Manifest:
    """Give references that have only a url, as kerchunk puts it with two zeros, the length of their source."""
    whole = (partition.url_id != MISSING) & (partition.offset == 0) & (partition.length == 0)
    if not whole.any():
        return partition
    used = np.unique(partition.url_id[whole]).tolist()
    sizes = urls.sizes(partition.urls[number] for number in used)
    length = partition.length.astype(np.uint64)
    for number in used:
        length[whole & (partition.url_id == number)] = sizes[partition.urls[number]]
    return replace(partition, length=length)
