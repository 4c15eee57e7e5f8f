"""Serves chunks as they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from virtualzarr_refs import listing
from virtualzarr_refs.documents import Documents
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.manifest import VirtualChunk
from virtualzarr_refs.reader import ReadOptions, ValueReader
from virtualzarr_refs.server.contents import Bytes, Representation, digest
from virtualzarr_refs.sources import SourceIdentity
from virtualzarr_refs.sources.checks import require_within
from virtualzarr_refs.value import Gather, Part, StoredValue


class StoredContents:
    """The values of a hierarchy, untouched.

    Parameters
    ----------
    group : VirtualGroup
        The root of the hierarchy.
    options : ReadOptions
        How its sources are read.
    consolidated : bool
        Whether a group's document holds those of the nodes beneath.
    """

    def __init__(self, group: VirtualGroup, options: ReadOptions, *, consolidated: bool = True) -> None:
        self._reader = ValueReader(group, options)
        self._documents = Documents(group, consolidated=consolidated)

    async def find(self, key: str) -> Representation | None:
        """What is under a key; its sources are looked at, but not read."""
        value = self._reader.resolve(key)
        if value is None:
            return None
        document = self._documents.find(key)
        if document is not None:
            return Representation.of_bytes(document, is_metadata=True)
        identities = await self._identities(value)

        async def read(start: int, stop: int) -> Bytes:
            return await self._reader.read_async(value.slice(start, stop))

        return Representation(value.length, _etag(value, identities), read)

    def entries(self, folder: str) -> Iterator[tuple[listing.Entry, int | None]]:
        """What lies in a folder, and the length of each value."""
        group = self._reader.group
        for entry in listing.entries(group, folder):
            yield entry, None if entry.is_folder else self._length(f"{folder}/{entry.name}" if folder else entry.name)

    def close(self) -> None:
        """Close the sources."""
        self._reader.close()

    def _length(self, key: str) -> int | None:
        document = self._documents.find(key)
        if document is not None:
            return len(document)
        value = self._reader.resolve(key)
        return None if value is None else value.length

    async def _identities(self, value: StoredValue) -> Sequence[SourceIdentity | None]:
        """The identity of each part's source; None for a part that is at hand.

        Raises
        ------
        SourceError
            If a source cannot be looked at, or is shorter than the value needs.
        """
        return [None if isinstance(part, bytes) else await self._identity(part) for part in value.parts]

    async def _identity(self, part: VirtualChunk | Gather) -> SourceIdentity:
        identity = await self._reader.identity_async(part.url)
        require_within(part.url, [part.span if isinstance(part, Gather) else part.byte_range], identity.size)
        return identity


def _etag(value: StoredValue, identities: Sequence[SourceIdentity | None]) -> str:
    facts = zip(value.parts, identities, strict=True)
    return digest(*(fact for part, identity in facts for fact in _facts(part, identity)))


def _facts(part: Part, identity: SourceIdentity | None) -> Iterator[bytes]:
    """What tells a part from others."""
    if isinstance(part, bytes):
        yield part
    elif isinstance(part, Gather):
        yield from (part.offset.tobytes(), part.ends.tobytes(), repr((part.url, identity)).encode())
    else:
        yield repr((part, identity)).encode()
