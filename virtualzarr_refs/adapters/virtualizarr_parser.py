"""Our scanners as a parser of VirtualiZarr's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virtualzarr_refs.adapters.registry_source import registered_source
from virtualzarr_refs.adapters.virtualizarr_groups import to_manifest_group
from virtualzarr_refs.adapters.virtualizarr_scanner import require_virtualizarr
from virtualzarr_refs.adapters.virtualizarr_urls import registered_url
from virtualzarr_refs.errors import NodeNotFoundError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.scanning import (
    MATERIALISE_LIMIT,
    TARGET_CHUNK_SIZE,
    Scanner,
    ScanOptions,
    scan_source,
    warn_of_skipped,
)

if TYPE_CHECKING:
    from virtualizarr.manifests import ManifestStore


@dataclass(frozen=True, kw_only=True)
class VirtualiZarrParser:
    """Reads files of every format that `virtualzarr_refs.scan` knows, for VirtualiZarr.

    It has VirtualiZarr's protocol `Parser`: ``open_virtual_dataset(url, registry, parser=VirtualiZarrParser())``.
    VirtualiZarr's model has no types of attributes, so what it unpacks may be float64 where `scan` gives float32.

    Parameters
    ----------
    group : str, optional
        Path of the group that becomes the root.
    drop_variables : iterable of str
        Names of arrays to leave out.
    scanner : Scanner or str, optional
        The scanner, or its name; by default the one that recognises the file's first bytes.
    strict, materialise_limit, target_chunk_size
        See `virtualzarr_refs.scan`.
    """

    group: str | None = None
    drop_variables: Iterable[str] = ()
    scanner: Scanner | str | None = None
    strict: bool = False
    materialise_limit: int = MATERIALISE_LIMIT
    target_chunk_size: int = TARGET_CHUNK_SIZE

    def __call__(self, url: str, registry: Any) -> ManifestStore:  # noqa: ANN401  an ObjectStoreRegistry
        """Read the chunk layout of one file through the registry's store.

        Raises
        ------
        NotRepresentableError
            If VirtualiZarr's model cannot carry the file; the message lists the arrays and the reasons.
        NodeNotFoundError
            If there is no such group.
        FormatError, SourceError
            If the file cannot be read.

        Warns
        -----
        SkippedNodeWarning
            If nodes were left out.
        """
        require_virtualizarr()
        from virtualizarr.manifests import ManifestStore  # noqa: PLC0415  an extra

        source = registered_source(url, registry)
        options = ScanOptions(self.strict, self.materialise_limit, self.target_chunk_size)
        try:
            scanned = scan_source(source, self.scanner, options)
        finally:
            source.close()
        warn_of_skipped(url, scanned)

        def path_of(target: str) -> str:
            return registered_url(url if target == source.url else target)

        group = to_manifest_group(self._chosen(scanned), path_of, self.drop_variables)
        return ManifestStore(registry=registry, group=group)

    def _chosen(self, scanned: VirtualGroup) -> VirtualGroup:
        node = scanned[self.group or ""]
        if not isinstance(node, VirtualGroup):
            raise NodeNotFoundError("this is an array, not a group", node=self.group)
        return node
