"""Meter: joules from what was seen of the power, and what a frame and a reading cost of them."""

from __future__ import annotations

from edge_agent.errors import SensorError

LONGEST_GAP_S = 5.0  # between two looks, over which the power is taken to have changed evenly
LEAST_COVERED = 0.8  # of an interval: with less, its joules would be those of another time than its frames


class EnergyMeter:
    """Sums up energy; one thread. `power` and `spent` say what was seen, `take` ends an interval.

    Times are monotonic seconds.
    """

    def __init__(self, began_mono: float) -> None:
        self.total_j = 0.0
        self._last: tuple[float, float] | None = None  # when, W
        self._began_mono = began_mono
        self._covered_s = 0.0
        self._interval_j = 0.0
        self._lost: str | None = None

    def power(self, watts: float, at_mono: float) -> None:
        """It draws so much now; between two looks the mean of both counts."""
        if self._last is not None and 0 < at_mono - self._last[0] <= LONGEST_GAP_S:
            gap_s = at_mono - self._last[0]
            self.spent((watts + self._last[1]) / 2 * gap_s, gap_s)
        self._last = (at_mono, watts)

    def spent(self, joules: float, during_s: float) -> None:
        """So much went within the last so many seconds, by a counter."""
        self.total_j += joules
        self._interval_j += joules
        self._covered_s += during_s

    def lost(self, reason: str) -> None:
        """It cannot be told now what is drawn."""
        self._last = None
        self._lost = reason

    def take(self, at_mono: float) -> float | SensorError:
        """The joules since the last call, or why they are not known."""
        length_s = at_mono - self._began_mono
        covered = self._covered_s >= LEAST_COVERED * length_s and self._covered_s > 0
        joules = self._interval_j
        lost = SensorError(self._lost or "its power was not looked at often enough")
        self._began_mono, self._covered_s, self._interval_j, self._lost = at_mono, 0.0, 0.0, None
        return joules if covered else lost


def per(joules: float | SensorError, count: int, what: str) -> float:
    """J for each of `count`; SensorError where either is not known."""
    if isinstance(joules, SensorError):
        raise joules
    if count <= 0:
        raise SensorError(f"no {what} in the interval")
    return round(joules / count, 3)
