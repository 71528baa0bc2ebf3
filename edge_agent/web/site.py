"""WebSite: what the door sees of the running agent, and may ask of it. Every method may be called from any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from edge_agent.config import Config
from edge_agent.records import Frame, Reading
from edge_agent.settings.roi import RoiConfig
from edge_agent.verify.expectation import Expectation
from edge_agent.web.ring import Ring

if TYPE_CHECKING:
    from edge_agent.web.kept import Kept


class Refused(Exception):
    """What is answered in the place of what was asked for: an HTTP status, a code for programs, a text for people."""

    def __init__(self, status: int, code: str, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.text = text
        self.headers = dict(headers or {})


@dataclass(frozen=True)
class CameraNow:
    """How a camera is; `last_frame_at` unix s; `fps` of frames that it gives, `read_fps` of those that are read."""

    name: str
    state: str
    reason: str | None = None
    fps: float | None = None
    read_fps: float | None = None
    last_frame_at: float | None = None
    width_px: int | None = None
    height_px: int | None = None


class WebSite(Protocol):
    """The agent, from here."""

    readings: Ring
    """Results, as they are published."""
    items: Ring
    """Items, as they are published."""
    events: Ring
    """Events, as they are published."""
    config_file: Path | None
    """The file of settings that the agent was started with."""
    models_dir: Path
    """The folder of the models."""

    @property
    def device(self) -> str:
        """The device's name."""
        ...

    @property
    def config(self) -> Config:
        """The settings in force."""
        ...

    def watch(self, changed: Callable[[], None] | None) -> None:
        """`changed` is called from any thread whenever there is a newer frame, reading, item or event."""
        ...

    def health(self) -> Mapping[str, Any]:
        """The newest message on `health`; {} before the first."""
        ...

    def reported(self) -> Mapping[str, Any] | None:
        """The newest message on `config/reported`; None before the first."""
        ...

    def run(self) -> Mapping[str, Any]:
        """Of this process: `started_at`, `uptime_s`, `last_exit` of the one before, `broker`."""
        ...

    def trial(self) -> tuple[bool, float | None]:
        """Whether a configuration runs on trial, and for how many seconds more; None before that is counted."""
        ...

    def cameras(self) -> Sequence[CameraNow]:
        """Every camera of the settings that the agent was started with."""
        ...

    def newest(self, camera: str) -> Frame | None:
        """The frame of a camera that was read last; None before the first."""
        ...

    def telemetry(self) -> bytes | None:
        """The newest telemetry message, JSON; None before the first."""
        ...

    def reports(self, since_at: float) -> Iterator[bytes]:
        """Telemetry messages of before this process began that are kept on disk, oldest first, JSON; slow."""
        ...

    def read(self, content: bytes, camera: str | None) -> Future[Reading]:
        """Reads an image file's bytes between two frames, as one of `camera` where that is named. Blocks while it is
        decoded. The future, and this call, raise Refused: 413 too large, 415 no image, 422 damaged, 429 too many wait,
        503 nothing is read."""
        ...

    def submit_command(self, name: str, args: Mapping[str, Any]) -> str:
        """Sends a command the way that it comes from afar; its id. Raises Refused where it cannot be taken."""
        ...

    def command(self, command_id: str) -> Mapping[str, Any] | None:
        """What became of a command that was sent here: its last answer; None for an unknown id."""
        ...

    def submit_patch(self, patch: Mapping[str, Any]) -> int:
        """Wishes for settings the way that a wish comes from afar; its version. Raises Refused."""
        ...

    def roll_back(self) -> None:
        """Takes back the configuration on trial or in force, in favour of the one before. Raises Refused."""
        ...

    def kept(self, camera: str) -> Sequence[Kept]:
        """The frames of a camera with text that were read last, oldest first."""
        ...

    def reread(self, kept: Kept, rois: Mapping[str, RoiConfig], expectation: Expectation) -> Future[Reading]:
        """Reads a kept picture again, in other regions and by other masks; raises as `read`."""
        ...

    def evidence(self, item_id: str) -> bytes | None:
        """What an item looked like, a JPEG; None where that is not kept. May wait for the disk."""
        ...

    def calibration(self) -> Mapping[str, Any]:
        """How far a calibration is, `progress`, and what is in use, `models`. May wait for the disk."""
        ...

    def report(self, model: str) -> Path | None:
        """The report of a model's last calibration, HTML; None where there is none."""
        ...
