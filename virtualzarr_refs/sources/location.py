"""Where a url points: local or not, absolute or relative."""

from __future__ import annotations

import os
import posixpath
import re
from urllib.parse import unquote_to_bytes, urlsplit

_LOCAL = re.compile(r"(?P<scheme>file|local):(?!:)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_NOT_LOCAL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(://|::)")
_DRIVE = re.compile(r"/[A-Za-z]:[/\\]")


def local_path(url: str) -> str | None:
    """Path of the local file that a url names.

    Parameters
    ----------
    url : str
        A plain path, in which ``~`` is expanded, or a ``file:`` or ``local:`` url. Escapes such as ``%20`` in a
        ``file:`` url are decoded, unless only the name with the escapes in it exists: fsspec and kerchunk write
        file urls without escaping them.

    Returns
    -------
    str or None
        None if the url is chained, or of any other scheme.
    """
    match = _LOCAL.fullmatch(url)
    if match is None:
        return None if _NOT_LOCAL.match(url) else os.path.expanduser(url)  # noqa: PTH111
    if "::" in url and "://" in url.partition("::")[2]:
        return None
    path = _without_authority(match["rest"])
    return _decoded(path) if match["scheme"].lower() == "file" else path


def _without_authority(rest: str) -> str:
    """The path in what follows ``file:``; ``file://a/b`` is the relative path ``a/b``, as it is for fsspec."""
    path = rest.removeprefix("//")
    path = path.removeprefix("localhost") if path.startswith("localhost/") else path
    return path[1:] if os.name == "nt" and _DRIVE.match(path) else path


def _decoded(path: str) -> str:
    if "%" not in path:
        return path
    decoded = os.fsdecode(unquote_to_bytes(path))
    return path if not _exists(decoded) and _exists(path) else decoded


def _exists(path: str) -> bool:
    return "\0" not in path and os.path.lexists(path)


def is_relative(url: str) -> bool:
    """Whether a url says where it points only together with a base."""
    schemeless = _LOCAL.fullmatch(url) is None and _NOT_LOCAL.match(url) is None
    return schemeless and not url.startswith("~") and not os.path.isabs(url)  # noqa: PTH117


def join(base: str, relative: str) -> str:
    """Resolve a relative url against a folder.

    Parameters
    ----------
    base : str
        A local folder or the url of one. A query string, such as a shared access signature, is kept at the end;
        in a chain such as ``simplecache::https://example.org/data`` the first complete url is the folder.
    relative : str
        A path that may climb with ``..``, though never above the root.
    """
    folder = local_path(base)
    if folder is not None:
        return os.path.normpath(os.path.join(folder, relative))  # noqa: PTH118
    links = base.split("::")
    complete = next((i for i, link in enumerate(links) if "://" in link), len(links) - 1)
    links[complete] = _join_link(links[complete], relative)
    return "::".join(links)


def _join_link(link: str, relative: str) -> str:
    if "://" not in link:
        return join(link, relative)
    parts = urlsplit(link)
    path = f"{parts.path.rstrip('/')}/{relative}"
    if not {".", ".."}.isdisjoint(path.split("/")):  # else left alone: "a//b" may be the key of an object
        path = posixpath.normpath(path)
    rest = parts._replace(scheme="", netloc="", path="").geturl()
    return f"{parts.scheme}://{parts.netloc}{path}{rest}"  # `geturl` drops the slashes where there is no host
