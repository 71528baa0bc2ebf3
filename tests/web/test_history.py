"""History: reports become series, of a quarter of an hour and of a day."""

from __future__ import annotations

import json
from typing import Any

from edge_agent.records import rfc3339
from edge_agent.web.history import BUCKET_S, DAY_S, FINE_S, MOST_SERIES, Charts

NOW = 1_796_000_000.0 - 1_796_000_000.0 % BUCKET_S


def report(at: float, **members: Any) -> bytes:
    return json.dumps({"v": 1, "at": rfc3339(at), **members}, separators=(",", ":")).encode()


def test_each_report_is_a_point_of_the_last_quarter_of_an_hour() -> None:
    charts = Charts()
    for n in range(4):
        charts.add(report(NOW + 10 * n, temp_c={"cpu": 40 + n}, publisher={"connected": n > 1}))
    made = charts.over(900, 100, NOW + 30)
    assert made["at"] == [rfc3339(NOW + 10 * n) for n in range(4)]
    assert made["series"] == {"temp_c.cpu": [40, 41, 42, 43], "publisher.connected": [0, 0, 1, 1]}


def test_absent_is_null_and_never_0() -> None:
    charts = Charts()
    charts.add(report(NOW, power_w={"total": 5.0}))
    charts.add(report(NOW + 10, power_w={"total": None}, temp_c={"cpu": 50}))
    assert charts.over(900, 100, NOW + 10)["series"] == {"power_w.total": [5.0, None], "temp_c.cpu": [None, 50]}


def test_more_reports_than_points_become_means() -> None:
    charts = Charts()
    for n in range(60):
        charts.add(report(NOW + 10 * n, x=float(n % 2)))
    made = charts.over(600, 6, NOW + 599)
    assert len(made["at"]) == 6
    assert all(abs(value - 0.5) < 0.1 for value in made["series"]["x"])


def test_day_is_made_of_means_and_reaches_back_before_this_process() -> None:
    charts = Charts()
    old = (report(NOW - 3600 + 10 * n, x=1.0) for n in range(300))
    for n in range(24):
        charts.add(report(NOW + 10 * n, x=float(n)))
    charts.add_older([*old, b'{"v":1,"at":"2026-11-3'])
    made = charts.over(DAY_S, 1000, NOW + 240)
    assert made["series"]["x"] == [*[1.0] * 25, 5.5, 17.5]


def test_what_is_too_old_goes() -> None:
    charts = Charts()
    for n in range(2000):
        charts.add(report(NOW + 100 * n, x=1.0))
    end = NOW + 100 * 1999
    assert len(charts.over(FINE_S, 1000, end)["at"]) <= FINE_S / 100 + 1
    assert len(charts.over(10 * DAY_S, 10_000, end)["at"]) <= DAY_S / BUCKET_S + 1


def test_series_are_bounded_and_reports_that_are_none_are_passed_over() -> None:
    charts = Charts()
    charts.add(report(NOW, x={f"n{n}": 1 for n in range(2 * MOST_SERIES)}))
    charts.add(report(NOW - 50, x=1))  # the clock was set back
    charts.add(b"{}")
    assert len(charts.over(900, 10, NOW)["series"]) == MOST_SERIES


def test_names_are_chosen_by_their_beginnings() -> None:
    charts = Charts()
    charts.add(report(NOW, fps={"line1": {"processed": 2}}, temp_c={"cpu": 50}, ledger={"x": 1}))
    assert set(charts.over(900, 10, NOW, ("fps.", "gpu"))["series"]) == {"fps.line1.processed"}
    assert "ledger.x" not in charts.over(900, 10, NOW)["series"]
