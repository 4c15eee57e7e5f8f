"""Times that files count in different units or from different dates, in the terms of the first.

CF Conventions 1.12, section 4.4 "Time Coordinate". Units and reference dates are turned into whole nanoseconds, so that
nothing is lost before the last division.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import cftime
import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.errors import UnsupportedError

_NANOSECONDS: Mapping[str, int] = {
    **dict.fromkeys(("nanosecond", "nanoseconds", "ns"), 1),
    **dict.fromkeys(("microsecond", "microseconds", "us"), 1000),
    **dict.fromkeys(("millisecond", "milliseconds", "msec", "ms"), 10**6),
    **dict.fromkeys(("second", "seconds", "sec", "secs", "s"), 10**9),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), 60 * 10**9),
    **dict.fromkeys(("hour", "hours", "hr", "hrs", "h"), 3600 * 10**9),
    **dict.fromkeys(("day", "days", "d"), 86400 * 10**9),
    **dict.fromkeys(("week", "weeks"), 7 * 86400 * 10**9),
}
_UNITS = re.compile(r"\s*(\w+)\s+since\s+(.+?)\s*$", re.IGNORECASE)
_ALIASES = {"gregorian": "standard", "365_day": "noleap", "366_day": "all_leap"}
_ALIKE = {"standard", "proleptic_gregorian"}
"""Calendars with the same dates since the reform of 1582."""

_REFORM = "1582-10-15"
_LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class TimeUnits:
    """How times are counted.

    Parameters
    ----------
    unit : str
        Such as ``"hours"``.
    reference : str
        The date that is counted from.
    calendar : str
        CF's name of it.
    """

    unit: str
    reference: str
    calendar: str

    @classmethod
    def parse(cls, attributes: Mapping[str, Any]) -> TimeUnits | None:
        """Read the attributes ``units`` and ``calendar``; None if they are of no time."""
        units = attributes.get("units")
        match = _UNITS.match(units) if isinstance(units, str) else None
        if match is None:
            return None
        calendar = str(attributes.get("calendar", "standard")).lower()
        return cls(match[1].lower(), match[2], _ALIASES.get(calendar, calendar))

    @property
    def nanoseconds(self) -> int:
        """Length of the unit.

        Raises
        ------
        UnsupportedError
            If it has none, as months have.
        """
        if self.unit not in _NANOSECONDS:
            raise UnsupportedError(f"times in {self.unit!r} cannot be converted, for they differ in length")
        return _NANOSECONDS[self.unit]

    def since(self, other: TimeUnits) -> int:
        """Nanoseconds from another reference date to this one.

        Raises
        ------
        UnsupportedError
            If calendars differ, or a date cannot be read.
        """
        if self.calendar == other.calendar:
            return self._nanoseconds_since(other.reference)
        if {self.calendar, other.calendar} != _ALIKE:
            raise UnsupportedError(f"calendars differ: {other.calendar} and {self.calendar}; drop the variable")
        return self.since_reform() - other.since_reform()

    def since_reform(self) -> int:
        """Nanoseconds to the reference date from the day since when the Gregorian calendars are the same."""
        return self._nanoseconds_since(_REFORM)

    def _nanoseconds_since(self, date: str) -> int:
        try:
            own = cftime.num2date(0, f"seconds since {self.reference}", self.calendar)
            return 1000 * int(cftime.date2num(own, f"microseconds since {date}", self.calendar))
        except (ValueError, OverflowError) as error:
            raise UnsupportedError(f"the date {self.reference!r} cannot be read: {error}") from error


def convert(values: NDArray[Any], units: TimeUnits, target: TimeUnits) -> NDArray[Any]:
    """Times in the terms of others, exactly where these can say it, else to the nearest float64.

    Parameters
    ----------
    values : ndarray
        Of any shape, in `units`.

    Returns
    -------
    ndarray of int64 or float64

    Raises
    ------
    UnsupportedError
        If they cannot be converted.
    """
    if units == target:
        return values
    step, goal, shift = units.nanoseconds, target.nanoseconds, units.since(target)
    if units.calendar != target.calendar:
        _check_reformed(values, units)
    if values.dtype.kind in "iu":
        return _from_integers(values, step, goal, shift)
    return _from_floats(values, step, goal, shift)


def _check_reformed(values: NDArray[Any], units: TimeUnits) -> None:
    """Refuse times before the day since when two calendars are the same."""
    known = values[np.isfinite(values)]
    if known.size and float(known.min()) * units.nanoseconds + units.since_reform() < 0:
        raise UnsupportedError(f"calendars differ, and times lie before {_REFORM}, since when they are the same")


def _from_integers(values: NDArray[Any], step: int, goal: int, shift: int) -> NDArray[Any]:
    if not values.size:
        return values.astype(np.int64)
    largest = max(abs(int(values.max())), abs(int(values.min()))) * step + abs(shift)
    if largest >= _LARGEST:
        return _from_floats(values, step, goal, shift)
    total = values.astype(np.int64) * step + shift
    whole, rest = np.divmod(total, goal)
    return whole if not rest.any() else _divided(total.reshape(-1).tolist(), goal).reshape(values.shape)


def _from_floats(values: NDArray[Any], step: int, goal: int, shift: int) -> NDArray[Any]:
    finite = np.isfinite(values)
    exact = [Fraction(v) * step + shift for v in values[finite].reshape(-1).tolist()]
    result = np.full(values.shape, np.nan)
    result[finite] = _divided(exact, goal)
    is_whole = all((value / goal).denominator == 1 for value in exact)
    return result.astype(np.int64) if is_whole and finite.all() and values.dtype.kind in "iu" else result


def _divided(totals: Sequence[int | Fraction], goal: int) -> NDArray[np.float64]:
    return np.array([float(Fraction(total) / goal) for total in totals], np.float64)


def narrowed(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Values in a type, if it holds them exactly; else as they are."""
    with np.errstate(all="ignore"):
        cast = values.astype(dtype)
    same = np.array_equal(cast.astype(values.dtype), values, equal_nan=values.dtype.kind == "f")
    return cast if same and not (dtype.kind in "iu" and values.dtype.kind == "f" and np.isnan(values).any()) else values
