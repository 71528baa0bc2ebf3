"""Ledger: it balances whatever happens, and its size is bounded."""

from __future__ import annotations

from edge_agent.outbox.ledger import DAYS_KEPT, EARLIER, Ledger, day_text


def test_every_reading_is_queued_delivered_or_dropped() -> None:
    ledger = Ledger()
    for seq in range(5):
        ledger.produced("left", 20_000, seq)
    ledger.produced("right", 20_000, 7)
    ledger.delivered("left", 20_000)
    ledger.dropped("left", 20_000, "too_old")
    ledger.dropped("left", 20_000, "too_old")
    assert ledger.of_day(20_000) == {
        "left": {"produced": 5, "delivered": 1, "queued": 2, "dropped": {"too_old": 2}},
        "right": {"produced": 1, "delivered": 0, "queued": 1, "dropped": {}},
    }
    assert ledger.queued == 3
    assert (ledger.next_seq("left"), ledger.next_seq("right"), ledger.next_seq("new")) == (5, 8, 0)


def test_only_changed_rows_are_given_and_each_once() -> None:
    ledger = Ledger()
    ledger.produced("left", 1, None)
    ledger.produced("left", 2, None)
    assert [row.day for row in ledger.take_changed()] == [1, 2]
    ledger.delivered("left", 1)
    (row,) = ledger.take_changed()
    assert (row.day, row.delivered, row.queued) == (1, 1, 0)
    assert not ledger.any_changed


def test_days_beyond_those_kept_are_added_up_unless_something_of_them_waits() -> None:
    ledger = Ledger()
    for day in range(DAYS_KEPT + 3):
        ledger.produced("left", day, day)
        if day != 1:
            ledger.delivered("left", day)
    assert sorted(ledger.fold()) == [("left", 0), ("left", 2)]
    assert ledger.of_day(EARLIER) == {"left": {"produced": 2, "delivered": 2, "queued": 0, "dropped": {}}}
    assert ledger.totals()["left"]["produced"] == DAYS_KEPT + 3
    assert ledger.next_seq("left") == DAYS_KEPT + 3
    assert ledger.fold() == []


def test_readings_that_vanished_with_a_damaged_file_are_counted_as_dropped() -> None:
    ledger = Ledger()
    for _ in range(4):
        ledger.produced("left", 9, None)
    assert ledger.lose_all_but({("left", 9): 1}, "damaged") == 3
    assert ledger.of_day(9) == {"left": {"produced": 4, "delivered": 0, "queued": 1, "dropped": {"damaged": 3}}}


def test_days_have_names() -> None:
    assert day_text(20_422) == "2025-11-30"
    assert day_text(EARLIER) == "earlier"
    assert day_text(10**12) == str(10**12)
