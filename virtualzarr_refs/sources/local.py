"""Local files, memory-mapped: reading a range costs no copy and no system call but one `stat`."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Self

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceChangedError, SourceError, UnsupportedError
from virtualzarr_refs.sources.checks import require_same, require_within
from virtualzarr_refs.sources.identity import SourceIdentity
from virtualzarr_refs.sources.location import local_path
from virtualzarr_refs.sources.redaction import redact
from virtualzarr_refs.sources.translation import translate


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What `stat` says about one version of a file; finer than an identity, and good on this machine only."""

    device: int
    inode: int
    size: int
    modified: int  # nanoseconds since the epoch

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    @property
    def identity(self) -> SourceIdentity:
        return SourceIdentity(self.size, last_modified=self.modified / 1e9)


@dataclass(frozen=True, slots=True)
class _Mapping:
    """The bytes of a file, and the stamp it had when they were mapped."""

    view: memoryview
    stamp: _Stamp


class LocalSource:
    """A local file, mapped into memory.

    Parameters
    ----------
    url : str
        A plain path, or a ``file://`` or ``local://`` url.

    Raises
    ------
    UnsupportedError
        If the url is not local.

    Notes
    -----
    Touching a mapped page beyond the end of a file that was cut short kills the process, and one that was
    overwritten shows new bytes. So every read first asks for the file's status, and raises SourceChangedError if
    the file at this path is no longer the one that was mapped.
    """

    def __init__(self, url: str) -> None:
        path = local_path(url)
        if path is None:
            raise UnsupportedError(
                'the local backend reads local files; use backend="auto" for other urls', url=redact(url)
            )
        self.url = url
        self._restore(Path(path).absolute())

    def _restore(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._mapping: _Mapping | None = None
        self._identity: SourceIdentity | None = None

    def identity(self) -> SourceIdentity:
        """Size and time of modification of the file when it was first looked at; does not open it."""
        if self._identity is None:
            with self._lock:
                self._identity = self._identity or _Stamp.of(self._status()).identity
        return self._identity

    def read(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Slices of the mapping, without a copy. See `Source.read`."""
        mapping = self._mapped()
        self._require_unchanged(mapping.stamp)
        require_within(self.url, ranges, mapping.stamp.size)
        return [mapping.view[wanted.offset : wanted.stop] for wanted in ranges]

    def close(self) -> None:
        """Forget the mapping; the operating system unmaps it with the last buffer that was handed out."""
        with self._lock:
            self._mapping = None

    def _mapped(self) -> _Mapping:
        mapping = self._mapping
        if mapping is not None:
            return mapping
        with self._lock:
            if self._mapping is None:
                self._mapping = self._map()
            return self._mapping

    def _map(self) -> _Mapping:
        self._status()  # refuses a pipe, the opening of which would wait for ever
        try:
            with self._path.open("rb") as file:
                stamp = _Stamp.of(os.fstat(file.fileno()))
                view = memoryview(mmap.mmap(file.fileno(), stamp.size, access=mmap.ACCESS_READ) if stamp.size else b"")
        except (OSError, ValueError) as error:  # ValueError: the file shrank between the two calls
            raise translate(error, self.url) from error
        self._identity = self._identity or stamp.identity
        require_same(self.url, self._identity, stamp.identity)
        return _Mapping(view, stamp)

    def _require_unchanged(self, before: _Stamp) -> None:
        if _Stamp.of(self._status()) != before:
            raise SourceChangedError(
                "the file was replaced or rewritten since it was opened; scan it again", url=redact(self.url)
            )

    def _status(self) -> os.stat_result:
        try:
            status = self._path.stat()
        except OSError as error:
            raise translate(error, self.url) from error
        except ValueError as error:  # a zero byte in the path
            raise translate(FileNotFoundError(str(error)), self.url) from error
        if not stat.S_ISREG(status.st_mode):
            raise SourceError("this is no regular file; only regular files can be mapped", url=redact(self.url))
        return status

    def __getstate__(self) -> dict[str, object]:
        return {"url": self.url, "path": self._path}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.url = str(state["url"])
        self._restore(Path(str(state["path"])))

    def __repr__(self) -> str:
        return f"LocalSource({self.url!r})"
