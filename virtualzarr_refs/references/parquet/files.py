"""Reading the files of a set: each whole, and the partitions that were read last kept in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceMissingError
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.sources import open_source
from virtualzarr_refs.sources.location import join
from virtualzarr_refs.sources.redaction import redact

_KEPT_CHUNKS = 1 << 22
"""Chunks whose partitions are kept in memory, for all arrays of a set: some 70 MB."""


class PartitionCache:
    """The partitions that were used last. Safe to use from many threads; a copy begins empty."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Manifest] = OrderedDict()
        self._chunks = 0

    def get(self, name: str) -> Manifest | None:
        """A partition, if it is here."""
        with self._lock:
            if name not in self._kept:
                return None
            self._kept.move_to_end(name)
            return self._kept[name]

    def put(self, name: str, partition: Manifest) -> None:
        """Keep a partition, and let go of those that were not used for longest."""
        with self._lock:
            if name in self._kept:
                return
            self._kept[name] = partition
            self._chunks += partition.size
            while self._chunks > _KEPT_CHUNKS and len(self._kept) > 1:
                self._chunks -= self._kept.popitem(last=False)[1].size

    def __reduce__(self) -> tuple[type[PartitionCache], tuple[()]]:
        return PartitionCache, ()


@dataclass(frozen=True, slots=True)
class SetFiles:
    """The folder of a set.

    Parameters
    ----------
    folder : str
        Its url.
    storage_options : mapping, optional
        Of its filesystem.
    cache : PartitionCache
        For its partitions.
    """

    folder: str
    storage_options: Mapping[str, object] | None = field(default=None, repr=False)
    cache: PartitionCache = field(default_factory=PartitionCache, repr=False)

    def url(self, name: str) -> str:
        """The url of a file of the set."""
        return join(self.folder, name)

    def read(self, name: str) -> bytes | memoryview:
        """The bytes of a file. Raises SourceError."""
        return read_whole(self.url(name), self.storage_options)

    def find(self, name: str) -> bytes | memoryview | None:
        """The bytes of a file; None if there is no such file. Raises SourceError."""
        try:
            return self.read(name)
        except SourceMissingError:
            return None


def read_whole(url: str, storage_options: Mapping[str, object] | None) -> bytes | memoryview:
    """All bytes of a file. Raises SourceError."""
    source = open_source(url, storage_options)
    try:
        return bytes(source.read([ByteRange(0, source.identity().size)])[0])
    except SourceMissingError as error:
        raise error.at(url=redact(url)) from error.__cause__
    finally:
        source.close()
