"""Reads selections of an array: plans from its grid, decodes in threads, puts each chunk into its place.

Large chunks are read one by one. Small ones, of which an array may have very many, are read a box at a time, so that
each costs little more than what its codecs take.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from zarr import Array

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.direct.boxes import Box, cut
from virtualzarr_refs.direct.chunks import ChunkReader
from virtualzarr_refs.direct.fetching import fetched
from virtualzarr_refs.direct.pipelines import Pipelines
from virtualzarr_refs.direct.selection import Selector, select, select_points
from virtualzarr_refs.direct.workers import run_all
from virtualzarr_refs.errors import DecodeError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.manifest import VirtualChunk
from virtualzarr_refs.reader import ValueReader

THREADED_CHUNK = 4 * 1024
"""Decoded bytes below which a chunk takes too little time for threads to take turns."""


@dataclass(frozen=True, slots=True)
class DirectReader:
    """Reads one array.

    Safe to use from many threads.

    Parameters
    ----------
    array : VirtualArray
        What to read.
    chunks : ChunkReader
        Decodes its chunks.
    values : ValueReader
        Reads its sources.
    path : str
        Of the array, for errors.
    """

    array: VirtualArray
    chunks: ChunkReader
    values: ValueReader
    path: str

    @classmethod
    def of(cls, array: VirtualArray, values: ValueReader, path: str, opened: Callable[[], Array[Any]]) -> Self | None:
        """A reader of an array, or None if zarr has to read it.

        Parameters
        ----------
        array : VirtualArray
            The array.
        values : ValueReader
            Reads its sources.
        path : str
            Of the array, for errors.
        opened : callable
            Gives the array as zarr opens it; called only if codecs of zarr's are needed.
        """
        pipelines = Pipelines.of_array(array, opened)
        return None if pipelines is None else cls(array, ChunkReader(array, pipelines, values), values, path)

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

        def read(chunks: ChunkReader, box: Box) -> None:
            if not box.is_chunk:
                result[box.result] = box.put_together(chunks.together(box))[box.inside]
            elif box.is_block:
                chunks.place(box.index(0), box.inside, result[(*box.result, ...)])
            else:
                result[box.result] = chunks.part(box.index(0), box.inside)

        if result.size:
            boxes = [*cut(axes, result.itemsize)]
            self._run(read, boxes, self.chunks.needed, boxes[0].chunk_shape)
        return result.reshape([axis.size for axis in axes if not axis.is_dropped])

    def read_points(self, points: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Read single elements, given by arrays of their positions along each of at least one axis; see `read`."""
        grid = self.array.metadata.chunk_grid
        selected = select_points(points, grid)
        result = np.empty(len(selected.order), self.array.dtype)
        indexes = [*zip(*(part.tolist() for part in selected.indexes), strict=True)]

        def read(chunks: ChunkReader, chunk: int) -> None:
            its = slice(selected.bounds[chunk], selected.bounds[chunk + 1])
            inside = tuple(part[its] for part in selected.inside)
            result[selected.order[its]] = chunks.part(indexes[chunk], inside)

        if indexes:
            needed = lambda chunk: self.chunks.needed_at(indexes[chunk])  # noqa: E731  one of two functions
            self._run(read, range(len(indexes)), needed, grid.encoded_shape(indexes[0]))
        return result.reshape(selected.shape)

    def _run[T](
        self,
        read: Callable[[ChunkReader, T], None],
        tasks: Sequence[T],
        needed: Callable[[T], Iterable[VirtualChunk]],
        chunk_shape: Shape,
    ) -> None:
        """Do all tasks, in threads if a chunk is worth it, and those of remote sources once their chunks are here."""
        alone = self.array.dtype.itemsize * math.prod(chunk_shape) < THREADED_CHUNK
        try:
            for chunks, some in self._ready(tasks, needed):
                run_all(partial(read, chunks), some, alone=alone)
        except DecodeError as error:
            error.at(node=self.path)
            raise

    def _ready[T](
        self, tasks: Sequence[T], needed: Callable[[T], Iterable[VirtualChunk]]
    ) -> Iterator[tuple[ChunkReader, Sequence[T]]]:
        """Tasks, each time with what reads the chunks they need without waiting."""
        if all(map(self.values.is_mapped, self.array.manifest.urls)):
            yield self.chunks, tasks
            return
        for reader, some in fetched(self.values, tasks, needed):
            yield self.chunks.reading_from(reader), some
