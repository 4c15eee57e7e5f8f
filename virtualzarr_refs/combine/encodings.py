"""How the chunks of an array are encoded, and whether two ways to encode decode alike."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from virtualzarr_refs.attributes import decode_attributes
from virtualzarr_refs.chunk_grid import JSON, Shape
from virtualzarr_refs.codecs.names import CROP, MIXED, PACKING, PACKING_MEMBERS
from virtualzarr_refs.data_types import decode_data_type
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.metadata import ArrayMetadata

type Codec = Mapping[str, JSON]
type Codecs = tuple[Codec, ...]

_IRRELEVANT: Mapping[str, tuple[str, ...]] = {
    "blosc": ("clevel", "cname", "shuffle", "blocksize", "typesize", "tuning"),
    "gzip": ("level",),
    "numcodecs.blosc": ("clevel", "cname", "shuffle", "blocksize", "typesize"),
    "numcodecs.bz2": ("level",),
    "numcodecs.gzip": ("level",),
    "numcodecs.lz4": ("acceleration",),
    "numcodecs.zlib": ("level",),
    "numcodecs.zstd": ("level", "checksum"),
    "zstd": ("level", "checksum"),
}
"""Members of codecs' configurations that only matter to encoding: what they encode to tells all that decoding needs."""

_ONLY_LEVEL = frozenset({1, 307, 32015})
"""Filters of HDF5 whose values are only a level: deflate, bzip2, zstd."""


@dataclass(frozen=True)
class Encoding:
    """One way to encode chunks.

    Parameters
    ----------
    data_type : JSON
        Of the stored values, as in ``zarr.json``.
    codecs : tuple of mapping
        As in ``zarr.json``.
    chunk_shape : tuple of int, optional
        What chunks were stored with, where that may be more than they have.
    packing, types : mapping of str to JSON
        CF's attributes of packing and their NumPy types, as in ``zarr.json``.
    """

    data_type: JSON
    codecs: Codecs
    chunk_shape: Shape | None = None
    packing: Mapping[str, JSON] | None = None
    types: Mapping[str, JSON] | None = None

    @cached_property
    def key(self) -> str:
        """Equal for encodings that decode alike."""
        codecs = [_normalised(codec, self.dtype.itemsize) for codec in self.codecs]
        return json.dumps([self.data_type, codecs, self.chunk_shape, self.packing, self.types], sort_keys=True)

    @cached_property
    def codecs_key(self) -> str:
        """Equal where codecs are equal to the last level."""
        return json.dumps(self.codecs, sort_keys=True)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Of the stored values, in native byte order."""
        return decode_data_type(self.data_type)

    def attributes(self) -> dict[str, Any]:
        """CF's attributes of packing, with their NumPy types."""
        return decode_attributes(self.packing or {}, self.types or {}, self.dtype)

    @property
    def is_raw(self) -> bool:
        """Whether chunks are the values' bytes and no more."""
        return len(self.codecs) == 1 and self.codecs[0]["name"] == "bytes"

    def to_variant(self, data_type: JSON) -> dict[str, JSON]:
        """A member of the codec ``virtualzarr_refs.mixed``, of an array of another or the same type."""
        variant: dict[str, JSON] = {"codecs": [dict(codec) for codec in self.codecs]}
        if self.data_type != data_type or self.packing:
            variant["data_type"] = self.data_type
        if self.chunk_shape is not None:
            variant["chunk_shape"] = list(self.chunk_shape)
        packing = {member: name for member, name in PACKING_MEMBERS.items() if name in (self.packing or {})}
        variant |= {member: cast("Any", self.packing)[name] for member, name in packing.items()}
        types = {name: type_ for name, type_ in (self.types or {}).items() if name in packing.values()}
        return variant | ({"types": cast("JSON", types)} if types else {})

    def to_pipeline(self) -> Codecs:
        """The pipeline of an array that has only this encoding."""
        if self.chunk_shape is None:
            return self.codecs
        crop: Codec = {"name": CROP, "configuration": {"stored_chunk_shape": list(self.chunk_shape)}}
        return (crop, *self.codecs)


def encodings_of(metadata: ArrayMetadata) -> tuple[Encoding, ...]:
    """The encodings of an array, by number of the variant; its own packing included.

    Raises
    ------
    UnsupportedError
        If variants are packed and the array is as well, or codecs stand beside those of variants.
    """
    packing, types = packing_of(metadata)
    if metadata.codecs[0]["name"] == CROP:
        configuration = cast("Mapping[str, Any]", metadata.codecs[0]["configuration"])
        shape = tuple(configuration["stored_chunk_shape"])
        return (Encoding(metadata.data_type, metadata.codecs[1:], shape, packing, types),)
    if metadata.codecs[0]["name"] != MIXED:
        return (Encoding(metadata.data_type, metadata.codecs, None, packing, types),)
    if len(metadata.codecs) > 1:
        raise UnsupportedError("its chunks are encoded again after they were put together", feature=MIXED)
    return tuple(_variants(metadata, packing, types))


def _variants(metadata: ArrayMetadata, packing: Mapping[str, JSON], types: Mapping[str, JSON]) -> Iterator[Encoding]:
    configuration = cast("Mapping[str, Any]", metadata.codecs[0]["configuration"])
    for variant in cast("list[dict[str, Any]]", configuration["variants"]):
        own = {name: variant[member] for member, name in PACKING_MEMBERS.items() if member in variant}
        if packing and (own or variant.get("data_type", metadata.data_type) != metadata.data_type):
            raise UnsupportedError("packed chunks of an array that is itself packed", feature=MIXED)
        shape = tuple(variant["chunk_shape"]) if "chunk_shape" in variant else None
        plain = Encoding(variant.get("data_type", metadata.data_type), tuple(variant["codecs"]), shape, packing, types)
        yield replace(plain, packing=own, types=variant.get("types", {})) if own else plain


def packing_of(metadata: ArrayMetadata) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """CF's attributes of packing, and their types."""
    packing = {name: metadata.attributes[name] for name in PACKING if name in metadata.attributes}
    return packing, {name: metadata.attribute_types[name] for name in packing if name in metadata.attribute_types}


def _normalised(codec: Codec, itemsize: int) -> JSON:
    """A codec without what only matters to encoding."""
    name = cast("str", codec["name"])
    configuration = dict(cast("Mapping[str, JSON]", codec.get("configuration") or {}))
    if name == "bytes" and itemsize <= 1:
        configuration.pop("endian", None)
    for member in _IRRELEVANT.get(name, ()):
        configuration.pop(member, None)
    filters = configuration.get("filters")
    if isinstance(filters, list):
        configuration["filters"] = [_without_level(step) for step in cast("list[dict[str, JSON]]", filters)]
    return [name, configuration]


def _without_level(step: dict[str, JSON]) -> JSON:
    return {**step, "values": []} if step.get("id") in _ONLY_LEVEL else step
