"""Which parts of a dataset were ever written, as libhdf5 says it; the rest has the fill value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from h5py import h5d
from numpy.typing import NDArray

from scanners.hdf5.opening import h5py_errors


@dataclass(frozen=True)
class Written:
    """The written parts of a dataset.

    Parameters
    ----------
    dataset : h5py.Dataset
        The dataset.
    """

    dataset: Any

    def is_unwritten(self, region: tuple[slice, ...]) -> bool:
        """Whether nothing was ever written to a region; False where libhdf5 does not say it for certain.

        Parameters
        ----------
        region : tuple of slice
            One for each axis of the dataset; further ones, for the axes of an array type, do not matter.

        Raises
        ------
        FormatError
            If the chunks cannot be listed.
        """
        if self._layout == h5d.CONTIGUOUS:
            return self.dataset.external is None and self.dataset.id.get_offset() is None
        if self._layout != h5d.CHUNKED:
            return False
        chunks = self._chunks
        if not len(chunks):
            return True
        return not self._is_listing_doubtful and not self._overlaps(chunks, region)

    @cached_property
    def _layout(self) -> int:
        return self.dataset.id.get_create_plist().get_layout()

    @cached_property
    def _chunks(self) -> NDArray[np.int64]:
        """The first element of every written chunk, of shape (chunks, rank)."""
        found: list[tuple[int, ...]] = []
        with h5py_errors("the chunks cannot be listed"):
            self.dataset.id.chunk_iter(lambda info: found.append(info.chunk_offset))
        return np.array(found, np.int64).reshape(len(found), len(self.dataset.shape))

    @property
    def _is_listing_doubtful(self) -> bool:
        """Whether libhdf5 may list chunks under wrong coordinates; see `scanners.hdf5.misplaced`."""
        limits = self.dataset.maxshape
        return limits.count(None) == 1 and limits[0] is not None

    def _overlaps(self, chunks: NDArray[np.int64], region: tuple[slice, ...]) -> bool:
        axes = zip(chunks.T, self.dataset.chunks, region, strict=False)
        within = [(first < part.stop) & (first + length > part.start) for first, length, part in axes]
        return bool(np.logical_and.reduce(within).any())
