"""The codec ``virtualzarr_refs.mixed``: chunks of one array that were encoded in different ways.

HDF5 may skip a filter for single chunks, and files of one series may differ. The value of every chunk begins with the
number of its variant, two bytes, little-endian; the rest is what the source holds.

.. code-block:: json

    {"name": "virtualzarr_refs.mixed", "configuration": {"variants": [
        {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "numcodecs.zlib", ...}]},
        {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}]}}
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast, override

from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, Codec
from zarr.core.common import JSON
from zarr.registry import get_codec_class

from virtualzarr_refs.codecs.failures import FAILURES
from virtualzarr_refs.errors import DecodeError, ReferenceSetError, UnsupportedError, VirtualZarrError

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer

NAME = "virtualzarr_refs.mixed"
PREFIX = struct.Struct("<H")
"""The number of the variant, before the bytes of the source."""


@dataclass(frozen=True)
class MixedCodec(ArrayBytesCodec):
    """Decodes every chunk with the pipeline of its variant.

    Parameters
    ----------
    variants : tuple of mapping
        Each with one member, ``codecs``: a codec pipeline as in ``zarr.json``.
    """

    is_fixed_size = False

    variants: tuple[Mapping[str, JSON], ...]

    @classmethod
    def from_dict(cls, data: dict[str, JSON]) -> Self:
        """Read the codec's member of ``zarr.json``.

        Raises
        ------
        ReferenceSetError
            If the configuration is malformed, or has members that this version does not know.
        """
        try:
            variants = tuple(map(dict, cast("dict[str, Any]", data["configuration"])["variants"]))
            unknown = {member for variant in variants for member in variant} - {"codecs"}
        except (KeyError, TypeError, ValueError) as error:
            raise ReferenceSetError(f"the codec {NAME} is misconfigured: {error!r}") from error
        if unknown or not variants or not all("codecs" in variant for variant in variants):
            raise ReferenceSetError(f"the codec {NAME} has variants that cannot be understood: {sorted(unknown)}")
        codec = cls(variants)
        codec._pipelines  # noqa: B018  a pipeline that is none is refused now, not when a chunk is read
        return codec

    def to_dict(self) -> dict[str, JSON]:
        """The codec's member of ``zarr.json``."""
        return {"name": NAME, "configuration": {"variants": [dict(variant) for variant in self.variants]}}

    @cached_property
    def _pipelines(self) -> tuple[tuple[Codec, ...], ...]:
        return tuple(_parse_pipeline(variant["codecs"]) for variant in self.variants)

    def _variant(self, chunk_bytes: Buffer) -> tuple[int, Buffer]:
        if len(chunk_bytes) < PREFIX.size:
            raise DecodeError(f"a chunk of the codec {NAME} lacks the number of its variant")
        (number,) = PREFIX.unpack(chunk_bytes[: PREFIX.size].to_bytes())
        if number >= len(self.variants):
            raise DecodeError(f"a chunk names variant {number} of {len(self.variants)}")
        return number, chunk_bytes[PREFIX.size :]

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        number, value = self._variant(chunk_bytes)
        decoded: Any = value
        with _failures(number):
            for codec, spec in _evolved(self._pipelines[number], chunk_spec):
                decoded = cast("Any", codec)._decode_sync(decoded, spec)  # noqa: SLF001  zarr's protocol for codecs
        return decoded

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        number, value = self._variant(chunk_data)
        decoded: Any = value
        with _failures(number):
            for codec, spec in _evolved(self._pipelines[number], chunk_spec):
                (decoded,) = await cast("Any", codec).decode([(decoded, spec)])
        return decoded

    @override
    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer | None:
        raise UnsupportedError("existing files are read only", feature=f"codec {NAME}")

    @override
    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Not known beforehand."""
        raise UnsupportedError("the size of a stored chunk is not known", feature=f"codec {NAME}")


@contextmanager
def _failures(number: int) -> Generator[None]:
    """Turn an error of a variant's codecs into one that says so."""
    try:
        yield
    except VirtualZarrError:
        raise
    except FAILURES as error:
        raise DecodeError(
            f"a chunk of variant {number} of the codec {NAME} cannot be decoded: {error!r:.200}"
        ) from error


def _parse_pipeline(members: object) -> tuple[Codec, ...]:
    try:
        codecs = tuple(map(_parse_codec, cast("list[JSON]", members)))
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


def _evolved(pipeline: tuple[Codec, ...], spec: ArraySpec) -> list[tuple[Codec, ArraySpec]]:
    """The codecs in order of decoding, each with the form of the chunk that it decodes to."""
    steps: list[tuple[Codec, ArraySpec]] = []
    for codec in pipeline:
        evolved = codec.evolve_from_array_spec(spec)
        steps.append((evolved, spec))
        spec = evolved.resolve_metadata(spec)
    return steps[::-1]
