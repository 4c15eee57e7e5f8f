"""Variables without the dimension that is joined: they have to agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from virtualzarr_refs.combine.encodings import packing_of
from virtualzarr_refs.combine.options import ConcatOptions
from virtualzarr_refs.combine.report import Finding, Status
from virtualzarr_refs.combine.times import TimeUnits, convert
from virtualzarr_refs.combine.values import decoded, same_values
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.metadata import same_metadata

_AT_ONCE = 64
"""Files whose values are held at a time."""


def agree(
    path: str, arrays: Sequence[VirtualArray | None], files: Sequence[str], options: ConcatOptions
) -> tuple[VirtualArray, Finding]:
    """The array that all files have alike.

    Parameters
    ----------
    path : str
        Of the array.
    arrays : sequence of VirtualArray or None
        None where a file lacks it.
    files : sequence of str
        Their names.
    options : ConcatOptions
        Whether they are compared.

    Raises
    ------
    UnsupportedError
        If they differ; it names the file.
    """
    given = [(file, array) for file, array in zip(files, arrays, strict=True) if array is not None]
    first = given[0][1]
    is_index = (first.metadata.dimension_names or ()) == (path.rpartition("/")[2],)
    if (options.join if is_index else options.compat) == "override":
        return first, Finding(path, Status.EQUAL, "taken from the first file, not compared")
    unlike = [(file, array) for file, array in given[1:] if not array.equals(first)]
    odd = _odd(first, unlike, options)
    if odd is not None:
        raise UnsupportedError(
            "it differs, and indexes are not aligned; select the same labels, or pass join='override' to take those "
            "of the first file"
            if is_index
            else "it differs and does not have the dimension that is joined; drop it, or pass compat='override' to "
            "take that of the first file"
        ).at(url=odd)
    return first, Finding(path, Status.EQUAL)


def _odd(first: VirtualArray, others: Sequence[tuple[str, VirtualArray]], options: ConcatOptions) -> str | None:
    """The first file whose array differs from the first one's."""
    if not others:
        return None
    for file, array in others:
        if array.shape != first.shape or (options.compat == "identical" and not _same_attributes(first, array)):
            return file
    (expected,) = options.read([first])
    for start in range(0, len(others), _AT_ONCE):
        some = others[start : start + _AT_ONCE]
        values = options.read([array for _, array in some])
        for (file, array), own in zip(some, values, strict=True):
            if not _equal(first, expected, array, own):
                return file
    return None


def _same_attributes(a: VirtualArray, b: VirtualArray) -> bool:
    return same_metadata(replace(a.metadata, attributes=b.metadata.attributes), a.metadata)


def _equal(first: VirtualArray, expected: NDArray[Any], array: VirtualArray, values: NDArray[Any]) -> bool:
    units, others = (TimeUnits.parse(a.metadata.attributes) for a in (first, array))
    if units is not None and others is not None and units != others:
        return _same_times(expected, units, values, others)
    if packing_of(first.metadata) == packing_of(array.metadata):
        return same_values(expected, values)
    return same_values(decoded(first, expected), decoded(array, values))


def _same_times(expected: NDArray[Any], units: TimeUnits, values: NDArray[Any], others: TimeUnits) -> bool:
    try:
        return same_values(expected, convert(values, others, units))
    except UnsupportedError:
        return False
