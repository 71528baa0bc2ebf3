"""Payloads: what each message holds, member by member. The text under a member is its documentation.

The device writes its messages in edge_agent.messages, without these models: they are the contract that is published,
and that the tests hold every payload against.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from edge_agent.messages import CameraState, DeviceState, ExpectedCode, PipelineState
from edge_agent.settings.validation import NAME_PATTERN

MAX_VERSION = 2**53 - 1  # what every JSON reader holds exactly
RFC3339_UTC = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"
RFC3339 = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9]{2}:[0-9]{2})$"

UNSENT: Any = None  # the default of a member that may be missing and is not null where it is there

Time = Annotated[str, StringConstraints(pattern=RFC3339_UTC), Field(json_schema_extra={"format": "date-time"})]
AnyTime = Annotated[str, StringConstraints(pattern=RFC3339), Field(json_schema_extra={"format": "date-time"})]
CameraName = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
Count = Annotated[int, Field(ge=0)]
Number = float | None  # null: not known
Probability = Annotated[float, Field(ge=0, le=1)] | None
Version = Annotated[int, Field(ge=1, le=MAX_VERSION)]
Verdict = Literal["PASS", "FAIL", "NO_READ"]
Point = Annotated[list[float], Field(min_length=2, max_length=2)]
CommandId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:-]{1,64}$")]


class Payload(BaseModel):
    """Base of what the device says: members may be added within a version, so unknown ones are allowed."""

    model_config = ConfigDict(
        frozen=True, extra="allow", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Wish(Payload):
    """Base of what the device hears: a member it does not know is refused."""

    model_config = ConfigDict(extra="forbid")


class Versioned(Payload):
    """Every message of the device."""

    v: Literal[1]
    """Version of the schema."""


class Status(Versioned):
    """Whether the device is there."""

    state: DeviceState
    """online: said after each connect; stopped: said before it leaves; offline: its last will."""
    reason: str | None
    """Of stopped: shutdown, fault or restarting; of offline: lost; else null."""
    at: Time | None
    """When it was said; null in the last will."""
    started_at: Time
    """When the program started."""
    version: str
    """Version of the program."""


class Health(Versioned):
    """How the reading goes."""

    pipeline: PipelineState
    """degraded: it reads, but not as configured; fault: it does not read."""
    reason: str | None
    """Why, or how far it is."""
    backend: str | None
    """What computes; null until engines are loaded."""
    precision: str | None
    """fp32, fp16 or int8, or several with + between; null until engines are loaded."""
    at: Time


class CameraStatus(Versioned):
    """Whether a camera gives frames."""

    camera: CameraName
    state: CameraState
    reason: str | None
    last_frame_at: Time | None
    """Null until the first frame."""
    at: Time


class FrameSize(Payload):
    """The size of a frame."""

    width_px: Annotated[int, Field(ge=1)]
    height_px: Annotated[int, Field(ge=1)]


class Doubt(Payload):
    """A character that could be another."""

    at: Count
    """Its index in the text, in code points."""
    text: str
    """What was taken."""
    rival: str
    """What it could be."""
    margin: Annotated[float, Field(ge=0)]
    """Natural logarithm of how many times likelier the one taken is."""


class Line(Payload):
    """A line of text."""

    text: str
    confidence: Probability
    """Mean probability of its characters."""
    quad: Annotated[list[Point], Field(min_length=4, max_length=4)]
    """Corners, px in the frame, x right and y down, clockwise from the text's own top-left."""
    box_score: Probability
    """How sure the detector is that there is text."""
    flags: list[str]
    """What is wrong with it: cut, glare, stacked, too_small, ..."""
    region: str | None
    """The region of the camera's picture that it stands in; null without regions."""
    doubtful: list[Doubt]


