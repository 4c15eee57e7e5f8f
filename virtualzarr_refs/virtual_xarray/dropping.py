"""Arrays without one of their axes, where chunks have a length of 1 along it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import JSON, ChunkGrid, RectilinearGrid, RegularGrid
from virtualzarr_refs.codecs.names import CROP, MIXED, RESHAPE
from virtualzarr_refs.combine.expanding import Codecs, expanded_codecs
from virtualzarr_refs.combine.parts import stored_lengths
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.manifest import Manifest


def drop_axis(array: VirtualArray, axis: int) -> VirtualArray:
    """The array without an axis that has one element.

    Raises
    ------
    UnsupportedError
        If its chunks are stored with more.
    """
    metadata = array.metadata
    if stored_lengths(array, axis).tolist() != [1]:
        raise UnsupportedError(f"an element along axis {axis} is a part of a chunk; select a range of them instead")
    names = metadata.dimension_names
    dropped = replace(
        metadata,
        chunk_grid=_dropped_grid(metadata.chunk_grid, axis),
        codecs=_dropped_codecs(tuple(metadata.codecs), axis, len(array.shape)),
        dimension_names=None if names is None else _without(names, axis),
    )
    return VirtualArray(dropped, _squeezed(array.manifest.loaded(), axis))


def _without[T](items: tuple[T, ...], axis: int) -> tuple[T, ...]:
    return items[:axis] + items[axis + 1 :]


def _dropped_grid(grid: ChunkGrid, axis: int) -> ChunkGrid:
    if isinstance(grid, RegularGrid):
        return RegularGrid(_without(grid.shape, axis), _without(grid.chunk_shape, axis))
    return RectilinearGrid(_without(grid.shape, axis), _without(grid.edges, axis))


def _dropped_codecs(codecs: Codecs, axis: int, ndim: int) -> tuple[dict[str, JSON], ...]:
    """The pipeline for chunks without an axis of length 1; codecs that heed shapes still see the one they encoded."""
    first, name = codecs[0], codecs[0]["name"]
    configuration = cast("Mapping[str, Any]", first.get("configuration") or {})
    if name == CROP:
        stored = _stored(configuration["stored_chunk_shape"], axis)
        return (
            {"name": CROP, "configuration": {"stored_chunk_shape": stored}},
            *_dropped_codecs(codecs[1:], axis, ndim),
        )
    if name == MIXED and len(codecs) == 1:
        variants: list[JSON] = [_dropped_variant(variant, axis, ndim) for variant in configuration["variants"]]
        return ({"name": MIXED, "configuration": {"variants": variants}},)
    same = tuple(dict(codec) for codec in codecs)
    if expanded_codecs(codecs, ndim) == codecs:  # axes do not matter to them
        return same
    axes: list[JSON] = [*([i] for i in range(axis)), 1, *([i] for i in range(axis, ndim - 1))]
    return ({"name": RESHAPE, "configuration": {"shape": axes}}, *same)


def _dropped_variant(variant: Mapping[str, Any], axis: int, ndim: int) -> dict[str, JSON]:
    members = tuple({"name": codec} if isinstance(codec, str) else codec for codec in variant["codecs"])
    changed: dict[str, JSON] = {"codecs": list(_dropped_codecs(members, axis, ndim))}
    if "chunk_shape" in variant:
        changed["chunk_shape"] = _stored(variant["chunk_shape"], axis)
    return {**variant, **changed}


def _stored(shape: list[int], axis: int) -> list[JSON]:
    if shape[axis] != 1:
        raise UnsupportedError(f"an element along axis {axis} is a part of a padded chunk; select a range instead")
    return [*shape[:axis], *shape[axis + 1 :]]


def _squeezed(manifest: Manifest, axis: int) -> Manifest:
    def column[A: NDArray[Any]](values: A) -> A:
        return cast("A", np.squeeze(values, axis))

    variant = None if manifest.variant is None else column(manifest.variant)
    return Manifest(
        manifest.urls,
        column(manifest.url_id),
        column(manifest.offset),
        column(manifest.length),
        variant,
        manifest.inline,
    )
