"""Arrays of a hierarchy that zarr opens when they are first read.

Opening a dataset must cost little for variables that nobody reads, and a variable that is sent to another process
must not take the whole hierarchy along.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from zarr import Array
from zarr.core.array import AsyncArray
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.codec_pipeline import FusedCodecPipeline
from zarr.core.metadata.v3 import ArrayV3Metadata
from zarr.storage import StorePath

from virtualzarr_refs.chunk_grid import RegularGrid, Shape
from virtualzarr_refs.data_types import decode_scalar
from virtualzarr_refs.direct.reading import DirectReader
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.sources import Sources
from virtualzarr_refs.store import VirtualStore

type Selection = tuple[int | slice | NDArray[Any], ...]
"""One selector for each axis, each independent of the others; slices only step forward."""

_NAME = "array"


class LazyArray:
    """An array of a store, opened by zarr when it is first read.

    Safe to use from many threads. Pickled with its own references and no others.

    Parameters
    ----------
    array : VirtualArray
        The array.
    store : VirtualStore
        Serves it.
    path : str
        Where in the store it lies.
    options : mapping
        What else the store was made with, for making another.
    shape : tuple of int, optional
        What to show of it, if that is more than there is: the rest has the fill value.
    """

    def __init__(
        self,
        array: VirtualArray,
        store: VirtualStore,
        path: str,
        options: Mapping[str, Any],
        shape: Shape | None = None,
    ) -> None:
        self.array = array
        self.shape = array.shape if shape is None else shape
        self._store = store
        self._path = path
        self._options = options

    @property
    def is_padded(self) -> bool:
        """Whether more is shown than there is."""
        return self.shape != self.array.shape

    def read(self, selection: Selection) -> NDArray[Any]:
        """Read what the selectors of all axes have in common.

        Raises
        ------
        SourceError
            If the bytes cannot be had.
        DecodeError
            If they do not decode.
        """
        if self.is_padded:
            return self._read_padded(selection)
        return self._read_stored(selection)

    def read_points(self, selection: tuple[NDArray[Any], ...]) -> NDArray[Any]:
        """Read single elements, given by arrays of their indexes along each axis. Not for padded arrays."""
        if self._direct is not None:
            return self._direct.read_points(selection)
        return self._as_shown(self._opened.vindex[selection])

    def _read_stored(self, selection: Selection) -> NDArray[Any]:
        if self._direct is not None:
            return self._direct.read(selection)
        is_basic = all(isinstance(part, int | slice) for part in selection)
        return self._as_shown(self._opened[selection] if is_basic else self._opened.oindex[selection])

    def _read_padded(self, selection: Selection) -> NDArray[Any]:
        axes = [_Axis(*axis) for axis in zip(selection, self.shape, self.array.shape, strict=True)]
        fill = decode_scalar(self.array.metadata.fill_value, self.array.dtype)
        values = np.full([axis.positions.size for axis in axes], fill, self.array.dtype)
        if all(axis.is_inside.any() for axis in axes):
            inside = self._read_stored(tuple(axis.stored for axis in axes))
            values[np.ix_(*(np.flatnonzero(axis.is_inside) for axis in axes))] = inside
        return values[tuple(0 if axis.is_dropped else slice(None) for axis in axes)]

    def _as_shown(self, values: Any) -> NDArray[Any]:  # noqa: ANN401  zarr's scalars and arrays
        return np.asarray(values).astype(self.array.dtype, copy=False)

    @cached_property
    def _direct(self) -> DirectReader | None:
        """What reads local files without zarr; None where zarr has to."""
        return DirectReader.of(self.array, self._store.reader, self._path, lambda: self._opened)

    @cached_property
    def _opened(self) -> Array[Any]:
        document = self.array.metadata.to_json() | {"attributes": {}}
        metadata = ArrayV3Metadata.from_dict(cast("Any", document))
        opened = AsyncArray(metadata, StorePath(self._store, self._path))
        _use_fused_pipeline(opened)
        return Array(opened)

    def __reduce__(self) -> tuple[object, ...]:
        known = self._store.group.sources
        own = {url: known[url] for url in self.array.manifest.urls if url in known}
        return _alone, (self.array, own, self._options, self.shape)


def _alone(array: VirtualArray, sources: Sources, options: Mapping[str, Any], shape: Shape) -> LazyArray:
    store = VirtualGroup(arrays={_NAME: array}, sources=sources).to_store(**options)
    return LazyArray(array, store, _NAME, options, shape)


def _use_fused_pipeline(array: AsyncArray[ArrayV3Metadata]) -> None:
    """Have one array decoded by zarr's faster pipeline, whatever the process uses for others."""
    grid = array.metadata.chunk_grid
    spec = ArraySpec(
        # Codecs get the shape of each chunk again when they decode it.
        shape=getattr(grid, "chunk_shape", (1,) * len(array.shape)),
        dtype=array.metadata.data_type,
        fill_value=array.metadata.fill_value,
        config=array.config,
        prototype=default_buffer_prototype(),
    )
    pipeline = FusedCodecPipeline.from_codecs(array.metadata.codecs).evolve_from_array_spec(spec)
    object.__setattr__(array, "codec_pipeline", pipeline)


class _Axis:
    """What a selection takes from one axis that is shown longer than it is stored."""

    def __init__(self, selector: int | slice | NDArray[Any], length: int, stored_length: int) -> None:
        self.is_dropped = isinstance(selector, int | np.integer)
        self.positions = np.atleast_1d(np.arange(length)[selector])
        self.is_inside = self.positions < stored_length
        self.stored: slice | NDArray[Any] = self.positions[self.is_inside]
        if isinstance(selector, slice):
            start, stop, step = selector.indices(length)
            self.stored = slice(start, min(stop, stored_length), step)


def chunk_lengths(array: LazyArray) -> tuple[int | tuple[int, ...], ...]:
    """Along each axis the length of all chunks, or of each where they differ, in elements."""
    grid = array.array.metadata.chunk_grid
    if isinstance(grid, RegularGrid):
        return grid.chunk_shape
    return tuple(
        edge if isinstance(edge, int) else _covering(grid.chunk_lengths(axis), array.shape[axis])
        for axis, edge in enumerate(grid.edges)
    )


def _covering(lengths: tuple[int, ...], length: int) -> tuple[int, ...]:
    """Chunk lengths without empty chunks, and with one more for what is shown beyond them."""
    return tuple(filter(None, (*lengths, length - sum(lengths))))
