"""Outbox: what waits for the broker."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from edge_agent.settings.scalars import LocalPath, Seconds
from edge_agent.settings.section import Section


class OutboxConfig(Section):
    """What waits for the broker."""

    kind: Literal["disk", "memory"] = "disk"
    """disk: readings that wait outlive the program and a power cut; memory: they do not."""
    path: LocalPath | None = None
    """The file they wait in; null: outbox.db in the service's state directory, else in the folder `state`."""
    max_bytes: Annotated[int, Field(ge=1_048_576)] = 268_435_456
    """Most bytes of that file in use; the oldest readings go first."""
    max_memory_bytes: Annotated[int, Field(ge=65_536)] = 67_108_864
    """Most bytes that wait in memory: all of them with kind memory, or while the disk fails."""
    flush_ms: Annotated[int, Field(ge=0, le=60_000)] = 200
    """A power cut loses readings of at most this time, ms; 0: none that was read, for more wear of the flash."""
    replay_per_s: Annotated[float, Field(ge=0, le=100_000)] = 500.0
    """Most readings of the backlog sent a second after an outage; 0: no limit."""
    live_first: bool = True
    """Whether after an outage new readings go before the backlog; false: all in the order they were read."""
    max_age_s: Annotated[float, Field(gt=0)] = 604_800.0
    """Age, s, at which a waiting message is dropped."""
    historical_after_s: Seconds = 10.0
    """Age, s, from which on a delivered reading is marked historical."""
