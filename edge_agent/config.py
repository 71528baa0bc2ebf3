"""Config: what an operator may set, every bound with its unit; `config.yaml` documents each key in place.

Values are frozen; unknown keys are refused. `load(path)` reads a file and the environment, `patched` applies a change
from afar, `cautions` says what is allowed but hardly meant. The text under a key is its documentation: it is in the
schema (`edge-agent config schema`) and in messages.
"""

from __future__ import annotations

import fnmatch
import hashlib
import ipaddress
import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    SecretStr,
    StringConstraints,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from edge_agent.errors import ConfigError
from edge_agent.patterns import Pattern
from edge_agent.secrets import MASK, masked, private_file_caution, read_password_file
from edge_agent.settings.environment import overrides, variable_of
from edge_agent.settings.expected import Rules
from edge_agent.settings.keys import covers, filled, flat, leaves, merge_patched, merged, tree_of, value_at
from edge_agent.settings.problems import KeyPath, Problem, dotted
from edge_agent.settings.section import Section, refuse
from edge_agent.settings.sources import (
    STORED_KINDS,
    has_password,
    is_address,
    login_problem,
    source_caution,
    source_problem,
)
from edge_agent.settings.strict_yaml import Document, parse_document
from edge_agent.settings.validation import NAME_PATTERN, Origin, validated

MAX_FILE_BYTES = 262_144
MACHINE_ID_FILE = Path("/etc/machine-id")
# topics of the device itself: a camera of this name would publish among them
RESERVED_CAMERA_NAMES = frozenset({"command", "config", "event", "health", "status", "telemetry"})

# what the agent applies without a restart; * stands for a camera's name
LIVE = frozenset(
    {
        "cameras.*.expected",
        "cameras.*.items",
        "cameras.*.max_fps",
        "cameras.*.rois.*",
        "catalogue.names",
        "fields.codes",
        "fields.custom.*",
        "fields.date_order",
        "fields.date_window_years",
        "fields.max_fields",
        "fields.max_line_chars",
        "fields.min_similarity",
        "fields.region",
        "items.decide_within_ms",
        "items.direction",
        "items.gone_after_ms",
        "items.max_open",
        "items.min_reads",
        "items.mode",
        "items.per",
        "items.publish_readings",
        "items.trust_clock",
        "log.level",
        "pipeline.box_threshold",
        "pipeline.doubt_margin",
        "pipeline.max_boxes",
        "pipeline.min_confidence",
        "pipeline.no_text_interval_s",
        "pipeline.pixel_threshold",
        "pipeline.unclip_ratio",
        "telemetry.interval_s",
    }
)

# what is never changed from afar, whatever remote.allowed_keys says: how the device is reached, and what it trusts.
# Neither is any path, nor any password.
LOCAL_ONLY = ("device_id", "mqtt", "remote", "transport", "web")


