"""Thermal: from which temperature on fewer frames are read."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from edge_agent.settings.scalars import Seconds
from edge_agent.settings.section import Section

Celsius = Annotated[float, Field(ge=20, le=120)]


class ThermalConfig(Section):
    """From which temperature on fewer frames are read, before the board slows itself down."""

    enabled: bool = True
    """Whether fewer frames are read while the board is hot or held back."""
    cpu_c: Celsius = 92.0
    """Temperature of a CPU zone, C, from which on three of four frames are read."""
    gpu_c: Celsius = 92.0
    """The same of a GPU zone, C."""
    soc_c: Celsius = 92.0
    """The same of a soc or cv zone, C."""
    tj_c: Celsius = 94.0
    """The same of the hottest junction, zone tj, C."""
    step_c: Annotated[float, Field(ge=0.5, le=20)] = 3.0
    """So much hotter, C, every second frame is read, and twice so much hotter every fourth."""
    hysteresis_c: Annotated[float, Field(ge=0.5, le=30)] = 4.0
    """So much cooler than its bound, C, it must be before more frames are read again."""
    dwell_s: Seconds = 30.0
    """Least time between a change and the next step back to more frames, s."""
