"""Zarr's codecs from bytes to bytes, kept from decoding to more than is expected."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from zarr.abc.codec import BytesBytesCodec
from zarr.codecs import BytesCodec
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import Buffer

from virtualzarr_refs.codecs.bytes_steps import Decode, step_of

_GROWTH = {"numcodecs.shuffle": 0, "crc32c": 4, "numcodecs.crc32": 4, "numcodecs.adler32": 4}
"""Bytes that codecs add which are not known as steps, but are harmless."""

type Steps = list[tuple[Any, ArraySpec]]


@dataclass(frozen=True, slots=True)
class BoundedCodec:
    """The decoding half of a codec.

    Parameters
    ----------
    undo : callable
        See `virtualzarr_refs.codecs.bytes_steps`.
    size : int
        Bytes that a chunk must decode to.
    """

    undo: Decode
    size: int

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        decoded = self.undo(chunk_bytes.as_numpy_array().data, self.size)
        return chunk_spec.prototype.buffer.from_bytes(bytes(decoded))

    async def decode(self, batch: Iterable[tuple[Buffer, ArraySpec]]) -> list[Buffer]:
        """What zarr's codecs offer to pipelines."""
        return [self._decode_sync(value, spec) for value, spec in batch]


def bounded(steps: Steps) -> Steps:
    """The steps of a pipeline, in order of encoding, with codecs replaced whose decoded length is known."""
    size: int | None = None
    made: Steps = []
    for codec, spec in steps:
        if isinstance(codec, BytesCodec):
            size = math.prod(spec.shape) * spec.dtype.to_native_dtype().itemsize
        step = step_of(codec.to_dict()) if isinstance(codec, BytesBytesCodec) else None
        made.append((codec if step is None or size is None else BoundedCodec(step.decode, size), spec))
        if isinstance(codec, BytesBytesCodec) and size is not None:
            growth = _GROWTH.get(str(codec.to_dict()["name"])) if step is None else step.growth
            size = None if growth is None else size + growth
    return made