class DecodedCode(Payload):
    """A bar code or 2D code."""

    symbology: str
    """EAN13, Code128, QRCode, DataMatrix, ..."""
    text: str
    """Its content; U+001D stands between GS1 elements."""
    quad: Annotated[list[Point], Field(min_length=4, max_length=4)]
    """Corners, px in the frame."""
    region: str | None
    """The region of the camera's picture that it stands in; null without regions."""


class FieldCorrection(Payload):
    """A character that the field's pattern replaced."""

    at: Count
    """Its index in the field's text, in code points."""
    seen: str
    """Empty: nothing was seen there."""
    taken: str
    """Empty: what was seen is left out."""


class ReadField(Payload):
    """What lines mean."""

    name: str
    """expiry_date, lot, ..."""
    value: str
    """Normalised: dates as ISO 8601."""
    text: str
    """As seen."""
    confidence: Probability
    lines: list[Count]
    """Indices into the lines of the reading."""
    codes: list[Count]
    """Indices into the codes of the reading."""
    flags: list[str]
    """What was repaired, cut or ambiguous."""
    source: Literal["barcode", "rule", "model"]
    """What named it: a decoded code, a rule, or the model."""
    certain: bool
    """Whether it has a value and no flag that means doubt."""
    corrections: list[FieldCorrection]
    alternatives: list[str]
    """Other values that the text can have."""


class RuleReason(Payload):
    """What one rule of the expectation says."""

    rule: str
    """In words, such as `lot: pattern L9999A`."""
    expected: str
    seen: str
    """Empty: nothing was."""
    verdict: Verdict
    why: str | None
    """Null for PASS; absent, uncertain, ambiguous, clock_untrusted, few_reads or differs; more may be added."""


EvidenceId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{24}$")]


class Result(Versioned):
    """A reading: what one frame says."""

    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{24}$")]
    """Unique to a capture, and the same whenever it is sent again."""
    camera: CameraName
    seq: Count
    """Number of the frame, growing for each camera."""
    captured_at: Time
    """Time of the picture."""
    frame: FrameSize
    lines: list[Line]
    """What was read, in reading order."""
    fields: list[ReadField]
    codes: list[DecodedCode]
    """The bar codes and 2D codes that were decoded."""
    language: str | None
    """Language of the label's words (ISO 639-1); null where they are too few to tell."""
    reason: str | None
    """Null when text was read, else why not: no_text."""
    quality: list[str]
    """What is wrong with the picture: glare, blurred, faint, blank, dark, unsearched."""
    timings_ms: dict[str, Number]
    """Time of each stage, ms, and of all of them (total)."""
    engines: dict[str, str]
    """The engine of each stage: backend with its version, the beginning of the model's sha256, precision."""
    backend: str
    captured_mono: Number
    """Time of the picture by the monotonic clock, s."""
    boot_id: str | None
    """The boot that captured_mono counts from."""
    clock_trusted: bool
    """Whether the time of day was synchronised."""
    verdict: Verdict | None
    """Null where readings are not verified, or are joined to items."""
    reasons: list[RuleReason]
    """One for each rule."""
    expectation_id: str | None
    """Of what it was held against; null: nothing is expected."""
    evidence_id: EvidenceId | None
    """Under which a picture is kept; null: none is."""
    config_version: Version | None
    """The configuration from afar in force; null: none."""
    historical: bool
    """Whether it waited in the outbox."""


class Disputed(Payload):
    """A character on which readings differ."""

    at: Count
    """Its index in the text, in code points."""
    text: str
    """What was taken."""
    share: Probability
    """Of the readings' weight that is for it."""
    rival: str
    """What most of the others have there; empty: nothing."""


class ItemLine(Line):
    """A line of an item, from several readings; where it stood in the last of them."""

    n_reads: Annotated[int, Field(ge=1)]
    agreement: Probability
    """Mean share of its characters."""
    disputed: list[Disputed]


class ItemField(ReadField):
    """What lines of an item mean."""

    n_reads: Annotated[int, Field(ge=1)]
    agreement: Probability
    """Share of the readings' weight that has this value."""


