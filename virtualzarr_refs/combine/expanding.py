"""A new first axis for arrays that lack the dimension along which files are put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import JSON, ChunkGrid, RectilinearGrid, RegularGrid
from virtualzarr_refs.codecs.names import CROP, MIXED, RESHAPE
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.manifest import Manifest

type Codec = Mapping[str, JSON]
type Codecs = tuple[Codec, ...]

_HEEDLESS = frozenset({"bytes", "vlen-bytes", "vlen-utf8"})
"""Codecs from arrays to bytes that only see elements one after the other, whatever the axes."""


def expand(array: VirtualArray, dim: str, length: int = 1) -> VirtualArray:
    """The array with a new first axis, repeated along it.

    Parameters
    ----------
    array : VirtualArray
        Lacks the dimension.
    dim : str
        Name of the new axis.
    length : int
        Of the new axis, in elements; each is a chunk of its own.
    """
    metadata = array.metadata
    names = metadata.dimension_names or (None,) * len(array.shape)
    encoding = dict(metadata.encoding)
    if "fixed_axes" in encoding:
        encoding["fixed_axes"] = [axis + 1 for axis in cast("list[int]", encoding["fixed_axes"])]
    expanded = replace(
        metadata,
        chunk_grid=_expanded_grid(metadata.chunk_grid, length),
        codecs=expanded_codecs(tuple(metadata.codecs), len(array.shape)),
        dimension_names=(dim, *names),
        encoding=encoding,
    )
    return VirtualArray(expanded, _repeated(array.manifest.loaded(), length))


def _expanded_grid(grid: ChunkGrid, length: int) -> ChunkGrid:
    if isinstance(grid, RegularGrid):
        return RegularGrid((length, *grid.shape), (1, *grid.chunk_shape))
    return RectilinearGrid((length, *grid.shape), (1, *grid.edges))


def expanded_codecs(codecs: Codecs, ndim: int) -> Codecs:
    """The pipeline for chunks with a new first axis of length 1.

    Parameters
    ----------
    codecs : tuple of mapping
        As in ``zarr.json``.
    ndim : int
        Number of axes before.
    """
    first, rest = codecs[0], codecs[1:]
    if first["name"] in _HEEDLESS:
        return codecs
    if first["name"] not in _EXPANDED:
        return (_without_first_axis(ndim), *codecs)
    changed = _EXPANDED[str(first["name"])](cast("Mapping[str, Any]", first.get("configuration") or {}), ndim)
    configuration = {**cast("Mapping[str, JSON]", first.get("configuration") or {}), **changed}
    expanded: Codec = {**first, "configuration": configuration}
    return (expanded, *(expanded_codecs(rest, ndim) if first["name"] in _TO_ARRAYS else rest))


def _crop(configuration: Mapping[str, Any], _: int) -> dict[str, JSON]:
    return {"stored_chunk_shape": [1, *configuration["stored_chunk_shape"]]}


def _transpose(configuration: Mapping[str, Any], _: int) -> dict[str, JSON]:
    return {"order": [0, *(axis + 1 for axis in configuration["order"])]}


def _shards(configuration: Mapping[str, Any], ndim: int) -> dict[str, JSON]:
    inner: list[JSON] = [dict(codec) for codec in expanded_codecs(_members(configuration["codecs"]), ndim)]
    return {"chunk_shape": [1, *configuration["chunk_shape"]], "codecs": inner}


def _mixed(configuration: Mapping[str, Any], ndim: int) -> dict[str, JSON]:
    return {"variants": [_expanded_variant(variant, ndim) for variant in configuration["variants"]]}


_TO_ARRAYS = frozenset({CROP, "transpose"})
"""Codecs from arrays to arrays, after which the others follow."""

_EXPANDED: Mapping[str, Callable[[Mapping[str, Any], int], dict[str, JSON]]] = {
    CROP: _crop,
    MIXED: _mixed,
    "sharding_indexed": _shards,
    "transpose": _transpose,
}
"""What changes in the configurations of codecs that heed axes. zarr holds some of them against the axes of the array,
whatever stands before them; so these are changed, and the others see the axes that they knew."""


def _expanded_variant(variant: Mapping[str, Any], ndim: int) -> dict[str, JSON]:
    changed: dict[str, JSON] = {"codecs": [dict(codec) for codec in expanded_codecs(_members(variant["codecs"]), ndim)]}
    if "chunk_shape" in variant:
        changed["chunk_shape"] = [1, *variant["chunk_shape"]]
    return {**variant, **changed}


def _members(codecs: Sequence[str | Codec]) -> Codecs:
    return tuple({"name": codec} if isinstance(codec, str) else codec for codec in codecs)


def _without_first_axis(ndim: int) -> Codec:
    axes: list[JSON] = [[0, 1], *([axis] for axis in range(2, ndim + 1))] if ndim else []
    return {"name": RESHAPE, "configuration": {"shape": axes}}


def _repeated(manifest: Manifest, length: int) -> Manifest:
    """The manifest once for each element of a new first axis; columns take no more memory than before."""

    def column[A: NDArray[Any]](values: A) -> A:
        return cast("A", np.broadcast_to(values, (length, *values.shape)))

    inline = {
        number * manifest.size + position: data
        for number in range(length)
        for position, data in manifest.inline.items()
    }
    variant = None if manifest.variant is None else column(manifest.variant)
    return Manifest(
        manifest.urls, column(manifest.url_id), column(manifest.offset), column(manifest.length), variant, inline
    )
