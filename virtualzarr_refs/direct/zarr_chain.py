"""Any codec pipeline of zarr's, called chunk by chunk without its scheduling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, cast

from zarr import Array
from zarr.abc.codec import ArrayBytesCodecPartialDecodeMixin, Codec
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import default_buffer_prototype

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.codecs.bounded import bounded
from virtualzarr_refs.codecs.bytes_steps import Data
from virtualzarr_refs.direct.chains import Index, Values
from virtualzarr_refs.errors import DecodeError

type _Steps = list[tuple[Any, ArraySpec]]


class ZarrChain:
    """Zarr's codecs, one after the other.

    Parameters
    ----------
    codecs : sequence of zarr.abc.codec.Codec
        In order of encoding; all decode without an event loop.
    spec : zarr.core.array_spec.ArraySpec
        What they decode to, but for the shape.
    """

    def __init__(self, codecs: Sequence[Codec], spec: ArraySpec) -> None:
        self._codecs = codecs
        self._spec = spec
        self._prepared: tuple[Shape, _Steps] | None = None

    @classmethod
    def of(cls, opened: Array[Any]) -> Self | None:
        """The chain of an array, or None if a codec of it reads parts of chunks or needs an event loop."""
        codecs = cast("tuple[Codec, ...]", cast("Any", opened.metadata).codecs)
        if not all(map(_decodes_whole_chunks, codecs)):
            return None
        metadata = cast("Any", opened.metadata)
        config, prototype = opened.config, default_buffer_prototype()
        return cls(codecs, ArraySpec((), metadata.data_type, metadata.fill_value, config, prototype))

    def decode(self, data: Data, shape: Shape) -> Values:
        """See `Chain.decode`."""
        value: Any = self._spec.prototype.buffer.from_bytes(cast("Any", data))
        for codec, spec in self._steps(shape):
            value = codec._decode_sync(value, spec)  # noqa: SLF001  zarr's protocol for codecs
        values = value.as_numpy_array()
        if values.shape != shape:
            raise DecodeError(f"a chunk decodes to shape {values.shape} instead of {shape}")
        return values

    def place(self, data: Data, shape: Shape, inside: Index, target: Values) -> None:
        """See `Chain.place`."""
        target[...] = self.decode(data, shape)[inside]

    def _steps(self, shape: Shape) -> _Steps:
        """The codecs in order of decoding, each with the form of the chunk that it decodes to."""
        prepared = self._prepared
        if prepared is None or prepared[0] != shape:
            # Assigned at once: threads that prepare it at the same time prepare the same.
            self._prepared = prepared = shape, _evolved(self._codecs, replace(self._spec, shape=shape))
        return prepared[1]


def _decodes_whole_chunks(codec: Codec) -> bool:
    return hasattr(codec, "_decode_sync") and not isinstance(codec, ArrayBytesCodecPartialDecodeMixin)


def _evolved(codecs: Sequence[Codec], spec: ArraySpec) -> _Steps:
    steps: _Steps = []
    for codec in codecs:
        evolved = codec.evolve_from_array_spec(spec)
        steps.append((evolved, spec))
        spec = evolved.resolve_metadata(spec)
    return bounded(steps)[::-1]
