"""Opening: the outbox that a configuration asks for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from edge_agent.clock import DeviceClock
from edge_agent.files import find_state_dir
from edge_agent.outbox.base import Outbox
from edge_agent.outbox.disk import DiskOutbox, Limits, Tell
from edge_agent.outbox.memory import MemoryOutbox
from edge_agent.settings.outbox import OutboxConfig


def find_database(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the file lies by default: in the service's state directory, else in `state`."""
    return find_state_dir(Path(), environ) / "outbox.db"


def open_outbox(config: OutboxConfig, clock: DeviceClock, tell: Tell) -> Outbox:
    """The outbox, whatever state its file is in: what was wrong with it, `tell` hears, from any thread."""
    if config.kind == "memory":
        return MemoryOutbox(
            min(config.max_bytes, config.max_memory_bytes),
            config.max_age_s,
            clock.monotonic,
            unix=clock.unix,
            live_for_s=config.historical_after_s,
            live_first=config.live_first,
        )
    limits = Limits(
        max_bytes=config.max_bytes,
        max_memory_bytes=config.max_memory_bytes,
        max_age_s=config.max_age_s,
        flush_s=config.flush_ms / 1000,
        live_for_s=config.historical_after_s,
        live_first=config.live_first,
    )
    return DiskOutbox(config.path or find_database(), clock, tell, limits)
