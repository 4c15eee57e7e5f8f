"""The codec ``sharding_indexed``, as far as files that are used as shards need it.

Zarr v3 codec ``sharding_indexed``, version 1.0: a shard is any bytes with an index of (offset, length) pairs at its
start or end, so the chunks of a file are a shard once there is an index for them.

.. code-block:: json

    {"name": "sharding_indexed", "configuration": {
      "chunk_shape": [1, 721, 1440],
      "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "numcodecs.zlib", …}],
      "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
      "index_location": "end"}}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, cast

from virtualzarr_refs.chunk_grid import JSON, Shape
from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.inner_chunks import InnerChunks
from virtualzarr_refs.manifest import ShardChunk, index_of
from virtualzarr_refs.metadata import ArrayMetadata
from virtualzarr_refs.value import Gather, Part, StoredValue

SHARDING = "sharding_indexed"

type IndexLocation = Literal["start", "end"]

_INDEX_BYTES: dict[str, JSON] = {"name": "bytes", "configuration": {"endian": "little"}}
_CHECKSUM: dict[str, JSON] = {"name": "crc32c"}


@dataclass(frozen=True, slots=True)
class ShardCodec:
    """The configuration of the codec.

    Parameters
    ----------
    chunk_shape : tuple of int
        Of the inner chunks, in elements.
    codecs : tuple of mapping
        The pipeline of the inner chunks.
    index_location : {"end", "start"}
        Where the index stands.
    has_checksum : bool
        Whether a CRC-32C follows the index.
    """

    chunk_shape: Shape
    codecs: tuple[dict[str, JSON], ...]
    index_location: IndexLocation = "end"
    has_checksum: bool = True

    @classmethod
    def of(cls, metadata: ArrayMetadata) -> Self:
        """That of an array.

        Raises
        ------
        ReferenceSetError
            If the array is not encoded by this codec alone, or its index is encoded in an unusual way.
        """
        codec, *others = metadata.codecs
        if others or codec["name"] != SHARDING:
            raise ReferenceSetError("an array has shards, but not the codec sharding_indexed alone")
        configuration = cast("Mapping[str, Any]", codec.get("configuration") or {})
        try:
            chunk_shape = tuple(int(length) for length in configuration["chunk_shape"])
            codecs = tuple(_member(member) for member in configuration["codecs"])
            index_codecs = [_member(member) for member in configuration["index_codecs"]]
        except (KeyError, TypeError, ValueError) as error:
            raise ReferenceSetError(f"the codec sharding_indexed lacks or misuses a member: {error!r}") from error
        location = configuration.get("index_location", "end")
        known = index_codecs in ([_INDEX_BYTES], [_INDEX_BYTES, _CHECKSUM])
        if not known or location not in ("start", "end") or min(chunk_shape, default=1) < 1:
            raise ReferenceSetError(f"the codec sharding_indexed has an unusual configuration: {configuration!r:.300}")
        return cls(chunk_shape, codecs, location, len(index_codecs) == 2)

    def to_json(self) -> dict[str, JSON]:
        """The member of ``codecs`` in ``zarr.json``."""
        return {
            "name": SHARDING,
            "configuration": {
                "chunk_shape": list(self.chunk_shape),
                "codecs": list(self.codecs),
                "index_codecs": [_INDEX_BYTES, _CHECKSUM] if self.has_checksum else [_INDEX_BYTES],
                "index_location": self.index_location,
            },
        }

    def inner_grid(self, shape: Shape) -> Shape:
        """The number of inner chunks along each axis of a shard of so many elements.

        Raises
        ------
        ReferenceSetError
            If inner chunks do not divide it.
        """
        if len(shape) != len(self.chunk_shape) or any(n % c for n, c in zip(shape, self.chunk_shape, strict=True)):
            raise ReferenceSetError(f"inner chunks of {self.chunk_shape} do not divide a shard of {shape} elements")
        return tuple(size // length for size, length in zip(shape, self.chunk_shape, strict=True))


def is_sharded(metadata: ArrayMetadata) -> bool:
    """Whether the codec comes first in an array's pipeline."""
    return metadata.codecs[0]["name"] == SHARDING


def shard_value(shard: ShardChunk, codec: ShardCodec) -> StoredValue:
    """The bytes of a shard: its chunks in the order of the source and without the gaps between them, and the index."""
    layout = shard.inner_chunks.layout
    is_first = codec.index_location == "start"
    index = shard.inner_chunks.index(is_first=is_first, has_checksum=codec.has_checksum)
    chunks: Part = Gather(shard.url, layout.offset, layout.ends)
    return StoredValue((index, chunks) if is_first else (chunks, index))


def check_shards(metadata: ArrayMetadata, inner_chunks: Mapping[int, InnerChunks]) -> None:
    """Hold shards against the metadata.

    Parameters
    ----------
    metadata : ArrayMetadata
        Of the array.
    inner_chunks : mapping of int to InnerChunks
        By the position of the shard, in C order of the chunk grid.

    Raises
    ------
    ReferenceSetError
        If a shard has more or fewer chunks than the metadata say, or there is no such codec.
    """
    if not inner_chunks:
        return
    codec, grid = ShardCodec.of(metadata), metadata.chunk_grid
    for position, inner in inner_chunks.items():
        shape = grid.encoded_shape(index_of(position, grid.grid_shape))
        if math.prod(codec.inner_grid(shape)) != inner.size:
            raise ReferenceSetError(f"a shard of {shape} elements has an index of {inner.size} chunks")


def _member(codec: str | Mapping[str, JSON]) -> dict[str, JSON]:
    return {"name": codec} if isinstance(codec, str) else dict(codec)
