"""A hierarchy as a read-only fsspec filesystem: store keys are its files."""

from __future__ import annotations

import asyncio
import errno
import os
import pickle
from collections.abc import Iterable, Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn, cast, override

from fsspec.asyn import AsyncFileSystem
from fsspec.spec import AbstractBufferedFile
from fsspec.utils import tokenize

from virtualzarr_refs import listing
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.reader import ReadOptions, ValueReader
from virtualzarr_refs.references import open_refs
from virtualzarr_refs.value import StoredValue

type Info = dict[str, Any]

type Refs = str | os.PathLike[str] | Mapping[str, Any]

_OPEN_OPTIONS = ("allow", "mask_fill_value")
_READ_OPTIONS = ("backend", "base", "max_gap", "max_size", "on_change")


class VirtualFileSystem(AsyncFileSystem):
    """A read-only filesystem over a hierarchy whose chunks lie in other files.

    Registered with fsspec as ``vzrefs``; the options have the names that kerchunk's reference filesystem gave them.

    Parameters
    ----------
    group : VirtualGroup, optional
        The root of the hierarchy.
    refs : str, path or mapping, optional
        A reference set to open instead; see `virtualzarr_refs.open_refs`.
    fo : str or mapping, optional
        The same as `refs`; fsspec sets it for chained urls, such as ``vzrefs::s3://bucket/refs.json``.
    target_protocol : str, optional
        Protocol of the reference set, where `fo` does not say it.
    target_options : mapping, optional
        Options of the filesystem that the reference set lies on; by default those of the sources.
    remote_options, storage_options : mapping, optional
        Options for every source that is not local, such as credentials.
    **options
        ``allow`` and ``mask_fill_value``, as `virtualzarr_refs.open_refs` has them; ``backend``, ``base``, ``max_gap``,
        ``max_size`` and ``on_change``, as `virtualzarr_refs.store.VirtualStore` has them; and what every fsspec
        filesystem knows, such as ``asynchronous``.

    Raises
    ------
    ValueError
        If not exactly one of `group`, `refs` and `fo` is given.

    Notes
    -----
    A source that cannot be read raises SourceError and never FileNotFoundError, which zarr would take for a missing
    chunk.

    Examples
    --------
    >>> from virtualzarr_refs.hierarchy import VirtualGroup
    >>> VirtualFileSystem(VirtualGroup()).ls("", detail=False)
    ['zarr.json']
    """

    protocol = "vzrefs"
    # fsspec finds an instance again by the text of its arguments, which does not tell groups apart.
    cachable = False

    def __init__(
        self,
        group: VirtualGroup | None = None,
        *,
        refs: Refs | None = None,
        fo: Refs | None = None,
        target_protocol: str | None = None,
        target_options: Mapping[str, Any] | None = None,
        remote_options: Mapping[str, Any] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        **options: Any,  # noqa: ANN401  fsspec's own options are passed on
    ) -> None:
        open_options, read_options = _taken(options, _OPEN_OPTIONS), _taken(options, _READ_OPTIONS)
        super().__init__(**options)
        if sum(given is not None for given in (group, refs, fo)) != 1:
            raise ValueError("give one of group=, a VirtualGroup, and refs=, the url of a reference set")
        sources = {**(storage_options or {}), **(remote_options or {})}
        if group is None:
            chosen = refs if refs is not None else _complete(cast("Refs", fo), target_protocol)
            options = sources if target_options is None else dict(target_options)
            group = open_refs(chosen, storage_options=options, **open_options)
        self._reader = ValueReader(group, ReadOptions(sources, **read_options))

    @property
    def group(self) -> VirtualGroup:
        """The root of the hierarchy."""
        return self._reader.group

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @override
    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        """The bytes of a file from `start` to `end`, clipped as Python slices are."""
        value = self._value(path).slice(start or 0, end)
        return bytes(await self._reader.read_async(value))

    @override
    async def _get_file(self, rpath: str, lpath: str, **_: Any) -> None:
        """Copy one file to a local path."""
        data = None if await self._isdir(rpath) else await self._cat_file(rpath)
        await asyncio.to_thread(_write, Path(lpath), data)

    @override
    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> VirtualFile:
        """A file object that fetches ranges of the value as they are read."""
        if mode != "rb":
            self._refuse()
        options = {**options, "block_size": block_size, "cache_options": cache_options}
        return VirtualFile(self, path, size=self._value(path).length, **options)

    def read_range(self, path: str, start: int, end: int) -> bytes:
        """The bytes of a file from `start` to `end`, read in the calling thread."""
        return bytes(self._reader.read([self._value(path).slice(start, end)])[0])

    # ── listing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @override
    async def _info(self, path: str, **_: Any) -> Info:
        path = self._strip_protocol(path)
        value = self._reader.resolve(path)
        if value is not None:
            return _file(path, value)
        if listing.is_folder(self.group, path):
            return _folder(path)
        raise _absent(path)

    @override
    async def _ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """What lies in a folder, or the file itself."""
        path = self._strip_protocol(path)
        infos = [self._entry_info(path, entry) for entry in listing.entries(self.group, path)]
        infos = infos or [await self._info(path)]
        return infos if detail else [info["name"] for info in infos]

    @override
    async def _find(self, path: str, maxdepth: int | None = None, withdirs: bool = False, **options: Any) -> Any:
        """The files beneath a path, without walking from folder to folder where that is not asked for."""
        path = self._strip_protocol(path)
        if maxdepth is not None or withdirs or not listing.is_folder(self.group, path):
            return await super()._find(path, maxdepth=maxdepth, withdirs=withdirs, **options)
        keys = sorted(listing.keys(self.group, path and f"{path}/"))
        return {key: _file(key, self._value(key)) for key in keys} if options.get("detail") else keys

    @override
    async def _isfile(self, path: str) -> bool:
        return self._reader.resolve(self._strip_protocol(path)) is not None

    @override
    async def _isdir(self, path: str) -> bool:
        return listing.is_folder(self.group, self._strip_protocol(path))

    @override
    async def _exists(self, path: str, **_: Any) -> bool:
        return await self._isfile(path) or await self._isdir(path)

    @override
    async def _expand_path(
        self,
        path: str | list[str],
        recursive: bool = False,
        maxdepth: int | None = None,
        assume_literal: bool = False,
    ) -> list[str]:
        # Names of arrays may hold the characters of patterns; a path that is there is no pattern.
        paths = [path] if isinstance(path, str) else path
        literal = assume_literal or all([await self._exists(path) for path in paths])
        return await super()._expand_path(paths, recursive, maxdepth, assume_literal=literal)

    # ── writing, which is refused ────────────────────────────────────────────────────────────────────────────────────

    @override
    async def _pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> NoReturn:
        self._refuse()

    @override
    async def _put_file(self, lpath: str, rpath: str, mode: str = "overwrite", **_: Any) -> NoReturn:
        self._refuse()

    @override
    async def _cp_file(self, path1: str, path2: str, **_: Any) -> NoReturn:
        self._refuse()

    @override
    async def _rm_file(self, path: str, **_: Any) -> NoReturn:
        self._refuse()

    @override
    async def _rm(self, path: str | list[str], *_: Any, **__: Any) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UnsupportedError("the filesystem only refers to chunks of other files, and cannot be written to")

    # ── parts of the above ───────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    @override
    def _strip_protocol(cls, path: Any) -> Any:
        stripped = super()._strip_protocol(path)
        return stripped.lstrip("/") if isinstance(stripped, str) else stripped

    @property
    @override
    def _fs_token(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]  taken for None in fsspec
        """What tells this instance from others, which fsspec and dask ask for; the arguments alone do not."""
        return tokenize(self._fs_token_, self._fingerprint)

    @cached_property
    def _fingerprint(self) -> str:
        digest = _Digest()
        pickle.Pickler(digest).dump((self.group, self._reader.options))
        return digest.hash.hexdigest()

    def _value(self, path: str) -> StoredValue:
        path = self._strip_protocol(path)
        value = self._reader.resolve(path)
        if value is not None:
            return value
        if listing.is_folder(self.group, path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        raise _absent(path)

    def _entry_info(self, folder: str, entry: listing.Entry) -> Info:
        path = f"{folder}/{entry.name}" if folder else entry.name
        return _folder(path) if entry.is_folder else _file(path, self._value(path))


class VirtualFile(AbstractBufferedFile):
    """A file of a `VirtualFileSystem`, opened for reading."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs.read_range(self.path, start, end)


class _Digest:
    """A file to write to that only keeps a hash."""

    def __init__(self) -> None:
        self.hash = sha256()

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return len(data)


def _write(path: Path, data: bytes | None) -> None:
    """Make a local file, or a folder if there is no data."""
    if data is None:
        path.mkdir(parents=True, exist_ok=True)
    else:
        path.write_bytes(data)


def _complete(fo: Refs, protocol: str | None) -> Refs:
    """The target of a chained url, from which fsspec takes the protocol."""
    return f"{protocol}://{fo}" if protocol is not None and isinstance(fo, str) and "://" not in fo else fo


def _taken(options: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: options.pop(name) for name in names if name in options}


def _file(path: str, value: StoredValue) -> Info:
    return {"name": path, "size": value.length, "type": "file"}


def _folder(path: str) -> Info:
    return {"name": path, "size": 0, "type": "directory"}


def _absent(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
