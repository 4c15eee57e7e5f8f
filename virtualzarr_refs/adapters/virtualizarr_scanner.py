"""VirtualiZarr's parsers as scanners."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from virtualzarr_refs.adapters.source_store import SourceStore
from virtualzarr_refs.adapters.virtualizarr_groups import from_manifest_group
from virtualzarr_refs.adapters.virtualizarr_urls import plain_url, registered_url
from virtualzarr_refs.errors import FormatError, UnsupportedError, VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.references.trust import Trust
from virtualzarr_refs.scanning import ScanOptions
from virtualzarr_refs.sources import Source

if TYPE_CHECKING:
    from virtualizarr.parsers.typing import Parser


def from_virtualizarr(parser: Parser, *, registry: Any = None) -> VirtualiZarrScanner:  # noqa: ANN401  of an extra
    """A parser of VirtualiZarr as a scanner: ``scan(url, scanner=from_virtualizarr(HDFParser()))``.

    What it says of a file is taken as it is. Whether the values are those of the format's own library is for the
    parser to answer; `virtualzarr_refs.check` compares them.

    Parameters
    ----------
    parser : callable
        An instance of any class with VirtualiZarr's protocol `Parser`.
    registry : ObjectStoreRegistry, optional
        Of stores that the parser reads by. By default local files are read by obstore, and of a remote url just the
        file itself, as the other options of `scan` say.

    Raises
    ------
    UnsupportedError
        If VirtualiZarr is not installed.
    """
    require_virtualizarr()
    return VirtualiZarrScanner(parser, registry)


def require_virtualizarr() -> None:
    """Say how to get VirtualiZarr.

    Raises
    ------
    UnsupportedError
        If it is not installed.
    """
    if find_spec("virtualizarr") is None:
        raise UnsupportedError('VirtualiZarr is not installed; pip install "virtualzarr-refs[virtualizarr]"')


@dataclass(frozen=True, slots=True)
class VirtualiZarrScanner:
    """See `from_virtualizarr`."""

    parser: Parser
    registry: Any = None

    @property
    def name(self) -> str:
        """Name of the parser."""
        return f"virtualizarr.{type(self.parser).__name__}"

    def recognises(self, head: bytes, url: str) -> bool:  # noqa: ARG002  a parser is chosen by hand
        """Never: parsers do not say what they can read."""
        return False

    def scan(self, source: Source, options: ScanOptions) -> VirtualGroup:  # noqa: ARG002  parsers have their own
        """Let the parser read the file.

        Raises
        ------
        FormatError
            If the parser fails; its own error is the cause.
        ReferenceSetError
            If it points where a file from there may not.
        """
        url = registered_url(source.url)
        registry = _registry(url, source) if self.registry is None else self.registry
        trust = Trust.in_set_at(source.url, None)

        def url_of(path: str) -> str:
            if path == url:
                return source.url
            trust.require(plain := plain_url(path))
            return plain

        try:
            store = self.parser(url, registry)
        except VirtualZarrError:
            raise
        except Exception as error:  # whatever a parser of another package raises
            raise FormatError(f"{self.name} cannot read the file: {type(error).__name__}: {error}") from error
        return from_manifest_group(cast("Any", store)._group, url_of)  # noqa: SLF001  there is no other way to it


def _registry(url: str, source: Source) -> Any:  # noqa: ANN401
    from obspec_utils.registry import ObjectStoreRegistry  # noqa: PLC0415  an extra
    from obstore.store import LocalStore  # noqa: PLC0415

    parts = urlsplit(url)
    if parts.scheme == "file":
        return ObjectStoreRegistry({"file://": LocalStore()})
    store: Any = SourceStore(source, parts.path.lstrip("/"))
    return ObjectStoreRegistry({f"{parts.scheme}://{parts.netloc}": store})
