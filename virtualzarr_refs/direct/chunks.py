"""The chunks of an array, decoded: one at a time, or all that form a box."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import ChunkIndex
from virtualzarr_refs.codecs.bytes_steps import Data
from virtualzarr_refs.codecs.failures import FAILURES
from virtualzarr_refs.data_types import decode_scalar
from virtualzarr_refs.direct.boxes import Box
from virtualzarr_refs.direct.chains import Chain
from virtualzarr_refs.direct.fetching import RangeReader
from virtualzarr_refs.direct.groups import Group, groups
from virtualzarr_refs.direct.pipelines import Pipelines
from virtualzarr_refs.errors import DecodeError, VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.manifest import ShardChunk, VirtualChunk


class ChunkReader:
    """Reads and decodes the chunks of one array.

    Safe to use from many threads.

    Parameters
    ----------
    array : VirtualArray
        What to read.
    pipelines : Pipelines
        What decodes its chunks.
    values : RangeReader
        Reads its sources.
    """

    def __init__(self, array: VirtualArray, pipelines: Pipelines, values: RangeReader) -> None:
        self._array = array
        self._metadata = array.metadata
        self._manifest = array.manifest
        self._pipelines = pipelines
        self._values = values
        self._fill_value: Any = decode_scalar(array.metadata.fill_value, array.dtype)

    def reading_from(self, values: RangeReader) -> ChunkReader:
        """The same, but with another reader of its sources."""
        return ChunkReader(self._array, self._pipelines, values)

    def needed(self, box: Box) -> Iterable[VirtualChunk]:
        """Where the chunks of a box lie, as far as they lie in sources."""
        if box.is_chunk:
            return self.needed_at(box.index(0))
        return (chunk for group in groups(self._manifest, box) if group.url is not None for chunk in group.chunks())

    def needed_at(self, index: ChunkIndex) -> Iterable[VirtualChunk]:
        """Where one chunk lies, if it lies in a source."""
        chunk = self._manifest.chunk(index)
        return (chunk,) if isinstance(chunk, VirtualChunk) else ()

    def place(self, index: ChunkIndex, inside: tuple[Any, ...], target: NDArray[Any]) -> None:
        """Write a part of one chunk to a view that is contiguous along its last axis.

        Raises
        ------
        SourceError
            If the bytes cannot be had.
        DecodeError
            If they do not decode.
        """
        data = self._stored(index)
        if data is None:
            target[...] = self._fill_value
            return
        with _failures(index):
            chain, data = self._chain(index, data)
            chain.place(data, self._metadata.chunk_grid.encoded_shape(index), inside, target)

    def part(self, index: ChunkIndex, inside: tuple[Any, ...]) -> Any:  # noqa: ANN401  an array, or a scalar for all
        """A part of one chunk; see `place`."""
        data = self._stored(index)
        return self._fill_value if data is None else self._decode(index, data)[inside]

    def together(self, box: Box) -> NDArray[Any]:
        """The chunks of a box, along a first axis; see `place`."""
        found = [*groups(self._manifest, box)]
        if len(found) == 1:
            return self._group(found[0], box)
        chunks = np.empty((math.prod(box.grid_shape), *box.chunk_shape), self._metadata.dtype)
        for group in found:
            chunks[group.where] = self._group(group, box)
        return chunks

    def _group(self, group: Group, box: Box) -> NDArray[Any]:
        if group.url is None:
            return self._here(group, box)
        span = group.read(self._values)
        plain = self._pipelines.plain_of(group.variant)
        if plain is not None:
            try:
                return plain.decode_many(span, box.chunk_shape)
            except FAILURES:  # find out which of them it is
                pass
        indexes = map(box.index, group.positions)
        return np.stack([self._decode(index, data) for index, data in zip(indexes, span.chunks(), strict=True)])

    def _here(self, group: Group, box: Box) -> NDArray[Any]:
        """Chunks that are inline, or missing."""
        values = np.full((len(group.positions), *box.chunk_shape), self._fill_value, self._metadata.dtype)
        for place, position in enumerate(group.positions if self._manifest.has_inline else ()):
            index = box.index(position)
            data = self._stored(index)
            if data is not None:
                values[place] = self._decode(index, data)
        return values

    def _stored(self, index: ChunkIndex) -> Data | None:
        """The bytes of one chunk, or None if it is missing."""
        chunk = self._manifest.chunk(index)
        if isinstance(chunk, VirtualChunk):
            return self._values.read_range(chunk.url, chunk.byte_range)
        if isinstance(chunk, ShardChunk):
            raise DecodeError(f"chunk {index} is a shard, which zarr has to read")
        return None if chunk is None else chunk.data

    def _decode(self, index: ChunkIndex, data: Data) -> NDArray[Any]:
        with _failures(index):
            chain, data = self._chain(index, data)
            return chain.decode(data, self._metadata.chunk_grid.encoded_shape(index))

    def _chain(self, index: ChunkIndex, data: Data) -> tuple[Chain, Data]:
        return self._pipelines.chain(self._manifest.variant_of(index) or 0, data)


@contextmanager
def _failures(index: ChunkIndex) -> Generator[None]:
    """Turn an error of a codec into one that names the chunk."""
    try:
        yield
    except VirtualZarrError:
        raise
    except FAILURES as error:
        raise DecodeError(f"chunk {index} cannot be decoded: {error!r:.200}") from error
