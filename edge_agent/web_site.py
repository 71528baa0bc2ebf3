"""AgentWebSite: what the page sees of the running agent. It overhears what the agent says anyway, and asks little more.

The door opens before the pipeline is loaded, which takes minutes where plans are built; until `open_to` there is no
agent yet, and whoever looks sees how far start-up is.
"""

from __future__ import annotations

import json
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any

from edge_agent import messages
from edge_agent.artefacts import Artefacts, ArtefactUnusable, Promotion, find_calibration_dir
from edge_agent.board import Board
from edge_agent.calibrate.progress import PROGRESS_FILE, Progress, ProgressWatch
from edge_agent.config import Config
from edge_agent.errors import ConfigError
from edge_agent.evidence import find_evidence, find_evidence_dir
from edge_agent.last_words import Ending
from edge_agent.messages import EVENT_TOPIC, HEALTH_TOPIC, REPORTED_CONFIG_TOPIC, STATUS_TOPIC, TELEMETRY_TOPIC
from edge_agent.no_text import NoTextLimit
from edge_agent.records import Frame, Message, Reading
from edge_agent.remote.control import RemoteAccess
from edge_agent.settings.roi import RoiConfig
from edge_agent.settings.validation import NAME_PATTERN
from edge_agent.telemetry.history import find_history_dir, history_lines
from edge_agent.transports.base import Inbound
from edge_agent.verify.expectation import Expectation
from edge_agent.web.history import Charts
from edge_agent.web.kept import Kept, KeptFrames
from edge_agent.web.ring import Ring
from edge_agent.web.site import CameraNow, Refused
from edge_agent.web_remote import PageRemote

if TYPE_CHECKING:
    from edge_agent.agent import Agent

READINGS_KEPT, ITEMS_KEPT, EVENTS_KEPT = 500, 500, 200
MAX_RING_BYTES = 16_777_216
ITEM = "/item"
REPLY = "/reply"  # to a command
REPORT_FILE = "report.html"
SESSIONS_FILE = "web-sessions.json"

Put = Callable[[Message], None]


