"""From the urls in a reference set to the urls of sources: templates, relative urls, trust."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.references.templates import Templates
from virtualzarr_refs.references.trust import Trust
from virtualzarr_refs.sources import SourcePool
from virtualzarr_refs.sources.location import is_relative, join, local_path

_LOOK_UPS_AT_ONCE = 16

MAX_TEXT = 1 << 28
"""Characters of all urls that templates make in one set; more is taken for an attack on memory."""


@dataclass(frozen=True, slots=True)
class SetUrls:
    """The urls of one reference set.

    Parameters
    ----------
    folder : str
        Where the set lies; relative urls start there.
    trust : Trust
        What they may point to.
    templates : Templates
        What they may refer to.
    storage_options : mapping, optional
        Options of the sources, used only where a source must be looked at to understand the set.
    """

    folder: str
    trust: Trust
    templates: Templates = field(default_factory=Templates)
    storage_options: Mapping[str, object] | None = None
    _resolved: dict[object, str] = field(default_factory=dict[object, str], init=False)
    _made: list[int] = field(default_factory=lambda: [0], init=False)

    def resolve(self, url: object) -> str:
        """The url of a source, each distinct url worked out once.

        Raises
        ------
        ReferenceSetError
            If it is no text, uses a template that is not there, or may not be pointed to.
        """
        if type(url) is not str:
            raise ReferenceSetError(f"a reference has the url {url!r:.200}, which is not a text")
        known = self._resolved.get(url)
        if known is None:
            known = self._resolved[url] = self._resolve(url)
        return known

    def _resolve(self, url: str) -> str:
        plain = self.templates.substitute(url)
        self._made[0] += max(0, len(plain) - len(url))
        if self._made[0] > MAX_TEXT:
            raise ReferenceSetError(f"the templates make urls of more than {MAX_TEXT} characters altogether")
        if not plain:
            raise ReferenceSetError("a reference has an empty url")
        absolute = join(self.folder, plain) if is_relative(plain) else plain
        self.trust.require(absolute)
        return absolute

    def permitted(self, url: str) -> str | None:
        """The url of a source, or None if the set may not point to it; see `resolve`."""
        try:
            return self.resolve(url)
        except ReferenceSetError:
            return None

    def sizes(self, urls: Iterable[str]) -> dict[str, int]:
        """Size in bytes of whole sources, of which references give only the url.

        Raises
        ------
        SourceError
            If one is missing or cannot be looked at.
        """
        distinct = list(dict.fromkeys(urls))
        with SourcePool(storage_options=self.storage_options) as pool, ThreadPoolExecutor(_LOOK_UPS_AT_ONCE) as workers:
            return dict(zip(distinct, (i.size for i in workers.map(pool.identity, distinct)), strict=True))

    def read(self, url: str, byte_range: ByteRange) -> bytes:
        """Bytes of a source: where a metadata document is itself a reference."""
        with SourcePool(storage_options=self.storage_options) as pool:
            return bytes(pool.read(url, [byte_range])[0])


def folder_of(url: str) -> str:
    """The folder that holds a file, or its url; a query string stays at the end, a chain a chain."""
    path = local_path(url)
    if path is not None:
        return os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120  a text, as urls are
    links, complete = _links(url)
    file, mark, query = links[complete].partition("?")
    folder = file.removesuffix(_last_part(file))
    links[complete] = f"{folder if folder.endswith('://') else folder.removesuffix('/')}{mark}{query}"
    return "::".join(links)


def name_of(url: str) -> str:
    """The name of a file in its folder."""
    path = local_path(url)
    if path is not None:
        return os.path.basename(path)  # noqa: PTH119  a text, as urls are
    links, complete = _links(url)
    return _last_part(links[complete].partition("?")[0])


def _links(url: str) -> tuple[list[str], int]:
    """The links of a chain, and which of them names the file."""
    links = url.split("::")
    return links, next((i for i, link in enumerate(links) if "://" in link), len(links) - 1)


def _last_part(link: str) -> str:
    return link.rpartition("://")[2].rpartition("/")[2]
