"""A store for VirtualiZarr's parsers that holds one source of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceMissingError
from virtualzarr_refs.sources import Source
from virtualzarr_refs.sources.redaction import redact


@dataclass(frozen=True, slots=True)
class WholeFile:
    """What `SourceStore.get` answers, in the form of obstore's ``GetResult``."""

    data: memoryview
    meta: dict[str, Any]

    def buffer(self) -> memoryview:
        """The bytes."""
        return self.data

    def bytes(self) -> memoryview:
        """The bytes."""
        return self.data


@dataclass(frozen=True, slots=True)
class SourceStore:
    """The reading part of obspec's protocols over one source.

    Parameters
    ----------
    source : Source
        Reads.
    path : str
        By which the source is asked for.
    """

    source: Source
    path: str

    def head(self, path: str) -> dict[str, Any]:
        """What is known of the source. Raises SourceError, as all methods do."""
        self._require(path)
        identity = self.source.identity()
        return {
            "path": path,
            "size": identity.size,
            "e_tag": identity.etag,
            "last_modified": datetime.fromtimestamp(identity.last_modified or 0, UTC),
            "version": None,
        }

    def get(self, path: str, *, options: object = None) -> WholeFile:  # noqa: ARG002  conditions are not asked for
        """The whole source."""
        meta = self.head(path)
        return WholeFile(self.source.read([ByteRange(0, meta["size"])])[0], meta)

    def get_range(self, path: str, *, start: int, end: int | None = None, length: int | None = None) -> memoryview:
        """One range, by its end or its length, clipped to what is there."""
        ends, lengths = (None if n is None else [n] for n in (end, length))
        return self.get_ranges(path, starts=[start], ends=ends, lengths=lengths)[0]

    def get_ranges(
        self,
        path: str,
        *,
        starts: Sequence[int],
        ends: Sequence[int] | None = None,
        lengths: Sequence[int] | None = None,
    ) -> list[memoryview]:
        """Several ranges, by their ends or their lengths, clipped to what is there."""
        size = self.head(path)["size"]
        stops = ends if ends is not None else [s + n for s, n in zip(starts, lengths or (), strict=True)]
        clipped = ((min(start, size), min(stop, size)) for start, stop in zip(starts, stops, strict=True))
        return self.source.read([ByteRange(start, stop - start) for start, stop in clipped])

    async def head_async(self, path: str) -> dict[str, Any]:
        """See `head`."""
        return await asyncio.to_thread(self.head, path)

    async def get_async(self, path: str, *, options: object = None) -> WholeFile:
        """See `get`."""
        return await asyncio.to_thread(self.get, path, options=options)

    async def get_range_async(self, path: str, **ends: Any) -> memoryview:  # noqa: ANN401  passed on
        """See `get_range`."""
        return await asyncio.to_thread(self.get_range, path, **ends)

    async def get_ranges_async(self, path: str, **ends: Any) -> list[memoryview]:  # noqa: ANN401  passed on
        """See `get_ranges`."""
        return await asyncio.to_thread(self.get_ranges, path, **ends)

    def _require(self, path: str) -> None:
        if path != self.path:
            raise SourceMissingError(
                f"the parser also asks for {redact(path)!r}; pass from_virtualizarr a registry that has both files"
            )
