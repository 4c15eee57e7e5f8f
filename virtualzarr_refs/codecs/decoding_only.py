"""What the codecs of existing files have in common: they decode chunks, and never encode any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Never

from virtualzarr_refs.errors import UnsupportedError

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec


class DecodingOnly:
    """Stands before zarr's kind of codec among the bases of a class, which has `_decode_sync` and a name."""

    is_fixed_size = False

    codec_name: ClassVar[str]
    """As in ``zarr.json``."""

    def _decode_sync(self, chunk_data: Any, chunk_spec: ArraySpec, /) -> Any:  # noqa: ANN401  zarr has two kinds of buffers
        raise NotImplementedError

    async def _decode_single(self, chunk_data: Any, chunk_spec: ArraySpec) -> Any:  # noqa: ANN401  same
        return self._decode_sync(chunk_data, chunk_spec)

    async def _encode_single(self, chunk_data: Any, chunk_spec: ArraySpec) -> Never:  # noqa: ANN401, ARG002  same
        raise UnsupportedError("existing files are read only", feature=f"codec {self.codec_name}")

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:  # noqa: ARG002
        """Not known beforehand."""
        raise UnsupportedError("the size of a stored chunk is not known", feature=f"codec {self.codec_name}")
