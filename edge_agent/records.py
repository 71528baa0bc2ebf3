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
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

SCHEMA_VERSION = 1

FROM_CATALOGUE = "from_catalogue"  # of what the catalogue of the settings knows
TURNED = "turned"  # print that reads both ways up, read the way that fits what is expected
# flags of a field that say how it is printed or known; every other one means doubt
INFORMING_FLAGS = frozenset({"month_precision", "from_gs1", FROM_CATALOGUE, TURNED})
DOUBTFUL = "doubtful"  # a character of the value could be another, and nothing settles which it is
GLARE = "glare"  # a picture that has it; a line that breaks off in it
LINE_DOUBTS = frozenset({"cut", "too_small", GLARE})  # flags of a line: characters of it may be lost or others
# fields of which a label has one; it may have several bar codes, amounts and addresses
ONE_OF_A_KIND = frozenset({"expiry_date", "manufacture_date", "lot", "serial_number"})


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

    @cached_property
    def width_px(self) -> float:
        """Length along the text: the longer of the top and the bottom edge."""
        p = self.points
        return float(max(np.linalg.norm(p[1] - p[0]), np.linalg.norm(p[2] - p[3])))

    @cached_property
    def height_px(self) -> float:
        """Length across the text: the longer of the left and the right edge."""
        p = self.points
        return float(max(np.linalg.norm(p[3] - p[0]), np.linalg.norm(p[2] - p[1])))

    @cached_property
    def centre(self) -> npt.NDArray[np.float32]:
        """Mean of the corners, float32 (2,) px, read-only."""
        mean = np.asarray(self.points.mean(axis=0), np.float32)
        mean.flags.writeable = False
        return mean

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
class Character:
    """One character of a line: `probability` 0..1; `margin` >= 0 is the natural log of how many times likelier it is
    than `rival`, the likeliest other code character, not the same letter in another case; "" where there is none."""

    text: str
    probability: float
    margin: float
    rival: str


@dataclass(frozen=True, eq=False)
class Lattice:
    """What a line might say, step by step (T steps of a CTC network, Graves et al. 2006): the natural logarithms of
    the probabilities of the code characters, and of whatever character is the likeliest.

    `alphabet` are the C code characters, the blank "" first; `log_p` float32 (T, C); `best` the likeliest character of
    each step, "" the blank, in the alphabet or not; `best_log_p` float32 (T,); `steps` int32 (N, 2) the first step and
    the one behind the last of each character of the line's text (a space that was put in has none: both are equal).
    """

    alphabet: tuple[str, ...]
    log_p: npt.NDArray[np.float32]
    best: tuple[str, ...]
    best_log_p: npt.NDArray[np.float32]
    steps: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        n_steps = len(self.best)
        if self.log_p.shape != (n_steps, len(self.alphabet)) or self.best_log_p.shape != (n_steps,):
            raise ValueError(
                f"log_p is {self.log_p.shape} and best_log_p {self.best_log_p.shape}; expected "
                f"({n_steps}, {len(self.alphabet)}) and ({n_steps},)"
            )
        if self.alphabet[:1] != ("",) or self.steps.ndim != 2 or self.steps.shape[1] != 2:
            raise ValueError("expected the blank as the first of the alphabet, and steps of shape (N, 2)")
        for array in (self.log_p, self.best_log_p, self.steps):
            array.flags.writeable = False


@dataclass(frozen=True)
class TextLine:
    """One line read: `confidence` 0..1 is the mean of its characters' probabilities; `flags` such as `cut`.

    `characters` stand for `text`, one each, spaces included; empty where the recogniser gives no margins. `doubtful`
    are the indices of those whose margin is below the bound in force. `region` is the part of the camera's picture
    that it stands in, None without regions. `lattice` stays in the process.
    """

    text: str
    confidence: float
    box: TextBox
    flags: tuple[str, ...] = ()
    characters: tuple[Character, ...] = ()
    doubtful: tuple[int, ...] = ()
    region: str | None = None
    lattice: Lattice | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Code:
    """A bar code or 2D code that was decoded: `symbology` such as `EAN13`, `text` its content (FNC1 separators as
    U+001D), `quad` px in the frame, `identifier` the AIM symbology identifier of ISO/IEC 15424 (`]C1`), "" unknown."""

    symbology: str
    text: str
    quad: Quad
    region: str | None = None
    identifier: str = ""


