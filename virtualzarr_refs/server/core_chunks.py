"""Chunks encoded anew with the codecs that `core_metadata` names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numcodecs import VLenUTF8
from numcodecs.zstd import Zstd
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import ChunkIndex, RegularGrid
from virtualzarr_refs.codecs.failures import FAILURES
from virtualzarr_refs.data_types import decode_scalar
from virtualzarr_refs.errors import DecodeError, VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.lazy_array import LazyArray
from virtualzarr_refs.server.core_metadata import LEVEL, core_metadata
from virtualzarr_refs.store import VirtualStore


@dataclass(frozen=True, slots=True)
class CoreArray:
    """An array whose chunks are encoded when they are asked for.

    Parameters
    ----------
    values : LazyArray
        What it holds.
    grid : RegularGrid
        How it is shown.
    """

    values: LazyArray
    grid: RegularGrid

    @classmethod
    def of(cls, array: VirtualArray, store: VirtualStore, path: str) -> CoreArray:
        """The array at a path of a store."""
        grid = core_metadata(array.metadata).chunk_grid
        if not isinstance(grid, RegularGrid):
            raise TypeError("core metadata have a regular grid")
        return cls(LazyArray(array, store, path, {}), grid)

    def encoded(self, index: ChunkIndex) -> bytes:
        """The bytes of a chunk. Safe to call from many threads.

        Raises
        ------
        SourceError
            If the bytes of the source cannot be had.
        DecodeError
            If they do not decode.
        """
        return Zstd(LEVEL).encode(_to_bytes(self._padded(index)))

    def _padded(self, index: ChunkIndex) -> NDArray[Any]:
        """The values of a chunk, at full size: what lies beyond the array is the fill value."""
        axes = zip(index, self.grid.chunk_shape, self.grid.shape, strict=True)
        within = tuple(slice(i * length, min((i + 1) * length, size)) for i, length, size in axes)
        values = self._read(within, index)
        if values.shape == self.grid.chunk_shape:
            return values
        metadata = self.values.array.metadata
        padded = np.full(self.grid.chunk_shape, decode_scalar(metadata.fill_value, metadata.dtype), metadata.dtype)
        padded[tuple(map(slice, values.shape))] = values
        return padded

    def _read(self, within: tuple[slice, ...], index: ChunkIndex) -> NDArray[Any]:
        try:
            return self.values.read(within)
        except VirtualZarrError:
            raise
        except FAILURES as error:
            raise DecodeError(f"what chunk {index} is made of cannot be decoded: {error!r:.200}") from error


def _to_bytes(values: NDArray[Any]) -> bytes:
    if values.dtype == np.dtype(object):
        return bytes(VLenUTF8().encode(values.reshape(-1)))
    return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
