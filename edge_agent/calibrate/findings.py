"""Findings: everything that the calibration of one model found out, as plain frozen values; reports are made of them.

Figures that were not measured are None, never 0. Times of day are unix seconds.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter, ValidationError

from edge_agent.calibrate.judgement import ChangedLine, GateResult
from edge_agent.calibrate.recipe import Method
from edge_agent.calibrate.timing import Timing
from edge_agent.calibrate.trial import Attempt, Conflict, SearchResult, Sensitivity
from edge_agent.errors import CalibrationRefused
from edge_agent.models.spec import Task

if TYPE_CHECKING:
    from edge_agent.calibrate.groups import Group

VERSION = 1
MOST_THUMBNAILS = 24
MOST_CHANGED = 24
Verdict = Literal["promoted", "refused", "passed"]


@dataclass(frozen=True)
class Picture:
    """A JPEG for people to look at. `jpeg` is empty where only its sha256 was kept, as in report.json."""

    name: str
    width_px: int
    height_px: int
    sha256: str
    jpeg: bytes = field(default=b"", repr=False, compare=False)

    @classmethod
    def of(cls, name: str, jpeg: bytes, width_px: int, height_px: int) -> Picture:
        """A picture with its bytes."""
        return cls(name, width_px, height_px, hashlib.sha256(jpeg).hexdigest(), jpeg)


@dataclass(frozen=True)
class Machine:
    """Where it was measured. `backend` with its version, `libraries` by name, `product_version` of edge_agent."""

    device: str
    backend: str
    backend_version: str
    product_version: str
    libraries: Mapping[str, str]


@dataclass(frozen=True)
class SkippedFrame:
    """A file that was offered and is not used."""

    name: str
    reason: str


@dataclass(frozen=True)
class CalibratedOn:
    """The frames and the inputs of the model that were recorded from them.

    `parts`: frames by what they were for. `passed_over`: frames that were not used, by reason; `skipped`: files that
    could not be. `shapes`: how often each shape ran ("8x48x320x3"); of these inputs `feeds` were kept and
    `feeds_left_out` were not. `thumbnails`: MOST_THUMBNAILS at most are shown.
    """

    source: str
    digest: str
    offered: int
    used: int
    parts: Mapping[str, int]
    passed_over: Mapping[str, int] = field(default_factory=dict)
    skipped: tuple[SkippedFrame, ...] = ()
    labelled: int = 0
    feeds: int = 0
    feeds_left_out: int = 0
    shapes: Mapping[str, int] = field(default_factory=dict)
    note: str = ""
    thumbnails: tuple[Picture, ...] = ()

    @classmethod
    def of(
        cls,
        counts: Mapping[str, Any],
        digest: str,
        shapes: Mapping[str, int],
        feeds_left_out: int = 0,
        thumbnails: tuple[Picture, ...] = (),
    ) -> CalibratedOn:
        """From what `Collection.counts()` and `FeedStore.met()` say."""
        return cls(
            source=counts["source"],
            digest=digest,
            offered=counts["offered"],
            used=counts["used"],
            parts={part: counts[part] for part in ("calibration", "search", "held_out")},
            passed_over={
                "near duplicates of others": counts["near_duplicates"],
                "nothing to see on them": counts["without_texture"],
                "left out, others differ more": counts["left_out"],
            },
            skipped=tuple(SkippedFrame(one["name"], one["reason"]) for one in counts["skipped_files"]),
            labelled=counts["labelled"],
            feeds=sum(shapes.values()) - feeds_left_out,
            feeds_left_out=feeds_left_out,
            shapes=dict(shapes),
            note=counts["note"],
            thumbnails=thumbnails[:MOST_THUMBNAILS],
        )


@dataclass(frozen=True)
class Size:
    """How much room one engine takes: its file, and main memory at most in a process that holds it alone, without what
    that process takes by itself."""

    file_bytes: int | None
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Figure:
    """One measured figure of both engines; None where it has no meaning for one. Where it tells agreement with float,
    the float engine's is of its own second look at the same frames.

    `unit`: "share" (0 to 1), "cosine", "count" or any word. `scope`: what it is of, "" for the model by itself.
    """

    name: str
    unit: str
    float_value: float | None
    int8_value: float | None
    scope: str = ""


# figures of a judgement that are of one engine: which figure they are, and whether of the float engine. `repeat`: float
# looking again at the same frames with a camera's noise on them
SIDES: Mapping[str, tuple[str, bool]] = {
    "float_boxes": ("boxes", True),
    "int8_boxes": ("boxes", False),
    "label_cer_float": ("label_cer", True),
    "label_cer_int8": ("label_cer", False),
    "repeat_box_precision": ("box_precision", True),
    "repeat_box_recall": ("box_recall", True),
    "repeat_cer": ("repeat_cer", True),
    "repeat_changed_fields": ("changed_fields", True),
}
SHARES = frozenset(
    "box_precision box_recall cer_increase cer_to_float cer_to_float_with_spaces changed_fields class_agreement "
    "label_cer mask_iou repeat_cer".split()
)


def figures_of(figures: Mapping[str, float], scope: str = "") -> tuple[Figure, ...]:
    """A judgement's figures in their order, those of float and INT8 side by side."""
    found: dict[str, Figure] = {}
    for key, value in figures.items():
        name, of_float = SIDES.get(key, (key, False))
        known = found.get(name, Figure(name, unit_of(name), None, None, scope))
        found[name] = replace(known, float_value=value) if of_float else replace(known, int8_value=value)
    return tuple(found.values())