@dataclass(frozen=True)
class Correction:
    """A character that a pattern replaced: `seen` at index `at` of the text as seen, `taken` in its place; "" is none:
    nothing was seen there, or what was seen is left out."""

    at: int
    seen: str
    taken: str


@dataclass(frozen=True)
class Field:
    """What lines or codes mean: `value` normalised (dates ISO 8601), `text` as seen, `lines` and `codes` = indices into
    the reading's.

    `source` says what named it: a decoded code, a rule (a key phrase, or a form that proves itself) or the model.
    `alternatives` are the other values that an ambiguous text can have; `corrections` what a pattern changed.
    """

    name: str
    value: str
    text: str
    confidence: float
    lines: tuple[int, ...]
    flags: tuple[str, ...] = ()
    source: Literal["barcode", "rule", "model"] = "rule"
    corrections: tuple[Correction, ...] = ()
    alternatives: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()

    @property
    def certain(self) -> bool:
        """Whether there is a value and nothing speaks against it: no flag but those that merely inform."""
        return bool(self.value) and not self.corrections and INFORMING_FLAGS.issuperset(self.flags)


@dataclass(frozen=True)
class Reading:
    """The result of one frame: what leaves the device.

    `reason` is None when text was read, else why not (`no_text`). `quality` says what is wrong with the picture
    (`glare`, `blurred`, `faint`, `blank`, `dark`). `engines` maps a stage to its engine's fingerprint; `timings_ms`
    maps a stage to its wall time. `captured_at` is unix s, `captured_mono` monotonic s of this boot.
    `language` (ISO 639-1) is that of the label's words, None where they are too few to tell.
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
    quality: tuple[str, ...] = ()
    codes: tuple[Code, ...] = ()
    language: str | None = None

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
            "codes": [code_to_json(code) for code in self.codes],
            "language": self.language,
            "reason": self.reason,
            "quality": list(self.quality),
            "timings_ms": {stage: round(ms, 3) for stage, ms in self.timings_ms.items()},
            "engines": dict(self.engines),
            "backend": self.backend,
        }


Verdict = Literal["PASS", "FAIL", "NO_READ"]


@dataclass(frozen=True)
class Reason:
    """What one rule says of an item: `rule` in words, what it `expected`, what was `seen` ("" nothing).

    `why` is a word for programs where the verdict is not PASS: `absent`, `uncertain`, `ambiguous`, `clock_untrusted`,
    `few_reads`, `differs`.
    """

    rule: str
    expected: str
    seen: str
    verdict: Verdict
    why: str | None = None


@dataclass(frozen=True)
class Vote:
    """How readings stand to one character of an item's line: `share` 0..1 of their weight is for it; `rival` is what
    most of the others have there, "" for no character or where all agree."""

    text: str
    share: float
    rival: str


@dataclass(frozen=True)
class ItemLine:
    """A line of an item, from `n_reads` readings: `line` is the best of them with the voted text, where it stood;
    `votes` stand for its characters, one each."""

    line: TextLine
    n_reads: int
    votes: tuple[Vote, ...]

    @property
    def agreement(self) -> float:
        """0..1: the mean share of its characters; 1 where it has none."""
        return sum(vote.share for vote in self.votes) / len(self.votes) if self.votes else 1.0


@dataclass(frozen=True)
class ItemField:
    """A field of an item: `field` has the voted value and its indices lead into the item's lines and codes; `n_reads`
    readings have the field, `agreement` 0..1 of their weight says the same."""

    field: Field
    n_reads: int
    agreement: float


@dataclass(frozen=True)
class Item:
    """One physical item that passed by, from all readings that show it: what leaves the device once for it.

    Times are unix s of the frames that show it (of its trigger where none does); `first_seq` and `last_seq` number
    those frames. `agreement` 0..1 is the mean over its lines. `decided_by` says why the result came when it came:
    `settled`, `gone`, `time`, `trigger` (the next one came), `full`, `expected` (another expectation came), `stop`;
    `decided_after_ms` counts from the first sight or trigger. `evidence_id` is None where nothing was kept. Its lines'
    quads are px in the frame `last_seq`.
    """

    id: str
    camera: str
    first_seen_at: float
    last_seen_at: float
    first_seq: int
    last_seq: int
    width_px: int
    height_px: int
    n_reads: int
    agreement: float
    decided_by: str
    decided_after_ms: float
    region: str | None = None
    lines: tuple[ItemLine, ...] = ()
    fields: tuple[ItemField, ...] = ()
    codes: tuple[Code, ...] = ()
    language: str | None = None
    quality: tuple[str, ...] = ()
    verdict: Verdict | None = None
    reasons: tuple[Reason, ...] = ()
    expectation_id: str | None = None
    evidence_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The item in the MQTT item schema (docs/verify.md); plain values only, numbers finite."""
        return {
            "v": SCHEMA_VERSION,
            "id": self.id,
            "camera": self.camera,
            "region": self.region,
            "first_seen_at": rfc3339(self.first_seen_at),
            "last_seen_at": rfc3339(self.last_seen_at),
            "first_seq": self.first_seq,
            "last_seq": self.last_seq,
            "frame": {"width_px": self.width_px, "height_px": self.height_px},
            "n_reads": self.n_reads,
            "agreement": round(self.agreement, 4),
            "decided_by": self.decided_by,
            "decided_after_ms": round(self.decided_after_ms, 1),
            "lines": [item_line_to_json(line) for line in self.lines],
            "fields": [item_field_to_json(f) for f in self.fields],
            "codes": [code_to_json(code) for code in self.codes],
            "language": self.language,
            "quality": list(self.quality),
            "verdict": self.verdict,
            "reasons": [reason_to_json(reason) for reason in self.reasons],
            "expectation_id": self.expectation_id,
            "evidence_id": self.evidence_id,
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
        "quad": quad_to_json(line.box.quad),
        "box_score": round(line.box.score, 4),
        "flags": list(line.flags),
        "region": line.region,
        "doubtful": [doubt_to_json(at, line.characters[at]) for at in line.doubtful],
    }


