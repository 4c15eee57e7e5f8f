"""The codec ``virtualzarr_refs.mixed``: chunks of one array that were encoded in different ways.

HDF5 may skip a filter for single chunks, and files of one series may differ: in codecs, types, chunk shapes, packing.
The value of every chunk begins with the number of its variant, two bytes, little-endian; the rest is what the source
holds.

.. code-block:: json

    {"name": "virtualzarr_refs.mixed", "configuration": {"variants": [
        {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "numcodecs.zlib", ...}]},
        {"codecs": [{"name": "bytes", "configuration": {"endian": "big"}}],
         "data_type": "int16", "chunk_shape": [4, 721, 1440],
         "fill_value": -32768, "scale_factor": 0.01, "add_offset": 273.15,
         "types": {"_FillValue": "<i2", "scale_factor": "<f8", "add_offset": "<f8"}}]}}

All members but ``codecs`` are optional. ``data_type`` is that of the stored values, ``chunk_shape`` what a chunk was
stored with, of which the first elements count. The others are CF's attributes of packing (``fill_value`` is
``_FillValue``), in the form that attributes have in ``zarr.json``, and ``types`` has their NumPy types.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

from zarr.abc.codec import ArrayBytesCodec
from zarr.core.common import JSON

from virtualzarr_refs.codecs.decoding_only import DecodingOnly
from virtualzarr_refs.codecs.failures import FAILURES
from virtualzarr_refs.codecs.names import MIXED as NAME
from virtualzarr_refs.codecs.variant import Variant
from virtualzarr_refs.errors import DecodeError, ReferenceSetError, VirtualZarrError

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer

PREFIX = struct.Struct("<H")
"""The number of the variant, before the bytes of the source."""


@dataclass(frozen=True)
class MixedCodec(DecodingOnly, ArrayBytesCodec):
    """Decodes every chunk with the pipeline of its variant.

    Parameters
    ----------
    variants : tuple of mapping
        As in ``zarr.json``.
    """

    codec_name = NAME

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
        except (KeyError, TypeError, ValueError) as error:
            raise ReferenceSetError(f"the codec {NAME} is misconfigured: {error!r}") from error
        if not variants:
            raise ReferenceSetError(f"the codec {NAME} has no variants")
        codec = cls(variants)
        codec._parsed  # noqa: B018  what cannot be understood is refused now, not when a chunk is read
        return codec

    def to_dict(self) -> dict[str, JSON]:
        """The codec's member of ``zarr.json``."""
        return {"name": NAME, "configuration": {"variants": [dict(variant) for variant in self.variants]}}

    @cached_property
    def _parsed(self) -> tuple[Variant, ...]:
        return tuple(map(Variant.parse, self.variants))

    def _variant(self, chunk_bytes: Buffer) -> tuple[int, Buffer]:
        if len(chunk_bytes) < PREFIX.size:
            raise DecodeError(f"a chunk of the codec {NAME} lacks the number of its variant")
        (number,) = PREFIX.unpack(chunk_bytes[: PREFIX.size].to_bytes())
        if number >= len(self.variants):
            raise DecodeError(f"a chunk names variant {number} of {len(self.variants)}")
        return number, chunk_bytes[PREFIX.size :]

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        number, value = self._variant(chunk_bytes)
        variant, decoded = self._parsed[number], cast("Any", value)
        with _failures(number):
            for codec, spec in variant.steps(chunk_spec):
                decoded = codec._decode_sync(decoded, spec)  # noqa: SLF001  zarr's protocol for codecs
            return variant.finish(decoded, chunk_spec)

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        number, value = self._variant(chunk_data)
        variant, decoded = self._parsed[number], cast("Any", value)
        with _failures(number):
            for codec, spec in variant.steps(chunk_spec):
                (decoded,) = await codec.decode([(decoded, spec)])
            return variant.finish(decoded, chunk_spec)


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