class AgentWebSite:
    """A web.site.WebSite. `hear` and `see` are called where things happen, from any thread; they keep what came."""

    def __init__(
        self,
        config: Config,
        board: Board,
        models_dir: Path,
        access: RemoteAccess | None = None,
        before: Ending | None = None,
    ) -> None:
        """`config` is what the process began with; `before` how the one before it ended. `access` None: nothing is
        taken."""
        self.config_file = None if access is None else access.config_file
        self.models_dir = models_dir
        self.access = access
        self.readings = Ring(READINGS_KEPT, MAX_RING_BYTES)
        self.items = Ring(ITEMS_KEPT, MAX_RING_BYTES)
        self.events = Ring(EVENTS_KEPT, MAX_RING_BYTES)
        self.charts = Charts()
        self.kept_frames = KeptFrames()
        self._begun = config
        self._before = before
        self._calibration_dir = find_calibration_dir(config.calibration.directory, models_dir)
        self._progress = ProgressWatch(self._calibration_dir / PROGRESS_FILE)
        self._items: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
        self._no_text = NoTextLimit(config.pipeline.no_text_interval_s)
        self._started_mono = time.monotonic()
        self._board = board
        self._telemetry: bytes | None = None
        self._changed: Callable[[], None] = lambda: None
        self._remote: PageRemote | None = None
        self._agent: Agent | None = None

    # The agent's side

    def overhearing(self, put: Put) -> Put:
        """`put`, and the page hears it too."""

        def put_and_heard(message: Message) -> None:
            put(message)
            self.hear(message)

        return put_and_heard

    def hear(self, message: Message) -> None:
        """Something that the device said."""
        if message.topic == TELEMETRY_TOPIC:
            self._telemetry = message.payload
            self.charts.add(message.payload)
        elif message.topic == EVENT_TOPIC:
            self.events.append("", message.payload)
            self._changed()
        elif message.topic.endswith(REPLY) and self._remote is not None:
            self._remote.hear(message)
        elif message.topic.endswith(ITEM):
            self._take_item(message.topic.removesuffix(ITEM), message.payload)

    def see(self, frame: Frame, reading: Reading, message: Message | None) -> None:
        """A frame was read; the main loop's thread."""
        # where items are published in the place of readings, the page shows readings all the same
        wanted = self._no_text.admits(reading)
        if message is None and wanted:
            message = messages.result(reading)
        if message is not None:
            self.readings.append(frame.camera, message.payload)
        self.kept_frames.offer(frame, reading)
        self._changed()

    def _take_item(self, camera: str, payload: bytes) -> None:
        item = json.loads(payload)
        self._items[item["id"]] = {name: item[name] for name in ("camera", "first_seq", "last_seq")}
        while len(self._items) > ITEMS_KEPT:
            self._items.popitem(last=False)
        self.items.append(camera, payload)
        self._changed()

    def listen_at(self, inbound: Queue[Inbound]) -> None:
        """What is asked here may be put into `inbound`."""
        self._remote = PageRemote(self.access, inbound)

    def open_to(self, agent: Agent) -> None:
        """Start-up is over."""
        agent.uploads.max_pixels = self._begun.web.max_upload_pixels
        agent.uploads.most_waiting = self._begun.web.max_waiting_reads
        expected = agent.pipeline.expected
        agent.pipeline.expected = lambda camera: agent.uploads.expected(camera, expected)
        agent.results.watch = self.see
        self._agent = agent

    # The door's side

    @property
    def device(self) -> str:
        """The device's name."""
        return self._begun.device()

    @property
    def config(self) -> Config:
        """The settings in force."""
        remote = None if self._agent is None else self._agent.remote
        return self._begun if remote is None else remote.config

    def watch(self, changed: Callable[[], None] | None) -> None:
        """Whom to tell of news."""
        self._changed = changed or (lambda: None)

    def health(self) -> Mapping[str, Any]:
        """The newest message on `health`."""
        return self._state(HEALTH_TOPIC) or {}

    def reported(self) -> Mapping[str, Any] | None:
        """The newest message on `config/reported`."""
        return self._state(REPORTED_CONFIG_TOPIC)

    def run(self) -> Mapping[str, Any]:
        """Of this process: since when, what ended the one before, and the broker."""
        stats = None if self._agent is None else self._agent.publisher.stats()
        before = self._before
        return {
            "started_at": (self._state(STATUS_TOPIC) or {}).get("started_at"),
            "uptime_s": round(time.monotonic() - self._started_mono, 1),
            "last_exit": None if before is None else {"kind": before.kind, "cause": before.text},
            "broker": {
                "connected": stats is not None and stats.connected,
                "cause": None if stats is None else stats.cause,
            },
        }

    def trial(self) -> tuple[bool, float | None]:
        """Whether a configuration runs on trial, and for how long."""
        remote = None if self._agent is None else self._agent.remote
        return (False, None) if remote is None else remote.trial

    def cameras(self) -> Sequence[CameraNow]:
        """Every camera."""
        if self._agent is None:
            return [CameraNow(name, "starting") for name in self._begun.cameras]
        read_fps = self._agent.vitals.fps()
        return [
            CameraNow(
                name=status.camera,
                state=status.state,
                reason=status.reason,
                fps=None if status.last_frame_at is None else status.fps,
                read_fps=read_fps.get(status.camera, {}).get("processed"),
                last_frame_at=status.last_frame_at,
                width_px=status.width_px,
                height_px=status.height_px,
            )
            for status in (camera.status() for camera in self._agent.cameras)
        ]

    def newest(self, camera: str) -> Frame | None:
        """The frame of a camera that was read last."""
        return None if self._agent is None else self._agent.results.newest.get(camera)

    def telemetry(self) -> bytes | None:
        """The newest telemetry message."""
        return self._telemetry

    def reports(self, since_at: float) -> Iterator[bytes]:
        """Telemetry messages on disk, of segments that were written to since then."""
        directory = find_history_dir(self._begun) if self._begun.telemetry.keep_s else None
        return iter(()) if directory is None else history_lines(directory, since_at)

    def read(self, content: bytes, camera: str | None) -> Future[Reading]:
        """Reads an image file's bytes between two frames."""
        return self._running().uploads.offer(content, camera)

    def submit_command(self, name: str, args: Mapping[str, Any]) -> str:
        """Sends a command."""
        return self._asking().submit_command(name, args)

    def command(self, command_id: str) -> Mapping[str, Any] | None:
        """What became of a command that was sent here."""
        return self._asking().command(command_id)

    def submit_patch(self, patch: Mapping[str, Any]) -> int:
        """Wishes for settings."""
        self._running()
        return self._asking().submit_patch(patch)

    def roll_back(self) -> None:
        """Takes back the configuration on trial or in force."""
        self._running()
        self._asking().roll_back()

    def kept(self, camera: str) -> Sequence[Kept]:
        """The frames of a camera with text that were read last."""
        return self.kept_frames.of(camera)

    def reread(self, kept: Kept, rois: Mapping[str, RoiConfig], expectation: Expectation) -> Future[Reading]:
        """Reads a kept picture again."""
        return self._running().uploads.offer(kept.jpeg, rois=rois, expectation=expectation)

    def evidence(self, item_id: str) -> bytes | None:
        """What an item looked like: the evidence on disk, else a small picture of it."""
        directory = find_evidence_dir(self.config)
        path = None if directory is None else find_evidence(directory, item_id)
        if path is not None:
            with suppress(OSError):  # it may be going just now
                return path.with_suffix(".jpg").read_bytes()
        item = self._items.get(item_id)
        return None if item is None else self.kept_frames.crop(item["camera"], item["first_seq"], item["last_seq"])

    def calibration(self) -> Mapping[str, Any]:
        """How far a calibration is, and what is in use."""
        progress = self._progress.look()
        settings = self.config.pipeline
        names = [name for name in (settings.detector, settings.recogniser, settings.encoder) if name is not None]
        return {
            "progress": None if progress is None else progress_to_json(progress),
            "models": [self._model(name) for name in names],
        }

    def report(self, model: str) -> Path | None:
        """The report of a model's last calibration."""
        path = self._calibration_dir / model / REPORT_FILE
        return path if re.fullmatch(NAME_PATTERN, model) and path.is_file() else None

    def _model(self, name: str) -> dict[str, Any]:
        try:
            promotion = Artefacts(self._calibration_dir, name).promotion()
        except ArtefactUnusable:
            promotion = Promotion()
        address = f"/v1/calibration/{name}/{REPORT_FILE}"
        return {
            "model": name,
            "active": promotion.active,
            "previous": promotion.previous,
            "report": None if self.report(name) is None else address,
        }

    def _asking(self) -> PageRemote:
        if self._remote is None:
            raise starting()
        return self._remote

    def _running(self) -> Agent:
        if self._agent is None:
            raise starting()
        return self._agent

    def _state(self, topic: str) -> Mapping[str, Any] | None:
        said = next((message for message in self._board.birth() if message.topic == topic), None)
        return None if said is None else dict(json.loads(said.payload))


