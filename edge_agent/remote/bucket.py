"""Bucket: so many things a minute, some of them at once: whoever floods the device shall not make it flood others."""

from __future__ import annotations

from collections.abc import Callable

BURST_S = 15.0  # so much of a minute's may come at once


class Bucket:
    """Lets `per_min` things through in a minute, a quarter of them at once; `monotonic` s."""

    def __init__(self, per_min: int, monotonic: Callable[[], float]) -> None:
        self._per_s = per_min / 60.0
        self._most = max(1.0, self._per_s * BURST_S)
        self._monotonic = monotonic
        self._tokens = self._most
        self._at_mono = monotonic()

    def take(self) -> bool:
        """Whether one more may pass."""
        now_mono = self._monotonic()
        self._tokens = min(self._most, self._tokens + (now_mono - self._at_mono) * self._per_s)
        self._at_mono = now_mono
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