def _number_as_text(value: Any) -> Any:
    """`source: 0` and `protocol: 5` are whole numbers in YAML and text here."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _host(text: str) -> str:
    if is_address(text):
        raise ValueError("a host is a name or an IP address alone, without mqtt:// or the like")
    if re.fullmatch(r"[\w-][\w.-]*", text):
        return text
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise ValueError("a host is a name or an IP address; the port has its own key") from None
    return text


def _camera_name(name: str) -> str:
    if name in RESERVED_CAMERA_NAMES:
        raise ValueError("is a topic of the device itself; give the camera another name")
    return name


def _full_path(path: Path) -> Path:
    text = str(path)
    if text.startswith("~"):
        raise ValueError("a path cannot begin with ~; write it in full")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", text):  # Path has made one slash of two
        raise ValueError("is an address; expected a path to a file or folder")
    if text == "." or len(text) > 4096 or any(ord(character) < 32 for character in text):
        raise ValueError("is no path to a file or folder")
    return path


def _mask(text: str) -> str:
    try:
        Pattern.parse(text)
    except ConfigError as exc:
        raise ValueError(str(exc)) from exc
    return text


def _remote_key(pattern: str) -> str:
    blocks = {"cameras": {"*": {"rois": {"*": {}}}}, "fields": {"custom": {"*": {}}}}
    covered = [leaf.path for leaf in leaves(Config, blocks) if covers(pattern, leaf.path)]
    forbidden = [str(path[0]) for path in [*covered, tuple(pattern.split("."))] if path[0] in LOCAL_ONLY]
    if forbidden:
        raise ValueError(f"{forbidden[0]} is never changed from afar")
    if not covered:
        raise ValueError("names no key; expected one such as fields, log.level or cameras.*.max_fps")
    return pattern


def _camera_host(text: str) -> str:
    if re.fullmatch(r"(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?", text) and not re.fullmatch(
        r"[\d.]+", text
    ):
        return text
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError("expected names, *.names, IP addresses or networks such as 192.0.2.0/24") from None
    return text


def _whole_path(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("is relative; write a path in full, from / on")
    return path


# One topic level: no MQTT wildcard, separator or control character can be in it. No leading dot: . and .. are folders.
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
CameraName = Annotated[Name, AfterValidator(_camera_name)]
Port = Annotated[int, Field(ge=1, le=65535)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
LocalPath = Annotated[Path, AfterValidator(_full_path)]
FullPath = Annotated[LocalPath, AfterValidator(_whole_path)]
RemoteKey = Annotated[str, AfterValidator(_remote_key)]
CameraHost = Annotated[str, Field(max_length=253), AfterValidator(_camera_host)]
WebHost = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?$")]
CameraScheme = Literal["csi", "file", "http", "https", "rtsp", "rtsps", "v4l2"]
CommandName = Literal[
    "calibrate",
    "config-history",
    "ledger",
    "log-level",
    "ping",
    "rebuild",
    "replay",
    "restart",
    "rollback",
    "snapshot",
]
ItemMode = Literal["none", "still", "conveyor"]
Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}$")]
FieldName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,47}$")]
Phrase = Annotated[str, StringConstraints(min_length=2, max_length=256)]
Mask = Annotated[str, AfterValidator(_mask)]
CodeFormat = Literal[
    "Aztec",
    "Codabar",
    "Code128",
    "Code39",
    "Code93",
    "DataBar",
    "DataBarExp",
    "DataBarLtd",
    "DataMatrix",
    "EAN13",
    "EAN8",
    "ITF",
    "MicroQRCode",
    "PDF417",
    "QRCode",
    "RMQRCode",
    "UPCA",
    "UPCE",
]
Celsius = Annotated[float, Field(ge=20, le=120)]
SidePx = Annotated[int, Field(ge=16, le=16_384)]


def _minimum_above_maximum(section: Section, low: str, high: str) -> Iterator[tuple[str, str]]:
    least, most = getattr(section, low), getattr(section, high)
    if least > most:
        yield low, f"{least:g} is greater than {high}, {most:g}"


class RoiConfig(Section):
    """A part of a camera's picture, read on its own; x, y, width and height are shares of the picture, 0 to 1."""

    x: Share = 0.0
    """Left edge, as a share of the picture's width."""
    y: Share = 0.0
    """Top edge, as a share of the picture's height."""
    width: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Width, as a share of the picture's."""
    height: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Height, as a share of the picture's."""
    angle_deg: Annotated[float, Field(ge=-180, le=360)] | Literal["auto"] = "auto"
    """Which way text runs, degrees clockwise from left to right: 90 down, 180 upside down; auto: found out."""
    dot_matrix: bool = False
    """Whether print of dots is expected here: the dots are joined before they are read."""
    contrast: Literal["auto", "off"] = "auto"
    """auto: faint print is strengthened before it is read; off: the picture is read as it is."""
    expected: Rules = ()
    """What an item must say here, beside what the camera's own `expected` asks for."""

    @model_validator(mode="after")
    def _inside_the_picture(self) -> RoiConfig:
        problems = []
        for start, length in (("x", "width"), ("y", "height")):
            end = getattr(self, start) + getattr(self, length)
            if end > 1 + 1e-6:
                problems.append(
                    (length, f"{start} + {length} is {end:g}; it must end inside the picture, at most at 1")
                )
        refuse(problems)
        return self


class TriggerConfig(Section):
    """What tells that an item is there, other than its text."""

    kind: Literal["none", "gpio", "modbus", "motion", "mqtt"] = "none"
    """none: its text does; motion: the picture; mqtt: a message on <camera>/trigger; gpio, modbus: a signal."""
    delay_ms: Annotated[int, Field(ge=0, le=60_000)] = 0
    """From the trigger until the item is in the picture, ms."""
    gpio_chip: LocalPath = Path("/dev/gpiochip0")
    """gpio: the chip of the line. Needs the Python package gpiod (the extra `gpio`)."""
    gpio_line: Annotated[int, Field(ge=0, le=1023)] = 0
    """gpio: the line's number on its chip."""
    gpio_edge: Literal["rising", "falling"] = "rising"
    """gpio: the edge that tells of an item."""
    debounce_ms: Annotated[int, Field(ge=0, le=10_000)] = 10
    """gpio: how long the signal must stand still after an edge, ms."""
    modbus_host: Annotated[str, Field(min_length=1, max_length=253), AfterValidator(_host)] | None = None
    """modbus: the controller's name or IP address. Needs the Python package pymodbus (the extra `modbus`)."""
    modbus_port: Port = 502
    """modbus: the controller's TCP port."""
    modbus_unit: Annotated[int, Field(ge=0, le=255)] = 1
    """modbus: the unit (slave) that is asked."""
    modbus_coil: Annotated[int, Field(ge=0, le=65_535)] = 0
    """modbus: the coil's address, from 0; it tells of an item when it becomes true."""
    modbus_poll_ms: Annotated[int, Field(ge=5, le=10_000)] = 20
    """modbus: how often the coil is looked at, ms; it must stay true for longer."""
    motion_threshold: Annotated[float, Field(ge=1, le=255)] = 12.0
    """motion: how much a part of the picture changes, grey levels, when an item comes in."""
    motion_rest_ms: Annotated[int, Field(ge=50, le=60_000)] = 300
    """motion: how long the picture stands still before the next item can come, ms."""

    @model_validator(mode="after")
    def _keys_agree(self) -> TriggerConfig:
        if self.kind == "modbus" and self.modbus_host is None:
            refuse([("modbus_host", "is missing; a modbus trigger needs the controller's address")])
        return self


class CameraConfig(Section):
    """One source of frames."""

    kind: Literal["csi", "folder", "rtsp", "v4l2", "video"]
    """What delivers the frames: csi, folder, rtsp, v4l2 or video."""
    source: Annotated[str, BeforeValidator(_number_as_text), Field(min_length=1, max_length=2048)]
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
    max_pixels: Annotated[int, Field(ge=1)] = 50_000_000
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
        problems = list(_minimum_above_maximum(self, "reconnect_min_s", "reconnect_max_s"))
        if (self.width_px is None) != (self.height_px is None):
            absent = "width_px" if self.width_px is None else "height_px"
            problems.append((absent, "is missing; width_px and height_px go together"))
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


