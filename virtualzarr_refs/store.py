"""A hierarchy as a read-only store of zarr-python."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NoReturn, Self, override

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from virtualzarr_refs import listing
from virtualzarr_refs.byte_range import MAX_GAP, MAX_SIZE
from virtualzarr_refs.codecs.stored_bounds import StoredBound
from virtualzarr_refs.hierarchy import METADATA_KEY, VirtualArray, VirtualGroup
from virtualzarr_refs.reader import Bytes, ReadOptions, ValueReader
from virtualzarr_refs.sources import Backend, OnChange
from virtualzarr_refs.value import StoredValue

type _Buffers = list[Buffer | None]  # the name `list` means a method inside the class
type _Requests = Sequence[ByteRequest | None]


class VirtualStore(Store):
    """A read-only Zarr store over a hierarchy whose chunks lie in other files.

    Safe to use from many threads. Pickled with its references and without its open sources.

    Parameters
    ----------
    group : VirtualGroup
        The root of the hierarchy.
    storage_options : mapping, optional
        Options for every source that is not local, such as credentials. They are part of a pickle, and never shown.
    backend : {"auto", "local", "fsspec", "obstore"}
        Who reads the sources.
    base : str, optional
        Folder, or url of one, against which relative urls of sources are resolved.
    max_gap, max_size : int
        Limits on the joining of byte ranges into one request, in bytes.
    on_change : {"error", "warn", "ignore"}
        What to do about a source that is not what it was when it was scanned: raise SourceChangedError, or read what
        is there, with a SourceChangedWarning or without.

    Notes
    -----
    A source that cannot be read raises SourceError, from every method and through every reader of zarr: a chunk
    that is there is never served as a missing one.
    """

    def __init__(
        self,
        group: VirtualGroup,
        *,
        storage_options: Mapping[str, Any] | None = None,
        backend: Backend = "auto",
        base: str | None = None,
        max_gap: int = MAX_GAP,
        max_size: int = MAX_SIZE,
        on_change: OnChange = "error",
    ) -> None:
        super().__init__(read_only=True)
        self._reader = ValueReader(group, ReadOptions(storage_options, backend, base, max_gap, max_size, on_change))
        self._bounds = _Bounds(group)

    @property
    def group(self) -> VirtualGroup:
        """The root of the hierarchy."""
        return self._reader.group

    @property
    def reader(self) -> ValueReader:
        """What reads the values."""
        return self._reader

    # ── what the store can do ────────────────────────────────────────────────────────────────────────────────────────

    @property
    @override
    def supports_writes(self) -> bool:
        """False."""
        return False

    @property
    @override
    def supports_deletes(self) -> bool:
        """False."""
        return False

    @property
    @override
    def supports_listing(self) -> bool:
        """True."""
        return True

    @property
    def _supports_sync_io(self) -> bool:
        # Asked by zarr's FusedCodecPipeline, which reads one chunk after the other through `get_sync`. Remote
        # chunks come faster through the asynchronous methods, which read many at a time.
        return self._reader.is_local

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @override
    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The value under a key, or a part of it; None if nothing is there.

        Raises
        ------
        SourceError
            If the bytes cannot be had.
        ValueError
            If the byte range is no request of zarr's, or negative.
        """
        value = self._requested(key, byte_range)
        if value is None:
            return None
        return _buffer(self._bounds.checked(key, await self._reader.read_async(value), byte_range), prototype)

    def get_sync(
        self, key: str, *, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """What `get` does, in the calling thread."""
        value = self._requested(key, byte_range)
        if value is None:
            return None
        return _buffer(self._bounds.checked(key, self._reader.read([value])[0], byte_range), prototype)

    @override
    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> _Buffers:
        """Several values or parts of values, in the order asked for, neighbours read together."""
        values = [self._requested(key, byte_range) for key, byte_range in key_ranges]
        found = iter(await self._reader.read_many_async([value for value in values if value is not None]))
        return [None if value is None else _buffer(next(found), prototype) for value in values]

    @override
    async def _get_many(
        self, requests: Iterable[tuple[str, BufferPrototype, ByteRequest | None]]
    ) -> AsyncGenerator[tuple[str, Buffer | None], None]:
        asked = list(requests)
        values = [self._requested(key, byte_range) for key, _, byte_range in asked]
        found = iter(await self._reader.read_many_async([value for value in values if value is not None]))
        for (key, prototype, byte_range), value in zip(asked, values, strict=True):
            found_there = None if value is None else self._bounds.checked(key, next(found), byte_range)
            yield key, None if found_there is None else _buffer(found_there, prototype)

    @override
    async def get_ranges(
        self, key: str, byte_ranges: _Requests, *, prototype: BufferPrototype, **_: object
    ) -> AsyncIterator[Sequence[tuple[int, Buffer | None]]]:
        """Many parts of one value, neighbours read together; zarr reads inner chunks of shards in this way.

        The limits on joining are the store's own.

        Yields
        ------
        sequence of (int, Buffer)
            All parts at once, each with its position in `byte_ranges`.

        Raises
        ------
        ExceptionGroup
            Of one FileNotFoundError, as zarr expects it, if nothing is under the key.
        SourceError
            If the bytes cannot be had.
        """
        if byte_ranges:
            parts = await self._reader.read_many_async(self._parts(key, byte_ranges))
            yield [(i, _buffer(part, prototype)) for i, part in enumerate(parts)]

    @override
    def get_ranges_sync(
        self, key: str, byte_ranges: _Requests, *, prototype: BufferPrototype, **_: object
    ) -> Sequence[tuple[int, Buffer | None]]:
        """What `get_ranges` does, in the calling thread."""
        parts = self._reader.read(self._parts(key, byte_ranges)) if byte_ranges else []
        return [(i, _buffer(part, prototype)) for i, part in enumerate(parts)]

    @override
    async def exists(self, key: str) -> bool:
        """Whether something is under a key. No source is asked."""
        return self._reader.resolve(key) is not None

    @override
    async def getsize(self, key: str) -> int:
        """Size of a value in bytes, known without reading it.

        Raises
        ------
        FileNotFoundError
            If nothing is under the key.
        """
        value = self._reader.resolve(key)
        if value is None:
            raise FileNotFoundError(key)
        return value.length

    # ── listing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @override
    async def is_empty(self, prefix: str) -> bool:
        """Whether no key lies in the folder `prefix`."""
        return not listing.is_folder(self.group, prefix.strip("/"))

    @override
    async def list(self) -> AsyncIterator[str]:
        """All keys."""
        for key in self.group.keys():  # noqa: SIM118  no mapping
            yield key

    @override
    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """All keys that start with `prefix`."""
        for key in listing.keys(self.group, prefix):
            yield key

    @override
    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """The names in the folder `prefix`, of keys and of folders."""
        for entry in listing.entries(self.group, prefix.strip("/")):
            yield entry.name

    # ── writing, which is refused ────────────────────────────────────────────────────────────────────────────────────

    @override
    async def set(self, key: str, value: Buffer) -> NoReturn:
        """Refused with a ValueError."""
        self._refuse()

    @override
    async def delete(self, key: str) -> NoReturn:
        """Refused with a ValueError."""
        self._refuse()

    def set_sync(self, key: str, value: Buffer) -> NoReturn:  # noqa: ARG002  zarr wants the method to be there
        """Refused with a ValueError."""
        self._refuse()

    def delete_sync(self, key: str) -> NoReturn:  # noqa: ARG002  zarr wants the method to be there
        """Refused with a ValueError."""
        self._refuse()

    @override
    def with_read_only(self, read_only: bool = False) -> Self:
        """A store over the same hierarchy and sources; a writable one is refused with a ValueError."""
        if not read_only:
            self._refuse()
        twin = copy(self)
        Store.__init__(twin, read_only=True)
        return twin

    def _refuse(self) -> NoReturn:
        raise ValueError("store was opened in read-only mode and does not support writing: it only refers to chunks")

    # ── the object itself ────────────────────────────────────────────────────────────────────────────────────────────

    @override
    def close(self) -> None:
        """Close the store and its sources. A later read opens them again."""
        super().close()
        self._reader.close()

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VirtualStore):
            return False
        return self._reader.options == other._reader.options and self.group.equals(other.group)

    __hash__ = None  # equal stores may hold different objects, and comparing references is too slow for a set

    def __repr__(self) -> str:
        return f"VirtualStore({self.group!r})"

    # ── parts of the above ───────────────────────────────────────────────────────────────────────────────────────────

    def _requested(self, key: str, request: ByteRequest | None) -> StoredValue | None:
        value = self._reader.resolve(key)
        return None if value is None else _part(value, request)

    def _parts(self, key: str, requests: _Requests) -> Sequence[StoredValue]:
        value = self._reader.resolve(key)
        if value is None:
            raise ExceptionGroup("nothing is under the key", [FileNotFoundError(key)])
        return [_part(value, request) for request in requests]


