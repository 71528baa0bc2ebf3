"""What telemetry tells of the running agent, member by member."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from edge_agent.cameras.status import CameraStatus
from edge_agent.frame_recorder import FrameRecorder
from edge_agent.inspection import Inspection
from edge_agent.outbox.base import DAY_S
from edge_agent.records import rfc3339

if TYPE_CHECKING:
    from edge_agent.agent import Agent


def agent_sections(agent: Agent) -> Mapping[str, Callable[[], Any]]:
    """The members of a telemetry message that come from the agent; called from the telemetry thread."""
    pipeline, results = agent.pipeline, agent.results
    return {
        "backend": lambda: pipeline.backend_in_use,
        "precision": lambda: precision_of(pipeline.fingerprints.values()),
        "engines": lambda: dict(pipeline.fingerprints),
        "backend_counters": lambda: dict(pipeline.backend.counters()),
        "fps": agent.vitals.fps,
        "frames": agent.vitals.frames,
        "latency_ms": agent.vitals.latency_ms,
        "cameras": lambda: {camera.name: figures(camera.status()) for camera in agent.cameras},
        "items": lambda: {} if results.inspection is None else results.inspection.section(),
        "evidence": lambda: evidence_of(results.inspection),
        "withheld_no_text": lambda: dict(results.no_text.withheld),
        "left_out": lambda: {"boxes": pipeline.detector.left_out, "fields": pipeline.extractor.dropped},
        "calibration": lambda: {"artefacts": pipeline.artefacts, "recorded": recorded(results.recorder)},
        "cooling": lambda: {"share": agent.cooling.share, "reason": agent.cooling.reason},
        "clock": lambda: {"boot_id": agent.clock.boot_id, "trusted": agent.clock.trusted()},
        "outbox": lambda: asdict(agent.outbox.stats()),
        "ledger": lambda: accounts(agent),
        "remote": lambda: heard(agent),
        "publisher": lambda: asdict(agent.publisher.stats()),
    }


def accounts(agent: Agent) -> dict[str, Any]:
    """What became of the readings, by camera: of this UTC day, and of all days that the ledger knows."""
    ledger = agent.outbox.ledger()
    return {"today": ledger.of_day(int(agent.clock.unix() // DAY_S)), "all": ledger.totals()}


def heard(agent: Agent) -> dict[str, Any]:
    """What came from afar; messages dropped because too many came at once, or too large ones, or triggers before
    anything was read, are counted too."""
    section = {} if agent.remote is None else agent.remote.section()
    return {**section, "dropped": section.get("dropped", 0) + agent.publisher.inbound_dropped}


def precision_of(fingerprints: Iterable[str]) -> str | None:
    """In what engines compute, by their fingerprints (`backend:model:precision...`): `fp32`, or `fp16+int8` where they
    differ; None where no fingerprint says."""
    named = {parts[2] for parts in (fingerprint.split(":") for fingerprint in fingerprints) if len(parts) > 2}
    return "+".join(sorted(named)) or None


def evidence_of(inspection: Inspection | None) -> dict[str, Any] | None:
    """What telemetry says of evidence; None where none is kept."""
    return None if inspection is None or inspection.evidence is None else inspection.evidence.section()


def recorded(recorder: FrameRecorder | None) -> dict[str, Any] | None:
    """What telemetry says of frames kept for calibrating; None where none are."""
    return None if recorder is None else {"kept": recorder.kept, "stopped": recorder.stopped}


def figures(status: CameraStatus) -> dict[str, Any]:
    """What telemetry says of a camera, below its name: times and rates as the contract has them."""
    seen_at = status.last_frame_at
    values = {**asdict(status), "last_frame_at": None if seen_at is None else rfc3339(seen_at)}
    del values["camera"]
    return {**values, "fps": round(status.fps, 3)}
