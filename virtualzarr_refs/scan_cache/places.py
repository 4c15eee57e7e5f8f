"""Where entries are kept: in a folder, or each beside its source."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceError, UnsupportedError
from virtualzarr_refs.sources import Backend, open_source
from virtualzarr_refs.sources.location import local_path
from virtualzarr_refs.sources.redaction import redact
from virtualzarr_refs.sources.translation import client_errors, translate

SUFFIX = ".vzmeta"

_MAP_FROM = 1024 * 1024
"""Bytes from which a local file is mapped and not read: a process may only have so many mappings."""


class Place(Protocol):
    """Where the entry of one source is kept."""

    def load(self) -> Any:  # noqa: ANN401  an Arrow buffer or None
        """The bytes there; None if there are none, or they cannot be read."""
        ...

    def store(self, data: bytes) -> None:
        """Put bytes there, all or nothing, whoever else does. Raises SourceError and UnsupportedError."""
        ...


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """A file of this machine."""

    path: str

    def load(self) -> Any:  # noqa: ANN401  an Arrow buffer or None
        """See `Place.load`."""
        try:
            with open(self.path, "rb") as file:  # noqa: PTH123  `Path` takes as long as the reading
                if os.fstat(file.fileno()).st_size < _MAP_FROM:
                    return pa.py_buffer(file.read())
            with pa.memory_map(self.path) as mapped:
                return mapped.read_buffer()
        except OSError:
            return None

    def store(self, data: bytes) -> None:
        """See `Place.store`. Not flushed to disk: what a power failure leaves of a file has another checksum."""
        try:
            self._replace(data)
        except OSError as error:
            raise translate(error, self.path) from error

    def _replace(self, data: bytes) -> None:
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            with temporary.open("xb") as file:
                file.write(data)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@dataclass(frozen=True, slots=True)
class RemotePlace:
    """A file behind a backend that reads; what writes is fsspec."""

    url: str
    storage_options: Mapping[str, Any] | None = field(repr=False)
    backend: Backend

    def load(self) -> Any:  # noqa: ANN401  an Arrow buffer or None
        """See `Place.load`."""
        source = open_source(self.url, self.storage_options, self.backend)
        with suppress(SourceError):
            return pa.py_buffer(source.read([ByteRange(0, source.identity().size)])[0])
        return None

    def store(self, data: bytes) -> None:
        """See `Place.store`."""
        from fsspec.core import url_to_fs  # noqa: PLC0415  slow to import

        if self.backend not in ("auto", "fsspec"):
            raise UnsupportedError('only fsspec writes beside remote files; use backend="fsspec"', url=redact(self.url))
        try:
            filesystem, path = url_to_fs(self.url, **(self.storage_options or {}))
            filesystem.pipe_file(path, data)
        except NotImplementedError:
            raise UnsupportedError("this filesystem cannot be written to", url=redact(self.url)) from None
        except client_errors() as error:
            raise translate(error, self.url) from None


def place_in_folder(folder: str, key: str) -> LocalPlace:
    """The place of an entry in a folder, which has to be a local one.

    Raises
    ------
    UnsupportedError
        If it is not.
    """
    path = local_path(folder)
    if path is None:
        raise UnsupportedError(
            'a cache is a local folder, or "sidecar" for a file beside each source', url=redact(folder)
        )
    name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:40]
    return LocalPlace(os.path.join(path, name[:2], f"{name[2:]}{SUFFIX}"))  # noqa: PTH118  on the fast path


def place_beside(url: str, storage_options: Mapping[str, Any] | None, backend: Backend) -> Place:
    """The place of an entry beside its source."""
    path = local_path(url)
    return RemotePlace(url + SUFFIX, storage_options, backend) if path is None else LocalPlace(path + SUFFIX)