class Item(Versioned):
    """One physical item that passed by, from all readings that show it."""

    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{24}$")]
    camera: CameraName
    region: str | None
    """Null where the camera's whole picture shows one item."""
    first_seen_at: Time
    last_seen_at: Time
    first_seq: Count
    last_seq: Count
    frame: FrameSize
    n_reads: Count
    """Readings that show it; 0: a trigger told of it, and nothing was read."""
    agreement: Probability
    """How far its readings agree: mean over its lines."""
    decided_by: Literal["settled", "gone", "time", "trigger", "full", "expected", "stop"]
    """Why it was decided when it was; trigger: the next item came; expected: another expectation came."""
    decided_after_ms: Annotated[float, Field(ge=0)]
    """Since the first sight of it, or its trigger."""
    lines: list[ItemLine]
    fields: list[ItemField]
    codes: list[DecodedCode]
    language: str | None
    quality: list[str]
    verdict: Verdict | None
    """Null where nothing is expected."""
    reasons: list[RuleReason]
    """One for each rule."""
    expectation_id: str | None
    """Of what it was held against; null: nothing is expected."""
    evidence_id: EvidenceId | None
    """Under which a picture is kept; null: none is."""
    boot_id: str | None
    clock_trusted: bool
    config_version: Version | None
    historical: bool
    """Whether it waited in the outbox."""


class ExpectedAnswer(Payload):
    """What became of one expectation that came."""

    id: str | None
    """Its own; null: it named none, or took back what the plant said, or was not looked at."""
    code: ExpectedCode
    """200 put in force, 400 refused, 409 replaced by one behind it before it was in force, 429 not looked at, for too
    many waited: several may have one such answer."""
    detail: str
    at: Time


class ExpectedReported(Versioned):
    """What a camera's items must say now, and what became of what came."""

    camera: CameraName
    id: str | None
    """Of the expectation in force; `config-` begins those of the settings; null: nothing is expected."""
    code: Literal[200, 400]
    """Of the newest that came: 200 taken, 400 not taken."""
    detail: str | None
    answers: list[ExpectedAnswer]
    """To the newest that came since the start, 32 at most, in the order of arrival."""
    at: Time


class Trigger(Wish):
    """An item is before the camera. The device looks at nothing in it: any payload will do."""


class Event(Versioned):
    """Something that happened to the device."""

    at: Time
    kind: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
    """What; new kinds may be added."""
    text: str
    unsaid: Count
    """Others of this kind that came since the last one said."""


# telemetry


class Rates(Payload):
    """Frames per second."""

    offered: Number
    processed: Number
    dropped: Number
    failed: Number


class Frames(Payload):
    """Frames since the start."""

    offered: Count
    """Given by the camera."""
    processed: Count
    """Read."""
    dropped: Count
    """Left out because a newer one came."""
    failed: Count
    """That could not be read."""


class Percentiles(Payload):
    """Of one stage, ms."""

    p50: Number
    p95: Number
    p99: Number


class CameraFigures(Payload):
    """What one camera's thread counts."""

    state: Literal["starting", "online", "stalled", "offline", "disabled", "ended"]
    reason: str | None
    last_frame_at: Time | None
    frames: Count
    bad_frames: Count
    skipped: Count
    reconnects: Count
    resizes: Count
    abandoned: Count
    width_px: Count | None
    height_px: Count | None
    fps: Number


class OutboxFigures(Payload):
    """What waits for the broker."""

    depth: Count
    claimed: Count
    bytes: Count
    disk_bytes: Count
    unwritten: Count
    oldest_age_s: Number
    dropped: dict[str, Count]
    fault: str | None


class ItemCounts(Payload):
    """Items of one camera since the start, those without an expectation too."""

    items: Count
    pass_: Annotated[int, Field(ge=0, alias="pass")]
    """With this verdict."""
    fail: Count
    """With this verdict."""
    no_read: Count
    """With this verdict."""
    fragments: Count
    """Pieces of labels at the picture's edge that were no item."""