class TensorRtConfig(Section):
    """How TensorRT plans are built and run; looked at only where TensorRT runs."""

    precision: Literal["fp16", "fp32"] = "fp16"
    """Of float models; a quantised model runs in int8 whatever stands here."""
    plans_dir: LocalPath | None = None
    """The folder of the plans; null: the service's state directory, else `plans` in the folder of the models."""
    workspace_mb: Annotated[int, Field(ge=16, le=65_536)] = 1024
    """Most scratch memory, MB, that a build may use for one layer."""
    optimisation_level: Annotated[int, Field(ge=0, le=5)] = 3
    """0 builds soonest, 5 runs fastest."""
    half_encoders: bool = False
    """Whether fp16 of encoders is made by converting their graph, not left to TensorRT's choice per layer."""
    cuda_graphs: bool = True
    """Whether each known shape is launched as one CUDA graph."""
    gpu_memory_mb: Annotated[int, Field(ge=64, le=1_048_576)] | None = None
    """Most GPU memory, MB, for engines together; over it start-up ends, saying which asks for what; null: no bound."""
    dla_core: Annotated[int, Field(ge=0, le=7)] | None = None
    """Put layers on this DLA core where they fit; null: the GPU alone."""
    tactic_sources: tuple[str, ...] | None = None
    """Where kernels may come from, names of TensorRT's TacticSource; null: TensorRT's own choice."""
    serve_while_building: bool = True
    """Whether frames are read while plans are built: with the last plan that fits, else on the CPU."""


class BackendConfig(Section):
    """What runs the models."""

    kind: Literal["auto", "onnxruntime", "tensorrt"] = "auto"
    """auto: TensorRT where it is installed with a GPU, else ONNX Runtime on the CPU."""
    allow_cpu_fallback: bool = False
    """Whether to read on the CPU, much slower, where TensorRT was asked for or meant and cannot run."""
    threads: Annotated[int, Field(ge=0, le=256)] = 0
    """CPU threads for inference; 0: one per core."""
    tensorrt: TensorRtConfig = TensorRtConfig()
    """How TensorRT works, where it runs."""


class PipelineConfig(Section):
    """How a frame becomes a reading."""

    detector: Name = "ppocrv6-small-det"
    """The model that finds text: a folder in models_dir."""
    recogniser: Name = "ppocrv6-small-rec"
    """The model that reads text: a folder in models_dir."""
    encoder: Name | None = "minilm-l6-v2"
    """The model that compares meanings, for product names and phrases; null: none."""
    tagger: Name | None = None
    """A token classification model of your own that marks fields in texts: a folder in models_dir; null: none."""
    languages: tuple[Language, ...] = ("en", "de", "fr", "es", "it")
    """Languages on the labels, as two-letter codes (ISO 639-1)."""
    characters: Literal["auto", "latin", "full"] = "auto"
    """What the recogniser may read: latin letters, digits and signs; full: all it knows; auto: what languages need."""
    detector_min_side_px: Annotated[int, Field(ge=32, le=4096)] = 736
    """Frames are enlarged until their shorter side has this many px before text is looked for."""
    detector_max_side_px: Annotated[int, Field(ge=32, le=8192)] = 2000
    """Frames are made smaller until their longer side has this many px before text is looked for; of frames a third
    larger still, parts with small text are looked at again at full size."""
    pixel_threshold: Share = 0.3
    """Probability, 0 to 1, from which on a pixel counts as text."""
    box_threshold: Share = 0.5
    """Mean probability, 0 to 1, that a box of text needs; lower finds fainter text and more that is none."""
    unclip_ratio: Annotated[float, Field(ge=0.5, le=5.0)] = 1.6
    """How far a found box is widened: area x this / perimeter, on each side."""
    max_boxes: Annotated[int, Field(ge=1, le=5000)] = 500
    """Most boxes read in one frame; the largest are kept."""
    min_confidence: Share = 0.5
    """Lines read with less confidence, 0 to 1, are left out."""
    doubt_margin: Annotated[float, Field(ge=0, le=50)] = 3.0
    """A character less than e to the power of this times likelier than one it is mistaken for is listed as doubtful."""
    no_text_interval_s: Seconds = 10.0
    """Time between two readings without text of one camera, s; the first after a text comes at once."""

    @model_validator(mode="after")
    def _keys_agree(self) -> PipelineConfig:
        refuse(_minimum_above_maximum(self, "detector_min_side_px", "detector_max_side_px"))
        return self


class CustomFieldConfig(Section):
    """What is known of a field beyond what comes along, or of a field of your own by a name of your own."""

    keys: Annotated[tuple[Phrase, ...], Field(max_length=256)] = ()
    """Phrases that stand before its value on labels, such as "Art. no."; case, accents and spaces do not matter."""
    prototypes: Annotated[tuple[Phrase, ...], Field(max_length=256)] = ()
    """Whole lines that say it, as examples for the encoder."""
    mask: Mask | None = None
    """What its value must look like: a mask such as L9999A, or a regular expression between slashes."""
    value: Literal["code", "date", "quantity", "text"] = "code"
    """What its value is; of a field that comes along this is known."""


