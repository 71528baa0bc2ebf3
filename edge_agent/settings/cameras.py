"""Cameras: one source of frames, and what is read, expected and joined there."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from edge_agent.settings.expected import Rules
from edge_agent.settings.items import ItemMode
from edge_agent.settings.roi import RoiConfig
from edge_agent.settings.scalars import LocalPath, Name, Seconds, SidePx, number_as_text
from edge_agent.settings.section import Section, minimum_above_maximum, one_without_other, refuse
from edge_agent.settings.sources import STORED_KINDS, login_problem, source_problem
from edge_agent.settings.trigger import TriggerConfig

MAX_PIXELS = 50_000_000  # of a picture, where the settings say nothing else
# topics of the device itself: a camera of this name would publish among them
RESERVED_CAMERA_NAMES = frozenset({"command", "config", "event", "health", "status", "telemetry"})


def _camera_name(name: str) -> str:
    if name in RESERVED_CAMERA_NAMES:
        raise ValueError("is a topic of the device itself; give the camera another name")
    return name


CameraName = Annotated[Name, AfterValidator(_camera_name)]


class CameraConfig(Section):
    """One source of frames."""

    kind: Literal["csi", "folder", "rtsp", "v4l2", "video"]
    """What delivers the frames: csi, folder, rtsp, v4l2 or video."""
    source: Annotated[str, BeforeValidator(number_as_text), Field(min_length=1, max_length=2048)]
    """rtsp: an address; v4l2: a path in /dev/v4l/by-id or a number; csi: a sensor number; folder, video: a path."""
    enabled: bool = True
    """false keeps the block and opens nothing."""
    width_px: SidePx | None = None
    """Width asked of the camera, px, together with height_px; null: the camera's own choice."""
    height_px: SidePx | None = None
    """Height asked of the camera, px, together with width_px; null: the camera's own choice."""
    max_fps: Annotated[float, Field(gt=0, le=1000)] | None = None
    """Most frames a second taken from this camera; null: no limit."""
    pace: Literal["live", "every_frame"] = "live"
    """live: as time passes, frames that come too fast are dropped; every_frame (folder, video): none is dropped."""
    loop: bool = False
    """Whether a folder or video begins again at its end."""
    password_file: LocalPath | None = None
    """rtsp: a file with the password, one line, readable by the owner alone; the user stands in the source."""
    open_timeout_s: Seconds = 5.0
    """How long opening may take, s."""
    read_timeout_s: Seconds = 5.0
    """How long one frame may take, s; then the camera is opened again."""
    stalled_after_s: Seconds = 5.0
    """Age of the newest frame, s, from which on the camera's status is stalled."""
    reconnect_min_s: Seconds = 0.5
    """First wait before a lost camera is opened again, s; it doubles up to reconnect_max_s."""
    reconnect_max_s: Seconds = 30.0
    """Longest wait before a lost camera is opened again, s."""
    max_pixels: Annotated[int, Field(ge=1)] = MAX_PIXELS
    """Largest frame accepted, px; larger ones are refused before they fill the memory."""
    pixel_format: Annotated[str, StringConstraints(pattern=r"^[A-Z0-9 ]{3,4}$")] | None = None
    """v4l2: the format asked of the camera, four characters such as MJPG, YUYV, GREY, Y16; null: MJPG."""
    bit_depth: Annotated[int, Field(ge=8, le=16)] | None = None
    """Significant bits in 16-bit samples (10, 12 or 14 for most sensors); null: all 16."""
    decoder: Literal["auto", "ffmpeg", "gstreamer"] = "auto"
    """rtsp: what decodes the stream; auto: FFmpeg where this OpenCV has it; gstreamer: the Jetson's hardware."""
    rois: Annotated[dict[Name, RoiConfig], Field(max_length=32)] = {}  # noqa: RUF012 - pydantic copies it
    """Regions of interest by name, each read on its own; none: the whole picture is read."""
    expected: Rules = ()
    """What an item must say to get the verdict PASS; none: nothing is verified."""
    items: ItemMode | None = None
    """How readings become items at this camera, as items.mode; null: as that says."""
    trigger: TriggerConfig = TriggerConfig()
    """What tells that an item is there, other than its text."""

    @model_validator(mode="after")
    def _keys_agree(self) -> CameraConfig:
        problems = list(minimum_above_maximum(self, "reconnect_min_s", "reconnect_max_s"))
        problems += one_without_other(self, "width_px", "height_px")
        if self.kind not in STORED_KINDS:
            if self.pace == "every_frame":
                problems.append(("pace", f"every_frame is for folder and video, not for {self.kind}; write live"))
            if self.loop:
                problems.append(("loop", f"true is for folder and video, not for {self.kind}; write false"))
        source = source_problem(self.kind, self.source)
        if source is not None:
            problems.append(("source", source))
        if self.password_file is not None:
            login = login_problem(self.source) if self.kind == "rtsp" else f"is for rtsp, not for {self.kind}"
            problems += [("password_file", login)] if login else []
        refuse(problems)
        return self
