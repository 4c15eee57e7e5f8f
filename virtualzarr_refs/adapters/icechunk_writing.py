"""Writing a group into an Icechunk repository, or putting it behind what is there."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from virtualzarr_refs.combine import concat
from virtualzarr_refs.errors import SourceChangedError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.references.icechunk.documents import Adaptation, adapt
from virtualzarr_refs.references.icechunk.opening import open_icechunk
from virtualzarr_refs.references.icechunk.sessions import require_icechunk, run, writable_session
from virtualzarr_refs.references.icechunk.writer import SessionWriter, now
from virtualzarr_refs.references.secrets import require_no_secrets
from virtualzarr_refs.references.variants import has_variants
from virtualzarr_refs.references.variants import materialise as encode_alike

if TYPE_CHECKING:
    import icechunk

    from virtualzarr_refs.references.icechunk.sessions import Target


def write_icechunk(
    group: VirtualGroup,
    repository: Target,
    *,
    path: str = "",
    append_dim: str | None = None,
    overwrite: bool = False,
    materialise: Literal["inline"] | None = None,
    nan_attributes: Literal["text"] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> str | None:
    """Write a group into an Icechunk repository, its chunks as virtual references.

    Icechunk refuses to read a source that was modified after the references were written. Chunks that are no byte
    range of a source become chunks of the repository.

    Parameters
    ----------
    group : VirtualGroup
        What to write.
    repository : str, path, icechunk.Repository, icechunk.Session or icechunk.IcechunkStore
        A local folder or an url on s3, where a repository is made if there is none, and given the virtual chunk
        containers that it lacks; a repository that icechunk has opened; or a session of one, which is not committed.
    path : str
        Of the group in the repository.
    append_dim : str, optional
        A dimension along which the group is put behind what is there, as by `virtualzarr_refs.concat`.
    overwrite : bool
        Replace what is at the path.
    materialise : {"inline"}, optional
        What to do with an array whose chunks are encoded in different ways, which Icechunk cannot carry: read those
        that are not encoded as most are, and write them anew into the repository. By default such arrays are refused.
    nan_attributes : {"text"}, optional
        What to do with attributes that are NaN or infinite, which Icechunk's metadata cannot say: write them as the
        texts ``NaN`` and ``Infinity``. By default they are refused.
    storage_options : mapping, optional
        Of the filesystem of a repository on s3, and of sources where chunks have to be read; named as for s3fs.
        Credentials are not written.

    Returns
    -------
    str or None
        The snapshot that was committed to the branch ``main``; None for a session, which its owner commits.

    Raises
    ------
    FileExistsError
        If there is something at the path, and neither `overwrite` nor `append_dim` is given.
    NotRepresentableError
        If Icechunk cannot carry the group; the message lists the arrays, the reasons and the way out.
    IncompatibleError
        If the group cannot be put behind what is there.
    SourceChangedError
        If somebody else has committed to the branch meanwhile; what they wrote is kept.
    SourceError
        If the repository or chunks cannot be read.
    """
    require_icechunk()
    _check_options(append_dim, materialise, nan_attributes, overwrite=overwrite)
    options = dict(storage_options or {})

    def adapted(whole: VirtualGroup) -> Adaptation:
        alike = materialise is not None and any(has_variants(array) for _, array in whole.walk_arrays())
        plain = encode_alike(whole, options) if alike else whole
        return adapt(plain, nan_as_text=nan_attributes == "text")

    require_no_secrets(group.urls)
    adaptation, old = adapted(group), None
    session, is_ours = writable_session(repository, adaptation.locations.values(), options)
    if append_dim is not None:
        old = open_icechunk(session, path=path)
        adaptation = adapted(concat([old, group], append_dim, storage_options=options))
    writer = SessionWriter(session.store, path.strip("/"), adaptation.locations, now())
    if old is None and run(writer.clear(overwrite=overwrite)):
        raise FileExistsError(errno.EEXIST, "there is a group already; overwrite=True replaces it", path or "/")
    run(writer.write(adaptation, old))
    return _commit(session, path, append_dim) if is_ours else None


def _check_options(append_dim: object, materialise: object, nan_attributes: object, *, overwrite: bool) -> None:
    if append_dim is not None and overwrite:
        raise ValueError("append_dim keeps what is there, and overwrite=True replaces it; give one of the two")
    if materialise not in (None, "inline"):
        raise ValueError(f'materialise is None or "inline", not {materialise!r}')
    if nan_attributes not in (None, "text"):
        raise ValueError(f'nan_attributes is None or "text", not {nan_attributes!r}')


def _commit(session: icechunk.Session, path: str, append_dim: str | None) -> str:
    import icechunk  # noqa: PLC0415  an extra

    if not session.has_uncommitted_changes:
        return session.snapshot_id
    done = "Write virtual references" if append_dim is None else f"Append virtual references along {append_dim}"
    try:
        return session.commit(f"{done} to /{path.strip('/')}")
    except icechunk.ConflictError as error:
        raise SourceChangedError(
            "somebody else has committed to the repository meanwhile, and nothing was written; write again"
        ) from error
