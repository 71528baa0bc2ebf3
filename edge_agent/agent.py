"""Agent: the running whole. Read `run_agent` first: start-up, main loop, shutdown.

Threads: the main one infers and is the only one that touches engines; a reader and a watch per camera; the publisher's
and the transport's; telemetry's; one that writes frames for calibrating; and until the main loop begins, one that
answers commands. They meet in the mailbox, the outbox and the board, and nowhere else.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from edge_agent import registry
from edge_agent.agent_links import Links, connected
from edge_agent.agent_report import agent_sections, precision_of
from edge_agent.agent_site import AgentSite
from edge_agent.artefacts import find_calibration_dir
from edge_agent.backends.base import Condition
from edge_agent.board import Board
from edge_agent.calibrate.progress import PROGRESS_FILE, ProgressWatch
from edge_agent.cameras.base import Clock
from edge_agent.cameras.capture import CaptureThread
from edge_agent.cameras.repeat_log import RepeatLog
from edge_agent.cameras.status import CameraStatus
from edge_agent.clock import DeviceClock
from edge_agent.config import Config
from edge_agent.cooling import Brake, Step, next_step
from edge_agent.errors import ConfigError, EdgeAgentError, EngineError, FrameError
from edge_agent.evidence import EvidenceStore, find_evidence_dir
from edge_agent.expectations import FILE as EXPECTED_FILE
from edge_agent.expectations import Expectations
from edge_agent.frame_recorder import RECORDED_DIRECTORY, FrameRecorder
from edge_agent.inspection import Inspection
from edge_agent.last_words import LastWords
from edge_agent.mailbox import Mailbox
from edge_agent.messages import CameraState, PipelineState
from edge_agent.no_text import NoTextLimit
from edge_agent.outbox.base import Outbox
from edge_agent.pipeline import Pipeline, load_pipeline
from edge_agent.publisher import Publisher
from edge_agent.records import Frame, Message
from edge_agent.remote.control import RemoteAccess, RemoteControl
from edge_agent.results import Results
from edge_agent.service import Notifier
from edge_agent.settings.calibration import CalibrationConfig
from edge_agent.settings.cameras import CameraConfig
from edge_agent.settings.thermal import ThermalConfig
from edge_agent.telemetry import SENSORS
from edge_agent.telemetry.history import History, find_history_dir
from edge_agent.telemetry.metrics import serving
from edge_agent.telemetry.sampler import Sampler
from edge_agent.telemetry.vitals import Vitals
from edge_agent.telemetry.watch import BoardWatch, Signs
from edge_agent.uploads import Uploads

log = logging.getLogger(__name__)

TURN_S = 0.2  # the main loop comes round at least so often
BUILD_REPORT_S = 5.0
ADVANCING = ("building", "calibrating")  # states whose reason changes all the time
OFFER_S = 0.5  # how long a source of which every frame counts waits for room before it looks up
RESTART_S = 300.0  # the service manager waits so long for a process that starts afresh
STOP_CAMERA_S = 2.0


def run_agent(
    config: Config,
    models_dir: Path,
    stop: threading.Event,
    *,
    until_end: bool = False,
    access: RemoteAccess | None = None,
    words: LastWords | None = None,
) -> str | None:
    """Reads and publishes until `stop` is set, or with `until_end` until every camera has come to its end.

    `access` is for changes and commands from afar; without it they are not heard. `words` are this run's for the next
    one, and tell of the one before; without them nothing is told. Returns why the process is to start
    afresh, None where it is to end.
    Raises ConfigError where a setting or model is wrong, EngineError when inference failed, EdgeAgentError when nothing
    could be published any more, BrokenPipeError when the reader of stdout has gone; what was read before is offered to
    the broker first.
    """
    notifier = Notifier(os.environ, time.monotonic)
    enter = words.stage if words is not None else lambda _stage: None
    with suppress(StoppedEarly), ExitStack() as opened:
        sources = Sources.of(config)
        links = opened.enter_context(connected(config, models_dir, access, words))
        for camera in sources.cameras:
            camera.number_from(links.outbox.next_seq(camera.name))
        enter("loading models")
        report = BuildReport(links.board, notifier, stop, enter)
        pipeline = opened.enter_context(engines(config, models_dir, report, links.clock))
        enter("warming up")
        pipeline.warm_up()
        if stop.is_set():
            raise StoppedEarly
        agent = opened.enter_context(assembled(config, models_dir, access, sources, links, pipeline))
        opened.enter_context(running(sources.cameras))
        notifier.ready(f"reading {len(sources.cameras)} cameras")
        enter("reading")
        agent.main_loop(stop, notifier, until_end=until_end)
        enter("stopping")
        return agent.leave(stop, notifier)
    return None


@dataclass(frozen=True)
class Sources:
    """Where frames come from, and what is counted of them; the cameras are not yet started."""

    cameras: list[CaptureThread]
    mailbox: Mailbox
    vitals: Vitals

    @classmethod
    def of(cls, config: Config) -> Sources:
        """ConfigError for settings that cannot work."""
        vitals = Vitals()
        mailbox = Mailbox(on_drop=partial(vitals.count, event="dropped"))
        return cls([capture(name, camera, mailbox, vitals) for name, camera in config.cameras.items()], mailbox, vitals)


@dataclass
class Agent:
    """What the main loop works with."""

    pipeline: Pipeline
    mailbox: Mailbox
    cameras: list[CaptureThread]
    outbox: Outbox
    board: Board
    vitals: Vitals
    results: Results
    publisher: Publisher
    clock: DeviceClock = field(default_factory=DeviceClock)
    calibrating: ProgressWatch | None = None
    remote: RemoteControl | None = None
    sampler: Sampler | None = None
    journal: RepeatLog = field(default_factory=lambda: RepeatLog(log, Clock()))
    upcoming: Frame | None = None  # taken early, so that its text is being looked for already
    told: tuple[PipelineState, float] = ("starting", float("-inf"))  # the state said last, and when, monotonic s
    cooling: Step = field(default_factory=Step)  # the telemetry thread decides, the main loop acts by it
    brake: Brake = field(init=False)
    uploads: Uploads = field(init=False)

    def __post_init__(self) -> None:
        self.uploads = Uploads(self.mailbox)
        self.brake = Brake(self.cameras, lambda: {name: fps["processed"] for name, fps in self.vitals.fps().items()})

    def main_loop(self, stop: threading.Event, notifier: Notifier, *, until_end: bool = False) -> None:
        """Takes the next frame, reads it, puts the reading out; looks after the states in between."""
        while not stop.is_set() and self.hear_remote() is None:
            self.attend(notifier)
            self.results.attend()
            frame = self.upcoming or self.take(min(TURN_S, self.results.due_in_s()))
            self.upcoming = None
            if frame is not None:
                self.read(frame)
            statuses = [camera.status() for camera in self.cameras]
            for status in statuses:
                self.board.say_camera(status.camera, shown_state(status), status.reason, status.last_frame_at)
            if not self.publisher.alive:
                gone = EdgeAgentError("the publisher has ended (see the traceback above): this process starts afresh")
                raise self.publisher.fault or gone
            notifier.heartbeat()
            if until_end and frame is None and all(status.state in ("ended", "disabled") for status in statuses):
                return

    def open_to(self, links: Links) -> None:
        """From now on the main loop does what comes from afar, results say under which configuration they are, and the
        page shows what is read."""
        if (remote := links.remote) is not None:
            self.remote = remote
            self.results.config_version = lambda: remote.config_version
            remote.open_to(AgentSite(self))
        if links.page is not None:
            links.page.open_to(self)

    def hear_remote(self) -> str | None:
        """Does what came from afar; why the process is to start afresh, None while it is not."""
        if self.remote is None:
            return None
        self.remote.attend()
        return self.remote.restart

    def leave(self, stop: threading.Event, notifier: Notifier) -> str | None:
        """Says that the process ends, or starts afresh; why that, None where it ends."""
        why = None if self.remote is None or stop.is_set() else self.remote.restart
        if why is None:
            notifier.stopping()
        else:
            log.warning("starting afresh: %s", why)
            notifier.restarting(RESTART_S)
            self.board.leaving = "restarting"
            self.board.say_health("starting", reason=f"restarting: {why}")
        return why

    def read(self, frame: Frame) -> None:
        """Publishes what one frame says; a frame that cannot be read is counted and dropped."""
        try:
            reading = self.pipeline.read(frame, self.look_ahead)
        except FrameError as exc:
            if self.uploads.takes(frame):
                self.uploads.fail(frame, exc)
                return
            self.vitals.count(frame.camera, "failed")
            text = f"frame {frame.seq} of camera {frame.camera} dropped: {exc}"
            self.journal.write(logging.WARNING, frame.camera, text)
            return
        except EngineError as exc:
            self.say_health("fault", reason=str(exc))
            raise
        if self.uploads.takes(frame):
            self.uploads.answer(frame, reading)
            return
        self.vitals.count(frame.camera, "processed")
        self.vitals.timed(reading.timings_ms)
        self.results.take(frame, reading)

    def attend(self, notifier: Notifier) -> None:
        """Puts new engines to use, holds cameras back while it is hot, and says how the reading goes: a change at once,
        how far it is now and then."""
        self.brake.hold(self.cooling.share)
        try:
            condition = self.pipeline.attend()
        except (ConfigError, EngineError) as exc:
            self.say_health("fault", reason=str(exc))
            raise
        state, reason = self.shown(condition)
        said, said_mono = self.told
        now_mono = time.monotonic()
        if state in ADVANCING and state == said and now_mono - said_mono < BUILD_REPORT_S:
            return
        if state in ADVANCING or state != said:
            self.told = (state, now_mono)
            notifier.status(f"reading {len(self.cameras)} cameras; {reason or state}")
        self.say_health(state, reason)

    def shown(self, condition: Condition) -> tuple[PipelineState, str | None]:
        """The pipeline's condition as health shows it: where that says nothing else, that readings are not written to
        disk, that the board is hot, or a calibration beside it."""
        if condition.state == "running" and (fault := self.outbox.fault) is not None:
            return "degraded", f"readings that wait are in memory only: {fault}"
        if condition.state == "running" and (hot := self.cooling.reason) is not None:
            return "degraded", hot
        progress = self.calibrating.look() if self.calibrating is not None and condition.state == "running" else None
        return (condition.state, condition.reason) if progress is None else ("calibrating", str(progress))

    def say_health(self, state: PipelineState, reason: str | None = None) -> None:
        """How the reading goes, with what it runs on."""
        precision = precision_of(self.pipeline.fingerprints.values())
        self.board.say_health(state, reason=reason, backend=self.pipeline.backend_in_use, precision=precision)

    def look_ahead(self) -> Frame | None:
        """The next frame, if one waits."""
        self.upcoming = self.take(0)
        return self.upcoming

    def take(self, timeout_s: float) -> Frame | None:
        """The next frame, of a camera or handed in, with the regions that it is to be read in."""
        frame = self.mailbox.take(timeout_s)
        if frame is not None and self.uploads.takes(frame):
            self.pipeline.rois = self.uploads.begin(frame, self.pipeline.rois)
        return frame

    def keep_cool(self, signs: Signs, bounds: ThermalConfig) -> None:
        """Decides what share of the frames is read from now on; called from the telemetry thread."""
        step = next_step(self.cooling, signs, time.monotonic(), bounds)
        if step.level != self.cooling.level:
            log.warning("%s", step.reason or "cooled down; reading every frame again")
        self.cooling = step


class StoppedEarly(Exception):
    """The wish to stop came during start-up; raised through a build that it waits for, which ends with it."""


class BuildReport:
    """Says how far a build is that start-up waits for: as health, and to the service manager, that it waits too."""

    def __init__(self, board: Board, notifier: Notifier, stop: threading.Event, enter: Callable[[str], None]) -> None:
        self._stop = stop
        self._enter = enter
        self._board = board
        self._notifier = notifier
        self._said_mono = float("-inf")

    def __call__(self, progress: object) -> None:
        """Takes anything that says how far it is as text; passes on one in BUILD_REPORT_S. StoppedEarly once `stop`."""
        if self._stop.is_set():
            raise StoppedEarly
        now_mono = time.monotonic()
        if now_mono - self._said_mono < BUILD_REPORT_S:
            return
        self._said_mono = now_mono
        self._enter("building plans")
        self._board.say_health("building", reason=str(progress))
        self._notifier.status(f"building {progress}")
        self._notifier.extend(BUILD_REPORT_S * 6)


def capture(name: str, config: CameraConfig, mailbox: Mailbox, vitals: Vitals) -> CaptureThread:
    """The camera, not yet started, that puts its frames into the mailbox; ConfigError for settings that cannot work."""
    put = mailbox.put if config.pace == "live" else partial(mailbox.put_waiting, timeout_s=OFFER_S)

    def offer(frame: Frame) -> bool:
        if not put(frame):
            return False
        vitals.count(name, "offered")
        return True

    return CaptureThread(name, config, offer)


def sampler(config: Config, agent: Agent, report_to: Callable[[Message], None]) -> Sampler:
    """Telemetry of this machine and this agent, handed on at an interval; looks after the board's heat in between."""
    root = config.telemetry.system_root
    watch = BoardWatch(root, agent.results.counts)

    def look() -> None:
        watch.measure()
        agent.keep_cool(watch.signs(), config.thermal)

    probes = [registry.load(SENSORS, row, "sensor")(root) for row in SENSORS]
    sections = {**agent_sections(agent), **watch.sections()}
    return Sampler([*probes, watch.probe()], sections, config.telemetry.interval_s, report_to, beat=look)