def quad_to_json(quad: Quad) -> list[list[float]]:
    """The corners in px, to a tenth."""
    return [[round(float(x), 1), round(float(y), 1)] for x, y in quad.points]


def code_to_json(code: Code) -> dict[str, Any]:
    """A decoded code as in the result schema."""
    return {
        "symbology": code.symbology,
        "text": code.text,
        "quad": quad_to_json(code.quad),
        "region": code.region,
    }


def doubt_to_json(at: int, character: Character) -> dict[str, Any]:
    """A character that could be another, as in the result schema; `at` is its index in the line's text."""
    return {"at": at, "text": character.text, "rival": character.rival, "margin": round(character.margin, 3)}


def field_to_json(f: Field) -> dict[str, Any]:
    """A field as in the result schema."""
    return {
        "name": f.name,
        "value": f.value,
        "text": f.text,
        "confidence": round(f.confidence, 4),
        "lines": list(f.lines),
        "codes": list(f.codes),
        "flags": list(f.flags),
        "source": f.source,
        "certain": f.certain,
        "corrections": [{"at": c.at, "seen": c.seen, "taken": c.taken} for c in f.corrections],
        "alternatives": list(f.alternatives),
    }


def item_line_to_json(item_line: ItemLine) -> dict[str, Any]:
    """A line of an item as in the item schema: a line with how its readings agree; `disputed` characters alone."""
    return {
        **line_to_json(item_line.line),
        "n_reads": item_line.n_reads,
        "agreement": round(item_line.agreement, 4),
        "disputed": [
            {"at": at, "text": vote.text, "share": round(vote.share, 4), "rival": vote.rival}
            for at, vote in enumerate(item_line.votes)
            if vote.share < 1
        ],
    }


def item_field_to_json(item_field: ItemField) -> dict[str, Any]:
    """A field of an item as in the item schema."""
    return {
        **field_to_json(item_field.field),
        "n_reads": item_field.n_reads,
        "agreement": round(item_field.agreement, 4),
    }


def reason_to_json(reason: Reason) -> dict[str, Any]:
    """What a rule says, as in the item schema."""
    return {
        "rule": reason.rule,
        "expected": reason.expected,
        "seen": reason.seen,
        "verdict": reason.verdict,
        "why": reason.why,
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
