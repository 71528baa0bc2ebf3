"""Backoff: delays double up to a cap, each shortened at random by up to half."""

from __future__ import annotations

from edge_agent.transports.base import Backoff


def longest(low: float, high: float) -> float:
    return high


def test_delays_double_up_to_the_cap_and_start_afresh() -> None:
    backoff = Backoff(1.0, 10.0, longest)
    assert [backoff.next_s() for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    backoff.reset()
    assert backoff.next_s() == 1


def test_jitter_keeps_delays_between_half_and_whole_and_apart() -> None:
    delays = [Backoff(4.0, 60.0).next_s() for _ in range(200)]
    assert 2.0 <= min(delays) < 2.5
    assert 3.5 < max(delays) <= 4.0


def test_cap_below_the_first_delay_does_not_shorten_it() -> None:
    backoff = Backoff(5.0, 1.0, longest)
    assert [backoff.next_s() for _ in range(3)] == [5, 5, 5]
