"""Commands: what can be asked for from afar. A new one is a row of COMMANDS, with its arguments and its function.

A function does its work at once and returns the members of the answer, or a Job that goes on beside the main loop, or
None where a restart ends it. It raises Busy where it cannot now, EdgeAgentError where it cannot at all.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field, StringConstraints

from edge_agent import __version__
from edge_agent.artefacts import Artefacts, ArtefactUnusable, find_calibration_dir
from edge_agent.calibrate.job import CalibrationJob
from edge_agent.calibrate.wish import MethodChoice, Wish
from edge_agent.config import Config, plain
from edge_agent.errors import CalibrationRefused, EdgeAgentError, FrameError, ModelError
from edge_agent.models.spec import ModelSpec
from edge_agent.records import rfc3339
from edge_agent.remote.config_store import ConfigStore
from edge_agent.remote.site import Site
from edge_agent.remote.snapshot import snapshot
from edge_agent.settings.cameras import CameraName
from edge_agent.settings.remote import CommandName
from edge_agent.settings.scalars import Name
from edge_agent.settings.section import Section

Answer = Mapping[str, Any]


class Busy(EdgeAgentError):
    """Another one of the kind is under way, or start-up is; the same id may come again later."""


class Job(Protocol):
    """Work that goes on beside the main loop."""

    def poll(self) -> Answer | None:
        """The answer once it is done, None until then; EdgeAgentError when it failed."""
        ...

    def close(self) -> None:
        """Ends it, done or not."""
        ...


@dataclass
class Desk:
    """What commands work with. `site` is None while start-up goes on; `restart` says why the process is to start
    afresh, None while it is not to."""

    site: Site | None
    config: Config
    store: ConfigStore
    models_dir: Path
    jobs: dict[str, Job] = field(default_factory=dict)  # by command
    restart: str | None = None
    start_calibration: Callable[[Wish], CalibrationJob] = CalibrationJob
    monotonic: Callable[[], float] = time.monotonic
    started_mono: float = field(default_factory=time.monotonic)

    def running(self) -> Site:
        """The agent that reads; Busy while start-up goes on, as it does for as long as plans are built."""
        if self.site is None:
            raise Busy("the device is starting, and health says how far it is; send the command again later")
        return self.site


class NoArgs(Section):
    """None."""


class SnapshotArgs(Section):
    """Of which camera, and how good."""

    camera: CameraName
    """The camera's name."""
    quality: Annotated[int, Field(ge=10, le=100)] = 85
    """JPEG quality at most; less where it would not fit the message."""
    max_side_px: Annotated[int, Field(ge=64, le=16_384)] = 1280
    """Longer side at most, px; less where it would not fit the message."""


class CalibrateArgs(Section):
    """What to calibrate, and from which frames."""

    models: tuple[Name, ...] = ()
    """None: those in use."""
    source: Literal["camera", "collection", "recorded"] = "recorded"
    """Where frames come from: a camera, the last collection, or those kept while reading."""
    camera: CameraName | None = None
    """The camera, for source camera."""
    count: Annotated[int, Field(ge=1, le=2000)] = 60
    """Frames at most."""
    method: MethodChoice = "recipe"
    """How ranges are chosen."""
    dry_run: bool = False
    """Everything is done and reported, nothing is promoted."""


class RollbackArgs(Section):
    """Which model."""

    model: Name
    """The model whose calibrated artefact is to go."""
    to_float: bool = False
    """To the float model at once, not to the artefact before."""


class LogLevelArgs(Section):
    """How much is logged."""

    level: Literal["debug", "info", "warning", "error"]
    """The least important lines written, until the next start."""


class ConfigHistoryArgs(Section):
    """Which text to fetch."""

    text: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    """The sha256 of a text in the history; none: the history alone."""


def ping(desk: Desk, args: NoArgs) -> Answer:
    """Whether it is there."""
    return {"version": __version__, "uptime_s": round(desk.monotonic() - desk.started_mono, 3)}


def take_snapshot(desk: Desk, args: SnapshotArgs) -> Answer:
    """The newest frame of a camera, as a JPEG."""
    if args.camera not in desk.config.cameras:
        known = ", ".join(desk.config.cameras) or "none"
        raise FrameError(f"there is no camera {args.camera!r}; there are: {known}")
    frame = desk.running().newest(args.camera)
    if frame is None:
        raise FrameError(f"camera {args.camera} has given no frame yet")
    return snapshot(frame, args.quality, args.max_side_px, desk.config.mqtt.max_payload_bytes)