def progress_to_json(progress: Progress) -> dict[str, Any]:
    """How far a calibration is, as it is answered."""
    return {
        "model": progress.model,
        "step": progress.step,
        "percent": progress.percent,
        "started_at": progress.started_at,
    }


def starting() -> Refused:
    """What is answered before there is an agent."""
    return Refused(503, "starting", "the device is starting, and /v1/health says how far it is", {"Retry-After": "5"})


@contextmanager
def web_page(site: AgentWebSite, inbound: Queue[Inbound], tell: Callable[[str, str], None]) -> Iterator[None]:
    """The page is served, inside; what it asks of the agent goes into `inbound`. `tell` says an event.

    ConfigError without starlette and uvicorn, or where a file of the settings cannot be used.
    """
    try:
        from edge_agent.web.server import serving
    except ModuleNotFoundError as exc:
        package = (exc.name or "").partition(".")[0]
        if package in ("", "edge_agent"):
            raise
        raise ConfigError(
            f"web.enabled is true, which needs the Python package {package}: pip install 'edge-agent[web]', or write "
            "false"
        ) from exc
    site.listen_at(inbound)
    sessions = None if site.access is None else site.access.store.folder.parent / SESSIONS_FILE
    with site.kept_frames, serving(site.config.web, site, site.charts, sessions, tell):
        yield
