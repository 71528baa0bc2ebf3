"""Ages: how long readings have waited, also those from before this boot."""

from __future__ import annotations

from edge_agent.clock import DeviceClock
from edge_agent.outbox.base import Entry


class Ages:
    """Counted by the monotonic clock; for readings from before this boot by the time of day, if that was trusted when
    they came and is now, compared once: a later jump changes no age. One thread at a time."""

    def __init__(self, clock: DeviceClock) -> None:
        self._clock = clock
        self._opened_mono = clock.monotonic()
        self._unix_less_mono: float | None = None  # as the time of day was when it was first trusted

    def of_s(self, entry: Entry) -> float:
        """How long it has waited, at least, s."""
        now_mono = self._clock.monotonic()
        if entry.queued_mono > float("-inf"):
            return now_mono - entry.queued_mono
        since_opened_s = now_mono - self._opened_mono
        if self._unix_less_mono is None and self._clock.trusted():
            self._unix_less_mono = self._clock.unix() - now_mono
        if not entry.trusted or self._unix_less_mono is None:
            return since_opened_s
        return max(since_opened_s, now_mono + self._unix_less_mono - entry.queued_at)
