"""Where the chunks of a box lie, by source and variant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.chunk_manifest import ChunkManifest
from virtualzarr_refs.direct.boxes import Box
from virtualzarr_refs.direct.fetching import RangeReader
from virtualzarr_refs.errors import SourceTruncatedError
from virtualzarr_refs.manifest import MISSING, VirtualChunk


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a source, and where chunks lie in them.

    Parameters
    ----------
    view : memoryview
        The bytes.
    starts, lengths : ndarray of intp
        Of the chunks, in bytes from the start of the view.
    """

    view: memoryview
    starts: NDArray[np.intp]
    lengths: NDArray[np.intp]

    def chunks(self) -> list[memoryview]:
        """The bytes of each chunk."""
        stops = (self.starts + self.lengths).tolist()
        return [self.view[start:stop] for start, stop in zip(self.starts.tolist(), stops, strict=True)]

    def rows(self, count: int) -> NDArray[np.uint8]:
        """The bytes of all chunks, which are `count` bytes long, one chunk a row."""
        values = np.frombuffer(self.view, np.uint8)
        if (np.diff(self.starts) == count).all():
            return values[self.starts[0] : self.starts[-1] + count].reshape(-1, count)
        return np.lib.stride_tricks.sliding_window_view(values, count)[self.starts]


@dataclass(frozen=True, slots=True)
class Group:
    """Chunks of a box that lie in one source and are encoded in the same way.

    Parameters
    ----------
    where : slice or ndarray of intp
        Which chunks of the box they are, in C order.
    positions : sequence of int
        The same, one by one.
    url : str, optional
        The source; None for chunks that are inline or missing.
    variant : int
        How they are encoded; 0 in arrays without variants.
    offset, length : ndarray of uint64
        Where each lies in the source, in bytes.
    """

    where: NDArray[np.intp] | slice
    positions: Sequence[int]
    url: str | None
    variant: int
    offset: NDArray[np.uint64]
    length: NDArray[np.uint64]

    def read(self, values: RangeReader) -> Span:
        """The bytes of the chunks: all of a mapped file from the first to the last of them, or else put together.

        Raises
        ------
        SourceError
            If a chunk cannot be had.
        """
        return self._mapped(values) if values.is_mapped(str(self.url)) else self._joined(values)

    def chunks(self) -> Iterator[VirtualChunk]:
        """Where each lies."""
        for offset, length in zip(self.offset.tolist(), self.length.tolist(), strict=True):
            yield VirtualChunk(str(self.url), ByteRange(offset, length))

    def _mapped(self, values: RangeReader) -> Span:
        low = int(self.offset.min())
        starts, lengths = (self.offset - np.uint64(low)).astype(np.intp), self.length.astype(np.intp)
        stop = max(map(int.__add__, self.offset.tolist(), self.length.tolist()))
        try:
            return Span(values.read_range(str(self.url), ByteRange(low, stop - low)), starts, lengths)
        except SourceTruncatedError:
            for chunk in self.chunks():
                values.read_range(chunk.url, chunk.byte_range)  # the error names the chunk's own bytes
            raise

    def _joined(self, values: RangeReader) -> Span:
        lengths = self.length.astype(np.intp)
        joined = b"".join([values.read_range(chunk.url, chunk.byte_range) for chunk in self.chunks()])
        return Span(memoryview(joined), np.cumsum(lengths) - lengths, lengths)


def groups(manifest: ChunkManifest, box: Box) -> Iterator[Group]:
    """The chunks of a box, in groups."""
    chunks = manifest.take(_positions(box, manifest.grid_shape))
    offset, length = chunks.offset, chunks.length.astype(np.uint64)
    kind = chunks.url_id.astype(np.uint64) << np.uint64(16)
    if chunks.variant is not None:
        kind |= chunks.variant
    for one in np.unique(kind) if (kind != kind[0]).any() else kind[:1]:
        is_one = kind == one
        positions = np.flatnonzero(is_one)
        number, variant_number = divmod(int(one), 1 << 16)
        where = slice(None) if len(positions) == kind.size else positions
        url = None if number == MISSING else chunks.urls[number]
        yield Group(where, positions.tolist(), url, variant_number, offset[where], length[where])


def _positions(box: Box, grid_shape: Shape) -> NDArray[np.intp]:
    """Where the chunks of a box are in C order of the grid."""
    if not grid_shape:
        return np.zeros(1, np.intp)
    return np.asarray(np.ravel_multi_index(np.ix_(*(part.numbers for part in box.parts)), grid_shape)).reshape(-1)
