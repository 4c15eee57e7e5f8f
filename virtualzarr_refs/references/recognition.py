"""Telling reference sets from files that are scanned."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.references.opening import open_refs
from virtualzarr_refs.scanning import scan
from virtualzarr_refs.sources import Backend
from virtualzarr_refs.sources.location import local_path

type Openable = str | os.PathLike[str] | VirtualGroup | Mapping[str, Any]
"""An archive file or a reference set, by its url; a parsed reference set; or a hierarchy."""

_NAME = re.compile(r"\.(json(\.(gz|zst|zstd))?|parq|parquet|icechunk)/?$")
"""How the names of reference sets end."""


def has_reference_name(url: str) -> bool:
    """Whether a url ends as the names of reference sets do."""
    return _NAME.search(url) is not None


def is_parquet_name(url: str | os.PathLike[str]) -> bool:
    """Whether a set with this name is one in Parquet, which is a folder."""
    return os.fspath(url).rstrip("/").endswith((".parq", ".parquet"))


def is_reference_set(url: str | os.PathLike[str]) -> bool:
    """Whether a url is a reference set's, by its name or, if it is local, by how the file begins.

    No archive format that is scanned begins with a brace or is a folder.
    """
    text = os.fspath(url)
    if has_reference_name(text):
        return True
    path = local_path(text)
    return path is not None and (os.path.isdir(path) or _begins_with_brace(path))  # noqa: PTH112


def _begins_with_brace(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(64).lstrip()[:1] == b"{"
    except (OSError, ValueError):
        return False  # whoever opens it says why it cannot be opened


def open_hierarchy(
    openable: Openable,
    *,
    storage_options: Mapping[str, Any] | None = None,
    backend: Backend = "auto",
    allow: Iterable[str] | None = None,
    strict: bool = False,
) -> VirtualGroup:
    """Open whatever stands for a hierarchy.

    Parameters
    ----------
    openable : str, path, mapping or VirtualGroup
        A reference set is opened, an archive file is scanned, a hierarchy is returned as it is.
    storage_options : mapping, optional
        Options of the filesystem.
    backend : {"auto", "local", "fsspec", "obstore"}
        What reads a file that is scanned.
    allow : iterable of str, optional
        Where references may point; see `virtualzarr_refs.references.open_refs`.
    strict : bool
        Where a file is scanned, raise for what cannot be shown instead of warning.

    Raises
    ------
    FormatError, ReferenceSetError, SourceError
        If the file or the reference set cannot be read.
    """
    if isinstance(openable, VirtualGroup):
        return openable
    if isinstance(openable, Mapping) or is_reference_set(openable):
        return open_refs(openable, storage_options=storage_options, allow=allow)
    return scan(openable, storage_options=storage_options, backend=backend, strict=strict)
