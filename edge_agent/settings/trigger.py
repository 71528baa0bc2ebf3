"""Trigger: what tells a camera's lane that an item is there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from edge_agent.settings.scalars import Host, LocalPath, Port
from edge_agent.settings.section import Section, refuse


class TriggerConfig(Section):
    """What tells that an item is there, other than its text."""

    kind: Literal["none", "gpio", "modbus", "motion", "mqtt"] = "none"
    """none: its text does; motion: the picture; mqtt: a message on <camera>/trigger; gpio, modbus: a signal."""
    delay_ms: Annotated[int, Field(ge=0, le=60_000)] = 0
    """From the trigger until the item is in the picture, ms."""
    gpio_chip: LocalPath = Path("/dev/gpiochip0")
    """gpio: the chip of the line. Needs the Python package gpiod (the extra `gpio`)."""
    gpio_line: Annotated[int, Field(ge=0, le=1023)] = 0
    """gpio: the line's number on its chip."""
    gpio_edge: Literal["rising", "falling"] = "rising"
    """gpio: the edge that tells of an item."""
    debounce_ms: Annotated[int, Field(ge=0, le=10_000)] = 10
    """gpio: how long the signal must stand still after an edge, ms."""
    modbus_host: Host | None = None
    """modbus: the controller's name or IP address. Needs the Python package pymodbus (the extra `modbus`)."""
    modbus_port: Port = 502
    """modbus: the controller's TCP port."""
    modbus_unit: Annotated[int, Field(ge=0, le=255)] = 1
    """modbus: the unit (slave) that is asked."""
    modbus_coil: Annotated[int, Field(ge=0, le=65_535)] = 0
    """modbus: the coil's address, from 0; it tells of an item when it becomes true."""
    modbus_poll_ms: Annotated[int, Field(ge=5, le=10_000)] = 20
    """modbus: how often the coil is looked at, ms; it must stay true for longer."""
    motion_threshold: Annotated[float, Field(ge=1, le=255)] = 12.0
    """motion: how much a part of the picture changes, grey levels, when an item comes in."""
    motion_rest_ms: Annotated[int, Field(ge=50, le=60_000)] = 300
    """motion: how long the picture stands still before the next item can come, ms."""

    @model_validator(mode="after")
    def _keys_agree(self) -> TriggerConfig:
        if self.kind == "modbus" and self.modbus_host is None:
            refuse([("modbus_host", "is missing; a modbus trigger needs the controller's address")])
        return self
