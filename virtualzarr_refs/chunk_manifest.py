"""What every manifest can do, whether it is in memory or loaded piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import ChunkIndex, Shape
from virtualzarr_refs.manifest import Chunk, Manifest


class ChunkManifest(Protocol):
    """A mapping from chunk index to chunk: in memory (`Manifest`), or loaded piece by piece as it is asked for.

    Positions are those of chunks in C order of the grid. Whoever needs whole columns takes them from `loaded`.
    """

    @property
    def grid_shape(self) -> Shape:
        """Number of chunks along each axis."""
        ...

    @property
    def size(self) -> int:
        """Number of chunks of the grid, missing ones included."""
        ...

    @property
    def urls(self) -> tuple[str, ...]:
        """The sources."""
        ...

    @property
    def has_variants(self) -> bool:
        """Whether chunks are encoded in different ways."""
        ...

    @property
    def has_inline(self) -> bool:
        """Whether there may be inline chunks."""
        ...

    @property
    def has_shards(self) -> bool:
        """Whether there may be shards made up of byte ranges."""
        ...

    @property
    def is_missing(self) -> bool:
        """Whether no chunk is there at all."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether no chunk is missing."""
        ...

    @property
    def count(self) -> int:
        """Number of chunks that are there."""
        ...

    @property
    def nbytes(self) -> int:
        """Stored bytes of all chunks."""
        ...

    def chunk(self, index: ChunkIndex) -> Chunk:
        """The chunk at `index`; raises IndexError if that lies outside the grid."""
        ...

    def variant_of(self, index: ChunkIndex) -> int | None:
        """The variant that the chunk at `index` uses, or None where the array has only one."""
        ...

    def take(self, positions: NDArray[np.intp]) -> Manifest:
        """The chunks at some positions as a manifest of one axis, without those that are inline."""
        ...

    def blocks(self, size: int) -> Iterator[tuple[int, Manifest]]:
        """The grid in blocks of `size` positions, as manifests of one axis, each after its first position.

        Blocks in which no chunk is there are left out.
        """
        ...

    def indexes(self, prefix: ChunkIndex = ()) -> Iterator[ChunkIndex]:
        """The indexes of the chunks that are there and start with `prefix`, in C order."""
        ...

    def next_numbers(self, prefix: ChunkIndex = ()) -> NDArray[np.intp]:
        """What follows `prefix` in the indexes of the chunks that are there: each number once, ascending."""
        ...

    def rename_urls(self, rename: Callable[[str], str]) -> ChunkManifest:
        """The same manifest with every url put through `rename`."""
        ...

    def loaded(self) -> Manifest:
        """The same manifest, all of it in memory."""
        ...
