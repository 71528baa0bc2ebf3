"""Telemetry: how the device reports on itself, by messages and to Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from edge_agent.settings.scalars import Host, LocalPath, Port
from edge_agent.settings.section import Section


class TelemetryConfig(Section):
    """How the device reports on itself."""

    interval_s: Annotated[float, Field(ge=0.5, le=3600)] = 10.0
    """Time between two reports, s."""
    system_root: LocalPath = Path("/")
    """The folder in which the board's sys, proc, etc and var are; other than / where a container mounts them apart."""
    directory: LocalPath | None = None
    """Where reports are kept on disk; null: `telemetry` beside the outbox's file, nowhere with outbox.kind memory."""
    keep_s: Annotated[float, Field(ge=0, le=31_536_000)] = 86_400.0
    """How long reports are kept on disk, s; 0: they are not."""
    keep_bytes: Annotated[int, Field(ge=1_048_576)] = 33_554_432
    """Most bytes of reports kept on disk; the oldest go first."""
    keep_event_bytes: Annotated[int, Field(ge=65_536)] = 1_048_576
    """Most bytes of events kept on disk, in `events` below that folder; the oldest go first."""


class MetricsConfig(Section):
    """The same figures for Prometheus, over HTTP."""

    port: Port | None = None
    """The port; null: none is opened. Needs the Python package prometheus-client (the extra `metrics`)."""
    host: Host = "127.0.0.1"
    """The address that is listened on; 127.0.0.1: this device alone can ask."""