def restart(desk: Desk, args: NoArgs) -> None:
    """Ends tidily and starts afresh; the answer is given by the next process."""
    desk.running()
    desk.restart = "asked for by a command"


def rebuild(desk: Desk, args: NoArgs) -> None:
    """Discards the plans in use and starts afresh, which builds them."""
    names = desk.running().discard_plans()
    desk.restart = f"to build {', '.join(names)} anew"


class Calibration:
    """A Job: the child process that calibrates."""

    def __init__(self, job: CalibrationJob) -> None:
        self._job = job

    def poll(self) -> Answer | None:
        return {"outcomes": self._job.said.outcomes, "notes": self._job.said.notes} if self._job.poll() else None

    def close(self) -> None:
        self._job.close()


def calibrate(desk: Desk, args: CalibrateArgs) -> Job:
    """Starts a calibration in a process of its own; how far it is stands in health."""
    desk.running()
    if "calibrate" in desk.jobs:
        raise Busy("a calibration is under way")
    if (args.source == "camera") != (args.camera is not None):
        raise CalibrationRefused("camera goes with source camera, and with no other")
    if args.camera is not None and args.camera not in desk.config.cameras:
        raise CalibrationRefused(f"there is no camera {args.camera!r}")
    for model in args.models:
        ModelSpec.load(desk.models_dir, model)
    return Calibration(
        desk.start_calibration(
            Wish(
                models=args.models,
                source=args.source,
                name=args.camera,
                count=args.count,
                method=args.method,
                dry_run=args.dry_run,
                settings=plain(desk.config),
                models_dir=desk.models_dir,
            )
        )
    )


def roll_back(desk: Desk, args: RollbackArgs) -> Answer:
    """Back to the artefact of a model before the one in use, or to the float model; without a lost frame."""
    desk.running()
    spec = ModelSpec.load(desk.models_dir, args.model)
    folder = find_calibration_dir(desk.config.calibration.directory, desk.models_dir)
    try:
        promotion = Artefacts(folder, spec.name).rollback(to_float=args.to_float)
    except ArtefactUnusable as exc:
        raise ModelError(str(exc)) from exc
    return {"model": spec.name, "active": promotion.active, "previous": promotion.previous}


def replay(desk: Desk, args: NoArgs) -> Answer:
    """Queues again what was given up and kept."""
    return {"queued": desk.running().replay()}


def set_log_level(desk: Desk, args: LogLevelArgs) -> Answer:
    """Logs more or less, until the next start; log.level is for good."""
    before = logging.getLevelName(logging.getLogger().level).lower()
    logging.getLogger().setLevel(args.level.upper())
    return {"level": args.level, "before": before}


def tell_ledger(desk: Desk, args: NoArgs) -> Answer:
    """What became of the readings."""
    return desk.running().ledger()


def tell_config_history(desk: Desk, args: ConfigHistoryArgs) -> Answer:
    """The configurations that ended: refused, rolled back, replaced; or one text of them."""
    state = desk.store.state()
    if args.text is not None:
        if args.text not in {past.text for past in state.past}:
            raise EdgeAgentError("no such text is in the history")
        return {"text": desk.store.shown_text(args.text)}
    entries = [
        {"version": past.version, "outcome": past.outcome, "at": rfc3339(past.at), "text": past.text}
        | {"reason": past.reason[:500]}
        for past in state.past
    ]
    return {"history": entries}


@dataclass(frozen=True)
class Command:
    """A row: the arguments, and what is done with them. `repeatable`: to do it twice is as good as once, so that its id
    needs not be on disk before it runs."""

    args: type[Section]
    run: Callable[[Desk, Any], Answer | Job | None]
    repeatable: bool = False


COMMANDS: Mapping[CommandName, Command] = {
    "calibrate": Command(CalibrateArgs, calibrate),
    "config-history": Command(ConfigHistoryArgs, tell_config_history, repeatable=True),
    "ledger": Command(NoArgs, tell_ledger, repeatable=True),
    "log-level": Command(LogLevelArgs, set_log_level, repeatable=True),
    "ping": Command(NoArgs, ping, repeatable=True),
    "rebuild": Command(NoArgs, rebuild),
    "replay": Command(NoArgs, replay),
    "restart": Command(NoArgs, restart),
    "rollback": Command(RollbackArgs, roll_back),
    "snapshot": Command(SnapshotArgs, take_snapshot, repeatable=True),
}
