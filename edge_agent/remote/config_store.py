"""ConfigStore: the configurations that came from afar, on disk: which is in force, on trial, or was not taken.

    <state>/config/state.json          which is which; replaced as one, so that a power cut leaves the old or the new
    <state>/config/texts/<sha256>      each text as it came, never changed

A text is written before the state that names it, and removed after the state that no longer does.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from edge_agent.errors import ConfigError, in_one_line
from edge_agent.files import write_atomically
from edge_agent.remote.desired import Desired, parse_desired, text_name
from edge_agent.secrets import MASK, is_secret_key, masked

log = logging.getLogger(__name__)

VERSION = 1
FOLDER = "config"
STATE_FILE = "state.json"
TEXTS = "texts"
LOCK_FILE = "lock"
PRIVATE = 0o600  # a text may hold what is nobody else's business
MAX_REASON_CHARS = 2000

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"]*")
_MEMBER = re.compile(r'("((?:[^"\\]|\\.)*)"\s*:\s*")((?:[^"\\]|\\.)*)(")')
SHOWN_KEYS = ("source", "token", "url", "user", "username")  # a source is shown without its password

Outcome = Literal["refused", "rolled_back", "replaced"]


@dataclass(frozen=True)
class Wished:
    """A wish that was taken: `content` is Desired.digest, `text` the sha256 that names its file, `at` unix s."""

    version: int
    content: str
    text: str
    token: str | None
    at: float


@dataclass(frozen=True)
class OnTrial:
    """The wish that runs on trial. `starts`: processes that began with it and did not end tidily; `before`: figures of
    the configuration before it, for comparison."""

    wished: Wished
    starts: int = 0
    before: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Past:
    """How a wish ended. `version` and `content` are None for a text that could not be read; `told`: the operator has
    heard of it."""

    version: int | None
    content: str | None
    text: str | None
    outcome: Outcome
    reason: str
    at: float
    token: str | None = None
    told: bool = True


@dataclass(frozen=True)
class State:
    """What is known: `active` None means that the device's file alone is in force; `past` oldest first."""

    active: Wished | None = None
    previous: Wished | None = None
    trial: OnTrial | None = None
    past: tuple[Past, ...] = ()

    @property
    def running(self) -> Wished | None:
        """What a process that starts now is to run."""
        return self.active if self.trial is None else self.trial.wished

    def rolled_back(self, desired: Desired) -> Past | None:
        """The end of this very wish, if it was on trial before and failed."""
        same = (desired.version, desired.digest)
        ends = (each for each in reversed(self.past) if each.outcome == "rolled_back")
        return next((each for each in ends if (each.version, each.content) == same), None)