class EvidenceFigures(Payload):
    """Evidence since the start; null: none is kept."""

    kept: Count
    lost: Count
    """That could not be kept."""
    fault: str | None
    """Why the last one was not."""


class Account(Payload):
    """What became of readings and items: produced is delivered + queued + dropped."""

    produced: Count
    delivered: Count
    queued: int
    dropped: dict[str, Count]


class Accounts(Payload):
    """By camera; events and such are counted beside the cameras."""

    today: dict[str, Account]
    """Of those made this UTC day."""
    all: dict[str, Account]


class PublisherFigures(Payload):
    """What left."""

    delivered: Count
    retries: Count
    failed: Count
    dead_lettered: Count
    in_flight: Count
    connected: bool
    cause: str | None


class RemoteFigures(Payload):
    """What came from afar; `dropped` alone where nothing is heard."""

    config_version: Version | None = None
    on_trial: bool = False
    disabled: Count = 0
    commands: dict[str, Count] = {}
    dropped: Count


class Clock(Payload):
    """The clocks."""

    boot_id: str
    trusted: bool


class LeftOut(Payload):
    """What no reading holds."""

    boxes: Count
    fields: Count


class Recorded(Payload):
    """Frames kept for calibrating."""

    kept: Count
    stopped: str | None


class Calibration(Payload):
    """Calibrated artefacts in use, by stage, and frames kept for calibrating."""

    artefacts: dict[str, str | None]
    recorded: Recorded | None


class CoolingFigures(Payload):
    """What is done about heat."""

    share: Annotated[float, Field(gt=0, le=1)]
    """Of the frames that were read before it got hot."""
    reason: str | None


class Telemetry(Versioned):
    """Figures about the device. What it has depends on the machine: further members are sensors, a number or null, or
    an object of such (temp_c, power_w, ...); a name's end is its unit."""

    __pydantic_extra__: dict[str, float | dict[str, float | None] | None]

    at: Time
    absent: dict[str, str]
    """Why a sensor's value is null, by name; a dot stands for a level."""
    backend: str | None = None
    precision: str | None = None
    engines: dict[str, str] = {}
    backend_counters: dict[str, Any] = {}
    """Memory pools, contexts, graphs; what there is depends on the backend."""
    fps: dict[str, Rates] = {}
    """By camera, over the last half minute."""
    frames: dict[str, Frames] = {}
    """By camera, since the start."""
    latency_ms: dict[str, Percentiles] = {}
    """By stage, over the last half minute."""
    cameras: dict[str, CameraFigures] = {}
    items: dict[str, ItemCounts] = {}
    """By camera."""
    evidence: EvidenceFigures | None = None
    withheld_no_text: dict[str, Count] = {}
    """By camera, readings without text that were not sent."""
    left_out: LeftOut = UNSENT
    calibration: Calibration = UNSENT
    clock: Clock = UNSENT
    outbox: OutboxFigures = UNSENT
    ledger: Accounts = UNSENT
    remote: RemoteFigures = UNSENT
    publisher: PublisherFigures = UNSENT
    cooling: CoolingFigures = UNSENT
    throttled: bool | None = None
    """Whether the board was held back since the last message; null: it cannot tell."""
    throttled_by: list[str] = []
    """What by: over-current counters, clocks that the kernel or the GPU's driver held down for heat."""
    power_mode: str | None = None
    """The board's nvpmodel mode; null: it has none."""
    temp_c: dict[str, Number] = {}
    power_w: dict[str, Number] = {}
    """By rail; `total` is what the module draws."""
    over_current: dict[str, Count | None] = {}
    """By counter, events since the last message."""


# configuration


class Refused(Payload):
    """A key that is not taken."""

    key: str
    """Dotted; empty where it is about the whole."""
    why: str


