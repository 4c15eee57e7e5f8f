"""Writing a set in Parquet."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.references.division import INLINE_THRESHOLD, InlineChoice, Materialise, check_options, divide
from virtualzarr_refs.references.parquet.existing import refuse_to_replace
from virtualzarr_refs.references.parquet.files import SetFiles
from virtualzarr_refs.references.parquet.index import DATA, MAX_PARTITION_SIZE, PARTITION_SIZE
from virtualzarr_refs.references.parquet.kerchunk_writer import write_kerchunk
from virtualzarr_refs.references.parquet.lock import locked
from virtualzarr_refs.references.parquet.set_writer import SetWriter
from virtualzarr_refs.references.secrets import require_no_secrets
from virtualzarr_refs.references.target import open_target
from virtualzarr_refs.scanning import absolute_url
from virtualzarr_refs.sources.location import join


def write_parquet(
    group: VirtualGroup,
    path: str | os.PathLike[str],
    *,
    zarr_format: Literal[2, 3] = 3,
    overwrite: bool = False,
    inline_threshold: int = INLINE_THRESHOLD,
    materialise: Materialise = None,
    partition_size: int = PARTITION_SIZE,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Write a group as a reference set in Parquet, which is a folder.

    The set appears whole or not at all, and one that is replaced stays whole until the new one is. Whoever opens it
    reads only the partitions that are needed.

    Parameters
    ----------
    group : VirtualGroup
        What to write.
    path : str or path
        A local folder or any fsspec url; by custom it ends in ``.parq`` or ``.parquet``.
    zarr_format : {3, 2}
        3 is a format of our own; 2 is kerchunk's, which kerchunk and fsspec read, and which cannot carry every group.
    overwrite : bool
        Replace a set that is there.
    inline_threshold : int
        Bytes of inline chunks above which those of an array go to files in the folder ``data`` of the set. In
        kerchunk's format all are kept in the tables.
    materialise : {"inline", "sidecar"}, optional
        What to do with an array whose chunks are encoded in different ways. Kept as it is by default; else the chunks
        that are not encoded as most are get read and encoded so, and are kept in the tables or in ``data``.
    partition_size : int
        Chunks of a file.
    storage_options : mapping, optional
        Options of the filesystem that is written to, and of the sources, where chunks have to be read. They are
        not written.

    Raises
    ------
    FileExistsError
        If there is a set already and `overwrite` is false, or anything else.
    SetLockedError
        If somebody else is writing to it.
    NotRepresentableError
        If the set cannot carry the group; the message lists the arrays, the reasons and the way out. Also if a url
        holds credentials.
    SourceError
        If chunks cannot be read, or the filesystem cannot be written to.
    """
    check_options(zarr_format, materialise)
    if not 1 <= partition_size <= MAX_PARTITION_SIZE:
        raise ValueError(f"a partition has 1 to {MAX_PARTITION_SIZE} chunks, not {partition_size}")
    url = absolute_url(path).rstrip("/")
    target, files = open_target(url, storage_options), SetFiles(url, storage_options)
    refuse_to_replace(target, files, overwrite=overwrite)
    require_no_secrets((url, *group.urls, *group.sources))
    choice = InlineChoice(inline_threshold, materialise)
    if zarr_format == 2:
        write_kerchunk(group, target, files, choice, partition_size)
        return
    target.make_folder(url)
    with locked(target, url):
        refuse_to_replace(target, files, overwrite=overwrite)
        whole, data = divide(group, join(url, DATA), choice, DATA, storage_options)
        SetWriter.over(target, files, partition_size).write(whole, data)
