"""GpioTrigger: an edge on a line of a GPIO chip, by libgpiod 2 (the Python package gpiod, LGPL-2.1-or-later).

The kernel times the edge, so that it is right however late it is heard of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

import gpiod

from edge_agent.items.signal_thread import WAIT_S, SignalTrigger
from edge_agent.items.triggers import Fire
from edge_agent.settings.trigger import TriggerConfig

CONSUMER = "edge-agent"


class LineEvents(Protocol):
    """Edges of one line."""

    def wait(self, timeout_s: float) -> list[float]:
        """When the edges since the last call came, monotonic s; waits for the first at most so long. OSError."""
        ...

    def close(self) -> None:
        """Gives the line back."""
        ...


class LibgpiodEvents:
    """LineEvents of a real chip. Raises OSError where the line cannot be had."""

    def __init__(self, config: TriggerConfig) -> None:
        edge = gpiod.line.Edge.RISING if config.gpio_edge == "rising" else gpiod.line.Edge.FALLING
        settings = gpiod.LineSettings(
            direction=gpiod.line.Direction.INPUT,
            edge_detection=edge,
            debounce_period=timedelta(milliseconds=config.debounce_ms),
            event_clock=gpiod.line.Clock.MONOTONIC,
        )
        try:
            self._request = gpiod.request_lines(
                str(config.gpio_chip), consumer=CONSUMER, config={config.gpio_line: settings}
            )
        except ValueError as exc:  # a line that the chip does not have
            raise OSError(str(exc)) from exc

    def wait(self, timeout_s: float) -> list[float]:
        if not self._request.wait_edge_events(timeout_s):
            return []
        return [event.timestamp_ns / 1e9 for event in self._request.read_edge_events()]

    def close(self) -> None:
        self._request.release()


class GpioTrigger(SignalTrigger):
    """`open_line` opens the line: the seam at which a test stands."""

    def __init__(
        self,
        camera: str,
        config: TriggerConfig,
        fire: Fire,
        open_line: Callable[[TriggerConfig], LineEvents] = LibgpiodEvents,
    ) -> None:
        self._open_line = open_line
        super().__init__(camera, config, fire)

    @contextmanager
    def signals(self) -> Iterator[Iterator[list[float]]]:
        line = self._open_line(self.config)
        try:
            yield iter(lambda: line.wait(WAIT_S), None)
        finally:
            line.close()
