"""Telling Icechunk repositories from other reference sets, without Icechunk."""

from __future__ import annotations

import os
from pathlib import Path

from virtualzarr_refs.sources.location import local_path

SUFFIX = ".icechunk"


def is_icechunk(refs: object) -> bool:
    """Whether something is a repository: a session or the like, a folder that holds one, or a url that ends so."""
    if not isinstance(refs, str | os.PathLike):
        return type(refs).__module__.partition(".")[0] == "icechunk"
    url = os.fspath(refs)
    path = local_path(url) if isinstance(url, str) else None
    if path is None:
        return isinstance(url, str) and url.rstrip("/").endswith(SUFFIX)
    folder = Path(path)  # Icechunk specification, "File layout": both versions have snapshots; the first has refs
    return (folder / "snapshots").is_dir() and ((folder / "repo").is_file() or (folder / "refs").is_dir())
