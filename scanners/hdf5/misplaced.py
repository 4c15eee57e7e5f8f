"""Putting right a fault of libhdf5: chunks of extensible arrays that it lists under wrong coordinates.

An extensible array numbers its chunks with the axis that can grow first, whatever its place in the dataset. libhdf5
(2.0 and before) forgets that when it lists chunks (``H5Dchunk_iter``, ``H5Dget_chunk_info``) and counts through the
axes as they are. Reading is right, listing is not, for every dataset of the newer format whose only unlimited axis is
not its first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import Shape


@dataclass(frozen=True, slots=True)
class MisplacedChunks:
    """The arrangement of an extensible array.

    Parameters
    ----------
    counts : tuple of int
        Chunks along each axis at its limit; 1 along the axis that has none.
    growing : int
        The axis that can grow.
    """

    counts: Shape
    growing: int

    @classmethod
    def of(cls, max_shape: tuple[int | None, ...], chunk_shape: Shape) -> MisplacedChunks:
        """The arrangement of a dataset with one unlimited axis."""
        pairs = zip(max_shape, chunk_shape, strict=True)
        counts = tuple(1 if limit is None else -(-limit // length) for limit, length in pairs)
        return cls(counts, max_shape.index(None))

    def put_right(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """The true chunk indexes of those that libhdf5 lists, both of shape (chunks, rank)."""
        # As listed, the axes before the growing one stay at 0, and it takes up all that the later ones do not.
        later = self.counts[self.growing + 1 :]
        strides = [math.prod(later[i:]) for i in range(len(later) + 1)]
        number = index[:, self.growing :] @ np.array(strides, np.int64)
        others = [axis for axis in range(len(self.counts)) if axis != self.growing]
        right = np.empty_like(index)
        right[:, self.growing], rest = np.divmod(number, math.prod(self.counts))
        right[:, others] = np.stack(np.unravel_index(rest, [self.counts[axis] for axis in others]), axis=1)
        return right


@cache
def is_fault_present() -> bool:
    """Whether the libhdf5 of this process has the fault, found by trying."""
    with h5py.File(BytesIO(), "w", libver="latest") as file:
        dataset = file.create_dataset("x", (2, 2), "u1", chunks=(1, 1), maxshape=(2, None))
        dataset.id.write_direct_chunk((1, 0), b"\1")
        listed: list[Any] = []
        dataset.id.chunk_iter(listed.append)
    return [tuple(info.chunk_offset) for info in listed] != [(1, 0)]
