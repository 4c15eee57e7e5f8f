"""Where a reference set is written: a folder on disk, or one behind an fsspec filesystem.

A file is never seen half written: it gets its name when all of its bytes are there.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, cast

from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.references.folder_exchange import exchange
from virtualzarr_refs.sources.location import join, local_path
from virtualzarr_refs.sources.redaction import redact
from virtualzarr_refs.sources.translation import client_errors, translate

_WHOLE_OR_NOTHING = frozenset("s3 s3a gs gcs abfs abfss az adl oci oss r2 memory".split())
"""Schemes of stores that show an object only once it was written as a whole, and have no folders to make."""


class Target(Protocol):
    """What can be done at the place where a set is written; every url lies there."""

    def exists(self, url: str) -> bool:
        """Whether there is anything at `url`."""
        ...

    def is_folder(self, url: str) -> bool:
        """Whether there is a folder at `url`."""
        ...

    def write(self, url: str, data: bytes) -> None:
        """Write a file whole or not at all, and make its folder if there is none."""
        ...

    def create(self, url: str, data: bytes) -> None:
        """Write a small file that must not be there yet; raises FileExistsError if it is."""
        ...

    def make_folder(self, url: str) -> None:
        """Make a folder in one that is there, unless it is there itself."""
        ...

    def names(self, folder: str) -> list[str]:
        """Names of what is in a folder; none if there is no such folder."""
        ...

    def files(self, folder: str) -> list[str]:
        """Names of all files in a folder and those beneath it, relative to it."""
        ...

    def replacing(self, folder: str) -> AbstractContextManager[str]:
        """Gives the url of a folder to write into, which takes the place of `folder` and all that is in it.

        On this machine's disks that is in one step, at the end, if nothing failed.
        """
        ...

    def remove(self, url: str) -> None:
        """Remove a file, and its folder if that leaves it empty."""
        ...


def open_target(url: str, storage_options: Mapping[str, object] | None) -> Target:
    """The target that a url lies in.

    Raises
    ------
    UnsupportedError
        If nothing can be written there.
    """
    if local_path(url) is not None:
        return LocalTarget()
    if "::" in url:
        raise UnsupportedError("a reference set cannot be written through a chain of urls", url=redact(url))
    return FsspecTarget(url, storage_options or {})


class LocalTarget:
    """Folders of this machine."""

    def exists(self, url: str) -> bool:
        """See `Target.exists`."""
        return os.path.lexists(_path(url))

    def is_folder(self, url: str) -> bool:
        """See `Target.is_folder`."""
        return _path(url).is_dir()

    def write(self, url: str, data: bytes) -> None:
        """See `Target.write`; the bytes are on disk before the name is. Raises OSError."""
        path = _path(url).resolve()  # a link keeps pointing where it does
        path.parent.mkdir(exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)

    def create(self, url: str, data: bytes) -> None:
        """See `Target.create`. Raises OSError."""
        with _path(url).open("xb") as file:
            file.write(data)

    def make_folder(self, url: str) -> None:
        """See `Target.make_folder`. Raises OSError."""
        path = _path(url)
        if not path.is_dir():
            path.mkdir(exist_ok=True)
            _sync_folder(path.parent)

    def names(self, folder: str) -> list[str]:
        """See `Target.names`."""
        path = _path(folder)
        return sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []

    def files(self, folder: str) -> list[str]:
        """See `Target.files`."""
        path = _path(folder)
        return [file.relative_to(path).as_posix() for file in path.rglob("*") if not file.is_dir()]

    @contextmanager
    def replacing(self, folder: str) -> Generator[str]:
        """See `Target.replacing`. Raises OSError."""
        path = _path(folder).resolve()
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        temporary.mkdir()
        try:
            yield str(temporary)
            if path.exists():
                exchange(temporary, path)
            else:
                temporary.rename(path)
            _sync_folder(path.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def remove(self, url: str) -> None:
        """See `Target.remove`."""
        path = _path(url)
        path.unlink(missing_ok=True)
        with suppress(OSError):  # other files are in it
            path.parent.rmdir()


def _path(url: str) -> Path:
    return Path(cast("str", local_path(url)))


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder last through a power failure, where the system can."""
    with suppress(OSError):  # not every system and filesystem opens folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class FsspecTarget:
    """Folders behind an fsspec filesystem.

    Parameters
    ----------
    url : str
        Any url of the filesystem.
    storage_options : mapping
        Its options.

    Raises
    ------
    UnsupportedError
        If there is no such filesystem.
    """

    def __init__(self, url: str, storage_options: Mapping[str, object]) -> None:
        from fsspec.core import url_to_fs  # noqa: PLC0415  slow to import

        try:
            self._fs: Any = url_to_fs(url, **storage_options)[0]
        except (ImportError, ValueError) as error:
            raise UnsupportedError(
                f"fsspec cannot open this url ({redact(str(error))}); check its scheme and the storage options",
                url=redact(url),
            ) from None
        self._is_whole_or_nothing = url.partition("://")[0].lower() in _WHOLE_OR_NOTHING

    def exists(self, url: str) -> bool:
        """See `Target.exists`. Raises SourceError."""
        with _translated(url):
            self._fs.invalidate_cache()
            return bool(self._fs.exists(self._path(url)))

    def is_folder(self, url: str) -> bool:
        """See `Target.is_folder`. Raises SourceError."""
        with _translated(url):
            return bool(self._fs.isdir(self._path(url)))

    def write(self, url: str, data: bytes) -> None:
        """See `Target.write`. Raises SourceError."""
        path = self._path(url)
        with _translated(url):
            if self._is_whole_or_nothing:
                self._fs.pipe_file(path, data)
            else:
                self._write_and_rename(path, data)

    def _write_and_rename(self, path: str, data: bytes) -> None:
        folder, _, name = path.rpartition("/")
        temporary = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
        self._fs.makedirs(folder, exist_ok=True)
        try:
            self._fs.pipe_file(temporary, data)
            self._fs.mv(temporary, path)
        except BaseException:
            with suppress(*client_errors()):
                self._fs.rm_file(temporary)
            raise

    def create(self, url: str, data: bytes) -> None:
        """See `Target.create`. Raises SourceError."""
        if self.exists(url):
            raise FileExistsError(errno.EEXIST, "it is there already", redact(url))
        self.write(url, data)

    def make_folder(self, url: str) -> None:
        """See `Target.make_folder`. Raises SourceError."""
        if not self._is_whole_or_nothing:
            with _translated(url):
                self._fs.makedirs(self._path(url), exist_ok=True)

    def names(self, folder: str) -> list[str]:
        """See `Target.names`. Raises SourceError."""
        path = self._path(folder)
        with _translated(folder):
            self._fs.invalidate_cache()
            found = self._fs.ls(path, detail=False) if self._fs.exists(path) else []
        return sorted(name.rstrip("/").rpartition("/")[2] for name in found)

    def files(self, folder: str) -> list[str]:
        """See `Target.files`. Raises SourceError."""
        path = self._path(folder).rstrip("/")
        with _translated(folder):
            self._fs.invalidate_cache()
            return [name.removeprefix(f"{path}/") for name in self._fs.find(path)] if self._fs.exists(path) else []

    @contextmanager
    def replacing(self, folder: str) -> Generator[str]:
        """See `Target.replacing`. What is there is removed first, the root before the rest. Raises SourceError."""
        for name in sorted(self.files(folder), key=lambda name: name.count("/")):
            self.remove(join(folder, name))
        yield folder

    def remove(self, url: str) -> None:
        """See `Target.remove`. Raises SourceError."""
        path = self._path(url)
        with _translated(url):
            if self._fs.exists(path):
                self._fs.rm_file(path)
        if not self._is_whole_or_nothing:
            with suppress(*client_errors()):  # other files are in it
                self._fs.rmdir(path.rpartition("/")[0])

    def _path(self, url: str) -> str:
        return self._fs._strip_protocol(url)  # noqa: SLF001  what every caller of fsspec has to use


@contextmanager
def _translated(url: str) -> Generator[None]:
    try:
        yield
    except NotImplementedError:
        raise UnsupportedError("this filesystem cannot be written to", url=redact(url)) from None
    except client_errors() as error:
        raise translate(error, url) from None
