"""From metadata documents and references to a hierarchy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from virtualzarr_refs.chunk_grid import ChunkKeyEncoding
from virtualzarr_refs.codecs.names import MIXED
from virtualzarr_refs.errors import ReferenceSetError, VirtualZarrError
from virtualzarr_refs.hierarchy import METADATA_KEY, VirtualArray, VirtualGroup
from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata, NodeMetadata, Skipped, parse_metadata
from virtualzarr_refs.references.chunk_columns import Grid, Keyed, read_manifest
from virtualzarr_refs.references.documents import ZARRAY, ZATTRS, ZGROUP, Documents
from virtualzarr_refs.references.urls import SetUrls
from virtualzarr_refs.references.zarr_v2_reader import read_array, read_group
from virtualzarr_refs.sharding import is_sharded


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a set.

    Parameters
    ----------
    metadata : ArrayMetadata or GroupMetadata
        In the form of Zarr v3.
    encoding : ChunkKeyEncoding
        How the set names the chunks, which need not be how the metadata do.
    """

    metadata: NodeMetadata
    encoding: ChunkKeyEncoding = field(default_factory=ChunkKeyEncoding)


def parse_nodes(documents: Mapping[str, Documents], *, mask_fill_value: bool) -> dict[str, Node]:
    """The nodes of a set, by path, groups that have no document of their own included.

    Raises
    ------
    ReferenceSetError
        If a document is malformed, or an array holds other nodes.
    UnsupportedError
        If an array cannot be shown as Zarr v3.
    """
    nodes = {"": Node(GroupMetadata())}
    for path, of_node in documents.items():
        for ancestor in [*_ancestors(path)][::-1]:
            nodes.setdefault(ancestor, Node(GroupMetadata()))
        nodes[path] = _parse_node(path, of_node, mask_fill_value=mask_fill_value)
    if isinstance(nodes[""].metadata, ArrayMetadata):
        raise ReferenceSetError("the root of the set is an array; put it into a group, under a name")
    for path in nodes:
        holder = path.rpartition("/")[0]
        if isinstance(nodes[holder].metadata, ArrayMetadata):
            raise ReferenceSetError(f"the array {holder!r} cannot hold the node {path!r}")
    return nodes


def _parse_node(path: str, documents: Documents, *, mask_fill_value: bool) -> Node:
    try:
        if METADATA_KEY in documents:
            return _parse_v3(documents)
        attributes = documents.get(ZATTRS, {})
        if ZARRAY in documents:
            return Node(*read_array(documents[ZARRAY], attributes, mask_fill_value=mask_fill_value))
        return Node(read_group(documents.get(ZGROUP, {}), attributes))
    except VirtualZarrError as error:
        raise error.at(node=path or "/") from error.__cause__


def _parse_v3(documents: Documents) -> Node:
    if len(documents) > 1:
        raise ReferenceSetError(f"the node has metadata of Zarr v2 and v3: {sorted(documents)}; leave one")
    metadata = parse_metadata(documents[METADATA_KEY])
    return Node(metadata, metadata.chunk_key_encoding) if isinstance(metadata, ArrayMetadata) else Node(metadata)


def _ancestors(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path


def split_by_array(references: Iterable[tuple[str, object]], nodes: Mapping[str, Node]) -> dict[str, Keyed]:
    """Sort references by the array that they belong to.

    Raises
    ------
    ReferenceSetError
        If one belongs to no array; the message quotes its key.
    """
    sorted_: dict[str, Keyed] = {}
    prefix, current = "/", Keyed([], [])  # no key can begin with the prefix
    for key, value in references:
        if not key.startswith(prefix):  # sets list the chunks of one array together
            path = _owner(key, nodes)
            prefix, current = f"{path}/", sorted_.setdefault(path, Keyed([], []))
        current.keys.append(key)
        current.values.append(value)
    return sorted_


def _owner(key: str, nodes: Mapping[str, Node]) -> str:
    for path in _ancestors(key):
        node = nodes.get(path)
        if path and node is not None and isinstance(node.metadata, ArrayMetadata):
            return path
    raise ReferenceSetError(f"the key {key!r:.200} belongs to no array of the set")


def build_group(nodes: Mapping[str, Node], references: Mapping[str, Keyed], urls: SetUrls) -> VirtualGroup:
    """The hierarchy of a set.

    Parameters
    ----------
    nodes : mapping
        Every node by path, ancestors included.
    references : mapping
        By path of the array.
    urls : SetUrls
        Where references point.

    Returns
    -------
    VirtualGroup
        References outside the chunk grid of their array are in `skipped`.

    Raises
    ------
    ReferenceSetError
        If references are malformed.
    SourceError
        If the size of a whole source cannot be found out.
    """
    arrays: dict[str, VirtualArray] = {}
    skipped: list[Skipped] = []
    for path, node in nodes.items():
        if isinstance(node.metadata, ArrayMetadata):
            keyed = references.get(path, Keyed([], []))
            arrays[path], outside = _build_array(path, node.metadata, node.encoding, keyed, urls)
            skipped += _records(path, outside)
    root = assemble(nodes, arrays)
    return replace(root, metadata=replace(root.metadata, skipped=(*root.metadata.skipped, *skipped)))


def _build_array(
    path: str, metadata: ArrayMetadata, encoding: ChunkKeyEncoding, keyed: Keyed, urls: SetUrls
) -> tuple[VirtualArray, list[str]]:
    shape, has_variants = metadata.chunk_grid.grid_shape, has_mixed_codec(metadata)
    grid = Grid(shape, encoding, len(path) + 1, has_variants, is_sharded(metadata))
    try:
        manifest, outside = read_manifest(keyed, grid, urls)
        return VirtualArray(metadata, manifest), outside
    except VirtualZarrError as error:
        raise error.at(node=path) from error.__cause__


def _records(path: str, outside: list[str]) -> list[Skipped]:
    if not outside:
        return []
    reason = f"{len(outside)} reference(s), such as that of {outside[0]!r}, lie outside the chunk grid of the array"
    return [Skipped(path, reason, loses_data=False)]


def has_mixed_codec(metadata: ArrayMetadata) -> bool:
    """Whether chunks of an array are encoded in different ways."""
    return any(codec.get("name") == MIXED for codec in metadata.codecs)


def assemble(nodes: Mapping[str, Node], arrays: Mapping[str, VirtualArray]) -> VirtualGroup:
    """The hierarchy of arrays and of the groups that hold them, all by path."""
    groups = {path: node.metadata for path, node in nodes.items() if isinstance(node.metadata, GroupMetadata)}
    children: dict[str, dict[str, VirtualArray]] = {path: {} for path in groups}
    for path, array in arrays.items():
        parent, _, name = path.rpartition("/")
        children[parent][name] = array
    inner: dict[str, dict[str, VirtualGroup]] = {path: {} for path in groups}
    built = VirtualGroup()
    for path in sorted(groups, key=_depth, reverse=True):  # what a group holds is built before it
        built = VirtualGroup(groups[path], children[path], inner[path])
        if path:
            parent, _, name = path.rpartition("/")
            inner[parent][name] = built
    return built


def _depth(path: str) -> int:
    return path.count("/") + 1 if path else 0