class ConfigReported(Versioned):
    """What became of the configuration wished for."""

    version: Version | None
    """Of the wish; null where it could not be read."""
    code: Literal[200, 202, 400, 500]
    """200 in force, 202 on trial, 400 not taken, 500 rolled back or not to be kept."""
    detail: str | None
    token: str | None
    """The wish's own."""
    active_version: Version | None
    """What is in force for good; null: the device's own file of settings."""
    rolled_back_from: Version | None
    refused: list[Refused]
    at: Time


class DesiredBase(Wish):
    """What every wish has."""

    v: Literal[1] = 1
    version: Version
    """Greater at each change."""
    token: Annotated[str, Field(max_length=128)] | None = None
    """Comes back in the reports of this change."""


class DesiredPatch(DesiredBase):
    """A configuration wished for, as what is to differ from the device's own file."""

    patch: dict[str, Any]
    """A JSON merge patch (RFC 7396)."""


class DesiredConfig(DesiredBase):
    """A configuration wished for, whole."""

    config: dict[str, Any]
    """As `edge-agent config schema` describes it."""


# commands


class Command(Wish):
    """Something to do. `args` are those of the command in the topic."""

    v: Literal[1] = 1
    id: CommandId
    """The sender's own; each runs once."""
    expires_at: AnyTime | None = None
    """After it the command is not carried out."""


class Reply(Versioned):
    """What every answer has."""

    id: CommandId
    at: Time


class Accepted(Reply):
    """It is under way; done or failed follows."""

    state: Literal["accepted"]


class Done(Reply):
    """It is done."""

    state: Literal["done"]


class NotDone(Versioned):
    """It was not done; or, with state done or duplicate, the answer was larger than a message may be."""

    state: Literal["failed", "busy", "done", "duplicate"]
    id: CommandId | None
    """Null where none could be read, or too many came."""
    reason: str
    at: Time


class First(Payload):
    """How it is with the command that came first under an id; with `result` or `reason` where it has ended."""

    command: str
    state: Literal["accepted", "done", "failed"]
    result: dict[str, Any] = {}
    reason: str = ""


class Duplicate(Reply):
    """The id was there before: nothing was done."""

    state: Literal["duplicate"]
    first: First


class NoResult(Payload):
    """It is done, and there is nothing to tell."""


class PingResult(Payload):
    """That it is there."""

    version: str
    uptime_s: float


class SnapshotResult(Payload):
    """A frame."""

    camera: CameraName
    seq: Count
    captured_at: Time
    width_px: Annotated[int, Field(ge=1)]
    height_px: Annotated[int, Field(ge=1)]
    quality: Count
    jpeg_base64: Annotated[str, Field(json_schema_extra={"contentEncoding": "base64"})]


class CalibrateResult(Payload):
    """What came of it, one for each model, and notes."""

    outcomes: list[dict[str, Any]]
    notes: list[str]


class RollbackResult(Payload):
    """Which artefact is in use now, null for the float model, and which was before."""

    model: str
    active: str | None
    previous: str | None


class ReplayResult(Payload):
    """How many messages were queued again."""

    queued: Count


class LogLevelResult(Payload):
    """The level now and before."""

    level: str
    before: str


class PastConfig(Payload):
    """A configuration that ended."""

    version: int | None
    outcome: str
    at: Time
    text: str | None
    """The sha256 of its text, to ask for it by."""
    reason: str


class ConfigHistoryResult(Payload):
    """The configurations that ended; or one of their texts, without passwords."""

    history: list[PastConfig] = []
    text: str = ""


RESULTS: dict[str, type[Payload]] = {
    "calibrate": CalibrateResult,
    "config-history": ConfigHistoryResult,
    "ledger": Accounts,
    "log-level": LogLevelResult,
    "ping": PingResult,
    "rebuild": NoResult,
    "replay": ReplayResult,
    "restart": NoResult,
    "rollback": RollbackResult,
    "snapshot": SnapshotResult,
}