class FieldsConfig(Section):
    """What lines mean."""

    date_order: Literal["DMY", "MDY", "YMD"] = "DMY"
    """How 03/04/26 is read: DMY 3 April, MDY 4 March, YMD 2003-04-26."""
    date_window_years: Annotated[int, Field(ge=1, le=200)] = 20
    """A date further from today than this is flagged implausible; not judged while the clock is not trusted."""
    min_similarity: Share = 0.2
    """Likeness to the nearest example phrases, 0 to 1, below which the encoder's name for a line is not believed."""
    max_line_chars: Annotated[int, Field(ge=256, le=1_000_000)] = 131_072
    """Of a longer line head and tail are read, and its fields are flagged truncated."""
    max_fields: Annotated[int, Field(ge=1, le=10_000)] = 200
    """Most fields of one frame; those beyond are dropped and counted."""
    codes: tuple[CodeFormat, ...] = ("EAN13", "EAN8", "UPCA", "Code128", "DataMatrix", "QRCode")
    """Bar codes and 2D codes that are decoded; the fewer, the faster; none: []."""
    region: Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}$")] | None = None
    """Country of telephone numbers that are printed without one, two letters (ISO 3166-1) such as DE; null: none."""
    custom: Annotated[dict[FieldName, CustomFieldConfig], Field(max_length=64)] = {}  # noqa: RUF012 - pydantic copies it
    """Fields by name, one of ours or one of your own: its key phrases, examples and mask."""


class CatalogueConfig(Section):
    """The products that come by: a product name that is read is held against them."""

    names: Annotated[tuple[Phrase, ...], Field(max_length=10_000)] = ()
    """Their names, as the labels print them."""
    file: LocalPath | None = None
    """A text file in UTF-8 with more of them, one a line: a name, or an id, a tab and a name; null: none."""


class ItemsConfig(Section):
    """How readings of one physical item become one result."""

    mode: ItemMode = "none"
    """none: each frame is a result of its own; still: an item rests before the camera; conveyor: items pass by."""
    per: Literal["camera", "region"] = "camera"
    """camera: the regions of a camera show one item; region: each of them shows an item of its own."""
    direction: Literal["auto", "left", "right", "up", "down"] = "auto"
    """conveyor: where items move to in the picture; auto: found out."""
    min_reads: Annotated[int, Field(ge=1, le=100)] = 2
    """Readings that must show an item before it can get the verdict PASS."""
    decide_within_ms: Annotated[int, Field(ge=50, le=600_000)] = 2000
    """Longest time from the first sight of an item, or its trigger, to its result, ms."""
    gone_after_ms: Annotated[int, Field(ge=50, le=600_000)] = 600
    """An item that was not seen for so long is gone, ms; shorter gaps are flicker."""
    max_open: Annotated[int, Field(ge=1, le=256)] = 16
    """Most items of a camera that are in the picture at once; the oldest is decided for one more."""
    publish_readings: bool = False
    """Whether the readings are published too, each with verdict null."""
    trust_clock: bool = False
    """Whether dates are compared with a clock that nothing has synchronised, such as a battery's in a plant apart."""


class EvidenceConfig(Section):
    """What is kept of items that were not passed: a picture and what was read, by the item's id."""

    keep: tuple[Literal["PASS", "FAIL", "NO_READ"], ...] = ("FAIL", "NO_READ")
    """The verdicts whose items are kept; none: nothing is."""
    directory: LocalPath | None = None
    """The folder; null: `evidence` beside the outbox's file, nowhere with outbox.kind memory."""
    max_bytes: Annotated[int, Field(ge=1_048_576)] = 268_435_456
    """Most bytes kept; the oldest go first."""
    keep_s: Annotated[float, Field(gt=0, le=315_360_000)] = 2_592_000.0
    """How long they are kept, s."""
    jpeg_quality: Annotated[int, Field(ge=30, le=100)] = 90
    """Quality of the pictures."""


class CalibrationConfig(Section):
    """What `edge-agent calibrate` measures with and where its results lie."""

    directory: LocalPath | None = None
    """The folder of calibrations; null: in the service's state directory, else `calibration` beside models_dir."""
    record_interval_s: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    """Of each camera at most one frame in this time, s, is kept for calibrating; 0: none is."""
    record_max_frames: Annotated[int, Field(ge=1, le=100_000)] = 300
    """Most frames kept; the oldest go first."""
    record_max_bytes: Annotated[int, Field(ge=1_048_576)] = 536_870_912
    """Most bytes of kept frames; the oldest go first."""


