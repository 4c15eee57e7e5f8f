"""From a url to a source."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

from virtualzarr_refs.byte_range import MAX_GAP, MAX_SIZE
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.sources.local import LocalSource
from virtualzarr_refs.sources.location import local_path
from virtualzarr_refs.sources.protocol import Source
from virtualzarr_refs.sources.redaction import redact
from virtualzarr_refs.sources.remote import RemoteSource

Backend = Literal["auto", "local", "fsspec", "obstore"]
"""Who reads: memory mapping for local files and fsspec for all else (``"auto"``), or always the one named."""


def open_source(
    url: str | os.PathLike[str],
    storage_options: Mapping[str, object] | None = None,
    backend: Backend = "auto",
    max_gap: int = MAX_GAP,
    max_size: int = MAX_SIZE,
) -> Source:
    """Make a source. Nothing is opened before its first use.

    Parameters
    ----------
    url : str or path
        A path, or a url of any kind that the backend knows.
    storage_options : mapping, optional
        Options of the backend, such as credentials; not used for local files that are memory-mapped.
    backend : {"auto", "local", "fsspec", "obstore"}
        Who reads; ``"auto"`` maps local files into memory and leaves everything else to fsspec.
    max_gap, max_size : int
        Limits on the joining of ranges into one request, in bytes; see `coalesce`.

    Raises
    ------
    UnsupportedError
        If the backend cannot open this kind of url, or is not installed.
    ValueError
        If there is no such backend.
    """
    url = os.fspath(url)
    if backend == "auto":
        backend = "fsspec" if local_path(url) is None else "local"
    if backend == "local":
        return LocalSource(url)
    return _remote_class(backend, url)(url, storage_options, max_gap=max_gap, max_size=max_size)


def _remote_class(backend: str, url: str) -> type[RemoteSource]:
    # Imported here and not above: fsspec and obstore are slow to import, and who reads local files needs neither.
    if backend == "fsspec":
        from virtualzarr_refs.sources.fsspec_source import FsspecSource  # noqa: PLC0415

        return FsspecSource
    if backend != "obstore":
        raise ValueError(f'there is no backend {backend!r}; use "auto", "local", "fsspec" or "obstore"')
    try:
        from virtualzarr_refs.sources.obstore_source import ObstoreSource  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            'obstore is not installed; pip install "virtualzarr-refs[remote]", or use backend="fsspec"',
            url=redact(url),
        ) from error
    return ObstoreSource
