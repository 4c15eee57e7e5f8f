"""Reads selections of an array: plans from the manifest, decodes in threads, each chunk into its place.

Large chunks are read one by one. Small ones, of which an array may have very many, are read a box at a time, so that
each costs little more than what its codecs take.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import ChunkIndex
from virtualzarr_refs.codecs.failures import FAILURES
from virtualzarr_refs.data_types import decode_scalar
from virtualzarr_refs.direct.boxes import Box, cut
from virtualzarr_refs.direct.bytes_steps import Data
from virtualzarr_refs.direct.groups import Group, groups
from virtualzarr_refs.direct.pipelines import Pipelines
from virtualzarr_refs.direct.selection import Selector, select
from virtualzarr_refs.direct.workers import run_all
from virtualzarr_refs.errors import DecodeError, VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.manifest import InlineChunk
from virtualzarr_refs.reader import ValueReader

THREADED_CHUNK = 4 * 1024
"""Decoded bytes below which a chunk takes too little time for threads to take turns."""


@dataclass(frozen=True, slots=True)
class DirectReader:
    """Reads one array whose sources are all local.

    Safe to use from many threads.

    Parameters
    ----------
    array : VirtualArray
        What to read.
    pipelines : Pipelines
        What decodes its chunks.
    values : ValueReader
        Reads its sources.
    path : str
        Of the array, for errors.
    """

    array: VirtualArray
    pipelines: Pipelines
    values: ValueReader
    path: str

    def read(self, selection: Sequence[Selector]) -> NDArray[Any]:
        """Read what the selectors of all axes have in common.

        Raises
        ------
        SourceError
            If the bytes cannot be had.
        DecodeError
            If they do not decode.
        IndexError
            If an index lies outside of the array.
        """
        axes = select(selection, self.array.metadata.chunk_grid)
        result = np.empty([axis.size for axis in axes], self.array.dtype)
        if result.size:
            self._read_boxes(result, [*cut(axes, result.itemsize)])
        return result.reshape([axis.size for axis in axes if not axis.is_dropped])

    def _read_boxes(self, result: NDArray[Any], boxes: Sequence[Box]) -> None:
        def read(box: Box) -> None:
            try:
                (self._read_chunk if box.is_chunk else self._read_chunks)(result, box)
            except DecodeError as error:
                error.at(node=self.path)
                raise

        if result.itemsize * math.prod(boxes[0].chunk_shape) >= THREADED_CHUNK:
            run_all(read, boxes)
        else:
            for box in boxes:
                read(box)

    def _read_chunk(self, result: NDArray[Any], box: Box) -> None:
        index = box.index(0)
        chunk = self.array.manifest.chunk(index)
        if chunk is None:
            result[box.result] = self._fill_value
            return
        data = chunk.data if isinstance(chunk, InlineChunk) else self.values.read_range(chunk.url, chunk.byte_range)
        with _failures(index):
            chain, data = self.pipelines.chain(self.array.manifest.variant_of(index) or 0, data)
            if box.is_block:
                chain.place(data, box.chunk_shape, box.inside, result[(*box.result, ...)])
            else:
                result[box.result] = chain.decode(data, box.chunk_shape)[box.inside]

    def _read_chunks(self, result: NDArray[Any], box: Box) -> None:
        found = [*groups(self.array.manifest, box)]
        if len(found) == 1:
            chunks = self._decoded(found[0], box)
        else:
            chunks = np.empty((math.prod(box.grid_shape), *box.chunk_shape), result.dtype)
            for group in found:
                chunks[group.where] = self._decoded(group, box)
        result[box.result] = box.put_together(chunks)[box.inside]

    def _decoded(self, group: Group, box: Box) -> NDArray[Any]:
        """The chunks of a group, along a first axis."""
        if group.url is None:
            return self._here(group, box)
        span = group.read(self.values)
        plain = self.pipelines.plain_of(group.variant)
        if plain is not None:
            try:
                return plain.decode_many(span, box.chunk_shape)
            except FAILURES:  # find out which of them it is
                pass
        chunks = zip(group.positions, span.chunks(), strict=True)
        return np.stack([self._decoded_one(box, position, group.variant, data) for position, data in chunks])

    def _decoded_one(self, box: Box, position: int, variant: int, data: Data) -> NDArray[Any]:
        with _failures(box.index(position)):
            chain, data = self.pipelines.chain(variant, data)
            return chain.decode(data, box.chunk_shape)

    def _here(self, group: Group, box: Box) -> NDArray[Any]:
        """Chunks that are inline, or missing."""
        values = np.full((len(group.positions), *box.chunk_shape), self._fill_value, self.array.dtype)
        inline = self.array.manifest.inline
        for place, position in enumerate(group.positions if inline else ()):
            chunk = self.array.manifest.chunk(box.index(position))
            if isinstance(chunk, InlineChunk):
                values[place] = self._decoded_one(box, position, group.variant, chunk.data)
        return values

    @property
    def _fill_value(self) -> Any:  # noqa: ANN401  a scalar of any type
        return decode_scalar(self.array.metadata.fill_value, self.array.dtype)


@contextmanager
def _failures(index: ChunkIndex) -> Generator[None]:
    """Turn an error of a codec into one that names the chunk."""
    try:
        yield
    except VirtualZarrError:
        raise
    except FAILURES as error:
        raise DecodeError(f"chunk {index} cannot be decoded: {error!r:.200}") from error