class MqttConfig(Section):
    """The broker and how to reach it."""

    host: Annotated[str, Field(min_length=1, max_length=253), AfterValidator(_host)] = "127.0.0.1"
    """The broker's name or IP address."""
    port: Port = 1883
    """The broker's port; 8883 is usual with tls."""
    base_topic: Name = "edge"
    """First level of every topic: base_topic/device_id/..."""
    client_id: Name | None = None
    """MQTT client id, one to each client; null: edge-agent and the device id."""
    protocol: Annotated[Literal["5", "3.1.1"], BeforeValidator(_number_as_text)] = "5"
    """MQTT version: 5 or 3.1.1."""
    username: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """User at the broker; null: none."""
    password: SkipJsonSchema[SecretStr | None] = None
    """The user's password; comes by the environment only, never by a file of settings or from afar."""
    password_file: LocalPath | None = None
    """A file with the user's password, one line, readable by the owner alone."""
    tls: bool = False
    """Encrypts the connection and checks the broker's certificate and name."""
    ca_file: LocalPath | None = None
    """Certificates (PEM) that may have signed the broker's; null: those that the system trusts."""
    cert_file: LocalPath | None = None
    """The device's own certificate (PEM), together with key_file."""
    key_file: LocalPath | None = None
    """The key (PEM, no passphrase) of cert_file."""
    keepalive_s: Annotated[int, Field(ge=5, le=3600)] = 30
    """Silence, s, after which the broker is asked whether it is still there."""
    connect_timeout_s: Seconds = 5.0
    """How long connecting may take, s."""
    reconnect_min_s: Seconds = 1.0
    """First wait before connecting again, s; it doubles up to reconnect_max_s."""
    reconnect_max_s: Seconds = 60.0
    """Longest wait before connecting again, s."""
    conflict_backoff_s: Seconds = 300.0
    """Wait, s, after another client took over this client id."""
    max_inflight: Annotated[int, Field(ge=1, le=1000)] = 20
    """Messages under way to the broker at once without its confirmation."""
    max_payload_bytes: Annotated[int, Field(ge=1024, le=268_435_455)] = 262_144
    """Largest message sent or taken, bytes."""
    home_assistant: Name | None = None
    """Home Assistant's discovery prefix, homeassistant unless changed there; null: the device is not announced."""

    @model_validator(mode="after")
    def _keys_agree(self) -> MqttConfig:
        problems = list(_minimum_above_maximum(self, "reconnect_min_s", "reconnect_max_s"))
        if not self.tls:
            given = [key for key in ("ca_file", "cert_file", "key_file") if getattr(self, key) is not None]
            problems += [(key, "is for an encrypted connection; write tls: true as well") for key in given]
        if (self.cert_file is None) != (self.key_file is None):
            absent = "cert_file" if self.cert_file is None else "key_file"
            problems.append((absent, "is missing; cert_file and key_file go together"))
        if self.username is None and (self.password is not None or self.password_file is not None):
            problems.append(("username", "is missing; a password needs one"))
        if self.password is not None and self.password_file is not None:
            problems.append(("password_file", f"and {variable_of(('mqtt', 'password'))} both give a password"))
        refuse(problems)
        return self

    def read_password(self) -> str | None:
        """The password from the environment or password_file, read anew each time; None where neither is set.

        Raises ConfigError for a file that cannot be used.
        """
        if self.password is not None:
            return self.password.get_secret_value()
        return None if self.password_file is None else read_password_file(self.password_file)


class OutboxConfig(Section):
    """What waits for the broker."""

    kind: Literal["disk", "memory"] = "disk"
    """disk: readings that wait outlive the program and a power cut; memory: they do not."""
    path: LocalPath | None = None
    """The file they wait in; null: outbox.db in the service's state directory, else in the folder `state`."""
    max_bytes: Annotated[int, Field(ge=1_048_576)] = 268_435_456
    """Most bytes of that file in use; the oldest readings go first."""
    max_memory_bytes: Annotated[int, Field(ge=65_536)] = 67_108_864
    """Most bytes that wait in memory: all of them with kind memory, or while the disk fails."""
    flush_ms: Annotated[int, Field(ge=0, le=60_000)] = 200
    """A power cut loses readings of at most this time, ms; 0: none that was read, for more wear of the flash."""
    replay_per_s: Annotated[float, Field(ge=0, le=100_000)] = 500.0
    """Most readings of the backlog sent a second after an outage; 0: no limit."""
    live_first: bool = True
    """Whether after an outage new readings go before the backlog; false: all in the order they were read."""
    max_age_s: Annotated[float, Field(gt=0)] = 604_800.0
    """Age, s, at which a waiting message is dropped."""
    historical_after_s: Seconds = 10.0
    """Age, s, from which on a delivered reading is marked historical."""


class TelemetryConfig(Section):
    """How the device reports on itself."""

    interval_s: Annotated[float, Field(ge=0.5, le=3600)] = 10.0
    """Time between two reports, s."""
    system_root: LocalPath = Path("/")
    """The folder in which the board's sys, proc, etc and var are; other than / where a container mounts them apart."""
    directory: LocalPath | None = None
    """Where reports are kept on disk; null: `telemetry` beside the outbox's file, nowhere with outbox.kind memory."""
    keep_s: Annotated[float, Field(ge=0, le=31_536_000)] = 86_400.0
    """How long reports are kept on disk, s; 0: they are not."""
    keep_bytes: Annotated[int, Field(ge=1_048_576)] = 33_554_432
    """Most bytes of reports kept on disk; the oldest go first."""
    keep_event_bytes: Annotated[int, Field(ge=65_536)] = 1_048_576
    """Most bytes of events kept on disk, in `events` below that folder; the oldest go first."""


class ThermalConfig(Section):
    """From which temperature on fewer frames are read, before the board slows itself down."""

    enabled: bool = True
    """Whether fewer frames are read while the board is hot or held back."""
    cpu_c: Celsius = 92.0
    """Temperature of a CPU zone, C, from which on three of four frames are read."""
    gpu_c: Celsius = 92.0
    """The same of a GPU zone, C."""
    soc_c: Celsius = 92.0
    """The same of a soc or cv zone, C."""
    tj_c: Celsius = 94.0
    """The same of the hottest junction, zone tj, C."""
    step_c: Annotated[float, Field(ge=0.5, le=20)] = 3.0
    """So much hotter, C, every second frame is read, and twice so much hotter every fourth."""
    hysteresis_c: Annotated[float, Field(ge=0.5, le=30)] = 4.0
    """So much cooler than its bound, C, it must be before more frames are read again."""
    dwell_s: Seconds = 30.0
    """Least time between a change and the next step back to more frames, s."""


