"""Vitals: how fast the work goes. Frames per second of each camera, latency percentiles of each stage.

Both look back over a sliding window, so that several readers do not disturb one another.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any, Literal

Event = Literal["offered", "processed", "dropped", "failed"]
EVENTS: tuple[Event, ...] = ("offered", "processed", "dropped", "failed")

PERCENTILES = (50, 95, 99)
MAX_LATENCIES = 2048  # kept for each stage; at most this many of the window's newest


class Vitals:
    """Counts frames and times; every method may be called from any thread.

    `window_s` is how far rates and percentiles look back; `clock` is monotonic seconds.
    """

    def __init__(self, window_s: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._window_s = window_s
        self._clock = clock
        self._lock = threading.Lock()
        self._rates: dict[str, dict[Event, _Rate]] = {}
        self._latencies_ms: dict[str, deque[tuple[float, float]]] = {}  # stage -> (when, how long)

    def count(self, camera: str, event: Event, frames: int = 1) -> None:
        """So many frames of `camera` were offered by it, processed, dropped because a newer one came, or failed."""
        now = self._clock()
        with self._lock:
            if camera not in self._rates:
                self._rates[camera] = {name: _Rate(now) for name in EVENTS}
            self._rates[camera][event].add(now, frames, self._window_s)

    def timed(self, timings_ms: Mapping[str, float]) -> None:
        """How long each stage took for one frame, ms; what is not finite is left out."""
        now = self._clock()
        with self._lock:
            for stage, ms in timings_ms.items():
                if math.isfinite(ms):
                    self._latencies_ms.setdefault(stage, deque(maxlen=MAX_LATENCIES)).append((now, float(ms)))

    def forget(self, camera: str) -> None:
        """The camera is no longer configured."""
        with self._lock:
            self._rates.pop(camera, None)

    def fps(self) -> dict[str, dict[str, float | None]]:
        """Camera -> frames per second by event; None until a second of history is there."""
        now = self._clock()
        with self._lock:
            return {
                camera: {name: rate.per_s(now, self._window_s) for name, rate in rates.items()}
                for camera, rates in self._rates.items()
            }

    def frames(self) -> dict[str, dict[str, int]]:
        """Camera -> frames by event since the start."""
        with self._lock:
            return {camera: {name: rate.total for name, rate in rates.items()} for camera, rates in self._rates.items()}

    def latency_ms(self) -> dict[str, dict[str, float | None]]:
        """Stage -> p50, p95 and p99 (nearest rank) over the window; None while nothing was timed in it."""
        oldest = self._clock() - self._window_s
        with self._lock:
            recent = {
                stage: sorted(ms for when, ms in timed if when >= oldest) for stage, timed in self._latencies_ms.items()
            }
        return {stage: {f"p{p}": _percentile(ordered, p) for p in PERCENTILES} for stage, ordered in recent.items()}

    def sections(self) -> dict[str, Any]:
        """The members of a telemetry message that come from here."""
        return {"fps": self.fps(), "frames": self.frames(), "latency_ms": self.latency_ms()}


class _Rate:
    """Events counted by the second, so that memory is bounded by the window and not by the rate."""

    def __init__(self, began: float) -> None:
        self.total = 0
        self._began = began
        self._by_second: Counter[int] = Counter()

    def add(self, now: float, events: int, window_s: float) -> None:
        self.total += events
        if now == self._began:
            return  # what starts the interval does not belong to it
        self._by_second[math.floor(now)] += events
        if len(self._by_second) > window_s + 2:
            oldest = math.floor(now - window_s)
            self._by_second = Counter({second: n for second, n in self._by_second.items() if second >= oldest})

    def per_s(self, now: float, window_s: float) -> float | None:
        """Over the window, from a whole second on; None until a second of history is there."""
        since = max(self._began, float(math.floor(now - window_s)))
        if now - since < 1.0:
            return None
        counted = sum(n for second, n in self._by_second.items() if second >= math.floor(since))
        return round(counted / (now - since), 3)


def _percentile(ordered: list[float], percent: int) -> float | None:
    """Nearest rank: the smallest value that at least `percent` of all values do not exceed."""
    if not ordered:
        return None
    return round(ordered[math.ceil(len(ordered) * percent / 100) - 1], 3)
