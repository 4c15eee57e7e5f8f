"""Files that are given as patterns."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import click


def expanded(files: Sequence[str], storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """The files, with those that a pattern stands for in the order of their names, numbers by their value.

    Parameters
    ----------
    files : sequence of str
        Paths, urls, and patterns of them.
    storage_options : mapping, optional
        Passed to the filesystem.

    Raises
    ------
    click.UsageError
        If nothing matches a pattern.
    """
    found: list[str] = []
    for file in files:
        matches = _matches(file, storage_options)
        if not matches:
            raise click.UsageError(f"no file matches {file}")
        found += sorted(matches, key=natural_key)
    return found


def natural_key(text: str) -> list[tuple[int, str]]:
    """What to sort names by so that numbers in them count by their value."""
    return [(int(part or -1), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", text)]


def _matches(file: str, storage_options: Mapping[str, Any] | None) -> list[str]:
    if "://" in file:
        return _remote_matches(file, storage_options) if "*" in file else [file]  # a question mark begins a query
    if os.path.exists(file) or not glob.has_magic(file):  # noqa: PTH110  keeps the user's spelling
        return [file]
    return glob.glob(file, recursive=True)  # noqa: PTH207  same


def _remote_matches(url: str, storage_options: Mapping[str, Any] | None) -> list[str]:
    from fsspec.core import url_to_fs  # noqa: PLC0415  slow to import

    filesystem, path = url_to_fs(url, **(storage_options or {}))
    return [filesystem.unstrip_protocol(match) for match in filesystem.glob(path)]