class _Bounds:
    """The bounds on the chunks of a hierarchy, each array's worked out once."""

    def __init__(self, group: VirtualGroup) -> None:
        self._group = group
        self._of_array: dict[str, StoredBound | None] = {}

    def checked(self, key: str, data: Bytes, request: ByteRequest | None) -> Bytes:
        """A value, if it is no chunk that decodes to more than it should."""
        if request is None and not key.endswith(METADATA_KEY):
            bound = self._bound(key)
            if bound is not None:
                bound.require(data)
        return data

    def _bound(self, key: str) -> StoredBound | None:
        node: VirtualGroup | VirtualArray | None = self._group
        for end, name in _parts_of(key):
            node = node.arrays.get(name) or node.groups.get(name)
            if isinstance(node, VirtualArray):
                path = key[:end]
                if path not in self._of_array:
                    self._of_array[path] = StoredBound.of(node.metadata)
                return self._of_array[path]
            if node is None:
                break
        return None


def _parts_of(key: str) -> Iterator[tuple[int, str]]:
    """The parts of a key, each after where it ends."""
    end = -1
    for name in key.split("/"):
        end += 1 + len(name)
        yield end, name


def _part(value: StoredValue, request: ByteRequest | None) -> StoredValue:
    """The part of a value that zarr asks for, clipped to what is there."""
    match request:
        case None:
            return value
        case RangeByteRequest(start, end) if min(start, end) >= 0:
            return value.slice(start, end)
        case OffsetByteRequest(offset) if offset >= 0:
            return value.slice(offset)
        case SuffixByteRequest(suffix) if suffix >= 0:
            return value.slice(max(0, value.length - suffix))
        case _:
            raise ValueError(f"Unexpected byte_range, got {request}.")  # zarr's own words


def _buffer(data: bytes | memoryview, prototype: BufferPrototype | None) -> Buffer:
    return (prototype or default_buffer_prototype()).buffer.from_bytes(data)
