"""Opening a reference set of any kind."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from virtualzarr_refs.errors import VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.references.icechunk.recognition import is_icechunk
from virtualzarr_refs.references.json_reader import read_json, read_mapping
from virtualzarr_refs.references.trust import Trust
from virtualzarr_refs.references.zarr_folder import is_zarr_folder, read_zarr_folder
from virtualzarr_refs.scanning import absolute_url
from virtualzarr_refs.sources.location import local_path
from virtualzarr_refs.sources.redaction import redact

if TYPE_CHECKING:
    from virtualzarr_refs.references.icechunk.sessions import Target

_PARQUET = (".parq", ".parquet", "/")


def open_refs(
    refs: Target | Mapping[str, Any],
    *,
    storage_options: Mapping[str, Any] | None = None,
    allow: Iterable[str] | None = None,
    mask_fill_value: bool = False,
) -> VirtualGroup:
    """Open a reference set.

    Parameters
    ----------
    refs : str, path, mapping or an object of icechunk
        A JSON file as kerchunk, VirtualiZarr and this package write it, also compressed with gzip or zstd, given by
        its path or any fsspec url; the parsed document; an Icechunk repository, see `open_icechunk`; or a local folder
        with a Zarr v3 hierarchy, named ``.zarr``. Nothing in it is evaluated. Relative urls start at the folder of the
        file, or at the current directory.
    storage_options : mapping, optional
        Options of the filesystem that the set, and sources of which it gives only the url, are read through.
    allow : iterable of str, optional
        Folders and complete urls that references may point to. By default a local set may point anywhere; one that
        came over a network may not point to local files, nor to addresses of this machine or of a private network.
    mask_fill_value : bool
        Whether the fill value of arrays in a Zarr v2 set stands for missing values too, where no attribute
        ``_FillValue`` says what does. kerchunk leaves that attribute out of its sets, so this shows missing values
        as such; but it also takes true zeros for missing where HDF5's default fill value is zero.

    Returns
    -------
    VirtualGroup
        Its ``skipped`` names references that lie outside the chunk grid of their array.

    Raises
    ------
    ReferenceSetError
        If the set is malformed, or points where it may not.
    UnsupportedError
        If an array of a Zarr v2 set cannot be shown as Zarr v3.
    SourceError
        If the file cannot be read.
    """
    if is_icechunk(refs):
        from virtualzarr_refs.references.icechunk.opening import open_icechunk  # noqa: PLC0415  an extra

        return open_icechunk(cast("Target", refs), allow=allow, storage_options=storage_options)
    if isinstance(refs, Mapping):
        return read_mapping(refs, storage_options=storage_options, allow=allow, mask_fill_value=mask_fill_value)
    file = cast("str | os.PathLike[str]", refs)
    url = absolute_url(file)
    try:
        folder = local_path(url)
        if folder is not None and is_zarr_folder(folder):
            return read_zarr_folder(folder, Trust.in_set_at(url, allow))
        if _is_folder(os.fspath(file)):
            from virtualzarr_refs.references.parquet.reader import read_parquet  # noqa: PLC0415  pyarrow is slow to import

            whole = url.rstrip("/")
            return read_parquet(whole, storage_options=storage_options, allow=allow, mask_fill_value=mask_fill_value)
        return read_json(url, storage_options=storage_options, allow=allow, mask_fill_value=mask_fill_value)
    except VirtualZarrError as error:
        raise error.at(url=redact(url)) from error.__cause__


def _is_folder(url: str) -> bool:
    """Whether a set lies in a folder, by its name or, if it is local, by what is there."""
    path = local_path(url)
    return url.endswith(_PARQUET) or (path is not None and os.path.isdir(path))  # noqa: PTH112
