"""Times in the terms of the first file, against cftime."""

from __future__ import annotations

import cftime
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from virtualzarr_refs.combine.times import TimeUnits, convert
from virtualzarr_refs.errors import UnsupportedError

UNITS = ("seconds", "minutes", "hours", "days")
CALENDARS = ("standard", "proleptic_gregorian", "noleap", "all_leap", "360_day", "julian")


def units(text, calendar="standard"):
    found = TimeUnits.parse({"units": text, "calendar": calendar})
    assert found is not None
    return found


@settings(max_examples=60, deadline=None)
@given(
    calendar=st.sampled_from(CALENDARS),
    unit=st.sampled_from(UNITS),
    goal=st.sampled_from(UNITS),
    year=st.integers(1600, 2200),
    other=st.integers(1600, 2200),
    values=st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=5),
)
def test_the_dates_stay_the_same(calendar, unit, goal, year, other, values):
    one, two = f"{unit} since {year}-02-28 06:30", f"{goal} since {other}-03-01"
    found = convert(np.array(values), units(one, calendar), units(two, calendar))
    seconds = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}
    expected = cftime.num2date(np.array(values), one, calendar)
    shift = cftime.num2date(0, f"seconds since {other}-03-01", calendar)
    exact = [(date - shift).total_seconds() / seconds[goal] for date in expected]
    np.testing.assert_allclose(found, exact, rtol=1e-15, atol=0)


@pytest.mark.parametrize(
    ("one", "calendar"),
    [
        ("days since 1900-01-01", "gregorian"),
        ("hours since 0001-01-01", "standard"),
        ("days since 1850-1-1", "standard"),
    ],
)
def test_gregorian_calendars_are_one_since_the_reform(one, calendar):
    own, target = units(one, calendar), units("hours since 2000-01-01", "proleptic_gregorian")
    dates = [cftime.datetime(1995, 3, 1, calendar="standard"), cftime.datetime(2024, 2, 29, calendar="standard")]
    values = np.array([cftime.date2num(date, one, "standard") for date in dates])
    expected = [
        cftime.date2num(cftime.datetime(*d.timetuple()[:3], calendar="proleptic_gregorian"), "hours since 2000-01-01",
                        "proleptic_gregorian")
        for d in dates
    ]  # fmt: skip
    np.testing.assert_array_equal(convert(values, own, target), expected)
    np.testing.assert_array_equal(convert(convert(values, own, target), target, own), values)


def test_dates_before_the_reform_are_refused():
    with pytest.raises(UnsupportedError, match="before 1582-10-15"):
        convert(
            np.array([0, 800000]), units("days since 0001-01-01"), units("days since 2000-01-01", "proleptic_gregorian")
        )


@pytest.mark.parametrize("calendar", ["noleap", "360_day", "julian"])
def test_other_calendars_are_refused(calendar):
    with pytest.raises(UnsupportedError, match="calendars differ"):
        convert(np.array([0]), units("days since 2000-01-01"), units("days since 2000-01-01", calendar))


def test_units_without_a_length_are_refused():
    with pytest.raises(UnsupportedError, match="'months'"):
        convert(np.array([1]), units("months since 2000-01-01"), units("days since 2000-01-01"))


def test_missing_times_stay_missing():
    found = convert(np.array([np.nan, 1.5]), units("days since 2000-01-01"), units("hours since 2000-01-01"))
    np.testing.assert_array_equal(found, [np.nan, 36.0])
