"""The order of groups along a dimension, by the coordinate of that name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Place:
    """Where a group goes in the whole, and what of it.

    Parameters
    ----------
    number : int
        Of the group, as they were given.
    start, stop : int
        The elements along the dimension that are kept.
    """

    number: int
    start: int
    stop: int


def in_order(values: Sequence[NDArray[Any]]) -> list[Place]:
    """Groups of one element each, by its value; those of the same stay as they were given."""
    order = sorted(range(len(values)), key=lambda number: values[number][0])
    return [Place(number, 0, len(values[number])) for number in order]


def arrange(values: Sequence[NDArray[Any]], files: Sequence[str], *, sort: bool, overlap: str) -> list[Place]:
    """Put groups in order.

    Parameters
    ----------
    values : sequence of ndarray
        The coordinate of each group, of one dimension.
    files : sequence of str
        What groups are called in messages.
    sort : bool
        Whether groups may be reordered.
    overlap : {"error", "first", "last"}
        Whose values are kept where two groups overlap.

    Raises
    ------
    UnsupportedError
        If they are out of order, or overlap.
    """
    places = [Place(number, 0, len(own)) for number, own in enumerate(values)]
    filled = [place for place in places if place.stop]
    if not filled or not all(_is_ordered(own) for own in values):
        return places
    descends = _descends(values)
    ordered = sorted(filled, key=lambda place: values[place.number][0], reverse=descends)
    if ordered != filled:
        if not sort:
            odd = _first_out_of_order(filled, values, descends=descends)
            raise UnsupportedError("a file is out of order; pass sort=True").at(url=files[odd])
        filled = ordered
    return _without_overlap(filled, values, files, overlap, descends=descends)


def _is_ordered(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iufMmOSU" and values.ndim == 1


def _descends(values: Sequence[NDArray[Any]]) -> bool:
    long = next((own for own in values if len(own) > 1), None)
    return bool(long is not None and long[-1] < long[0])


def _first_out_of_order(places: Sequence[Place], values: Sequence[NDArray[Any]], *, descends: bool) -> int:
    starts = [(place.number, values[place.number][0]) for place in places]
    return next(
        number for (_, before), (number, own) in pairwise(starts) if (own > before if descends else own < before)
    )


def _without_overlap(
    places: Sequence[Place], values: Sequence[NDArray[Any]], files: Sequence[str], overlap: str, *, descends: bool
) -> list[Place]:
    kept: list[Place] = []
    for place in places:
        new = place
        while kept and new.stop > new.start:
            last = kept[-1]
            end, begin = values[last.number][last.stop - 1], values[new.number][new.start]
            if (begin < end) if descends else (begin > end):
                break
            if overlap == "error":
                raise UnsupportedError(
                    f"it starts at {begin}, before or where {files[last.number]} ends, {end}; "
                    "pass overlap='first' or 'last'"
                ).at(url=files[new.number])
            if overlap == "first":
                new = Place(new.number, _after(values[new.number], end, descends=descends), new.stop)
                break
            kept.pop()
            stop = _before(values[last.number], begin, descends=descends)
            if stop > last.start:
                kept.append(Place(last.number, last.start, stop))
                break
        if new.stop > new.start:
            kept.append(new)
    return kept


def _after(values: NDArray[Any], end: Any, *, descends: bool) -> int:  # noqa: ANN401  one of the values
    """The first position whose value lies beyond `end`."""
    beyond = np.flatnonzero(values < end if descends else values > end)
    return int(beyond[0]) if beyond.size else len(values)


def _before(values: NDArray[Any], begin: Any, *, descends: bool) -> int:  # noqa: ANN401
    """The number of values before the first that is not before `begin`."""
    reached = np.flatnonzero(values <= begin if descends else values >= begin)
    return int(reached[0]) if reached.size else len(values)
