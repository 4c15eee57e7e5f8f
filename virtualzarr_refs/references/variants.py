"""Giving an array whose chunks are encoded in different ways one plain pipeline.

The variant that most chunks use becomes the array's pipeline; the chunks of the others are decoded, and encoded so.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import JSON, ChunkGrid, ChunkIndex, RegularGrid
from virtualzarr_refs.errors import NotRepresentableError
from virtualzarr_refs.hierarchy import METADATA_KEY, VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import MISSING, Manifest, index_of
from virtualzarr_refs.metadata import ArrayMetadata, encode_metadata

if TYPE_CHECKING:
    import zarr

type Codec = dict[str, JSON]


def has_variants(array: VirtualArray) -> bool:
    """Whether the chunks of an array are encoded in different ways."""
    return array.manifest.has_variants


def materialise(group: VirtualGroup, storage_options: Mapping[str, object] | None) -> VirtualGroup:
    """The group with one plain pipeline for each array; chunks that had to be encoded anew are inline.

    Parameters
    ----------
    group : VirtualGroup
        To be written.
    storage_options : mapping, optional
        For reading the chunks.

    Raises
    ------
    NotRepresentableError
        If the pipeline of an array cannot encode; the message names the array.
    SourceError
        If chunks cannot be read.
    """
    store = group.to_store(storage_options=storage_options)

    def change(path: str, array: VirtualArray) -> VirtualArray:
        return _materialise(path, array, store) if has_variants(array) else array

    return group.map_arrays(change)


def _materialise(path: str, array: VirtualArray, store: Any) -> VirtualArray:  # noqa: ANN401  a zarr store
    import zarr  # noqa: PLC0415  slow to import

    pipelines, manifest = _pipelines(array.metadata), array.manifest.loaded()
    present = manifest.positions()
    variants = cast("NDArray[np.uint16]", manifest.variant).reshape(-1)[present]
    counts = np.bincount(variants, minlength=len(pipelines))
    chosen = max(pipelines, key=lambda number: counts[number], default=None)
    if chosen is None:
        raise NotRepresentableError(
            f"no chunk of {path!r} is stored as its array has it: all are of another type, packed or cropped; write "
            "with materialise=None, which this package reads",
            node=path,
        )
    metadata = replace(array.metadata, codecs=pipelines[chosen])
    concerned = present[variants != chosen].tolist()
    source = zarr.open_array(store, path=path, mode="r", zarr_format=3)
    encoded = _encode_anew(path, source, metadata, [index_of(p, manifest.grid_shape) for p in concerned])
    return VirtualArray(metadata, _with_inline(manifest, dict(zip(concerned, encoded, strict=True))))


def _pipelines(metadata: ArrayMetadata) -> dict[int, tuple[Codec, ...]]:
    """The pipelines of those variants, by number, that decode to what the array has, and do no more than decode."""
    (mixed,) = metadata.codecs
    variants = cast("Mapping[str, Sequence[Mapping[str, Any]]]", mixed["configuration"])["variants"]
    grid = metadata.chunk_grid
    shape = list(grid.chunk_shape) if isinstance(grid, RegularGrid) else None
    plain: dict[str, object] = {"data_type": metadata.data_type, "chunk_shape": shape}
    return {
        number: tuple(variant["codecs"])
        for number, variant in enumerate(variants)
        if all(name == "codecs" or (name in plain and value == plain[name]) for name, value in variant.items())
    }


def _encode_anew(
    path: str, source: zarr.Array[Any], metadata: ArrayMetadata, indexes: Sequence[ChunkIndex]
) -> list[bytes]:
    import zarr  # noqa: PLC0415  slow to import
    from zarr.core.buffer import default_buffer_prototype  # noqa: PLC0415
    from zarr.storage import MemoryStore  # noqa: PLC0415

    buffers = default_buffer_prototype().buffer
    written: dict[str, Any] = {METADATA_KEY: buffers.from_bytes(encode_metadata(metadata))}
    memory = zarr.open_array(MemoryStore(written), mode="r+", zarr_format=3)
    target = memory.with_config({"write_empty_chunks": True})
    for index in indexes:
        region = _region(metadata.chunk_grid, index)
        _encode(path, metadata, target, region, source[region])
    return [written[metadata.chunk_key_encoding.encode(index)].to_bytes() for index in indexes]


def _encode(
    path: str,
    metadata: ArrayMetadata,
    target: zarr.Array[Any],
    region: tuple[slice, ...],
    values: Any,  # noqa: ANN401  what zarr reads
) -> None:
    try:
        target[region] = values
    except NotImplementedError as error:
        names = ", ".join(str(codec["name"]) for codec in metadata.codecs)
        raise NotRepresentableError(
            f"the chunks of {path!r} cannot be encoded in one way, as most of them are stored with a codec that only "
            f"decodes ({names}); write with materialise=None, which this package reads",
            node=path,
        ) from error


def _region(grid: ChunkGrid, index: ChunkIndex) -> tuple[slice, ...]:
    return tuple(_extent(grid.chunk_lengths(axis), i) for axis, i in enumerate(index))


def _extent(lengths: Sequence[int], i: int) -> slice:
    start = sum(itertools.islice(lengths, i))
    return slice(start, start + lengths[i])


def _with_inline(manifest: Manifest, inline: Mapping[int, bytes]) -> Manifest:
    url_id = np.array(manifest.url_id)
    url_id.reshape(-1)[list(inline)] = MISSING
    return replace(manifest, url_id=url_id, variant=None, inline={**manifest.inline, **inline})
