"""From whatever a user has of an Icechunk repository to a session."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from virtualzarr_refs.errors import NotRepresentableError, SourceError, SourceNotFoundError, UnsupportedError
from virtualzarr_refs.references.icechunk.locations import containers, s3_options, uncovered
from virtualzarr_refs.scanning import absolute_url
from virtualzarr_refs.sources.location import local_path
from virtualzarr_refs.sources.redaction import redact

if TYPE_CHECKING:
    import icechunk

    type Target = str | os.PathLike[str] | icechunk.Repository | icechunk.Session | icechunk.IcechunkStore
    """A repository, by its url or as an object, or a session of one."""

_BRANCH = "main"


def require_icechunk() -> None:
    """Say how to get Icechunk.

    Raises
    ------
    UnsupportedError
        If it is not installed.
    """
    if find_spec("icechunk") is None:
        raise UnsupportedError('Icechunk is not installed; pip install "virtualzarr-refs[icechunk]"')


def run[T](coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, in a thread of its own: the caller's may have an event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def readable_session(target: Target, options: Mapping[str, Any], revision: Mapping[str, str]) -> icechunk.Session:
    """A session to read from.

    Parameters
    ----------
    target : str, path, Repository, Session or IcechunkStore
        The repository.
    options : mapping
        Of the filesystem, where the repository is given by its url.
    revision : mapping
        ``branch``, ``tag`` or ``snapshot_id``, for a repository; by default the branch ``main``.

    Raises
    ------
    SourceNotFoundError
        If there is no repository at the url.
    SourceError
        If it cannot be read.
    """
    import icechunk  # noqa: PLC0415  an extra

    if isinstance(target, icechunk.IcechunkStore | icechunk.Session):
        return target.session if isinstance(target, icechunk.IcechunkStore) else target
    repository = target if isinstance(target, icechunk.Repository) else _opened(target, options)
    try:
        return repository.readonly_session(**cast("dict[str, Any]", revision or {"branch": _BRANCH}))
    except icechunk.IcechunkError as error:
        raise SourceError(f"the revision cannot be read: {_first_line(error)}") from error


def _opened(target: str | os.PathLike[str], options: Mapping[str, Any]) -> icechunk.Repository:
    import icechunk  # noqa: PLC0415

    try:
        return icechunk.Repository.open(_storage(target, options))
    except icechunk.RepositoryNotFoundError as error:
        raise SourceNotFoundError("there is no Icechunk repository", url=redact(os.fspath(target))) from error
    except icechunk.IcechunkError as error:
        raise SourceError(
            f"the repository cannot be read: {_first_line(error)}", url=redact(os.fspath(target))
        ) from error


def writable_session(
    target: Target, locations: Iterable[str], options: Mapping[str, Any]
) -> tuple[icechunk.Session, bool]:
    """A session to write to, and whether it is ours to commit.

    A repository that is given by its url is made where there is none, and gets the containers that it lacks.

    Raises
    ------
    NotRepresentableError
        If the repository has no container for a location; the message says which.
    SourceError
        If the repository cannot be opened.
    """
    import icechunk  # noqa: PLC0415

    if isinstance(target, icechunk.IcechunkStore | icechunk.Session):
        session = target.session if isinstance(target, icechunk.IcechunkStore) else target
        _require_containers(session, locations)
        return session, False
    repository = target if isinstance(target, icechunk.Repository) else _made(target, list(locations), options)
    session = repository.writable_session(_BRANCH)
    _require_containers(session, locations)
    return session, True


def _require_containers(session: icechunk.Session, locations: Iterable[str]) -> None:
    lacking = uncovered(locations, session.config.virtual_chunk_containers or {})
    if lacking:
        raise NotRepresentableError(
            f"the repository has no virtual chunk container for {lacking[0]!r}; "
            "add one to its configuration, or give the repository by its url, and it gets one"
        )


def _made(target: str | os.PathLike[str], locations: list[str], options: Mapping[str, Any]) -> icechunk.Repository:
    import icechunk  # noqa: PLC0415

    storage = _storage(target, options)
    try:
        if not icechunk.Repository.exists(storage):
            config = _with_containers(icechunk.RepositoryConfig.default(), locations, options)
            return icechunk.Repository.create(storage, config)
        repository = icechunk.Repository.open(storage)
        if uncovered(locations, repository.config.virtual_chunk_containers or {}):
            repository = repository.reopen(_with_containers(repository.config, locations, options))
            repository.save_config()
    except icechunk.IcechunkError as error:
        reason = f"the repository cannot be opened: {_first_line(error)}"
        raise SourceError(reason, url=redact(os.fspath(target))) from error
    return repository


def _with_containers(
    config: icechunk.RepositoryConfig, locations: list[str], options: Mapping[str, Any]
) -> icechunk.RepositoryConfig:
    for container in containers(uncovered(locations, config.virtual_chunk_containers or {}), options):
        config.set_virtual_chunk_container(container)
    return config


def _storage(target: str | os.PathLike[str], options: Mapping[str, Any]) -> icechunk.Storage:
    import icechunk  # noqa: PLC0415

    url = os.fspath(target)
    path = local_path(url)
    if path is not None:
        return icechunk.local_filesystem_storage(absolute_url(path))
    scheme, _, rest = url.partition("://")
    bucket, _, prefix = rest.partition("/")
    if scheme not in ("s3", "s3a"):
        raise UnsupportedError(
            "an Icechunk repository is opened by its url where it is a local folder or on s3; "
            "open others with icechunk, and pass the Repository",
            url=redact(url),
        )
    named = s3_options(options)
    named["anonymous"] = named["anonymous"] or None
    secrets: dict[str, Any] = {
        "access_key_id": options.get("key"),
        "secret_access_key": options.get("secret"),
        "session_token": options.get("token"),
    }
    return icechunk.s3_storage(bucket=bucket, prefix=prefix.rstrip("/"), **named, **secrets)


def _first_line(error: Exception) -> str:
    return redact(str(error).strip().partition("\n")[0])
