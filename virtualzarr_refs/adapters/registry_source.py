"""The sources that a VirtualiZarr registry has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.sources import Source
from virtualzarr_refs.sources.local import LocalSource
from virtualzarr_refs.sources.location import local_path
from virtualzarr_refs.sources.obstore_source import ObstoreSource
from virtualzarr_refs.sources.redaction import redact

if TYPE_CHECKING:
    from obstore.store import ObjectStore


def registered_source(url: str, registry: Any) -> Source:  # noqa: ANN401  an ObjectStoreRegistry, of an extra
    """The source that a registry has at a url; a local file is mapped into memory.

    Raises
    ------
    ValueError
        If nothing is registered for the url.
    UnsupportedError
        If the store is none of obstore's, or none of local files where the url is local.
    """
    from obstore.store import LocalStore  # noqa: PLC0415  an extra

    store, path = registry.resolve(url)
    if isinstance(store, LocalStore):
        return LocalSource(str(Path(store.prefix or "/") / path))
    if local_path(url) is not None or not type(store).__module__.startswith("obstore"):
        raise UnsupportedError(
            "the url has to be registered with a store of obstore, a local one with its LocalStore", url=redact(url)
        )
    return _RegisteredSource(url, store, path)


class _RegisteredSource(ObstoreSource):
    """A file behind a store that somebody else has made. It is not pickled."""

    def __init__(self, url: str, store: ObjectStore, path: str) -> None:
        super().__init__(url)
        self._registered = store, path

    def _locate(self) -> tuple[ObjectStore, str]:
        return self._registered
