"""Urls of sources as Icechunk writes them, and the containers without which it reads none.

A location is a url whose path is the key of an object with ``%``, ``?``, ``#`` and the like escaped. A *virtual chunk
container* of a repository says how locations that begin with its prefix are read; the reader has to allow each.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from virtualzarr_refs.errors import NotRepresentableError, ReferenceSetError
from virtualzarr_refs.scanning import absolute_url
from virtualzarr_refs.sources.location import local_path
from virtualzarr_refs.sources.redaction import redact

if TYPE_CHECKING:
    import icechunk

_LOCAL = "file://"
_BUCKETS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"}
"""Schemes of buckets, whose urls hold keys as they are, and how locations spell them."""

_WEB = frozenset({"http", "https"})
_SAFE = "/!$&'()*+,;=:@~"
"""What stands in the path of a url as it is, besides letters, digits and ``-._``."""


def location_of(url: str) -> str:
    """The location of a source.

    Raises
    ------
    NotRepresentableError
        If Icechunk has no way to read such a url.
    """
    path = local_path(url)
    if path is not None:
        return _LOCAL + quote(absolute_url(path), _SAFE)
    scheme, mark, rest = url.partition("://")
    if mark and "::" not in url:
        authority, _, key = rest.partition("/")
        if scheme in _BUCKETS:
            return f"{_BUCKETS[scheme]}://{authority}/{quote(key, _SAFE)}"
        if scheme in _WEB and not {"?", "#"} & set(rest):
            return url
    raise NotRepresentableError(
        f"Icechunk cannot point to {redact(url)!r}: it reads local files, s3, gs, and http urls without a query; "
        "rename the urls, or copy the files there"
    )


def url_of(location: str) -> str:
    """The url of a source at a location.

    Raises
    ------
    ReferenceSetError
        If the location is of a kind that Icechunk does not have.
    """
    scheme, mark, rest = location.partition("://")
    if not mark or "?" in rest or "#" in rest:
        raise ReferenceSetError(f"the location {redact(location)!r:.200} of a virtual chunk is not a plain url")
    if scheme in _WEB:
        return location
    if scheme == "file":
        return unquote(rest)
    return f"{scheme}://{unquote(rest)}"


def containers(locations: Iterable[str], options: Mapping[str, Any]) -> list[icechunk.VirtualChunkContainer]:
    """Containers that cover all locations: one for a bucket or a host, one for local files.

    Parameters
    ----------
    locations : iterable of str
        See `location_of`.
    options : mapping
        Of s3: ``endpoint_url``, ``region`` and ``anon``, as for s3fs. No credentials are kept.
    """
    import icechunk  # noqa: PLC0415  an extra

    distinct = dict.fromkeys(locations)
    made: list[icechunk.VirtualChunkContainer] = []
    folders = [os.path.dirname(unquote(loc.removeprefix(_LOCAL))) for loc in distinct if loc.startswith(_LOCAL)]  # noqa: PTH120
    if folders:
        folder = _plain_folder(os.path.commonpath(folders))
        store = icechunk.local_filesystem_store(folder)
        made.append(icechunk.VirtualChunkContainer(_LOCAL + folder, store))
    roots = dict.fromkeys("{0.scheme}://{0.netloc}/".format(urlsplit(loc)) for loc in distinct)
    remote = (root for root in roots if not root.startswith(_LOCAL))
    return [*made, *(icechunk.VirtualChunkContainer(root, _store(root, options)) for root in remote)]


def _plain_folder(folder: str) -> str:
    """The folder, or one above it, whose name needs no escapes; Icechunk finds no container by a prefix with some."""
    while quote(folder) != folder:
        folder = os.path.dirname(folder)  # noqa: PTH120
    return os.path.join(folder, "")  # noqa: PTH118


def _store(root: str, options: Mapping[str, Any]) -> Any:  # noqa: ANN401  one of Icechunk's configurations
    import icechunk  # noqa: PLC0415

    if root.startswith("http"):
        return icechunk.http_store()
    return icechunk.s3_store(**s3_options(options)) if root.startswith("s3:") else icechunk.gcs_store()


def s3_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """What is no secret in the options of s3fs, as Icechunk names it."""
    client = options.get("client_kwargs") or {}
    endpoint = options.get("endpoint_url") or client.get("endpoint_url")
    region = options.get("region") or client.get("region_name") or "us-east-1"
    named: dict[str, Any] = {"region": region, "anonymous": bool(options.get("anon", False))}
    if endpoint:
        named |= {"endpoint_url": endpoint, "allow_http": endpoint.startswith("http:"), "force_path_style": True}
    return named


def uncovered(locations: Iterable[str], prefixes: Iterable[str]) -> list[str]:
    """The locations that begin with no prefix of a container."""
    known = tuple(prefixes)
    return [location for location in dict.fromkeys(locations) if not location.startswith(known)]
