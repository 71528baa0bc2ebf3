"""Expectations: what the items of each camera must say: by the settings, until the plant says otherwise over MQTT.

What the plant says (`<camera>/expected`, retained or not) outlives a restart in a file; an empty message takes it back,
and the settings hold again. Each is answered on `<camera>/expected/reported`: of several that come during one reading
the last sound one is taken, and the answers stand there in the order of arrival.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from edge_agent import messages
from edge_agent.config import Config
from edge_agent.errors import ConfigError, in_one_line
from edge_agent.files import write_atomically
from edge_agent.messages import ExpectedAnswer, ExpectedCode
from edge_agent.records import Message, json_bytes
from edge_agent.remote.bucket import Bucket
from edge_agent.settings.expected import Rules
from edge_agent.settings.scalars import Name
from edge_agent.settings.section import Section
from edge_agent.settings.strict_json import parse_json
from edge_agent.settings.validation import Origin, validated
from edge_agent.verify.expectation import Expectation, of_camera, rules_to_json

FILE = "expected.json"
TAKEN_PER_MIN = 60
MOST_WAITING = 16  # of a camera; of more the oldest go unlooked at
KEPT_ANSWERS = 2 * MOST_WAITING  # of a camera, in each report: who was not there for the last one finds his here
MOST_DETAIL = 500  # characters of an answer
CONFIG_ID = "config-"  # begins the ids of what the settings expect
ID_PATTERN = r"^[A-Za-z0-9._:/-]{1,64}$"

log = logging.getLogger(__name__)


class Expected(Section):
    """What the items of a camera must say from now on; a job change. An empty message takes it back."""

    v: Literal[1] = 1
    id: Annotated[str, StringConstraints(pattern=ID_PATTERN)]
    """The plant's own name of it, such as a job's number; every result carries it."""
    expected: Rules = ()
    """Rules for all that is read of an item."""
    rois: Annotated[dict[Name, Rules], Field(max_length=32)] = {}  # noqa: RUF012 - pydantic copies it
    """More rules for what is read in a region, by its name."""


@dataclass(frozen=True)
class Heard:
    """What one message wishes: `wish` is None where it takes back, `problem` says why it cannot be followed; `id` is
    None where it names none."""

    id: str | None
    wish: Expected | None = None
    problem: str | None = None


class Expectations:
    """`say` publishes a report. For the main loop's thread.

    `file` keeps what the plant said, None: it is forgotten at the end; `max_bytes` bounds a message. `before_change`,
    to be set, is told a camera while what its items must say so far still holds, and is about to change.
    """

    def __init__(
        self,
        config: Config,
        say: Callable[[Message], None],
        file: Path | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.before_change: Callable[[str], None] = lambda camera: None
        self._config = config
        self._say = say
        self._file = file
        self._clock = clock
        self._max_bytes = config.remote.max_bytes
        self._live: dict[str, Expected] = self._read()
        self._waiting: dict[str, deque[bytes]] = {}  # the camera that waits longest first
        self._unheard: Counter[str] = Counter()  # by camera, those that too many behind them pushed out
        self._answers: dict[str, deque[ExpectedAnswer]] = {}
        self._unwritten: str | None = None  # why what the plant said is not in the file
        self._bucket = Bucket(TAKEN_PER_MIN, monotonic)
        self._of: dict[str, Expectation | None] = {}
        self.tune(config)
        for camera in self._live.keys() & config.cameras.keys():
            self._report(camera, 200, "in force since before this start")

    def tune(self, config: Config) -> None:
        """From now on, as these settings say, where the plant says nothing."""
        self._config = config
        now = {name: self._now(name) for name in config.cameras}
        for name in now.keys() & self._of.keys():
            if now[name] != self._of[name]:
                self.before_change(name)
        self._of = now

    def of(self, camera: str) -> Expectation | None:
        """What the camera's items must say; None where nothing is expected."""
        return self._of.get(camera)

    def hear(self, camera: str, payload: bytes) -> None:
        """What the plant says of a camera's items; `attend` takes it."""
        if camera not in self._config.cameras:
            # a report of it would be a retained topic for every name that anybody thinks of
            log.debug("an expectation came for camera %s, which does not exist", camera[:64])
            return
        waiting = self._waiting.setdefault(camera, deque(maxlen=MOST_WAITING))
        self._unheard[camera] += len(waiting) == MOST_WAITING
        waiting.append(payload)

    def attend(self) -> None:
        """Takes what waits, a camera at a time and so many of them a minute: each is written to disk."""
        while self._waiting and self._bucket.take():
            camera = next(iter(self._waiting))
            self._take(camera, self._waiting.pop(camera))

    def _take(self, camera: str, payloads: Sequence[bytes]) -> None:
        """Puts the last of them that can be followed in force, and answers each."""
        if unheard := self._unheard.pop(camera, 0):
            self._answer(camera, None, 429, f"{unheard} were not looked at: at most {MOST_WAITING} wait for a frame")
        heard = [self._look(camera, payload) for payload in payloads]
        sound = [each for each in heard if each.problem is None]
        said = self._put_in_force(camera, sound[-1].wish) if sound else ""
        for each in heard:
            if each.problem is not None:
                self._answer(camera, each.id, 400, each.problem)
            elif each is sound[-1]:
                self._answer(camera, each.id, 200, said)
            else:
                by = sound[-1].id or "one that takes back what the plant said"
                self._answer(camera, each.id, 409, f"not in force: replaced by {by}, which came behind it")
        last = heard[-1]
        self._report(camera, 200 if last.problem is None else 400, said if last.problem is None else last.problem)

    def _put_in_force(self, camera: str, wish: Expected | None) -> str:
        """What is to be said of it."""
        said = "in force" if wish is not None else "taken back: what the settings expect is in force"
        if wish is not None and not (wish.expected or any(wish.rois.values())):
            said = "in force: it has no rules, so no item gets a verdict"
        if wish == self._live.get(camera) and self._unwritten is None:
            return said
        if wish is None:
            self._live.pop(camera, None)
        else:
            self._live[camera] = wish
        self._unwritten = self._write()
        self.tune(self._config)
        return said if self._unwritten is None else f"{said}, until the next start alone: {self._unwritten}"

    def _now(self, camera: str) -> Expectation | None:
        wish = self._live.get(camera)
        if wish is None:
            return of_camera(self._config.cameras[camera])
        return Expectation(wish.id, wish.expected, dict(wish.rois))

    def _look(self, camera: str, payload: bytes) -> Heard:
        """What one message says."""
        if not payload:
            return Heard(None)
        if len(payload) > self._max_bytes:
            return Heard(None, problem=f"{len(payload)} bytes are more than remote.max_bytes, {self._max_bytes}")
        origin = f"{camera}/{messages.EXPECTED}"
        values: Mapping[str, Any] = {}
        try:
            values = parse_json(payload, origin, self._max_bytes)
            wish = validated(Expected, dict(values), Origin(origin))
            self._check(camera, wish, origin)
        except ConfigError as exc:
            named = values.get("id")
            is_id = isinstance(named, str) and re.fullmatch(ID_PATTERN, named)
            return Heard(named if is_id else None, problem=str(exc)[:MOST_DETAIL])
        return Heard(wish.id, wish)

    def _check(self, camera: str, wish: Expected, origin: str) -> None:
        if wish.id.startswith(CONFIG_ID):
            raise ConfigError(f"{origin}: id: {CONFIG_ID} begins the ids of what the settings expect; take another")
        unknown = sorted(wish.rois.keys() - self._config.cameras[camera].rois.keys())
        if unknown:
            raise ConfigError(f"{origin}: rois: the camera has no region {', '.join(unknown)}")

    def _answer(self, camera: str, wish_id: str | None, code: ExpectedCode, detail: str) -> None:
        answers = self._answers.setdefault(camera, deque(maxlen=KEPT_ANSWERS))
        answers.append(ExpectedAnswer(wish_id, code, detail, self._clock()))

    def _report(self, camera: str, code: Literal[200, 400], detail: str) -> None:
        expectation = self._of.get(camera)
        self._say(
            messages.expected_reported(
                camera,
                None if expectation is None else expectation.id,
                code,
                detail=detail,
                answers=self._answers.get(camera, ()),
                at=self._clock(),
            )
        )

    def _read(self) -> dict[str, Expected]:
        if self._file is None:
            return {}
        try:
            stored: Any = json.loads(self._file.read_bytes())
            return {str(name): Expected.model_validate_json(json.dumps(each)) for name, each in stored.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError, RecursionError) as exc:
            log.warning("%s cannot be read, so the settings' expectations hold: %s", self._file, in_one_line(exc))
            return {}

    def _write(self) -> str | None:
        """Keeps what the plant said; why that failed, None where it did not."""
        if self._file is None:
            return "there is no folder for it"
        stored = {name: to_json(wish) for name, wish in self._live.items()}
        try:
            write_atomically(self._file, json_bytes(stored), mode=0o640)
        except OSError as exc:
            return in_one_line(exc)
        return None


def to_json(wish: Expected) -> dict[str, Any]:
    """A wish as its message writes it."""
    return {"id": wish.id, **rules_to_json(wish.expected, wish.rois)}