def shown_state(status: CameraStatus) -> CameraState:
    """A camera's state in the words of the contract; the reason tells the rest."""
    if status.state == "starting" or status.state == "ended":  # noqa: PLR1714 - two comparisons narrow the type
        return "offline"
    return status.state


def engines(
    config: Config, models_dir: Path, report: BuildReport, clock: DeviceClock
) -> AbstractContextManager[Pipeline]:
    """The pipeline, whose plans are built meanwhile or first, as the settings say."""
    meanwhile = config.backend.tensorrt.serve_while_building
    return load_pipeline(config, models_dir, report, serve_while_building=meanwhile, clock=clock.unix_if_trusted)


@contextmanager
def assembled(
    config: Config, models_dir: Path, access: RemoteAccess | None, sources: Sources, links: Links, pipeline: Pipeline
) -> Iterator[Agent]:
    """The agent with all that its main loop works with: what comes from afar and on the page is for it, inside."""
    with ExitStack() as opened:
        calibration_dir = find_calibration_dir(config.calibration.directory, models_dir)
        recorder = opened.enter_context(recording(config.calibration, calibration_dir))
        results = opened.enter_context(taking(config, links, recorder, expecting(config, links, access, pipeline)))
        cameras, mailbox, vitals = sources.cameras, sources.mailbox, sources.vitals
        agent = Agent(
            pipeline, mailbox, cameras, links.outbox, links.board, vitals, results, links.publisher, links.clock
        )
        opened.callback(agent.uploads.close)
        agent.calibrating = ProgressWatch(calibration_dir / PROGRESS_FILE)
        agent.open_to(links)
        report_to = opened.enter_context(outlets(config, links.put))
        agent.sampler = opened.enter_context(sampler(config, agent, report_to))
        yield agent


