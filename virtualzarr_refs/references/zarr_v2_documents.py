"""All metadata documents of a set in Zarr v2, or the list of arrays that Zarr v2 cannot carry."""

from __future__ import annotations

from virtualzarr_refs.chunk_grid import JSON
from virtualzarr_refs.errors import NotRepresentableError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.references.documents import DOCUMENT_NAMES, ZARRAY, ZATTRS, ZGROUP
from virtualzarr_refs.references.variants import has_variants
from virtualzarr_refs.references.zarr_v2_writer import write_array, write_group

type Documents = dict[str, dict[str, JSON]]


def write_documents(group: VirtualGroup) -> dict[str, Documents]:
    """The documents of every node, by its path and then by their names.

    Raises
    ------
    NotRepresentableError
        If Zarr v2 cannot say the same; the message lists the nodes, the reasons and the way out.
    """
    documents: dict[str, Documents] = {}
    reasons: dict[str, str] = {}
    for path, node in group.walk():
        try:
            documents[path] = _documents_of(path, node)
        except NotRepresentableError as error:
            reasons[path] = error.message
    if reasons:
        listed = "; ".join(f"{path}: {reason}" for path, reason in reasons.items())
        raise NotRepresentableError(f"Zarr v2 cannot carry {listed}. zarr_format=3 carries them, or leave them out")
    return documents


def _documents_of(path: str, node: VirtualArray | VirtualGroup) -> Documents:
    if path.rpartition("/")[2] in DOCUMENT_NAMES:
        raise NotRepresentableError("its name is that of a metadata document")
    if isinstance(node, VirtualGroup):
        return dict(zip((ZGROUP, ZATTRS), write_group(node.metadata), strict=True))
    if has_variants(node):
        raise NotRepresentableError(
            'its chunks are encoded in different ways (materialise="inline" or "sidecar" encodes them in one)'
        )
    return dict(zip((ZARRAY, ZATTRS), write_array(node.metadata, has_missing=not node.manifest.is_full), strict=True))
