"""NumPy's functions that put references together."""

# ruff: noqa: ANN401  whatever NumPy takes

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.combine.expanding import expand
from virtualzarr_refs.combine.findings import join_or_blame
from virtualzarr_refs.combine.parts import Part, lengths_of
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.rechunking import kept_inline
from virtualzarr_refs.virtual_xarray.duck_array import DuckArray, implements, shown_type
from virtualzarr_refs.virtual_xarray.inlining import from_memory


@implements(np.concatenate)
def concatenate(arrays: Sequence[Any], axis: int = 0) -> DuckArray:
    """Join arrays, as `virtualzarr_refs.concat` does: what differs between them becomes variants.

    Raises
    ------
    UnsupportedError
        If they cannot be joined; it names the file that is unlike the others.
    """
    first = next(array for array in arrays if isinstance(array, DuckArray))
    axis %= first.ndim
    ducks = [_duck(array, first, axis) for array in arrays]
    promised = np.result_type(*(duck.dtype for duck in ducks))
    parts = [Part(duck.file, duck.array, duck.shape[axis]) for duck in ducks]
    whole = join_or_blame(parts, axis).array
    found = shown_type(whole)
    if found != promised:
        raise UnsupportedError(f"the values of all parts are {found}, and {promised} was asked for; cast what is read")
    options = next((duck.storage_options for duck in ducks if duck.storage_options is not None), None)
    return DuckArray(whole, found, options)


@implements(np.stack)
def stack(arrays: Sequence[Any], axis: int = 0) -> DuckArray:
    """Put arrays side by side along a new first axis.

    Raises
    ------
    UnsupportedError
        If it is not the first, or they cannot be joined.
    """
    if axis != 0:
        raise UnsupportedError("references can only be put side by side along a new first axis")
    return concatenate([array[None] for array in arrays])


@implements(np.broadcast_to)
def broadcast_to(array: DuckArray, shape: Shape) -> DuckArray:
    """Repeat an array along new first axes.

    Raises
    ------
    UnsupportedError
        If it would be repeated along an axis that it has.
    """
    new = len(shape) - array.ndim
    if tuple(shape[new:]) != array.shape:
        raise UnsupportedError("references can only be repeated along new axes")
    repeated = array.array
    for length in reversed(shape[:new]):
        repeated = expand(repeated, "", length)
    return replace(array, array=repeated)


@implements(np.transpose)
def transpose(array: DuckArray, axes: Any = None) -> DuckArray:
    """See `DuckArray.transpose`."""
    return array.transpose(range(array.ndim)[::-1] if axes is None else axes)


@implements(np.result_type)
def result_type(*arrays: Any) -> np.dtype[Any]:
    """The type of values of several arrays together."""
    return np.result_type(*(array.dtype if isinstance(array, DuckArray) else array for array in arrays))


@implements(np.full_like)
def full_like(array: DuckArray, fill_value: Any, dtype: Any = None, **_: Any) -> NDArray[Any]:
    """One value throughout."""
    return np.broadcast_to(np.asarray(fill_value, array.dtype if dtype is None else dtype), array.shape)


@implements(np.where)
def where(condition: Any, one: Any, other: Any) -> DuckArray:
    """The array whose values these are, if it is one of the two.

    Raises
    ------
    UnsupportedError
        If values of both would have to be mixed.
    """
    for array in (one, other):
        if isinstance(array, DuckArray) and _is_chosen(condition, array, other if array is one else one):
            return array
    raise UnsupportedError(
        "references cannot be filled or mixed with other values; where files lack a variable, put their groups "
        "together by virtualzarr_refs.concat"
    )


def _is_chosen(condition: Any, array: DuckArray, other: Any) -> bool:
    if not isinstance(other, DuckArray) or other.dtype != array.dtype or other.shape != array.shape:
        return False
    if other is array or array.array.equals(other.array):
        return True
    values = np.asarray(array)
    chosen = np.where(condition, values, np.asarray(other))
    return bool(np.array_equal(values, chosen, equal_nan=values.dtype.kind in "fc"))


def _duck(array: Any, like: DuckArray, axis: int) -> DuckArray:
    """References, or values that are kept inline in chunks like those of references, but for an axis."""
    if isinstance(array, DuckArray):
        return array
    values = np.asarray(array)
    whole = from_memory(values)
    if values.ndim != like.ndim or not values.size:
        return DuckArray.of(whole)
    beside = {i: lengths_of(like.array, i) for i in range(like.ndim) if i != axis and values.shape[i] == like.shape[i]}
    return DuckArray.of(kept_inline(whole, values, beside))
