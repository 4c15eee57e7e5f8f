"""Extending a set in Parquet: only what is new is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from virtualzarr_refs.errors import IncompatibleError, ReferenceSetError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.references.division import INLINE_THRESHOLD, InlineChoice, divide
from virtualzarr_refs.references.parquet.files import SetFiles
from virtualzarr_refs.references.parquet.index import DATA, SetIndex, sources_name
from virtualzarr_refs.references.parquet.lock import locked
from virtualzarr_refs.references.parquet.reader import read_index, read_parquet
from virtualzarr_refs.references.parquet.set_writer import SetWriter, SourceTable
from virtualzarr_refs.references.parquet.sources_table import decode_sources
from virtualzarr_refs.references.secrets import require_no_secrets
from virtualzarr_refs.references.sidecar import point_into
from virtualzarr_refs.references.target import open_target
from virtualzarr_refs.scanning import absolute_url
from virtualzarr_refs.sources.location import is_relative, join
from virtualzarr_refs.sources.redaction import redact


def append_parquet(
    path: str | os.PathLike[str],
    group: VirtualGroup,
    *,
    inline_threshold: int = INLINE_THRESHOLD,
    storage_options: Mapping[str, Any] | None = None,
    allow: Iterable[str] | None = None,
) -> None:
    """Bring a set in Parquet to what a group holds, which is the set's own and more; see `extend_parquet`.

    Raises
    ------
    IncompatibleError
        If the set points to sources that the group does not: somebody appended to it since the group was made.
    """

    def extend(old: VirtualGroup) -> VirtualGroup:
        lacking = set(old.urls) - set(group.urls)
        if lacking:
            raise IncompatibleError(
                f"the set points to {len(lacking)} source(s) that the group lacks, such as {redact(min(lacking))}; "
                "was it appended to in between? Open it again, and append to that"
            )
        return group

    extend_parquet(path, extend, inline_threshold=inline_threshold, storage_options=storage_options, allow=allow)


def extend_parquet(
    path: str | os.PathLike[str],
    extend: Callable[[VirtualGroup], VirtualGroup],
    *,
    inline_threshold: int = INLINE_THRESHOLD,
    storage_options: Mapping[str, Any] | None = None,
    allow: Iterable[str] | None = None,
) -> None:
    """Replace a set in Parquet by what a function makes of it, while nobody else can write to it.

    Partitions that stay as they are, which is found by comparing every chunk, are not written again. A crash at any
    moment leaves the old set or the new one, whole.

    Parameters
    ----------
    path : str or path
        The set, in our own format.
    extend : callable
        Takes the set as it is, and returns what it is to be.
    inline_threshold, storage_options
        See `virtualzarr_refs.references.write_parquet`.
    allow : iterable of str, optional
        See `virtualzarr_refs.references.open_refs`.

    Raises
    ------
    ReferenceSetError
        If there is no such set.
    SetLockedError
        If somebody else is writing to it.
    SourceError
        If the set cannot be read or written to.
    """
    url = absolute_url(path).rstrip("/")
    target, files = open_target(url, storage_options), SetFiles(url, storage_options)
    _require_set(files)
    with locked(target, url):
        index = _require_set(files)
        old = read_parquet(url, storage_options=storage_options, allow=allow, mask_fill_value=False)
        new = extend(old)
        require_no_secrets((*new.urls, *new.sources))
        whole, data = divide(new, join(url, DATA), InlineChoice(inline_threshold), DATA, storage_options)
        before = point_into(old, join(url, DATA), DATA)
        arrays = {path: array.manifest for path, array in before.walk_arrays()}
        sources = _sources(files, index, url)
        SetWriter(target, files, index, index.last_generation + 1, arrays, sources).write(whole, data)


def _require_set(files: SetFiles) -> SetIndex:
    index = read_index(files)
    if index is None:
        raise ReferenceSetError(
            "there is no set in our own Parquet format to append to; write_parquet writes one", url=redact(files.folder)
        )
    return index


def _sources(files: SetFiles, index: SetIndex, url: str) -> SourceTable:
    """The table of sources as it is, by the urls that its names stand for."""
    names, _ = decode_sources(files.read(sources_name(index.generation)), index.set_id)
    meant = (name if name.startswith(f"{DATA}/") or not is_relative(name) else join(url, name) for name in names)
    return SourceTable({name: row for row, name in enumerate(meant)}, names)
