"""Parts of an array of references, along whole chunks; uncompressed chunks can be cut, and small arrays are read."""

# ruff: noqa: ANN401  whatever NumPy takes

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.combine.expanding import expand
from virtualzarr_refs.combine.findings import join_or_blame
from virtualzarr_refs.combine.parts import Lengths, Part, lengths_of, stored_lengths
from virtualzarr_refs.combine.selecting import take
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.rechunking import rechunk_or_inline
from virtualzarr_refs.virtual_xarray.dropping import drop_axis

type Options = Mapping[str, object] | None


def index(array: VirtualArray, key: Any, storage_options: Options = None) -> VirtualArray:
    """What NumPy's indexing gives, for slices, numbers, one array of numbers, and new first axes.

    Raises
    ------
    UnsupportedError
        If the selection is of another kind, or cuts chunks that are compressed.
    IndexError
        If it lies outside of the array.
    """
    new, parts = _normal(key, len(array.shape))
    for axis in reversed(range(len(parts))):  # so that an axis that goes does not move those still to come
        array = _along(array, axis, parts[axis], storage_options)
    for _ in range(new):
        array = expand(array, "")
    return array


def _normal(key: Any, ndim: int) -> tuple[int, list[Any]]:
    """The number of new first axes, and one selector for each axis that is there."""
    parts = list(key) if isinstance(key, tuple) else [key]
    new = next((number for number, part in enumerate(parts) if part is not None), len(parts))
    parts = parts[new:]
    dots = [number for number, part in enumerate(parts) if part is Ellipsis]
    at = dots[0] if dots else len(parts)
    parts[at : at + len(dots)] = [slice(None)] * (ndim - len(parts) + len(dots))
    if len(parts) != ndim or any(part is None or part is Ellipsis for part in parts):
        raise UnsupportedError(f"references of {ndim} axes cannot be indexed like that; new axes can only be the first")
    if sum(isinstance(part, np.ndarray) for part in parts) > 1:
        raise UnsupportedError("references can be selected by lists along one dimension at a time")
    return new, parts


def _along(array: VirtualArray, axis: int, part: Any, options: Options) -> VirtualArray:
    size = array.shape[axis]
    if isinstance(part, slice):
        start, stop, step = part.indices(size)
        if step == 1:
            return _stretch(array, axis, start, max(start, stop), options)
        part = np.arange(size)[part]
    numbers = np.arange(size)[part]
    if not numbers.ndim:
        return _element(array, axis, int(numbers), options)
    if numbers.ndim > 1:
        raise UnsupportedError("references can only be selected by lists of one dimension")
    return _gathered(array, axis, numbers, options)


def _stretch(array: VirtualArray, axis: int, start: int, stop: int, options: Options) -> VirtualArray:
    """Neighbouring elements along an axis."""
    if start == stop:
        return take(array, axis, 0, 0)
    try:
        return take(array, axis, start, stop)
    except UnsupportedError:
        return take(_cut(array, axis, start, stop, options), axis, start, stop)


def _element(array: VirtualArray, axis: int, number: int, options: Options) -> VirtualArray:
    """The array without an axis, at one element of it."""
    part = _stretch(array, axis, number, number + 1, options)
    if stored_lengths(part, axis)[0] != 1:
        part = take(_cut(array, axis, number, number + 1, options), axis, number, number + 1)
    return drop_axis(part, axis)


def _gathered(array: VirtualArray, axis: int, numbers: NDArray[np.intp], options: Options) -> VirtualArray:
    """Elements in any order, as neighbours that are put together."""
    if not numbers.size:
        return take(array, axis, 0, 0)
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    parts = [_stretch(array, axis, int(run[0]), int(run[-1]) + 1, options) for run in runs]
    if len(parts) == 1:
        return parts[0]
    file = next(iter(array.manifest.urls), "")
    return join_or_blame([Part(file, part, part.shape[axis]) for part in parts], axis).array


def _cut(array: VirtualArray, axis: int, start: int, stop: int, options: Options) -> VirtualArray:
    """The array with chunks that begin at `start` and at `stop`."""
    lengths = lengths_of(array, axis)
    borders = np.union1d(np.cumsum(lengths), [border for border in (start, stop) if border])
    target: Lengths = np.diff(borders, prepend=0)
    try:
        return rechunk_or_inline(array, {axis: target}, options)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"elements {start} to {stop - 1} along axis {axis} are not whole chunks, which have {int(lengths[0])} "
            "elements there and cannot be cut without reading them; select whole chunks"
        ).at(url=next(iter(array.manifest.urls), None)) from error
