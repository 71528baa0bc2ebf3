"""Is there room, and does the flash last?"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from edge_agent.doctor.base import Patient, Row

LEAST_BYTES = 200_000_000
WORN = 9  # of 10 steps of an eMMC's life time (JEDEC 84-B50, DEVICE_LIFE_TIME_EST_TYP)


def check(patient: Patient) -> Iterator[Row]:
    folder = existing(patient.state_dir.absolute())
    free_bytes = shutil.disk_usage(folder).free
    wanted_bytes = LEAST_BYTES if patient.config is None else patient.config.outbox.max_bytes + LEAST_BYTES
    text = f"{free_bytes / 1e9:.1f} GB free in {folder}"
    if free_bytes < LEAST_BYTES:
        yield Row("disk", "fail", text, "make room, or lower outbox.max_bytes")
    elif free_bytes < wanted_bytes:
        yield Row("disk", "warn", f"{text}, the outbox may take more", "make room, or lower outbox.max_bytes")
    else:
        yield Row("disk", "ok", text)
    if patient.config is not None and patient.config.outbox.kind == "disk" and patient.config.outbox.flush_ms < 20:
        text = (
            f"outbox.flush_ms is {patient.config.outbox.flush_ms}: each reading is written at once, which wears flash"
        )
        yield Row("disk", "warn", text, "200 loses at most 0.2 s of readings in a power cut")
    for path in sorted(patient.root.glob("sys/block/mmcblk*/device/life_time")):
        steps = [int(step, 16) for step in path.read_text(encoding="ascii").split()]
        verdict, cure = ("warn", "plan to replace it") if max(steps, default=0) >= WORN else ("ok", None)
        told = f"{path.parts[-3]}: {max(steps, default=0) * 10} % of its life time used at most"
        yield Row("disk", "warn" if verdict == "warn" else "ok", told, cure)


def existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    return next(place for place in (folder, *folder.parents) if place.is_dir())
