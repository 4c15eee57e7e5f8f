"""Reading a group out of an Icechunk session."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import batched
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.errors import NodeNotFoundError, ReferenceSetError, UnsupportedError, VirtualZarrError
from virtualzarr_refs.hierarchy import METADATA_KEY, VirtualArray, VirtualGroup, join_path
from virtualzarr_refs.manifest import MISSING, Manifest, index_of
from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata, decode_metadata
from virtualzarr_refs.references.chunk_columns import MAX_MISSING_CHUNKS, max_chunks
from virtualzarr_refs.references.icechunk.documents import unlisted
from virtualzarr_refs.references.icechunk.locations import url_of
from virtualzarr_refs.references.trust import Trust

if TYPE_CHECKING:
    import icechunk

_NATIVE, _VIRTUAL = 1, 2
"""Kinds of chunks, as `icechunk.ChunkType` numbers them."""

_READS_AT_ONCE = 64


@dataclass(slots=True)
class _Chunks:
    """Chunks of one array, batch by batch."""

    positions: list[NDArray[np.intp]] = field(default_factory=list[NDArray[np.intp]])
    ids: list[NDArray[np.uint32]] = field(default_factory=list[NDArray[np.uint32]])
    offsets: list[NDArray[np.uint64]] = field(default_factory=list[NDArray[np.uint64]])
    lengths: list[NDArray[np.uint64]] = field(default_factory=list[NDArray[np.uint64]])
    urls: dict[str, int] = field(default_factory=dict[str, int])
    inline: dict[int, bytes] = field(default_factory=dict[int, bytes])
    native: dict[int, int] = field(default_factory=dict[int, int])

    def manifest(self, grid: Shape) -> Manifest:
        """The manifest over a grid."""
        if not self.positions:
            return Manifest.from_inline(grid, self.inline)
        places = np.concatenate(self.positions)
        url_id = np.full(grid, MISSING, np.uint32)
        offset, length = np.zeros(grid, np.uint64), np.zeros(grid, np.uint64)
        for column, parts in ((url_id, self.ids), (offset, self.offsets), (length, self.lengths)):
            column.reshape(-1)[places] = np.concatenate(cast("list[NDArray[Any]]", parts))
        return Manifest(tuple(self.urls), url_id, offset, length, inline=self.inline)


@dataclass(frozen=True, slots=True)
class SessionReader:
    """Reads the nodes beneath one path of a session.

    Parameters
    ----------
    store : icechunk.IcechunkStore
        Of a session.
    path : str
        Of the group in the repository, "" for its root.
    trust : Trust
        What virtual chunks may point to.
    native_limit : int
        Bytes of chunks that an array may have in the repository itself, for them to be read into the group.
    """

    store: icechunk.IcechunkStore
    path: str
    trust: Trust
    native_limit: int

    async def read(self) -> VirtualGroup:
        """The group.

        Raises
        ------
        NodeNotFoundError
            If there is no group at the path.
        ReferenceSetError
            If metadata are malformed, or a chunk points where it may not.
        UnsupportedError
            If the repository itself holds too much of an array.
        """
        node = await self._node("")
        if not isinstance(node, VirtualGroup):
            raise NodeNotFoundError("there is no group in the repository", node=self.path or "/")
        return node

    async def _node(self, path: str) -> VirtualArray | VirtualGroup | None:
        data = await self._get(self._at(path, METADATA_KEY))
        if data is None:
            return None
        try:
            metadata = decode_metadata(data)
            return await (self._array if isinstance(metadata, ArrayMetadata) else self._group)(
                path, cast("Any", metadata)
            )
        except VirtualZarrError as error:
            raise error.at(node=path or "/") from error.__cause__

    async def _group(self, path: str, metadata: GroupMetadata) -> VirtualGroup:
        names = sorted([name async for name in self.store.list_dir(self._at(path)) if name != METADATA_KEY])
        nodes = {name: await self._node(join_path(path, name)) for name in names}
        arrays = {name: node for name, node in nodes.items() if isinstance(node, VirtualArray)}
        groups = {name: node for name, node in nodes.items() if isinstance(node, VirtualGroup)}
        return VirtualGroup(metadata, arrays, groups)

    async def _array(self, path: str, metadata: ArrayMetadata) -> VirtualArray:
        grid = metadata.chunk_grid.grid_shape
        chunks = _Chunks()
        if math.prod(grid) > MAX_MISSING_CHUNKS:
            raise ReferenceSetError(f"a grid of {grid} chunks is too large to be read")
        count = 0
        async for batch in self.store.array_chunk_iterator(self._at(path)):
            count += len(batch[1])
            self._add(chunks, batch, grid)
        if math.prod(grid) > max_chunks(count):
            raise ReferenceSetError(f"a grid of {grid} chunks is too large to be read")
        await self._read_native(path, chunks, grid)
        return VirtualArray(replace(metadata, chunk_grid=unlisted(metadata.chunk_grid)), chunks.manifest(grid))

    def _add(self, chunks: _Chunks, batch: Sequence[Any], grid: Shape) -> None:
        coordinates, kinds, locations, offsets, lengths, inlined = batch
        if not (coordinates < np.array(grid, np.uint64)).all():
            raise ReferenceSetError(f"a chunk lies outside the grid of {grid} chunks")
        positions = _positions(coordinates, grid)
        chunks.inline.update((int(positions[row]), data) for row, data in inlined.items())
        native = np.flatnonzero(kinds == _NATIVE)
        chunks.native.update(zip(positions[native].tolist(), lengths[native].tolist(), strict=True))
        virtual = np.flatnonzero(kinds == _VIRTUAL)
        if virtual.size:
            named = locations if virtual.size == len(kinds) else [locations[row] for row in virtual.tolist()]
            chunks.positions.append(np.asarray(positions[virtual]))
            chunks.ids.append(self._numbers(named, chunks.urls))
            chunks.offsets.append(offsets[virtual])
            chunks.lengths.append(lengths[virtual])

    def _numbers(self, locations: Iterable[str], urls: dict[str, int]) -> NDArray[np.uint32]:
        """The number of each location's url in a table, which grows."""
        distinct = {location: self._trusted(location) for location in dict.fromkeys(locations)}
        numbers = {location: urls.setdefault(url, len(urls)) for location, url in distinct.items()}
        return np.array([numbers[location] for location in locations], np.uint32)

    def _trusted(self, location: str) -> str:
        url = url_of(location)
        self.trust.require(url)
        return url

    async def _read_native(self, path: str, chunks: _Chunks, grid: Shape) -> None:
        size = sum(chunks.native.values())
        if size > self.native_limit:
            raise UnsupportedError(
                f"the repository itself holds {size} bytes of the array's chunks, which no reference can point to; "
                f"read it with icechunk, or raise native_limit, which is {self.native_limit}"
            )
        for some in batched(chunks.native, _READS_AT_ONCE):
            keys = [self._at(path, "/".join(("c", *map(str, index_of(p, grid))))) for p in some]
            for position, data in zip(some, await asyncio.gather(*map(self._get, keys)), strict=True):
                if data is None:
                    raise ReferenceSetError("a chunk that the repository lists is not there")
                chunks.inline[position] = data

    async def _get(self, key: str) -> bytes | None:
        from zarr.core.buffer import default_buffer_prototype  # noqa: PLC0415  slow to import

        value = await self.store.get(key, default_buffer_prototype())
        return None if value is None else value.to_bytes()

    def _at(self, *parts: str) -> str:
        return "/".join(filter(None, (self.path, *parts)))


def _positions(coordinates: NDArray[np.uint32], grid: Shape) -> NDArray[np.intp]:
    if not grid:
        return np.zeros(len(coordinates), np.intp)
    return np.asarray(np.ravel_multi_index(tuple(coordinates.T), grid), np.intp)


def revision_of(options: Mapping[str, str | None]) -> dict[str, str]:
    """The one revision that was asked for, of ``branch``, ``tag`` and ``snapshot_id``.

    Raises
    ------
    ValueError
        If there are several.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} cannot be given together")
    return given
