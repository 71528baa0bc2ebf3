"""Records: the frozen values that travel through the house, from a camera's frame to a message on the wire.

Coordinates are pixels in the frame, x right and y down; times are unix seconds (`*_at`) or monotonic seconds
(`*_mono`); images are uint8 (H, W, 3) BGR. Arrays inside records are read-only.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt

SCHEMA_VERSION = 1


@dataclass(frozen=True, eq=False)
class Frame:
    """One picture from one camera: `image` uint8 (H, W, 3) BGR, read-only; a gap in `seq` is a drop."""

    camera: str
    seq: int
    captured_at: float
    captured_mono: float
    image: npt.NDArray[np.uint8]

    def __post_init__(self) -> None:
        if self.image.dtype != np.uint8 or self.image.ndim != 3 or self.image.shape[2] != 3 or 0 in self.image.shape:
            raise ValueError(f"image is {self.image.dtype} {self.image.shape}; expected uint8 (H, W, 3) BGR, not empty")
        self.image.flags.writeable = False

    @property
    def width_px(self) -> int:
        return int(self.image.shape[1])

    @property
    def height_px(self) -> int:
        return int(self.image.shape[0])


@dataclass(frozen=True, eq=False)
class Quad:
    """Four corners of a text, `points` float32 (4, 2) px, clockwise on screen from the text's own top-left."""

    points: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        points = np.ascontiguousarray(self.points, np.float32)
        if points.shape != (4, 2) or not np.isfinite(points).all():
            raise ValueError(f"points have shape {points.shape} or are not finite; expected 4 finite (x, y) pairs")
        points.flags.writeable = False
        object.__setattr__(self, "points", points)

    @property
    def width_px(self) -> float:
        """Length along the text: the longer of the top and the bottom edge."""
        p = self.points
        return float(max(np.linalg.norm(p[1] - p[0]), np.linalg.norm(p[2] - p[3])))

    @property
    def height_px(self) -> float:
        """Length across the text: the longer of the left and the right edge."""
        p = self.points
        return float(max(np.linalg.norm(p[3] - p[0]), np.linalg.norm(p[2] - p[1])))

    @property
    def centre(self) -> npt.NDArray[np.float32]:
        """Mean of the corners, float32 (2,) px."""
        return np.asarray(self.points.mean(axis=0), np.float32)

    @property
    def angle_deg(self) -> float:
        """Direction of the text, degrees clockwise on screen from the x axis, in (-180, 180]."""
        dx, dy = self.points[1] - self.points[0]
        return math.degrees(math.atan2(float(dy), float(dx)))


@dataclass(frozen=True)
class TextBox:
    """Where the detector found text; `score` 0..1 is its mean text probability inside the quad."""

    quad: Quad
    score: float


@dataclass(frozen=True)
class TextLine:
    """One line read: `confidence` 0..1 is the mean of its characters' probabilities; `flags` such as `cut`."""

    text: str
    confidence: float
    box: TextBox
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Field:
    """What a line means: `value` normalised (dates ISO 8601), `text` as seen, `lines` = indices into Reading.lines."""

    name: str
    value: str
    text: str
    confidence: float
    lines: tuple[int, ...]
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """The result of one frame: what leaves the device.

    `reason` is None when text was read, else why not (`no_text`). `engines` maps a stage to its engine's
    fingerprint; `timings_ms` maps a stage to its wall time. `captured_at` is unix s, `captured_mono` monotonic s of
    this boot.
    """

    camera: str
    seq: int
    captured_at: float
    width_px: int
    height_px: int
    lines: tuple[TextLine, ...] = ()
    fields: tuple[Field, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    engines: Mapping[str, str] = field(default_factory=dict)
    backend: str = ""
    reason: str | None = None
    captured_mono: float | None = None

    @property
    def id(self) -> str:
        """Stable and unique per capture: the same frame offered again has the same id."""
        key = f"{self.camera}\0{self.seq}\0{self.captured_at!r}"
        return hashlib.sha256(key.encode()).hexdigest()[:24]

    def to_json(self) -> dict[str, Any]:
        """The reading in the MQTT result schema (docs/mqtt.md); plain values only, numbers finite."""
        return {
            "v": SCHEMA_VERSION,
            "id": self.id,
            "camera": self.camera,
            "seq": self.seq,
            "captured_at": rfc3339(self.captured_at),
            "frame": {"width_px": self.width_px, "height_px": self.height_px},
            "lines": [line_to_json(line) for line in self.lines],
            "fields": [field_to_json(f) for f in self.fields],
            "reason": self.reason,
            "timings_ms": {stage: round(ms, 3) for stage, ms in self.timings_ms.items()},
            "engines": dict(self.engines),
            "backend": self.backend,
        }


@dataclass(frozen=True)
class Origin:
    """The capture that a message tells of: the reading's `id`, and of its frame camera, seq and time (unix s)."""

    id: str
    camera: str
    seq: int
    captured_at: float


@dataclass(frozen=True)
class Message:
    """One MQTT publication: `topic` below the device's own prefix, `payload` UTF-8 JSON; `origin` of a reading's."""

    topic: str
    payload: bytes
    qos: int = 1
    retain: bool = False
    origin: Origin | None = None


@dataclass(frozen=True)
class Sample:
    """One sensor value; None means absent and is never written as 0."""

    name: str
    value: float | None
    unit: str
    taken_at: float


def line_to_json(line: TextLine) -> dict[str, Any]:
    """A text line as in the result schema: quad in px, clockwise from the text's top-left."""
    return {
        "text": line.text,
        "confidence": round(line.confidence, 4),
        "quad": [[round(float(x), 1), round(float(y), 1)] for x, y in line.box.quad.points],
        "box_score": round(line.box.score, 4),
        "flags": list(line.flags),
    }


def field_to_json(f: Field) -> dict[str, Any]:
    """A field as in the result schema."""
    return {
        "name": f.name,
        "value": f.value,
        "text": f.text,
        "confidence": round(f.confidence, 4),
        "lines": list(f.lines),
        "flags": list(f.flags),
    }


def rfc3339(unix_s: float) -> str:
    """A unix time as RFC 3339 UTC with milliseconds: 2026-11-30T12:00:00.000Z."""
    return datetime.fromtimestamp(unix_s, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def json_bytes(value: Any) -> bytes:
    """`value` as strict UTF-8 JSON (RFC 8259): not-a-number and infinity become null, numpy scalars plain numbers.

    Lone surrogates are escaped, so that the payload always decodes as UTF-8.
    """
    return json.dumps(_plain(value), allow_nan=False, separators=(",", ":")).encode("ascii")


def _plain(value: Any) -> Any:
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    raise TypeError(f"{type(value).__name__} has no JSON form here; give str, bool, number, None, list or mapping")
