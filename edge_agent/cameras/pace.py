"""Pace: when the next picture of a stored source is due, so that a file plays like the camera it stands for."""

from __future__ import annotations

from abc import ABC, abstractmethod

from edge_agent.cameras.base import Clock, NoFrameYet

LONGEST_SLEEP_S = 0.5  # then NoFrameYet, so that whoever reads can stop in between


class Paced(ABC):
    """A camera that keeps to max_fps itself."""

    @abstractmethod
    def limit(self, max_fps: float | None) -> None:
        """From now on at most so many pictures a second; None: no limit of the settings. Any thread."""


class Pace:
    """Lets one picture through every `interval_s`; 0 means as fast as they are asked for."""

    def __init__(self, interval_s: float, clock: Clock) -> None:
        self.interval_s = interval_s
        self._clock = clock
        self._due: float | None = None

    def wait(self) -> None:
        """Sleeps until the next picture is due; raises NoFrameYet after LONGEST_SLEEP_S of that."""
        now = self._clock.monotonic()
        if self._due is not None and self._due > now:
            self._clock.sleep(min(self._due - now, LONGEST_SLEEP_S))
            if self._due - now > LONGEST_SLEEP_S:
                raise NoFrameYet(f"next picture is due in {self._due - now - LONGEST_SLEEP_S:.1f} s")

    def given(self) -> None:
        """Says that a picture goes out now; one late by more than an interval does not hurry those after it."""
        now = self._clock.monotonic()
        due = (now if self._due is None else self._due) + self.interval_s
        self._due = due if due > now else now + self.interval_s

    def restart(self) -> None:
        """The next picture is due at once."""
        self._due = None