def unit_of(name: str) -> str:
    """In what a judgement's figure counts."""
    return "cosine" if "cosine" in name else "share" if name in SHARES else "count"


@dataclass(frozen=True)
class ChangedText:
    """One line that INT8 reads otherwise than float; "" where one of them found nothing.

    Of an encoder: `frame` is the line's text, and the two texts are the classes of meaning that it was given.
    """

    frame: str
    float_text: str
    int8_text: str
    label: str | None = None
    crop: Picture | None = None

    @classmethod
    def of(cls, line: ChangedLine, crop: Picture | None = None) -> ChangedText:
        """From a judgement's line, with its picture."""
        return cls(line.frame, line.float_text, line.int8_text, line.label, crop)


@dataclass(frozen=True)
class MethodTried:
    """All groups at once with the ranges of one method. `damage`: share of the gates' allowance that is used up."""

    method: Method
    damage: float | None
    passed: bool
    chosen: bool
    note: str = ""


def methods_tried(found: SearchResult) -> tuple[MethodTried, ...]:
    """The methods that a search tried with all groups at once."""
    tried: dict[Method, MethodTried] = {}
    for attempt in found.attempts:
        if attempt.step == f"all groups, {attempt.method}":
            one = Tried.of(attempt)
            chosen = attempt.method == found.method
            tried[attempt.method] = MethodTried(attempt.method, one.damage, one.passed, chosen, one.note)
    return tuple(tried.values())


@dataclass(frozen=True)
class GroupFinding:
    """One group: `quantised` in the end or not, its damage and gain alone, and `note`: why float, or what was seen."""

    name: str
    nodes: tuple[str, ...]
    weight_bytes: int
    quantised: bool
    damage: float | None
    gain_ms: float | None
    note: str = ""

    @classmethod
    def of(cls, group: Group, found: Sensitivity | None, quantised: bool) -> GroupFinding:
        """From a group and its row of the search; why it stays float by default comes first."""
        note = group.why_float if group.default_float and not quantised else found.note if found else ""
        damage, gain_ms = (found.damage, found.gain_ms) if found else (None, None)
        return cls(group.name, group.nodes, group.weight_bytes, quantised, damage, gain_ms, note)


