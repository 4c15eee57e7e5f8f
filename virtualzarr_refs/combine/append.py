"""A reference set and more files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from virtualzarr_refs.combine.concat import concat
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.references import open_refs, write_json
from virtualzarr_refs.references.parquet.appending import extend_parquet
from virtualzarr_refs.references.parquet.lock import locked
from virtualzarr_refs.references.recognition import is_parquet_name
from virtualzarr_refs.references.target import open_target
from virtualzarr_refs.references.urls import folder_of, name_of
from virtualzarr_refs.scanning import absolute_url


def append(
    refs: str | os.PathLike[str],
    groups: VirtualGroup | Iterable[VirtualGroup],
    dim: str,
    *,
    storage_options: Mapping[str, Any] | None = None,
    allow: Iterable[str] | None = None,
    **options: Any,  # noqa: ANN401  see ConcatOptions
) -> VirtualGroup:
    """Put more groups after what a reference set holds, along a dimension, and write the set anew.

    The set stays whole at any moment: a crash leaves the old one or the new one. Of a set in Parquet only those
    partitions are written that change. Of two who append at the same time, the second is refused.

    Parameters
    ----------
    refs : str or path
        The set, in JSON or Parquet.
    groups : VirtualGroup or iterable of VirtualGroup
        What comes after it, in order, unless ``sort=True``.
    dim : str
        A dimension of theirs.
    storage_options, allow
        See `open_refs`.
    **options
        See `virtualzarr_refs.combine.options.ConcatOptions`.

    Returns
    -------
    VirtualGroup
        What the set holds now.

    Raises
    ------
    IncompatibleError
        If anything stands in the way; the set stays as it was.
    SetLockedError
        If somebody else is writing to the set.
    ReferenceSetError
        If there is no such set.
    SourceError, DecodeError
        If the set or a coordinate cannot be read, or the set not be written.
    """
    more = [groups] if isinstance(groups, VirtualGroup) else list(groups)

    def extend(old: VirtualGroup) -> VirtualGroup:
        return concat([old, *more], dim, storage_options=storage_options, **options)

    if is_parquet_name(refs):
        extend_parquet(refs, extend, storage_options=storage_options, allow=allow)
        return open_refs(refs, storage_options=storage_options, allow=allow)
    url = absolute_url(refs)
    with locked(open_target(url, storage_options), folder_of(url), f".{name_of(url)}.lock"):
        whole = extend(open_refs(url, storage_options=storage_options, allow=allow))
        write_json(whole, url, overwrite=True, storage_options=storage_options)
    return whole
