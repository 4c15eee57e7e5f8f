"""The codec ``virtualzarr_refs.crop``: chunks that were stored larger than they are.

HDF5 stores every chunk at full size, also where it reaches beyond the dataset. When another file follows, only the part
inside of the dataset counts.

.. code-block:: json

    {"name": "virtualzarr_refs.crop", "configuration": {"stored_chunk_shape": [512, 721, 1440]}}
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

from zarr.abc.codec import ArrayArrayCodec
from zarr.core.common import JSON

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.codecs.decoding_only import DecodingOnly
from virtualzarr_refs.codecs.names import CROP as NAME
from virtualzarr_refs.errors import DecodeError, ReferenceSetError

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import NDBuffer


@dataclass(frozen=True)
class CropCodec(DecodingOnly, ArrayArrayCodec):
    """Keeps the first elements of every chunk, along each axis as many as the chunk has.

    Parameters
    ----------
    stored_chunk_shape : tuple of int
        What the codecs after this one decode to, in elements.
    """

    codec_name = NAME

    stored_chunk_shape: Shape

    @classmethod
    def from_dict(cls, data: dict[str, JSON]) -> Self:
        """Read the codec's member of ``zarr.json``.

        Raises
        ------
        ReferenceSetError
            If the configuration is malformed.
        """
        try:
            lengths = cast("dict[str, Any]", data["configuration"])["stored_chunk_shape"]
        except (KeyError, TypeError) as error:
            raise ReferenceSetError(f"the codec {NAME} is misconfigured: {error!r}") from error
        return cls(parse_stored_shape(lengths))

    def to_dict(self) -> dict[str, JSON]:
        """The codec's member of ``zarr.json``."""
        return {"name": NAME, "configuration": {"stored_chunk_shape": list(self.stored_chunk_shape)}}

    def resolve_metadata(self, chunk_spec: ArraySpec) -> ArraySpec:
        """What the codecs after this one decode to. zarr also asks about shapes that no chunk has."""
        return replace(chunk_spec, shape=self.stored_chunk_shape)

    def _decode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        stored_shape(self.stored_chunk_shape, chunk_spec.shape)
        return chunk_data[tuple(map(slice, chunk_spec.shape))]


def parse_stored_shape(lengths: object) -> Shape:
    """Read the shape that chunks were stored with.

    Raises
    ------
    ReferenceSetError
        If it is not a list of positive integers.
    """
    shape = tuple(cast("list[Any]", lengths)) if isinstance(lengths, list | tuple) else ()
    if not all(type(length) is int and length > 0 for length in shape) or not isinstance(lengths, list | tuple):
        raise ReferenceSetError(f"a stored chunk shape is not a list of positive integers: {lengths!r:.100}")
    return shape


def stored_shape(stored: Shape, shape: Shape) -> Shape:
    """The shape that a chunk was stored with, which has to hold the chunk itself.

    Raises
    ------
    DecodeError
        If it does not.
    """
    if len(stored) != len(shape) or any(has < needed for has, needed in zip(stored, shape, strict=False)):
        raise DecodeError(f"a chunk of shape {shape} cannot have been stored with shape {stored}")
    return stored
