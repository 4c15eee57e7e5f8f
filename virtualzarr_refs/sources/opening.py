"""From a url to a source."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Literal

from virtualzarr_refs.byte_range import MAX_GAP, MAX_SIZE
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.sources.local import LocalSource
from virtualzarr_refs.sources.location import local_path
from virtualzarr_refs.sources.protocol import Source
from virtualzarr_refs.sources.redaction import redact
from virtualzarr_refs.sources.remote import RemoteSource

Backend = Literal["auto", "local", "fsspec", "obstore"]
"""Who reads. ``"auto"``: memory mapping for local files; obstore, if it is installed, for http without options that
are fsspec's; and fsspec for all else. Or always the one named."""

_OBSTORE_OPTIONS = frozenset({"client_options", "retry_config"})
"""What `obstore.store.HTTPStore` takes and fsspec does not."""


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
        Who reads; see `Backend`.
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
        backend = _best(url, storage_options or {})
    if backend == "local":
        return LocalSource(url)
    return _remote_class(backend, url)(url, storage_options, max_gap=max_gap, max_size=max_size)


def _best(url: str, storage_options: Mapping[str, object]) -> Backend:
    if local_path(url) is not None:
        return "local"
    is_for_obstore = _is_http(url) and storage_options.keys() <= _OBSTORE_OPTIONS
    return "obstore" if is_for_obstore and find_spec("obstore") is not None else "fsspec"


def _is_http(url: str) -> bool:
    return url.lower().startswith(("http://", "https://")) and "::" not in url


def _remote_class(backend: str, url: str) -> type[RemoteSource]:
    # Imported here and not above: fsspec and obstore are slow to import, and who reads local files needs neither.
    if backend == "fsspec" and _is_http(url):
        from virtualzarr_refs.sources.fsspec_http import FsspecHTTPSource  # noqa: PLC0415

        return FsspecHTTPSource
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
