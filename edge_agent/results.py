"""Results: what is done with each reading, between the pipeline and the outbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from edge_agent import messages
from edge_agent.clock import DeviceClock
from edge_agent.config import Config
from edge_agent.frame_recorder import FrameRecorder
from edge_agent.inspection import Inspection, Verified
from edge_agent.no_text import NoTextLimit
from edge_agent.records import Frame, Message, Reading
from edge_agent.transports.base import Inbound

UNVERIFIED = Verified(None, None)


class Results:
    """Counts readings, hands the frames of those with text to the recorder, and puts out what is worth it: readings,
    or the items that `inspection` makes of them.

    `put` takes messages to the outbox; `config_version`, to be set, gives the configuration from afar in force, None
    for none; `watch`, to be set, is shown each frame with its reading, and the message where one was made of it. It is
    the main loop's; the counters are read from other threads.
    """

    def __init__(
        self,
        put: Callable[[Message], None],
        clock: DeviceClock,
        no_text: NoTextLimit,
        recorder: FrameRecorder | None = None,
        inspection: Inspection | None = None,
    ) -> None:
        self._put = put
        self._clock = clock
        self.no_text = no_text
        self.config_version: Callable[[], int | None] = lambda: None
        self.watch: Callable[[Frame, Reading, Message | None], None] = lambda _frame, _reading, _message: None
        self.recorder = recorder
        self.inspection = inspection
        if inspection is not None:
            inspection.config_version = lambda: self.config_version()  # noqa: PLW0108 - it is set later
        self.newest: dict[str, Frame] = {}  # by camera, the frame that was read last
        self.frames_read: Counter[str] = Counter()
        self.frames_with_text: Counter[str] = Counter()

    def take(self, frame: Frame, reading: Reading) -> None:
        """One frame and what it says."""
        self.newest[frame.camera] = frame
        self.frames_read[frame.camera] += 1
        self.frames_with_text[frame.camera] += bool(reading.lines)
        verified = UNVERIFIED if self.inspection is None else self.inspection.look(frame, reading)
        is_wanted = self.inspection is None or self.inspection.publishes_reading(frame.camera)
        message = self._message(reading, verified) if is_wanted and self.no_text.admits(reading) else None
        if message is not None:
            self._put(message)
        self.watch(frame, reading, message)
        if self.recorder is not None and reading.lines:
            self.recorder.offer(frame)

    def attend(self) -> None:
        """Between two frames: takes what came from outside for cameras, and decides the items whose time is over."""
        if self.inspection is not None:
            self.inspection.attend()

    def due_in_s(self) -> float:
        """How long until `attend` has something to decide; infinite where nothing waits."""
        return float("inf") if self.inspection is None else self.inspection.due_in_s()

    def tune(self, config: Config) -> None:
        """From the next frame on, as the LIVE keys among these settings say."""
        self.no_text.interval_s = config.pipeline.no_text_interval_s
        if self.inspection is not None:
            self.inspection.tune(config)

    def hear(self, inbound: Inbound) -> None:
        """A message to a camera."""
        camera, _, what = inbound.topic.partition("/")
        if self.inspection is not None:
            self.inspection.hear(camera, what, inbound.payload, inbound.retained, inbound.arrived_mono)

    def _message(self, reading: Reading, verified: Verified) -> Message:
        judgement = verified.judgement
        return messages.result(
            reading,
            config_version=self.config_version(),
            boot_id=self._clock.boot_id,
            clock_trusted=self._clock.trusted(),
            verdict=None if judgement is None else judgement.verdict,
            reasons=() if judgement is None else judgement.reasons,
            expectation_id=verified.expectation_id,
            evidence_id=verified.evidence_id,
        )

    def counts(self) -> tuple[int, int]:
        """Frames read and those of them with text, since the start; any thread."""
        return sum(dict(self.frames_read).values()), sum(dict(self.frames_with_text).values())
