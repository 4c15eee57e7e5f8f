"""The metadata of a group as Icechunk takes it: default chunk keys, all chunk lengths listed, strict JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from virtualzarr_refs.chunk_grid import JSON, ChunkGrid, ChunkKeyEncoding, RectilinearGrid
from virtualzarr_refs.errors import NotRepresentableError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.metadata import ArrayMetadata, NodeMetadata
from virtualzarr_refs.references.icechunk.locations import location_of
from virtualzarr_refs.references.variants import has_variants
from virtualzarr_refs.shards.plain import without_shards

MAX_NAMED = 10
"""Nodes that a refusal names."""


@dataclass(frozen=True, slots=True)
class Adaptation:
    """A group as Icechunk can carry it.

    Parameters
    ----------
    group : VirtualGroup
        With the metadata that are written.
    locations : mapping of str to str
        Where Icechunk finds each url.
    """

    group: VirtualGroup
    locations: Mapping[str, str]


def adapt(group: VirtualGroup, *, nan_as_text: bool) -> Adaptation:
    """The group with metadata that Icechunk takes.

    Parameters
    ----------
    group : VirtualGroup
        To be written.
    nan_as_text : bool
        Whether to write attributes that are not finite as the texts ``NaN``, ``Infinity`` and ``-Infinity``.

    Raises
    ------
    NotRepresentableError
        The message lists the nodes, the reasons and the ways out.
    """
    groups = without_shards(group).map_arrays(lambda _, array: replace(array, metadata=_metadata(array)))
    adapted = _with_texts(groups) if nan_as_text else groups
    reasons = {path or "/": reason for path, node in adapted.walk() if (reason := _reason(node))}
    if reasons:
        named = "; ".join(f"{path}: {reason}" for path, reason in list(reasons.items())[:MAX_NAMED])
        more = f"; and {len(reasons) - MAX_NAMED} more" if len(reasons) > MAX_NAMED else ""
        raise NotRepresentableError(f"Icechunk cannot carry {named}{more}")
    return Adaptation(adapted, {url: location_of(url) for url in adapted.urls})


def _metadata(array: VirtualArray) -> ArrayMetadata:
    grid = _listed(array.metadata.chunk_grid)
    return replace(array.metadata, chunk_grid=grid, chunk_key_encoding=ChunkKeyEncoding())


def _listed(grid: ChunkGrid) -> ChunkGrid:
    """Icechunk knows rectilinear grids only with the chunks of every axis listed."""
    if not isinstance(grid, RectilinearGrid):
        return grid
    counts = grid.grid_shape
    edges = ((edge,) * count if isinstance(edge, int) else edge for edge, count in zip(grid.edges, counts, strict=True))
    return replace(grid, edges=tuple(edges))


def unlisted(grid: ChunkGrid) -> ChunkGrid:
    """The grid with one length for each axis whose chunks are all of it: the inverse of what Icechunk needs."""
    if not isinstance(grid, RectilinearGrid):
        return grid
    return replace(grid, edges=tuple(map(_unlisted, grid.edges, grid.shape)))


def _unlisted(edge: int | tuple[int, ...], size: int) -> int | tuple[int, ...]:
    if isinstance(edge, int) or len(set(edge)) != 1 or len(edge) != -(-size // edge[0]):
        return edge
    return edge[0]


def _reason(node: VirtualArray | VirtualGroup) -> str | None:
    if isinstance(node, VirtualArray) and has_variants(node):
        return 'its chunks are encoded in different ways (materialise="inline" encodes them in one)'
    names = [name for name, value in node.metadata.attributes.items() if not _is_strict(value)]
    if names:
        listed = ", ".join(names)
        return f'its attributes {listed} are not finite, which is no JSON (nan_attributes="text" writes them as texts)'
    if not _is_strict(cast("JSON", node.metadata.to_json())):
        return "its metadata hold a number that is not finite, which is no JSON"
    return None


def _is_strict(value: JSON) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def _with_texts(group: VirtualGroup) -> VirtualGroup:
    arrays = {n: replace(array, metadata=_texts_in(array.metadata)) for n, array in group.arrays.items()}
    groups = {name: _with_texts(inner) for name, inner in group.groups.items()}
    return VirtualGroup(_texts_in(group.metadata), arrays, groups)


def _texts_in[M: NodeMetadata](metadata: M) -> M:
    return replace(metadata, attributes={name: _text(value) for name, value in metadata.attributes.items()})


def _text(value: JSON) -> JSON:
    if isinstance(value, float) and not _is_strict(value):
        return json.dumps(value)
    if isinstance(value, list):
        return [_text(item) for item in value]
    return {name: _text(item) for name, item in value.items()} if isinstance(value, dict) else value
