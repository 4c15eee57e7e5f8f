"""A benchmark must not time wrong values, nor call a missed target met."""

from __future__ import annotations

import json

import pytest

from benchmarks.report import Report, draw_chart
from benchmarks.rows import OURS, Race, ResultsDifferError, Row


def fails():
    raise RuntimeError("no such feature")


def race(**peers):
    return Race("read", "x.nc", {OURS: lambda: 1, **peers}, lambda a, b: a == b, {"peer": 2}, rounds=1)


def test_other_values_are_no_result():
    with pytest.raises(ResultsDifferError, match="peer gives other values"):
        race(peer=lambda: 2).run()


def test_a_peer_that_fails_is_a_note():
    row = race(peer=fails).run()
    assert row.peers == {}
    assert row.is_met is None
    assert row.notes == ("peer fails: RuntimeError: no such feature",)


@pytest.mark.parametrize(("seconds", "is_met"), [(1.9, False), (2.0, True)])
def test_ratios(seconds, is_met):
    row = Row("read", "x.nc", "s", 1.0, {"peer": seconds}, {"peer": 2, "absent": 9})
    assert row.is_met is is_met


@pytest.mark.parametrize(("ours", "is_met"), [(4, True), (5, False)])
def test_limits(ours, is_met):
    assert Row("scan", "x.nc", "MB", ours, limit=4).is_met is is_met


def test_report(tmp_path):
    report = Report.of([race(peer=lambda: 1).run(), Row("scan", "x.nc", "MB", 3, limit=4)])
    assert [row["is_met"] for row in json.loads(report.to_json())["rows"]][1] is True
    assert "| scan | x.nc | 3 MB |  | at most 4 MB | met |" in report.to_markdown("c.svg")
    draw_chart(report.rows, tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".svg", ".png"}