@dataclass(frozen=True)
class Tried:
    """One set of groups that was built and judged, in the order of the search."""

    step: str
    method: Method
    groups: tuple[str, ...]
    damage: float | None
    ms: float | None
    passed: bool
    note: str = ""

    @classmethod
    def of(cls, attempt: Attempt) -> Tried:
        """From an attempt of the search."""
        trial = attempt.trial
        note = f"cannot be built: {trial.build_error}" if trial.build_error else "; ".join(trial.faults)
        damage = trial.worst if math.isfinite(trial.worst) else None
        return cls(attempt.step, attempt.method, attempt.groups, damage, trial.ms, trial.passed, note)


def group_findings(found: SearchResult, groups: Sequence[Group]) -> tuple[GroupFinding, ...]:
    """Each group of the model with what the search found out about it."""
    rows = {row.group: row for row in found.sensitivity}
    return tuple(GroupFinding.of(group, rows.get(group.name), group.name in found.chosen) for group in groups)


@dataclass(frozen=True)
class Findings:
    """What was found out about one model on one device.

    `scheme`: the backend that the INT8 file is written for; `float_precision`: of what it was held against ("FP32",
    "FP16"). `verdict`: promoted: in use since `promoted_at`; passed: would be, but for --dry-run; refused: for
    `reasons`, and `advice` is what to try. `ranges`: (low, high) by tensor, of the method chosen. `came_from`: sha256
    by what it is of. `after` is None where no INT8 engine came into being. `changed_count` counts all changed lines.
    `smoothing`: the recipe's, None where the channels before matrix products stayed as they were.
    """

    model: str
    task: Task
    variant: str
    scheme: str
    float_precision: str
    machine: Machine
    verdict: Verdict
    calibrated_on: CalibratedOn
    before: Size
    after: Size | None = None
    made_at: float | None = None
    took_s: float | None = None
    promoted_at: float | None = None
    artefact: str | None = None
    reasons: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    timing: Timing | None = None
    figures: tuple[Figure, ...] = ()
    gates: tuple[GateResult, ...] = ()
    changed: tuple[ChangedText, ...] = ()
    changed_count: int = 0
    methods: tuple[MethodTried, ...] = ()
    groups: tuple[GroupFinding, ...] = ()
    tried: tuple[Tried, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    search_stopped: str = ""
    smoothing: float | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    came_from: Mapping[str, str] = field(default_factory=dict)

    @property
    def method(self) -> Method | None:
        """The method that was chosen."""
        return next((tried.method for tried in self.methods if tried.chosen), None)

    @property
    def failed(self) -> tuple[GateResult, ...]:
        """The gates that did not hold."""
        return tuple(gate for gate in self.gates if not gate.passed)

    def to_json(self) -> dict[str, Any]:
        """Plain values, numbers rounded to 6 digits, of pictures name, size and sha256; not a number becomes None."""
        return {"v": VERSION, **_plain(self)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Findings:
        """Findings that `to_json` wrote, pictures without their bytes. Raises CalibrationRefused for anything else."""
        if values.get("v") != VERSION:
            raise CalibrationRefused(f"a report has version {values.get('v')!r}, this program reads {VERSION}")
        try:
            own = json.dumps({name: value for name, value in values.items() if name != "v"})
            return TypeAdapter(cls).validate_json(own)
        except (TypeError, ValidationError) as exc:
            raise CalibrationRefused(f"a report is damaged: {exc}; calibrate again") from exc


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value) if f.name != "jpeg"}
    if isinstance(value, Mapping):
        return {_plain(str(key)): _plain(value[key]) for key in sorted(value)}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return rounded(value)
    if isinstance(value, str):  # file names may hold bytes that are no text: lone surrogates, which JSON cannot carry
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return value


def rounded(value: float) -> float | None:
    """To 6 digits, of large numbers to thousandths (times of day keep their milliseconds); None for no number."""
    if not math.isfinite(value):
        return None
    return round(value, 3) if abs(value) >= 1000 else float(f"{value:.6g}")
