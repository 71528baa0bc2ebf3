"""Results: what is done with each reading, between the pipeline and the outbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from edge_agent import messages
from edge_agent.clock import DeviceClock
from edge_agent.frame_recorder import FrameRecorder
from edge_agent.no_text import NoTextLimit
from edge_agent.records import Frame, Message, Reading


class Results:
    """Counts readings, hands the frames of those with text to the recorder, and puts out what is worth it.

    `put` takes messages to the outbox; `config_version`, to be set, gives the configuration from afar in force, None
    for none; `watch`, to be set, is shown each frame with its reading, and the message where one was made of it. For the
    main loop's thread; the counters are read from others.
    """

    def __init__(
        self,
        put: Callable[[Message], None],
        clock: DeviceClock,
        no_text: NoTextLimit,
        recorder: FrameRecorder | None = None,
    ) -> None:
        self._put = put
        self._clock = clock
        self.no_text = no_text
        self.config_version: Callable[[], int | None] = lambda: None
        self.watch: Callable[[Frame, Reading, Message | None], None] = lambda _frame, _reading, _message: None
        self.recorder = recorder
        self.newest: dict[str, Frame] = {}  # by camera, the frame that was read last
        self.frames_read: Counter[str] = Counter()
        self.frames_with_text: Counter[str] = Counter()

    def take(self, frame: Frame, reading: Reading) -> None:
        """One frame and what it says."""
        self.newest[frame.camera] = frame
        self.frames_read[frame.camera] += 1
        self.frames_with_text[frame.camera] += bool(reading.lines)
        message = self._message(reading) if self.no_text.admits(reading) else None
        if message is not None:
            self._put(message)
        self.watch(frame, reading, message)
        if self.recorder is not None and reading.lines:
            self.recorder.offer(frame)

    def _message(self, reading: Reading) -> Message:
        return messages.result(
            reading,
            config_version=self.config_version(),
            boot_id=self._clock.boot_id,
            clock_trusted=self._clock.trusted(),
        )

    def counts(self) -> tuple[int, int]:
        """Frames read and those of them with text, since the start; any thread."""
        return sum(dict(self.frames_read).values()), sum(dict(self.frames_with_text).values())
