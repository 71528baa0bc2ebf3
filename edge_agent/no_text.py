"""No text: a camera that sees none says so at once, and then only now and then, so that an empty belt is no flood."""

from __future__ import annotations

from collections import Counter

from edge_agent.records import Reading


class NoTextLimit:
    """Says which readings are worth publishing: every one with text, and of those without, the first and then one per
    camera every `interval_s`, by the readings' own capture times. `withheld` counts the others, by camera.

    `interval_s` may be set anew at any time."""

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self._said_at: dict[str, float] = {}
        self.withheld: Counter[str] = Counter()

    def admits(self, reading: Reading) -> bool:
        """Whether to publish this reading; call once for each, in order."""
        if reading.reason is None:
            self._said_at.pop(reading.camera, None)
            return True
        said_at = self._said_at.get(reading.camera)
        if said_at is not None and 0 <= reading.captured_at - said_at < self.interval_s:
            self.withheld[reading.camera] += 1
            return False
        self._said_at[reading.camera] = reading.captured_at
        return True
