"""What a stored chunk may decode to, looked at before zarr's own codecs get it, which know no bound.

Frames that say their decoded length are held to it. bzip2 and xz, which make a thousand bytes out of one, are decoded
once more, up to the bound. Deflate makes at most 1032 bytes out of one, so a bound on what is stored bounds it too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from virtualzarr_refs.chunk_grid import JSON, RegularGrid
from virtualzarr_refs.codecs.bytes_steps import Data, declared_blosc, declared_lz4, declared_zstd, step_of
from virtualzarr_refs.codecs.failures import FAILURES
from virtualzarr_refs.errors import DecodeError
from virtualzarr_refs.metadata import ArrayMetadata

_SLACK = 4096
"""Bytes that headers and tables of a compressor may add to a small chunk."""

_DECLARED: Mapping[str, Callable[[Data], int | None]] = {
    "blosc": declared_blosc,
    "lz4": declared_lz4,
    "zstd": declared_zstd,
}
_DEFLATE = frozenset({"gzip", "zlib"})


@dataclass(frozen=True, slots=True)
class StoredBound:
    """The bound on the chunks of one array.

    Parameters
    ----------
    codec : mapping
        The compressor, as in ``zarr.json``.
    size : int
        Bytes that it decodes to.
    growth : int
        Bytes of checksums behind what it encoded.
    """

    codec: Mapping[str, JSON]
    size: int
    growth: int = 0

    @classmethod
    def of(cls, metadata: ArrayMetadata) -> StoredBound | None:
        """The bound of an array; None if its chunks are not compressed, or their decoded length is not known."""
        codecs, grid = metadata.codecs, metadata.chunk_grid
        if metadata.dtype.hasobject or not isinstance(grid, RegularGrid):
            return None
        names = [str(codec["name"]) for codec in codecs]
        place = names.index("bytes") if "bytes" in names else len(names)
        if not set(names[:place]) <= {"transpose"}:
            return None
        size = math.prod(grid.chunk_shape) * metadata.dtype.itemsize
        return _bound(codecs[place + 1 :], size)

    def require(self, data: Data) -> None:
        """Refuse a chunk that decodes to another length.

        Raises
        ------
        DecodeError
            Before anything large is decoded.
        """
        stored = data[: len(data) - self.growth]
        bare = str(self.codec["name"]).removeprefix("numcodecs.")
        if bare in _DEFLATE:
            if len(stored) > 2 * self.size + _SLACK:
                raise DecodeError(f"a chunk of {self.size} bytes is stored as {len(stored)}")
            return
        declared = _DECLARED[bare](stored) if bare in _DECLARED else None
        if declared is None:
            declared = self._decoded_length(stored)
        if declared != self.size:
            raise DecodeError(f"a chunk decodes to {declared} bytes instead of {self.size}")

    def _decoded_length(self, stored: Data) -> int:
        step = step_of(self.codec)
        try:
            return self.size if step is None else len(step.decode(stored, self.size))
        except FAILURES as error:
            raise DecodeError(f"a chunk cannot be decoded: {error}") from error


def _bound(codecs: Sequence[Mapping[str, JSON]], size: int) -> StoredBound | None:
    """The bound where codecs, in order of encoding, hold one compressor, outside of shuffling, inside of checksums."""
    compressor: Mapping[str, JSON] | None = None
    growth = 0
    for codec in codecs:
        name = str(codec["name"])
        fixed = _FIXED.get(name)
        if fixed is not None and compressor is None:
            size += fixed
        elif fixed is not None:
            growth += fixed
        elif compressor is not None or step_of(codec) is None:
            return None
        else:
            compressor = codec
    return None if compressor is None else StoredBound(compressor, size, growth)


_FIXED = {"numcodecs.shuffle": 0, "numcodecs.fletcher32": 4, "crc32c": 4}
"""Bytes that codecs add, always the same."""
