"""Triggers: what tells that an item is there, other than its text. A new kind is a row of TRIGGERS.

A trigger calls `fire` with the monotonic time of what it saw, from any thread.
"""

from __future__ import annotations

from collections.abc import Callable

from edge_agent import registry
from edge_agent.records import Frame
from edge_agent.settings.trigger import TriggerConfig

Fire = Callable[[float], None]

TRIGGERS = {
    "gpio": "edge_agent.items.gpio:GpioTrigger",
    "modbus": "edge_agent.items.modbus:ModbusTrigger",
    "motion": "edge_agent.items.motion:MotionTrigger",
    "mqtt": "edge_agent.items.triggers:MessageTrigger",
}


class Trigger:
    """Base of every trigger; what a kind has no use for does nothing."""

    def __init__(self, camera: str, config: TriggerConfig, fire: Fire) -> None:
        self.camera = camera
        self.config = config
        self.fire = fire

    def look(self, frame: Frame) -> None:
        """A frame of the camera that is read; the main loop's thread."""

    def hear(self, arrived_mono: float) -> None:
        """A message has come for the camera; the main loop's thread."""

    def close(self) -> None:
        """Ends it; calling it again does nothing."""


class MessageTrigger(Trigger):
    """A message on the camera's own topic."""

    def hear(self, arrived_mono: float) -> None:
        self.fire(arrived_mono)


def open_trigger(camera: str, config: TriggerConfig, fire: Fire) -> Trigger | None:
    """The camera's trigger, at work; None where it has none. Raises ConfigError where its library is missing."""
    if config.kind == "none":
        return None
    trigger: Trigger = registry.load(TRIGGERS, config.kind, "trigger")(camera, config, fire)
    return trigger
