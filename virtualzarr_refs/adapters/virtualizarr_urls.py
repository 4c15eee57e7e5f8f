"""Urls as VirtualiZarr has them: with a scheme always, their paths taken as they stand, without unescaping."""

from __future__ import annotations

from virtualzarr_refs.errors import NotRepresentableError
from virtualzarr_refs.scanning import absolute_url
from virtualzarr_refs.sources.location import local_path
from virtualzarr_refs.sources.redaction import redact

_FILE = "file://"


def registered_url(url: str) -> str:
    """The url by which VirtualiZarr finds a source in a registry.

    Raises
    ------
    NotRepresentableError
        If VirtualiZarr would cut it at a ``?`` or ``#``, or it is a chain.
    """
    path = local_path(url)
    registered = url if path is None else _FILE + absolute_url(path)
    if {"?", "#"} & set(registered) or "::" in registered:
        raise NotRepresentableError(
            f"VirtualiZarr cannot find {redact(url)!r}: it cuts urls at '?' and '#', and knows no chains; rename it"
        )
    return registered


def plain_url(registered: str) -> str:
    """The url of a source that VirtualiZarr found in a registry; the path of a local file."""
    return registered.removeprefix(_FILE) if registered.startswith(f"{_FILE}/") else registered