@contextmanager
def recording(config: CalibrationConfig, calibration_dir: Path) -> Iterator[FrameRecorder | None]:
    """Keeps frames for calibrating, inside, where that is wished for."""
    if config.record_interval_s == 0:
        yield None
        return
    directory = calibration_dir / RECORDED_DIRECTORY
    with FrameRecorder(
        directory, config.record_interval_s, config.record_max_frames, config.record_max_bytes
    ) as recorder:
        log.info("frames are kept in %s for calibrating, one in %g s", directory, config.record_interval_s)
        yield recorder


def expecting(config: Config, links: Links, access: RemoteAccess | None, pipeline: Pipeline) -> Expectations:
    """What items must say, which `pipeline` reads by from now on; what the plant says of it outlives a restart
    where anything from afar does."""
    file = None if access is None else access.store.folder.parent / EXPECTED_FILE
    expectations = Expectations(config, links.board.say, file, links.clock.unix, links.clock.monotonic)
    pipeline.expected = expectations.of
    return expectations


@contextmanager
def taking(
    config: Config, links: Links, recorder: FrameRecorder | None, expectations: Expectations
) -> Iterator[Results]:
    """Readings are taken, inside; at the end the items that are open are decided and put out."""
    directory, clock, put = find_evidence_dir(config), links.clock, links.put
    with ExitStack() as opened:
        evidence = None
        if directory is not None:
            evidence = opened.enter_context(EvidenceStore(directory, config.evidence, links.events.say, clock.unix))
        inspection = opened.enter_context(Inspection(config, put, clock, expectations, evidence))
        yield Results(put, clock, NoTextLimit(config.pipeline.no_text_interval_s), recorder, inspection)


@contextmanager
def outlets(config: Config, put: Callable[[Message], None]) -> Iterator[Callable[[Message], None]]:
    """Where telemetry goes, inside: to the broker by `put`, to disk and to Prometheus as the settings say."""
    with ExitStack() as opened:
        outlets = [put]
        directory = find_history_dir(config) if config.telemetry.keep_s else None
        if directory is not None:
            history = opened.enter_context(History(directory, config.telemetry.keep_s, config.telemetry.keep_bytes))
            outlets.append(history.append)
        if config.metrics.port is not None:
            outlets.append(opened.enter_context(serving(config.metrics.host, config.metrics.port)))

        def report_to(message: Message) -> None:
            for outlet in outlets:
                outlet(message)

        yield report_to


@contextmanager
def running(cameras: Sequence[CaptureThread]) -> Iterator[None]:
    """The cameras capture inside; at the end all are asked to stop first, and one time-out is for all of them."""
    try:
        for camera in cameras:
            camera.start()
        yield
    finally:
        for camera in cameras:
            camera.ask_to_stop()
        deadline = time.monotonic() + STOP_CAMERA_S
        for camera in cameras:
            camera.stop(max(0.0, deadline - time.monotonic()))