class ConfigStore:
    """The store in one folder. Two processes may use it, as the agent and a person's command do: each change is made
    to the state as it is on disk, one at a time. `clock` gives unix seconds. Methods raise OSError where the disk does
    not let them; the state on disk is then the old one."""

    def __init__(self, folder: Path, kept: int = 10, clock: Callable[[], float] = time.time) -> None:
        """Touches nothing. `kept`: how many ended wishes are remembered, with their texts."""
        self.folder = folder
        self._kept = kept
        self._clock = clock

    @property
    def state_path(self) -> Path:
        """The file whose replacement is the change."""
        return self.folder / STATE_FILE

    def state(self) -> State:
        """The state on disk. A damaged file is put aside, aloud, and the state is empty: the device's file alone."""
        try:
            return _state_from_json(self.state_path.read_bytes())
        except FileNotFoundError:
            return State()
        except OSError as exc:
            log.error("%s cannot be read (%s); the file alone is in force", self.state_path, exc.strerror)  # noqa: TRY400
            return State()
        except (ValueError, RecursionError) as exc:
            aside = self.state_path.with_suffix(".damaged")
            log.error("%s is damaged (%s); the file alone is in force", self.state_path, in_one_line(exc))  # noqa: TRY400
            with suppress(OSError):
                self.state_path.replace(aside)
            return State()

    def stamp(self) -> tuple[int, int] | None:
        """What differs once anybody has changed the state; None where there is none."""
        try:
            status = self.state_path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino

    def text(self, name: str) -> bytes:
        """The text of that name, as it came; ConfigError where it is missing or damaged."""
        path = self._text_path(name)
        try:
            text = path.read_bytes()
        except OSError as exc:
            raise ConfigError(f"{path} cannot be read: {exc.strerror}") from exc
        if text_name(text) != name:
            raise ConfigError(f"{path} is damaged: its sha256 is not its name")
        return text

    def shown_text(self, name: str) -> str:
        """The text of that name for people, without passwords; ConfigError as `text`."""
        text = self.text(name).decode("utf-8", "replace")
        text = _URL.sub(lambda url: masked(url.group()), text)
        return _MEMBER.sub(lambda member: f"{member[1]}{MASK}{member[4]}" if _hides(member[2]) else member[0], text)

    def desired(self, wished: Wished) -> Desired:
        """The wish itself, parsed again; ConfigError where its text is missing or damaged."""
        text = self.text(wished.text)
        return replace(parse_desired(text, len(text)), version=wished.version)

    def stage(self, desired: Desired, before: Mapping[str, Any] | None) -> State:
        """Puts a wish on trial, in the place of any other."""
        wished = Wished(desired.version, desired.digest, text_name(desired.text), desired.token, self._clock())
        return self._change(lambda state: replace(state, trial=OnTrial(wished, 0, before)), desired.text)

    def count_start(self) -> int:
        """Notes that a process begins with the wish on trial; how many have."""
        return self._with_starts(lambda starts: starts + 1)

    def tidy_stop(self) -> None:
        """Notes that a process with the wish on trial was told to end: that is no failure of the wish."""
        trial = self.state().trial
        if trial is not None and trial.starts > 0:
            self._with_starts(lambda starts: 0)

    def confirm(self) -> State:
        """The trial has been passed."""

        def passed(state: State) -> State:
            if state.trial is None:
                return state
            before = state.active
            past = state.past if before is None else (*state.past, self._past(before, "replaced", ""))
            return State(state.trial.wished, before, None, past)

        return self._change(passed)

    def roll_back_trial(self, reason: str, *, told: bool = False) -> State:
        """The trial has failed: what was active before is in force again. `told`: whoever calls tells the operator."""

        def failed(state: State) -> State:
            if state.trial is None:
                return state
            past = (*state.past, self._past(state.trial.wished, "rolled_back", reason, told=told))
            return replace(state, trial=None, past=past)

        return self._change(failed)

    def all_told(self) -> State:
        """The operator has heard of everything."""
        return self._change(
            lambda state: replace(
                state, past=tuple(each if each.told else replace(each, told=True) for each in state.past)
            )
        )

    def refuse(self, payload: bytes | None, version: int | None, reason: str, token: str | None = None) -> bool:
        """Keeps a text that was not taken, None for one too long to keep; False where it is the last one kept
        already."""
        name = None if payload is None else text_name(payload)
        last = self.state().past[-1:]
        ended = Past(version, None, name, "refused", reason[:MAX_REASON_CHARS], self._clock(), token)
        if last and replace(last[0], at=ended.at) == ended:
            return False
        self._change(lambda state: replace(state, past=(*state.past, ended)), payload)
        return True

    def renumber(self, version: int, token: str | None) -> State:
        """The active wish came again under a greater version."""

        def renumbered(state: State) -> State:
            return replace(state, active=state.active and replace(state.active, version=version, token=token))

        return self._change(renumbered)

    def go_back(self, reason: str, *, to_file: bool = False) -> State:
        """Takes back the trial or else the active wish, in favour of the one before; `to_file`: of the file alone."""

        def back(state: State) -> State:
            on_trial = None if state.trial is None else state.trial.wished
            taken = [each for each in (state.active, on_trial) if each is not None]
            if not to_file:
                taken = taken[-1:]
            past = (*state.past, *(self._past(each, "rolled_back", reason) for each in taken))
            if to_file:
                return State(None, None, None, past)
            if state.trial is not None:
                return replace(state, trial=None, past=past)
            return State(state.previous, None, None, past)

        return self._change(back)

    def _with_starts(self, change: Callable[[int], int]) -> int:
        def counted(state: State) -> State:
            trial = state.trial
            return replace(state, trial=trial and replace(trial, starts=change(trial.starts)))

        trial = self._change(counted).trial
        return 0 if trial is None else trial.starts

    def _past(self, wished: Wished, outcome: Outcome, reason: str, *, told: bool = True) -> Past:
        return Past(
            version=wished.version,
            content=wished.content,
            text=wished.text,
            outcome=outcome,
            reason=reason[:MAX_REASON_CHARS],
            at=self._clock(),
            token=wished.token,
            told=told,
        )

    def _change(self, change: Callable[[State], State], text: bytes | None = None) -> State:
        """Makes one change; `text` is what the state names from then on."""
        with self._alone():
            before = self.state()
            after = change(before)
            after = replace(after, past=_newest(after.past, self._kept))
            if text is not None:
                self._keep(text)
            if after != before:
                content = json.dumps({"v": VERSION, **asdict(after)}, indent=1, allow_nan=False).encode()
                write_atomically(self.state_path, content, PRIVATE)
                self._sweep(after)
            return after

    def _keep(self, text: bytes) -> None:
        path = self._text_path(text_name(text))
        if not path.is_file() or path.read_bytes() != text:
            write_atomically(path, text, PRIVATE)

    def _sweep(self, state: State) -> None:
        """Removes texts that no state names any more."""
        named = {each.text for each in state.past}
        named |= {each.text for each in (state.active, state.previous, state.trial and state.trial.wished) if each}
        with suppress(OSError):  # what stays is removed another time
            for path in (self.folder / TEXTS).iterdir():
                if path.name not in named:
                    path.unlink()

    def _text_path(self, name: str) -> Path:
        return self.folder / TEXTS / name

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Inside, no other process changes the store."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _newest(past: tuple[Past, ...], kept: int) -> tuple[Past, ...]:
    """At most `kept`, oldest first. What was refused takes at most half where others need the room: no flood of such
    makes the device forget, and try again, what it has rolled back."""
    if kept == 1:
        return past[-1:]
    others = [n for n, each in enumerate(past) if each.outcome != "refused"]
    refused = [n for n, each in enumerate(past) if each.outcome == "refused"]
    refused = refused[-max(kept - len(others), kept // 2) :]
    others = others[-(kept - len(refused)) :] if len(refused) < kept else []
    return tuple(past[n] for n in sorted([*others, *refused]))


def _hides(key: str) -> bool:
    return is_secret_key(key) and key not in SHOWN_KEYS and not key.endswith("_file")


@cache
def _reader() -> TypeAdapter[State]:
    return TypeAdapter(State)


def _state_from_json(content: bytes) -> State:
    """The inverse of what `_change` writes; ValueError for anything else."""
    values = json.loads(content)
    if not isinstance(values, dict) or values.pop("v", None) != VERSION:
        raise ValueError(f"it is not of version {VERSION}")
    if set(values) != {member.name for member in fields(State)}:
        raise ValueError("members are missing or unknown")
    return _reader().validate_json(json.dumps(values), strict=True)
