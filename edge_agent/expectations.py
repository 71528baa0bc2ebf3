"""Expectations: what the items of each camera must say: by the settings, until the plant says otherwise over MQTT.

What the plant says (`<camera>/expected`, retained or not) outlives a restart in a file; an empty message takes it back,
and the settings hold again. What is taken is answered on `<camera>/expected/reported`: of several that come during one
reading that is the newest.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from edge_agent import messages
from edge_agent.config import Config
from edge_agent.errors import ConfigError, in_one_line
from edge_agent.files import write_atomically
from edge_agent.patterns import Pattern
from edge_agent.records import Message, json_bytes
from edge_agent.remote.bucket import Bucket
from edge_agent.settings.expected import Rules
from edge_agent.settings.scalars import Name
from edge_agent.settings.section import Section
from edge_agent.settings.strict_yaml import parse_json
from edge_agent.settings.validation import Origin, validated
from edge_agent.verify.expectation import Expectation, of_camera, rule_to_json

FILE = "expected.json"
TAKEN_PER_MIN = 60
CONFIG_ID = "config-"  # begins the ids of what the settings expect

log = logging.getLogger(__name__)

Masks = Mapping[str, Pattern]


class Expected(Section):
    """What the items of a camera must say from now on; a job change. An empty message takes it back."""

    v: Literal[1] = 1
    id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:/-]{1,64}$")]
    """The plant's own name of it, such as a job's number; every result carries it."""
    expected: Rules = ()
    """Rules for all that is read of an item."""
    rois: Annotated[dict[Name, Rules], Field(max_length=32)] = {}  # noqa: RUF012 - pydantic copies it
    """More rules for what is read in a region, by its name."""


class Expectations:
    """`say` publishes a report. For the main loop's thread.

    `file` keeps what the plant said, None: it is forgotten at the end; `max_bytes` bounds a message.
    """

    def __init__(
        self,
        config: Config,
        say: Callable[[Message], None],
        file: Path | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._say = say
        self._file = file
        self._clock = clock
        self._max_bytes = config.remote.max_bytes
        self._live: dict[str, Expected] = self._read()
        self._waiting: dict[str, bytes] = {}
        self._bucket = Bucket(TAKEN_PER_MIN, monotonic)
        self._of: dict[str, Expectation | None] = {}
        self._masks: dict[tuple[str, str | None], Masks] = {}
        self.tune(config)
        for camera in self._live:
            self._report(camera, 200, "in force since before this start")

    def tune(self, config: Config) -> None:
        """From now on, as these settings say, where the plant says nothing."""
        self._config = config
        self._of = {name: self._now(name) for name in config.cameras}
        self._masks.clear()

    def of(self, camera: str) -> Expectation | None:
        """What the camera's items must say; None where nothing is expected."""
        return self._of.get(camera)

    def masks(self, camera: str, region: str | None) -> Masks:
        """The patterns of fields that are expected there, by the field's name."""
        key = (camera, region)
        if key not in self._masks:
            expectation = self.of(camera)
            self._masks[key] = {} if expectation is None else expectation.masks(region)
        return self._masks[key]

    def hear(self, camera: str, payload: bytes) -> None:
        """What the plant says of a camera's items; only the newest counts, and `attend` takes it."""
        if camera in self._config.cameras:
            self._waiting[camera] = payload
        else:  # a report of it would be a retained topic for every name that anybody thinks of
            log.debug("an expectation came for camera %s, which does not exist", camera[:64])

    def attend(self) -> None:
        """Takes what waits, so many a minute: each is written to disk."""
        while self._waiting and self._bucket.take():
            self._take(*self._waiting.popitem())

    def _take(self, camera: str, payload: bytes) -> None:
        try:
            wish = self._parsed(camera, payload) if payload else None
        except ConfigError as exc:
            self._report(camera, 400, str(exc))
            return
        if wish == self._live.get(camera):
            self._report(camera, 200, "in force")
            return
        if wish is None:
            del self._live[camera]
        else:
            self._live[camera] = wish
        problem = self._write()
        self.tune(self._config)
        said = "in force" if wish is not None else "taken back: what the settings expect is in force"
        self._report(camera, 200, said if problem is None else f"{said}, until the next start alone: {problem}")

    def _now(self, camera: str) -> Expectation | None:
        wish = self._live.get(camera)
        if wish is None:
            return of_camera(self._config.cameras[camera])
        return Expectation(wish.id, wish.expected, dict(wish.rois))

    def _parsed(self, camera: str, payload: bytes) -> Expected:
        if len(payload) > self._max_bytes:
            raise ConfigError(f"{len(payload)} bytes are more than remote.max_bytes, {self._max_bytes}")
        origin = f"{camera}/{messages.EXPECTED}"
        wish = validated(Expected, parse_json(payload, origin, self._max_bytes), Origin(origin))
        if wish.id.startswith(CONFIG_ID):
            raise ConfigError(f"{origin}: id: {CONFIG_ID} begins the ids of what the settings expect; take another")
        unknown = sorted(wish.rois.keys() - self._config.cameras[camera].rois.keys())
        if unknown:
            raise ConfigError(f"{origin}: rois: the camera has no region {', '.join(unknown)}")
        return wish

    def _report(self, camera: str, code: Literal[200, 400], detail: str) -> None:
        expectation = self._of.get(camera)
        expectation_id = None if expectation is None else expectation.id
        self._say(messages.expected_reported(camera, expectation_id, code, detail=detail, at=self._clock()))

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
    return {
        "id": wish.id,
        "expected": [rule_to_json(rule) for rule in wish.expected],
        "rois": {name: [rule_to_json(rule) for rule in rules] for name, rules in wish.rois.items()},
    }
