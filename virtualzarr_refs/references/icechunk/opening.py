"""Opening a group in an Icechunk repository."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.references.icechunk.reader import SessionReader, revision_of
from virtualzarr_refs.references.icechunk.sessions import readable_session, require_icechunk, run
from virtualzarr_refs.references.trust import Trust
from virtualzarr_refs.scanning import MATERIALISE_LIMIT

if TYPE_CHECKING:
    from virtualzarr_refs.references.icechunk.sessions import Target


def open_icechunk(
    repository: Target,
    *,
    path: str = "",
    branch: str | None = None,
    tag: str | None = None,
    snapshot_id: str | None = None,
    allow: Iterable[str] | None = None,
    native_limit: int = MATERIALISE_LIMIT,
    storage_options: Mapping[str, Any] | None = None,
) -> VirtualGroup:
    """Open a group in an Icechunk repository.

    Parameters
    ----------
    repository : str, path, icechunk.Repository, icechunk.Session or icechunk.IcechunkStore
        The repository: a local folder, an url on s3, or what icechunk has opened.
    path : str
        Of the group.
    branch, tag, snapshot_id : str, optional
        Which version of a repository; by default the branch ``main``.
    allow : iterable of str, optional
        Folders and complete urls that virtual chunks may point to. By default, where the repository is given by the
        url of a remote one, they may not point to local files, nor to addresses of this machine or of a private
        network. One that icechunk has opened counts as local.
    native_limit : int
        Bytes of chunks that the repository itself may hold of an array. They are read into the group.
    storage_options : mapping, optional
        Of the filesystem of a repository on s3, named as for s3fs.

    Returns
    -------
    VirtualGroup
        Its chunks are read from their sources without Icechunk.

    Raises
    ------
    NodeNotFoundError
        If there is no group at the path.
    ReferenceSetError
        If metadata are malformed, or a chunk points where it may not.
    UnsupportedError
        If icechunk is not installed, or the repository itself holds too much of an array.
    SourceError
        If the repository cannot be read.
    """
    require_icechunk()
    revision = revision_of({"branch": branch, "tag": tag, "snapshot_id": snapshot_id})
    session = readable_session(repository, storage_options or {}, revision)
    trust = Trust.in_set_at(os.fspath(repository) if isinstance(repository, str | os.PathLike) else None, allow)
    return run(SessionReader(session.store, path.strip("/"), trust, native_limit).read())
