"""Writing a group into an Icechunk session."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import batched
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import ChunkIndex
from virtualzarr_refs.errors import NotRepresentableError
from virtualzarr_refs.hierarchy import METADATA_KEY, VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.metadata import encode_metadata
from virtualzarr_refs.references.icechunk.differences import is_extension, new_chunks, new_inline
from virtualzarr_refs.references.icechunk.documents import Adaptation

if TYPE_CHECKING:
    import icechunk

_BLOCK = 1 << 20
"""Chunks that are handed to Icechunk at once."""

_INLINE_AT_ONCE = 256


def now() -> datetime:
    """The time after which a source may not change. Icechunk keeps whole seconds, files have fractions."""
    return datetime.now(UTC) + timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class SessionWriter:
    """Writes nodes beneath one path of a session; what is there already is not written again.

    Parameters
    ----------
    store : icechunk.IcechunkStore
        Of a writable session.
    path : str
        Of the group in the repository, "" for its root.
    locations : mapping of str to str
        Where Icechunk finds each url.
    not_after : datetime
        Icechunk refuses to read a source that was modified later.
    """

    store: icechunk.IcechunkStore
    path: str
    locations: Mapping[str, str]
    not_after: datetime

    async def clear(self, *, overwrite: bool) -> bool:
        """Remove what is at the path, if it may be; whether something is there and was kept."""
        if await self.store.is_empty(self.path):
            return False
        if overwrite:
            await (self.store.delete_dir(self.path) if self.path else self.store.clear())
        return not overwrite

    async def write(self, adaptation: Adaptation, old: VirtualGroup | None) -> None:
        """Write a group in place of an older one, if there is one.

        Raises
        ------
        NotRepresentableError
            If Icechunk refuses the metadata of a node.
        """
        await self._write_ancestors()
        before = {} if old is None else dict(old.walk())
        for path, node in adaptation.group.walk():
            earlier = before.pop(path, None)
            if isinstance(node, VirtualArray):
                await self._write_array(path, node, earlier if isinstance(earlier, VirtualArray) else None)
            else:
                await self._write_metadata(path, node)
        for path in before:
            await self.store.delete_dir(self._at(path))

    async def _write_ancestors(self) -> None:
        names = self.path.split("/") if self.path else []
        for depth in range(len(names)):
            key = "/".join([*names[:depth], METADATA_KEY])
            if not await self.store.exists(key):
                await self._set(key, encode_metadata(VirtualGroup().metadata))

    async def _write_array(self, path: str, array: VirtualArray, old: VirtualArray | None) -> None:
        manifest, before = array.manifest.loaded(), None if old is None else old.manifest.loaded()
        if before is not None and not is_extension(manifest, before):
            await self.store.delete_dir(self._at(path))
            before = None
        await self._write_metadata(path, array)
        changed = new_chunks(manifest, before)
        if changed is not None:
            self._write_virtual(path, manifest, changed)
        await self._write_inline(path, new_inline(manifest, before))

    async def _write_metadata(self, path: str, node: VirtualArray | VirtualGroup) -> None:
        import icechunk  # noqa: PLC0415  an extra

        try:
            await self._set(self._at(path, METADATA_KEY), encode_metadata(node.metadata))
        except icechunk.InvalidInputError as error:
            reason = str(error).partition("\n")[0]
            raise NotRepresentableError(f"Icechunk refuses the metadata: {reason}", node=path or "/") from error

    def _write_virtual(self, path: str, manifest: Manifest, changed: NDArray[np.bool_]) -> None:
        locations = np.array([*map(self.locations.__getitem__, manifest.urls), ""], object)
        nothing = np.uint32(len(manifest.urls))
        for rows, first in _blocks(changed):
            ids = np.where(changed[rows], manifest.url_id[rows], nothing)
            self.store.set_virtual_refs_arr(
                self._at(path),
                ids.shape,
                locations[ids.reshape(-1)].tolist(),
                np.ascontiguousarray(manifest.offset[rows], np.uint64).reshape(-1),
                np.ascontiguousarray(manifest.length[rows], np.uint64).reshape(-1),
                validate_containers=False,  # once for every url, before anything was written
                arr_offset=(first, *[0] * (ids.ndim - 1)) if first else None,
                checksum=self.not_after,
            )

    async def _write_inline(self, path: str, chunks: Mapping[ChunkIndex, bytes]) -> None:
        for some in batched(chunks.items(), _INLINE_AT_ONCE):
            keys = (self._at(path, "/".join(("c", *map(str, index)))) for index, _ in some)
            await asyncio.gather(*(self._set(key, data) for key, (_, data) in zip(keys, some, strict=True)))

    async def _set(self, key: str, data: bytes) -> None:
        from zarr.core.buffer import default_buffer_prototype  # noqa: PLC0415  slow to import

        await self.store.set(key, default_buffer_prototype().buffer.from_bytes(data))

    def _at(self, *parts: str) -> str:
        return "/".join(filter(None, (self.path, *parts)))


def _blocks(changed: NDArray[np.bool_]) -> Iterator[tuple[Any, int]]:
    """Rows of a grid, few enough for one call, in which anything changed, and the number of the first."""
    if not changed.ndim:
        yield ..., 0
        return
    count = max(1, _BLOCK // max(1, math.prod(changed.shape[1:])))
    for first in range(0, changed.shape[0], count):
        rows = slice(first, first + count)
        if changed[rows].any():
            yield rows, first