class MetricsConfig(Section):
    """The same figures for Prometheus, over HTTP."""

    port: Port | None = None
    """The port; null: none is opened. Needs the Python package prometheus-client (the extra `metrics`)."""
    host: Annotated[str, Field(min_length=1, max_length=253), AfterValidator(_host)] = "127.0.0.1"
    """The address that is listened on; 127.0.0.1: this device alone can ask."""


class WebConfig(Section):
    """The page on this machine, and what programs ask for over HTTP."""

    enabled: bool = False
    """Whether the page is served. Needs the Python packages starlette and uvicorn (the extra `web`)."""
    host: Annotated[str, Field(min_length=1, max_length=253), AfterValidator(_host)] = "127.0.0.1"
    """The address that is listened on; 127.0.0.1: this device alone; any other needs a password or token, and TLS."""
    port: Port = 8480
    """The port."""
    hostnames: Annotated[tuple[WebHost, ...], Field(max_length=32)] = ()
    """Names under which browsers ask for the page, beside the host's own name and IP addresses."""
    password_file: LocalPath | None = None
    """A file with the password's hash, made by `edge-agent web set-password FILE`; null: no password opens the page."""
    token_file: LocalPath | None = None
    """A file with the hashes of tokens for programs, made by `edge-agent web add-token FILE NAME`; null: none."""
    cert_file: LocalPath | None = None
    """The page's certificate (PEM), with those between it and its root, together with key_file; null: no TLS."""
    key_file: LocalPath | None = None
    """The key (PEM, no passphrase) of cert_file."""
    allow_insecure: bool = False
    """true: serve other machines without TLS, so that passwords and pictures cross the network readable."""
    max_upload_bytes: Annotated[int, Field(ge=1024, le=268_435_456)] = 20_971_520
    """Largest picture taken by POST /v1/read, bytes."""
    max_upload_pixels: Annotated[int, Field(ge=1)] = 50_000_000
    """The same in px; looked up in its header before it is decoded."""
    max_waiting_reads: Annotated[int, Field(ge=1, le=100)] = 4
    """Most pictures taken in that wait for their turn; more are answered 429."""
    max_clients: Annotated[int, Field(ge=4, le=1000)] = 64
    """Most connections at once; more are answered 503."""
    stream_fps: Annotated[float, Field(gt=0, le=60)] = 5.0
    """Most pictures a second that a viewer is shown of a camera."""
    stream_max_side_px: SidePx = 960
    """Longer side, px, that pictures for viewers are made smaller to."""

    @property
    def loopback(self) -> bool:
        """Whether this device alone can ask."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @model_validator(mode="after")
    def _keys_agree(self) -> WebConfig:
        problems = []
        if (self.cert_file is None) != (self.key_file is None):
            absent = "cert_file" if self.cert_file is None else "key_file"
            problems.append((absent, "is missing; cert_file and key_file go together"))
        if self.enabled and not self.loopback:
            if self.password_file is None and self.token_file is None:
                why = f"is missing; with host {self.host} other machines can ask"
                problems.append(("password_file", f"{why}: make one by `edge-agent web set-password FILE`"))
            if self.cert_file is None and self.key_file is None and not self.allow_insecure:
                why = f"is missing; with host {self.host} passwords would cross the network readable"
                problems.append(("cert_file", f"{why}: give a certificate, or write allow_insecure: true"))
        refuse(problems)
        return self


class RemoteConfig(Section):
    """What may be changed and asked for from afar, by config/desired and command/<name>."""

    enabled: bool = True
    """false: what comes is counted and ignored, and what came before is not in force."""
    allowed_keys: tuple[RemoteKey, ...] = (
        "cameras.*.enabled",
        "cameras.*.expected",
        "cameras.*.items",
        "cameras.*.max_fps",
        "cameras.*.rois",
        "fields",
        "items",
        "log.level",
        "pipeline",
        "telemetry.interval_s",
    )
    """Keys that may be changed, or sections for all of their keys; never mqtt, remote, transport, web or paths."""
    camera_schemes: tuple[CameraScheme, ...] = ("csi", "rtsp", "rtsps", "v4l2")
    """Where a camera's source from afar may lead, where its key is allowed; file: into camera_folders."""
    camera_hosts: tuple[CameraHost, ...] = ()
    """Hosts of cameras: names, *.names, addresses, networks; none: IP addresses but the device's own and the like."""
    camera_folders: tuple[FullPath, ...] = ()
    """Folders in which stored sources from afar may lie."""
    max_bytes: Annotated[int, Field(ge=1024, le=1_048_576)] = 65_536
    """Largest text of a configuration or command, bytes; looked at before it is parsed."""
    trial_s: Seconds = 60.0
    """How long a new configuration runs on trial, s, before it is kept."""
    trial_starts: Annotated[int, Field(ge=1, le=20)] = 3
    """Starts that a configuration on trial may take; one more means that it crashes, and the last good one returns."""
    min_fps_share: Share = 0.5
    """Frames read in a second on trial, as a share of before, 0 to 1, below which the last good one returns."""
    min_read_share: Share = 0.5
    """Share of frames with text, as a share of before, 0 to 1, below which it returns; 0: not judged."""
    kept_texts: Annotated[int, Field(ge=1, le=1000)] = 20
    """Configurations from afar that are remembered with their texts, refused ones too."""
    commands: tuple[CommandName, ...] = get_args(CommandName)
    """Commands that are carried out."""
    command_rate_per_min: Annotated[int, Field(ge=1, le=6000)] = 60
    """Most commands in a minute; more are answered busy."""
    kept_command_ids: Annotated[int, Field(ge=16, le=10_000)] = 256
    """Commands whose ids and answers are remembered, so that each runs once."""


