"""One way to encode chunks: a codec pipeline, and what the values that it decodes to stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, Codec
from zarr.core.common import JSON
from zarr.core.dtype import get_data_type_from_json
from zarr.registry import get_codec_class

from virtualzarr_refs.attributes import decode_attributes
from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.codecs.bounded import bounded
from virtualzarr_refs.codecs.crop import parse_stored_shape, stored_shape
from virtualzarr_refs.codecs.names import MIXED as NAME
from virtualzarr_refs.codecs.names import PACKING_MEMBERS
from virtualzarr_refs.data_types import decode_data_type
from virtualzarr_refs.errors import ReferenceSetError, VirtualZarrError

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import NDBuffer

_MEMBERS = {"codecs", "data_type", "chunk_shape", "types", *PACKING_MEMBERS}

type Steps = list[tuple[Any, ArraySpec]]


@dataclass(frozen=True)
class Variant:
    """A variant of the codec ``virtualzarr_refs.mixed``.

    Parameters
    ----------
    document : mapping
        Its members.
    pipeline : tuple of Codec
        In order of encoding.
    chunk_shape : tuple of int, optional
        What the chunks were stored with, in elements; by default the shape that they have.
    dtype : numpy.dtype, optional
        Of the stored values; by default the array's.
    packing : mapping of str to object
        CF's attributes of packing, with their types.
    """

    document: Mapping[str, JSON]
    pipeline: tuple[Codec, ...]
    chunk_shape: Shape | None
    dtype: np.dtype[Any] | None
    packing: Mapping[str, Any]

    @classmethod
    def parse(cls, document: Mapping[str, JSON]) -> Self:
        """Read a member of the list ``variants``.

        Raises
        ------
        ReferenceSetError
            If it is malformed, or has members that this version does not know.
        """
        unknown = document.keys() - _MEMBERS
        if unknown or "codecs" not in document:
            raise ReferenceSetError(
                f"the codec {NAME} has a variant that cannot be understood: {sorted(unknown) or 'no codecs'}"
            )
        pipeline = parse_pipeline(document["codecs"])
        shape = parse_stored_shape(document["chunk_shape"]) if "chunk_shape" in document else None
        dtype = decode_data_type(cast("Any", document["data_type"])) if "data_type" in document else None
        return cls(document, pipeline, shape, dtype, _packing(document, dtype))

    def steps(self, chunk_spec: ArraySpec) -> Steps:
        """The codecs in order of decoding, each with the form of the chunk that it decodes to.

        Raises
        ------
        DecodeError
            If chunks cannot have been stored with the variant's shape.
        """
        spec = self._stored(chunk_spec)
        steps: Steps = []
        for codec in self.pipeline:
            evolved = codec.evolve_from_array_spec(spec)
            steps.append((evolved, spec))
            spec = evolved.resolve_metadata(spec)
        return bounded(steps)[::-1]

    def finish(self, decoded: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        """Crop, unpack and cast what the codecs decoded."""
        if not self._is_transformed:
            return decoded
        values: NDArray[Any] = np.asarray(decoded.as_numpy_array())[tuple(map(slice, chunk_spec.shape))]
        target = chunk_spec.dtype.to_native_dtype()
        return type(decoded).from_numpy_array(self._unpacked(values).astype(target, copy=False))

    def _unpacked(self, values: NDArray[Any]) -> NDArray[Any]:
        if not self.packing:
            return values
        from virtualzarr_refs.codecs.unpacking import unpack  # noqa: PLC0415  xarray is slow to import

        return unpack(values, self.packing)

    @cached_property
    def _is_transformed(self) -> bool:
        return self.chunk_shape is not None or self.dtype is not None or bool(self.packing)

    def _stored(self, chunk_spec: ArraySpec) -> ArraySpec:
        spec = chunk_spec
        if self.chunk_shape is not None:
            spec = replace(spec, shape=stored_shape(self.chunk_shape, spec.shape))
        if self.dtype is not None:
            type_ = get_data_type_from_json(cast("Any", self.document["data_type"]), zarr_format=3)
            spec = replace(spec, dtype=type_, fill_value=type_.default_scalar())
        return spec


def _packing(document: Mapping[str, JSON], dtype: np.dtype[Any] | None) -> dict[str, Any]:
    plain = {attribute: document[member] for member, attribute in PACKING_MEMBERS.items() if member in document}
    types = document.get("types", {})
    if not isinstance(types, dict):
        raise ReferenceSetError(f"the types of a variant of the codec {NAME} are no mapping")
    return decode_attributes(cast("Any", plain), cast("Any", types), dtype)


def parse_pipeline(members: object) -> tuple[Codec, ...]:
    """Read a codec pipeline as in ``zarr.json``.

    Raises
    ------
    ReferenceSetError
        If it is none.
    """
    try:
        codecs = tuple(map(_parse_codec, cast("list[JSON]", members)))
    except VirtualZarrError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise ReferenceSetError(f"a variant of the codec {NAME} has a codec that cannot be had: {error!r}") from error
    kinds = [_kind(codec) for codec in codecs]
    if kinds.count(_ARRAY_BYTES) != 1 or kinds != sorted(kinds):
        raise ReferenceSetError(f"a variant of the codec {NAME} is no codec pipeline")
    return codecs


_ARRAY_BYTES = 1


def _kind(codec: Codec) -> int:
    """The place of a codec's kind in a pipeline: array to array, array to bytes, bytes to bytes."""
    if isinstance(codec, ArrayArrayCodec):
        return 0
    return _ARRAY_BYTES if isinstance(codec, ArrayBytesCodec) else 2


def _parse_codec(member: JSON) -> Codec:
    document = cast("dict[str, JSON]", {"name": member} if isinstance(member, str) else member)
    return get_codec_class(cast("str", document["name"])).from_dict(cast("Any", document))
