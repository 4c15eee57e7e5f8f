"""The codec ``virtualzarr_refs.open_meteo``: chunks of Open-Meteo's ``.om`` files.

.. code-block:: json

    {"name": "virtualzarr_refs.open_meteo", "configuration": {
        "compression": "pfor_delta2d_int16", "scale_factor": 20.0, "add_offset": 0.0}}

``scale_factor`` and ``add_offset`` are those of the file: stored values are *divided* by the first, then the second is
subtracted. See `virtualzarr_refs.codecs.open_meteo_values` for the compressions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from zarr.abc.codec import ArrayBytesCodec
from zarr.core.common import JSON

from virtualzarr_refs.codecs.decoding_only import DecodingOnly
from virtualzarr_refs.codecs.open_meteo_values import COMPRESSIONS, NAME, Packing, decode_chunk
from virtualzarr_refs.errors import ReferenceSetError

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer


@dataclass(frozen=True)
class OpenMeteoCodec(DecodingOnly, ArrayBytesCodec):
    """Decodes a chunk of an ``.om`` file.

    Parameters
    ----------
    packing : Packing
        How its values are stored.
    """

    codec_name = NAME

    packing: Packing

    @classmethod
    def from_dict(cls, data: dict[str, JSON]) -> Self:
        """Read the codec's member of ``zarr.json``.

        Raises
        ------
        ReferenceSetError
            If the configuration is malformed.
        """
        try:
            configuration = cast("dict[str, Any]", data["configuration"])
            packing = Packing(
                configuration["compression"],
                float(configuration.get("scale_factor", 1)),
                float(configuration.get("add_offset", 0)),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ReferenceSetError(f"the codec {NAME} is misconfigured: {error!r}") from error
        if packing.compression not in COMPRESSIONS:
            raise ReferenceSetError(f"the codec {NAME} knows no compression {packing.compression!r}")
        if not packing.scale_factor or not math.isfinite(packing.scale_factor * packing.add_offset):
            raise ReferenceSetError(f"the codec {NAME} cannot scale by {packing.scale_factor}, {packing.add_offset}")
        return cls(packing)

    def to_dict(self) -> dict[str, JSON]:
        """The codec's member of ``zarr.json``."""
        return cast("dict[str, JSON]", self.packing.to_json())

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        dtype = cast("np.dtype[Any]", chunk_spec.dtype.to_native_dtype())
        values = decode_chunk(chunk_bytes.to_bytes(), chunk_spec.shape, dtype, self.packing)
        return chunk_spec.prototype.nd_buffer.from_numpy_array(values)