class LogConfig(Section):
    """What the program writes about itself, to stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important lines written."""
    format: Literal["text", "logfmt", "json"] = "text"
    """text for people and the journal; logfmt: key=value pairs; json: one object a line."""


class Config(Section):
    """Everything; the top of config.yaml."""

    device_id: Name | None = None
    """This device's name in topics; null: made from the machine's id, the same at every start."""
    transport: Literal["mqtt", "jsonl"] = "mqtt"
    """Where messages go: mqtt, to a broker; jsonl, to standard output, one JSON object a line."""
    models_dir: LocalPath | None = None
    """The folder of the models; null: `engines` in the working folder, beside the source, or where pip put it."""
    cameras: dict[CameraName, CameraConfig] = {}  # noqa: RUF012 - pydantic copies it
    """The cameras by name; the name is a level of their topics."""
    backend: BackendConfig = BackendConfig()
    """What runs the models."""
    pipeline: PipelineConfig = PipelineConfig()
    """How a frame becomes a reading."""
    fields: FieldsConfig = FieldsConfig()
    """What lines mean."""
    catalogue: CatalogueConfig = CatalogueConfig()
    """The products that come by."""
    items: ItemsConfig = ItemsConfig()
    """How readings of one physical item become one result."""
    evidence: EvidenceConfig = EvidenceConfig()
    """What is kept of items that were not passed."""
    calibration: CalibrationConfig = CalibrationConfig()
    """What `edge-agent calibrate` measures with and where its results lie."""
    mqtt: MqttConfig = MqttConfig()
    """The broker and how to reach it."""
    outbox: OutboxConfig = OutboxConfig()
    """What waits for the broker."""
    telemetry: TelemetryConfig = TelemetryConfig()
    """How the device reports on itself."""
    thermal: ThermalConfig = ThermalConfig()
    """From which temperature on fewer frames are read."""
    metrics: MetricsConfig = MetricsConfig()
    """Figures for Prometheus."""
    web: WebConfig = WebConfig()
    """The page on this machine."""
    remote: RemoteConfig = RemoteConfig()
    """What may be changed and asked for from afar."""
    log: LogConfig = LogConfig()
    """What the program writes about itself."""

    def device(self, machine_id_file: Path = MACHINE_ID_FILE) -> str:
        """The device's name: device_id, else one made from the machine's id (hashed), else from the host's name."""
        if self.device_id is not None:
            return self.device_id
        try:
            machine_id = machine_id_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            machine_id = ""
        if re.fullmatch(r"[0-9a-f]{32}", machine_id) and set(machine_id) != {"0"}:
            # machine-id(5): the id is confidential, what leaves the machine is a keyed hash of it
            return "edge-" + hashlib.sha256(b"edge_agent " + machine_id.encode()).hexdigest()[:12]
        host = re.sub(r"[^A-Za-z0-9_-]", "-", socket.gethostname().partition(".")[0])
        return f"edge-{host[:50] or 'unnamed'}"


def load(path: Path, environ: Mapping[str, str] = os.environ, content: bytes | None = None) -> Config:
    """The settings in the file, with EDGE_AGENT_* of `environ` over them; `content`: instead of what the file holds.

    Relative paths in the file start at the file's folder. An empty file means the defaults (`cautions` says so).
    Raises ConfigError with every problem, one a line.
    """
    raw = _read(path) if content is None else content
    return _loaded(parse_document(raw, str(path), MAX_FILE_BYTES), path.parent.absolute(), environ)


def without_file(environ: Mapping[str, str] = os.environ) -> Config:
    """The defaults with EDGE_AGENT_* of `environ` over them; raises ConfigError as `load` does."""
    return _loaded(Document("environment", {}, {}, ()), Path.cwd(), environ)


def patched(config: Config, patch: Mapping[str, Any], folder: Path | None = None, origin: str = "patch") -> Config:
    """`config` changed by a JSON merge patch (RFC 7396), as strict as a file.

    null gives a key its default or removes a camera, lists are replaced whole. `folder` is where relative paths start.
    Raises ConfigError with every problem; `origin` names the patch in it. `config` stays as it is.
    """
    problems = [Problem(0, path, why) for path, why in _passwords_in(patch)]
    values = merge_patched(plain(config), patch)
    if folder is not None:
        values = _anchored(values, folder)
    return rebuilt(config, values, origin, problems)


def rebuilt(config: Config, values: Mapping[str, Any], origin: str, problems: Iterable[Problem] = ()) -> Config:
    """The settings that plain `values` make, such as `plain(config)` with changes, with the password of `config`.

    Raises ConfigError with every problem, `problems` among them; `origin` names the values in it.
    """
    if config.mqtt.password is not None:
        values = merged(values, {"mqtt": {"password": config.mqtt.password.get_secret_value()}})
    return validated(Config, filled(Config, values), Origin(origin), problems)


