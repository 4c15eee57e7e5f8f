"""Serves every array on a regular grid with core codecs, encoded anew as its chunks are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from virtualzarr_refs import listing
from virtualzarr_refs.chunk_grid import ChunkIndex, ChunkKeyEncoding
from virtualzarr_refs.documents import Documents
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.listing import Entry
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.metadata import ArrayMetadata
from virtualzarr_refs.reader import ReadOptions
from virtualzarr_refs.server.contents import Representation
from virtualzarr_refs.server.core_chunks import CoreArray
from virtualzarr_refs.server.core_metadata import core_metadata
from virtualzarr_refs.server.encoding import Encoding
from virtualzarr_refs.store import VirtualStore

_KEYS = ChunkKeyEncoding()


class CoreContents:
    """A hierarchy as readers see it that know only the core of Zarr v3.

    Parameters
    ----------
    group : VirtualGroup
        The root of the hierarchy.
    options : ReadOptions
        How its sources are read.
    consolidated : bool
        Whether a group's document holds those of the nodes beneath.

    Notes
    -----
    No chunk is missing: where the source lacks one, it holds the fill value.
    """

    def __init__(self, group: VirtualGroup, options: ReadOptions, *, consolidated: bool = True) -> None:
        self._group = group.map_arrays(lambda _, array: _without_chunks(core_metadata(array.metadata)))
        self._documents = Documents(self._group, consolidated=consolidated)
        self._store = VirtualStore(
            group,
            storage_options=options.storage_options,
            backend=options.backend,
            base=options.base,
            max_gap=options.max_gap,
            max_size=options.max_size,
            on_change=options.on_change,
        )
        self._arrays = {path: CoreArray.of(array, self._store, path) for path, array in group.walk_arrays()}
        self._encoding = Encoding()

    async def find(self, key: str) -> Representation | None:
        """What is under a key; a chunk is read and encoded for it."""
        document = self._documents.find(key)
        if document is not None:
            return Representation.of_bytes(document, is_metadata=True)
        array, rest = self._locate(key)
        index = None if array is None else _KEYS.decode(rest, len(array.grid.shape))
        if array is None or index is None or not _is_inside(index, array):
            return None
        return await self._encoding.encoded(key, lambda: array.encoded(index))

    def entries(self, folder: str) -> Iterator[tuple[Entry, int | None]]:
        """What lies in a folder; the length of a chunk is not known before it is encoded."""
        for entry in listing.entries(self._group, folder):
            document = None if entry.is_folder else self._documents.find(f"{folder}/{entry.name}".lstrip("/"))
            yield entry, None if document is None else len(document)
        yield from ((entry, None) for entry in self._chunk_entries(folder))

    def close(self) -> None:
        """Close the sources."""
        self._store.close()
        self._encoding.close()

    def _locate(self, key: str) -> tuple[CoreArray | None, str]:
        """The array on the way to a key, and what is left of the key."""
        names = key.split("/")
        for depth in range(1, len(names) + 1):
            array = self._arrays.get("/".join(names[:depth]))
            if array is not None:
                return array, "/".join(names[depth:])
        return None, key

    def _chunk_entries(self, folder: str) -> Iterator[Entry]:
        array, rest = self._locate(folder)
        if array is None or 0 in array.grid.grid_shape:
            return
        rank = len(array.grid.shape)
        if not rest:
            yield Entry("c", is_folder=rank > 0)
            return
        prefix = _KEYS.decode(rest, rest.count("/"))
        if prefix is not None and len(prefix) < rank and _is_inside(prefix, array):
            numbers = range(array.grid.grid_shape[len(prefix)])
            yield from (Entry(str(number), is_folder=len(prefix) < rank - 1) for number in numbers)


def _without_chunks(metadata: ArrayMetadata) -> VirtualArray:
    return VirtualArray(metadata, Manifest.missing(metadata.chunk_grid.grid_shape))


def _is_inside(index: ChunkIndex, array: CoreArray) -> bool:
    """Whether an index, or the first numbers of one, lies in the grid."""
    return all(i < n for i, n in zip(index, array.grid.grid_shape, strict=False))
