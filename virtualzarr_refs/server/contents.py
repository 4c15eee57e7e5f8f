"""What a server serves: representations by key, and the folders that they lie in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from virtualzarr_refs.listing import Entry

type Bytes = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Representation:
    """What is under a key, its bytes perhaps not read yet.

    Parameters
    ----------
    length : int
        In bytes.
    etag : str
        Another one for other bytes; without quotes.
    read : callable
        Reads from one byte to another.
    is_metadata : bool
        Whether it is JSON, else it is a chunk.
    """

    length: int
    etag: str
    read: Callable[[int, int], Awaitable[Bytes]]
    is_metadata: bool = False

    @classmethod
    def of_bytes(cls, data: bytes, *, is_metadata: bool = False) -> Representation:
        """The representation of bytes that are at hand."""

        async def read(start: int, stop: int) -> Bytes:
            return memoryview(data)[start:stop]

        return cls(len(data), digest(data), read, is_metadata)


class Contents(Protocol):
    """What a server serves."""

    async def find(self, key: str) -> Representation | None:
        """What is under a key; None if nothing is.

        Raises
        ------
        SourceError
            If its source cannot be looked at.
        DecodeError
            If it has to be decoded and cannot be.
        """
        ...

    def entries(self, folder: str) -> Iterator[tuple[Entry, int | None]]:
        """What lies in a folder, and the length of each where it is known without reading."""
        ...

    def close(self) -> None:
        """Close the sources."""
        ...


def digest(*parts: bytes) -> str:
    """A short text that differs where the parts do."""
    summary = blake2b(digest_size=16)
    for part in parts:
        summary.update(len(part).to_bytes(8))
        summary.update(part)
    return summary.hexdigest()