def plain(config: Config) -> dict[str, Any]:
    """`config` as plain values (text, numbers, lists, mappings), without passwords; `load` takes it back the same."""
    values = _plain(config)
    values["mqtt"].pop("password")
    return dict(values)


def shown(config: Config) -> dict[str, Any]:
    """`plain(config)` for people: passwords, in addresses too, are ***."""
    values = plain(config)
    for camera in values["cameras"].values():
        camera["source"] = masked(camera["source"])
    if config.mqtt.password is not None:
        values["mqtt"]["password"] = MASK
    return values


def changed_keys(old: Config, new: Config) -> set[str]:
    """Dotted keys whose values differ; of a camera that came or went, all its keys."""
    before, after = dict(flat(plain(old))), dict(flat(plain(new)))
    absent = object()
    paths = before.keys() | after.keys()
    changed = {path for path in paths if before.get(path, absent) != after.get(path, absent)}
    if old.mqtt.password != new.mqtt.password:
        changed.add(("mqtt", "password"))
    return {dotted(path) for path in changed}


def is_live(key: str) -> bool:
    """Whether the agent applies a change of this dotted key without a restart."""
    return any(fnmatch.fnmatchcase(key, pattern) for pattern in LIVE)


def cautions(config: Config, file: Path | None = None) -> list[Problem]:
    """What is allowed but hardly meant, in `config` and the `file` it was loaded from; `path` leads to the key, () for
    the file as a whole. Nothing in it is secret."""
    found = [] if file is None else [Problem(0, (), why) for why in _file_cautions(file)]
    if not config.cameras:
        found.append(Problem(0, ("cameras",), "none is configured; nothing will be read"))
    by_source: dict[str, str] = {}
    for name, camera in config.cameras.items():
        path: KeyPath = ("cameras", name, "source")
        caution = source_caution(camera.kind, camera.source)
        if caution is not None:
            found.append(Problem(0, path, caution))
        if camera.enabled:
            first = by_source.setdefault(camera.source, name)
            if first != name:
                found.append(Problem(0, path, f"is that of camera {first} as well; most cameras serve one reader"))
            found += _private_file("cameras", name, "password_file", file=camera.password_file)
    if config.web.enabled:
        found += _private_file("web", "key_file", file=config.web.key_file)
    if config.transport == "mqtt":
        found += _private_file("mqtt", "password_file", file=config.mqtt.password_file)
        found += _private_file("mqtt", "key_file", file=config.mqtt.key_file)
        found += [Problem(0, ("mqtt", key), why) for key, why in _mqtt_cautions(config.mqtt)]
    return found


def _file_cautions(path: Path) -> Iterator[str]:
    if not path.is_file():
        return  # a pipe, which was read to its end: opening it again would wait for ever
    values = parse_document(_read(path), str(path), MAX_FILE_BYTES).values
    if not values:
        yield "is empty: every setting has its default"
    cameras = values.get("cameras")
    sources = [value_at(cameras, (name, "source")) for name in cameras] if isinstance(cameras, Mapping) else []
    if any(isinstance(source, str) and has_password(source) for source in sources):
        caution = private_file_caution(path)
        if caution is not None:
            yield f"holds a password: {caution}"


def _private_file(*key: str, file: Path | None) -> list[Problem]:
    caution = None if file is None else private_file_caution(file)
    return [] if caution is None else [Problem(0, key, caution)]


def _mqtt_cautions(mqtt: MqttConfig) -> Iterator[tuple[str, str]]:
    if mqtt.tls and mqtt.ca_file is None:
        yield "tls", "without ca_file the broker's certificate is checked against those that the system trusts"
    if mqtt.tls and mqtt.port == 1883:
        yield "port", "1883 is usually without tls; 8883 is usual with it"
    if not mqtt.tls and mqtt.port == 8883:
        yield "port", "8883 is usually with tls; write tls: true as well"
    local = mqtt.host == "localhost" or mqtt.host.startswith("127.") or mqtt.host == "::1"
    if not mqtt.tls and mqtt.username is not None and not local:
        yield "tls", "without it the password crosses the network readable"


def _loaded(document: Document, folder: Path, environ: Mapping[str, str]) -> Config:
    values = _anchored(filled(Config, document.values), folder)
    over = overrides(Config, values, environ)
    origin = Origin(document.origin, document.lines, over.variables)
    problems = [*document.problems, *over.problems]
    problems += [origin.problem(path, why) for path, why in _passwords_in(document.values)]
    return validated(Config, merged(values, over.values), origin, problems)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file; name yours, or begin with a copy of config.yaml") from None
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}") from exc


def _anchored(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """`values` with relative paths, those of stored sources too, started at `folder`."""
    result = dict(values)
    for leaf in leaves(Config, values):
        text = value_at(values, leaf.path)
        stored = leaf.path[-1] == "source" and value_at(values, (*leaf.path[:-1], "kind")) in STORED_KINDS
        if not isinstance(text, str) or not (stored or Path in leaf.kinds):
            continue
        if text and not text.startswith("~") and not is_address(text):
            result = merged(result, tree_of(leaf.path, str(folder / text)))
    return result


def _passwords_in(values: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Keys that hold a password itself: only the environment may set them."""
    for leaf in leaves(Config, values):
        if SecretStr in leaf.kinds and value_at(values, leaf.path) is not None:
            yield leaf.path, f"does not belong here; use {leaf.path[-1]}_file, or the variable {variable_of(leaf.path)}"


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
