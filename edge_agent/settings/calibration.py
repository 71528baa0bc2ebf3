"""Calibration: what is measured with, and where results lie."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from edge_agent.settings.scalars import LocalPath
from edge_agent.settings.section import Section


class CalibrationConfig(Section):
    """What `edge-agent calibrate` measures with and where its results lie."""

    directory: LocalPath | None = None
    """The folder of calibrations; null: in the service's state directory, else `calibration` beside models_dir."""
    record_interval_s: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    """Of each camera at most one frame in this time, s, is kept for calibrating; 0: none is."""
    record_max_frames: Annotated[int, Field(ge=1, le=100_000)] = 300
    """Most frames kept; the oldest go first."""
    record_max_bytes: Annotated[int, Field(ge=1_048_576)] = 536_870_912
    """Most bytes of kept frames; the oldest go first."""
