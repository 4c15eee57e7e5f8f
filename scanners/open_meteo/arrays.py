"""Arrays of a file as virtual arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from scanners.open_meteo.lookup_table import read_chunks
from scanners.open_meteo.records import ArrayRecord
from scanners.open_meteo.window import Window
from virtualzarr_refs.attributes import encode_attributes
from virtualzarr_refs.chunk_grid import ChunkGrid, RectilinearGrid, RegularGrid
from virtualzarr_refs.codecs.open_meteo_values import Packing, stored_type
from virtualzarr_refs.data_types import encode_data_type, encode_scalar
from virtualzarr_refs.errors import FormatError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.metadata import ArrayMetadata

DIMENSIONS = "coordinates"
"""The attribute that names the dimensions, with spaces between."""


def build_array(window: Window, record: ArrayRecord, attributes: Mapping[str, Any]) -> VirtualArray:
    """Put together an array.

    Raises
    ------
    FormatError
        If its lookup table is damaged.
    UnsupportedError
        If its values cannot be decoded.
    """
    codec, manifest = _codec(record), _manifest(window, record)  # which makes sure that there are so many chunks
    names = dimension_names(attributes, len(record.shape))
    kept = {name: value for name, value in attributes.items() if names is None or name != DIMENSIONS}
    encoded, types = encode_attributes(kept, record.dtype)
    metadata = ArrayMetadata(
        data_type=encode_data_type(record.dtype),
        chunk_grid=chunk_grid(record),
        fill_value=encode_scalar(math.nan if record.dtype.kind == "f" else 0, record.dtype),
        codecs=(codec,),
        attributes=encoded,
        dimension_names=names,
        attribute_types=types,
    )
    return VirtualArray(metadata, manifest)


def chunk_grid(record: ArrayRecord) -> ChunkGrid:
    """The chunk grid: edge chunks are stored short, so an axis that they do not divide needs its lengths listed."""
    shape, lengths = record.shape, record.chunk_shape
    if not any(n % length for n, length in zip(shape, lengths, strict=True)):
        return RegularGrid(shape, lengths)
    return RectilinearGrid(shape, tuple(map(_edge, shape, lengths)))


def dimension_names(attributes: Mapping[str, Any], rank: int) -> tuple[str, ...] | None:
    """The names of the dimensions, if the attributes have one for each."""
    text = attributes.get(DIMENSIONS)
    names = tuple(text.split()) if isinstance(text, str) else ()
    return names if len(set(names)) == len(names) == rank else None


def _edge(size: int, length: int) -> int | tuple[int, ...]:
    full, rest = divmod(size, length)
    return (*(length,) * full, rest) if rest else length


def _codec(record: ArrayRecord) -> dict[str, Any]:
    stored_type(record.compression, record.dtype)
    packing = Packing(record.compression, record.scale_factor, record.add_offset).normal(record.dtype)
    if not packing.scale_factor or not math.isfinite(packing.scale_factor) or not math.isfinite(packing.add_offset):
        raise FormatError(f"values cannot be scaled by {packing.scale_factor} and {packing.add_offset}")
    return packing.to_json()


def _manifest(window: Window, record: ArrayRecord) -> Manifest:
    offset, length = read_chunks(window, record)
    shape = record.grid_shape
    url_id = np.broadcast_to(np.uint32(0), shape)
    return Manifest((window.source.url,), url_id, offset.reshape(shape), length.reshape(shape))
