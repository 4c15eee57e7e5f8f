"""Coordinates along the dimension that is joined: read, put into the same terms, and kept inline as one chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.codecs.names import PACKING
from virtualzarr_refs.combine.encodings import packing_of
from virtualzarr_refs.combine.report import odd_file
from virtualzarr_refs.combine.times import TimeUnits, convert, narrowed
from virtualzarr_refs.combine.values import decoded, inline_array
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup

MAX_BYTES = 64 * 1024 * 1024
"""Bytes of the values of a coordinate in all files beyond which it stays references, if it can."""


def coordinate_names(groups: Sequence[VirtualGroup], dim: str) -> frozenset[str]:
    """Names of the variables that are coordinates along `dim`, or bounds of one.

    CF Conventions 1.12, sections 5 "Coordinate Systems" (attribute ``coordinates``) and 7.1 "Cell Boundaries".
    """
    names = {dim}
    for group in groups[:1]:
        names |= {name for attributes in _all_attributes(group) for name in _listed(attributes)}
    bounds = [listed_bounds(group, names) for group in groups[:1]]
    return frozenset(names.union(*bounds))


def listed_bounds(group: VirtualGroup, names: Iterable[str] | None = None) -> set[str]:
    """Names of the variables that are bounds of others, or of some others."""
    arrays = (group.arrays[name] for name in (group.arrays if names is None else names) if name in group.arrays)
    attributes = (array.metadata.attributes for array in arrays)
    return {str(own["bounds"]) for own in attributes if "bounds" in own}


def is_coordinate(groups: Sequence[VirtualGroup], name: str) -> bool:
    """Whether a variable is a coordinate in any of the groups: of its own dimension, or listed as one."""
    return any(name in _listed(attributes) for group in groups for attributes in _all_attributes(group)) or any(
        group.arrays[name].metadata.dimension_names == (name,) for group in groups if name in group.arrays
    )


def _all_attributes(group: VirtualGroup) -> Iterator[Mapping[str, Any]]:
    yield group.attributes
    for array in group.arrays.values():
        yield array.metadata.attributes


def _listed(attributes: Mapping[str, Any]) -> Iterator[str]:
    listed = attributes.get("coordinates")
    yield from listed.split() if isinstance(listed, str) else ()


def time_units(group: VirtualGroup, name: str) -> TimeUnits | None:
    """How a variable counts time; bounds count as their coordinate does."""
    own = TimeUnits.parse(group.arrays[name].metadata.attributes)
    if own is not None:
        return own
    parents = (a for a in group.arrays.values() if a.metadata.attributes.get("bounds") == name)
    return next((TimeUnits.parse(parent.metadata.attributes) for parent in parents), None)


def unify(
    arrays: Sequence[VirtualArray],
    values: Sequence[NDArray[Any]],
    units: Sequence[TimeUnits | None],
    files: Sequence[str],
) -> list[NDArray[Any]]:
    """Values of one coordinate of several files, in the terms of the first.

    Parameters
    ----------
    arrays : sequence of VirtualArray
        The coordinate in each file.
    values : sequence of ndarray
        What they hold.
    units : sequence of TimeUnits or None
        How they count time.
    files : sequence of str
        Their names.

    Raises
    ------
    UnsupportedError
        If they cannot be put into the same terms; it names the file.
    """
    target = units[0]
    if all(own == target for own in units):
        if target is None:
            check_units(arrays, files)
        if len({str(packing_of(array.metadata)) for array in arrays}) == 1:
            return list(values)
        return [decoded(array, own) for array, own in zip(arrays, values, strict=True)]
    if target is None or None in units:
        odd = odd_file([own is None for own in units], files)
        raise UnsupportedError("it counts time in some files and not in others; drop it").at(url=odd)
    return [
        _converted(array, own, how, target, file)
        for array, own, how, file in zip(arrays, values, units, files, strict=True)
        if how
    ]


def check_units(arrays: Sequence[VirtualArray], files: Sequence[str]) -> None:
    """Refuse values in different units. Raises UnsupportedError, which names the file."""
    units = [str(array.metadata.attributes.get("units", "")) for array in arrays]
    different = list(dict.fromkeys(units))
    if len(different) > 1:
        raise UnsupportedError(
            f"its units differ: {different[0]!r} and {different[1]!r}; convert one of them, or drop it"
        ).at(url=odd_file(units, files))


def _converted(
    array: VirtualArray, values: NDArray[Any], units: TimeUnits, target: TimeUnits, file: str
) -> NDArray[Any]:
    if units == target:
        return values
    packing = {name: array.metadata.attributes[name] for name in PACKING if name in array.metadata.attributes}
    unpacked = decoded(array, values)
    if packing and not np.array_equal(np.asarray(unpacked, values.dtype), values):
        raise UnsupportedError("packed or missing times cannot be converted to other units; drop the variable").at(
            url=file
        )
    try:
        return convert(values, units, target)
    except UnsupportedError as error:
        raise error.at(url=file) from None


def joined_coordinate(first: VirtualArray, values: Sequence[NDArray[Any]], axis: int) -> VirtualArray:
    """The values of all files, inline in one chunk, with the attributes of the first file.

    Raises
    ------
    UnsupportedError
        If the values differ in shape beside the axis, or no type holds them.
    """
    try:
        whole = np.concatenate(values, axis)
    except (TypeError, ValueError) as error:
        raise UnsupportedError(f"its values cannot be put together: {error}") from error
    dtype = first.dtype
    if whole.dtype != dtype and whole.dtype.kind in "iuf" and dtype.kind in "iuf":
        whole = narrowed(whole, dtype)
    attributes = first.metadata.attributes
    if whole.dtype != dtype and values[0].dtype != dtype:  # unpacked
        attributes = {name: value for name, value in attributes.items() if name not in PACKING}
    return inline_array(first.metadata, whole, attributes)
