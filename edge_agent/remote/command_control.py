"""CommandControl: a command on its way: heard, checked, run once, answered.

Called by the main loop between two frames; until that begins, `hear` by the thread that answers meanwhile.
"""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from edge_agent import messages
from edge_agent.cameras.base import Clock
from edge_agent.cameras.repeat_log import RepeatLog
from edge_agent.errors import ConfigError, EdgeAgentError, in_one_line
from edge_agent.messages import CommandState
from edge_agent.records import Message
from edge_agent.remote.bucket import Bucket
from edge_agent.remote.commands import COMMANDS, Busy, Command, Desk
from edge_agent.remote.seen_ids import Seen, SeenIds
from edge_agent.settings.remote import RemoteConfig
from edge_agent.settings.strict_json import parse_json
from edge_agent.settings.validation import Origin, validated
from edge_agent.transports.base import Inbound

log = logging.getLogger(__name__)

RESTARTING = ("rebuild", "restart")  # what a restart ends well
MAX_REASON_CHARS = 2000
BUSY_EVERY_S = 10.0  # how often too many commands are answered
MEMBERS = ("args", "expires_at", "id", "v")

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_TIME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})")


@dataclass(frozen=True)
class Call:
    """A command as it came: `args` still plain values, `expires_at` unix s."""

    name: str
    id: str
    args: Mapping[str, Any]
    expires_at: float | None


class CommandControl:
    """`say` publishes an answer; `unix_if_trusted` gives unix s, None while the time of day cannot be believed."""

    def __init__(
        self,
        settings: RemoteConfig,
        seen: SeenIds,
        say: Callable[[Message], None],
        unix: Callable[[], float] = time.time,
        unix_if_trusted: Callable[[], float | None] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        max_answer_bytes: int = 262_144,
    ) -> None:
        self.counts: Counter[str] = Counter()  # answers by state, and what was ignored, by reason
        self._settings = settings
        self._seen = seen
        self._publish = say
        self._unix = unix
        self._unix_if_trusted = unix_if_trusted
        self._max_answer_bytes = max_answer_bytes
        self._monotonic = monotonic
        self._bucket = Bucket(settings.command_rate_per_min, monotonic)
        self._busy_said_mono = float("-inf")
        self._jobs: dict[str, str] = {}  # command -> id of the one under way
        self._journal = RepeatLog(log, Clock(monotonic=monotonic))

    def resume(self) -> None:
        """At the start of a process: answers what the one before had accepted and not ended."""
        for seen in self._seen.under_way():
            if seen.name in RESTARTING:
                self._end(seen.name, seen.id, "done", {"result": {}})
            else:
                self._end(seen.name, seen.id, "failed", {"reason": "the process ended before it was done"})

    def hear(self, inbound: Inbound, desk: Desk) -> None:
        """A command has come: it is answered, unless it is a retained one or nobody could be answered."""
        name = inbound.topic.partition("/")[2]
        if inbound.retained or not inbound.payload:
            self._ignore("retained" if inbound.retained else "empty", name)
        elif not _NAME.fullmatch(name):
            self._ignore("no_name", name)
        elif not self._bucket.take():
            self._too_many(name)
        else:
            try:
                self._carry_out(parse_call(name, inbound.payload, self._settings.max_bytes), desk)
            except ConfigError as exc:
                self._answer(name, None, "failed", {"reason": in_one_line(exc, MAX_REASON_CHARS)})

    def attend(self, desk: Desk) -> None:
        """Answers commands whose work has ended meanwhile."""
        for name, command_id in list(self._jobs.items()):
            try:
                answer = desk.jobs[name].poll()
            except EdgeAgentError as exc:
                self._close(name, desk)
                self._end(name, command_id, "failed", {"reason": in_one_line(exc, MAX_REASON_CHARS)})
                continue
            if answer is not None:
                self._close(name, desk)
                self._end(name, command_id, "done", {"result": answer})

    def close(self, desk: Desk) -> None:
        """Ends what is under way; the next process answers for it."""
        for name in list(self._jobs):
            self._close(name, desk)

    def _carry_out(self, call: Call, desk: Desk) -> None:
        seen = self._seen.get(call.id)
        if seen is not None:
            self._answer(call.name, call.id, "duplicate", remembered(seen))
            return
        row = next((COMMANDS[name] for name in self._settings.commands if name == call.name), None)
        why = self._cannot(call, row)
        if why is not None or row is None:
            self._answer(call.name, call.id, "failed", {"reason": why})
            return
        try:
            args = validated(row.args, call.args, Origin("args"))
        except ConfigError as exc:
            self._answer(call.name, call.id, "failed", {"reason": in_one_line(exc, MAX_REASON_CHARS)})
            return
        self._seen.accept(call.id, call.name, at_once=not row.repeatable)
        self._run(call, row, args, desk)

    def _cannot(self, call: Call, row: Command | None) -> str | None:
        if row is None:
            return f"there is no command {call.name}; there are: {', '.join(self._settings.commands)}"
        if call.expires_at is None:
            return None
        now = self._unix_if_trusted()
        if now is None:
            return "the clock of this device is not set, so it cannot tell whether this has expired"
        return f"expired {now - call.expires_at:.0f} s ago" if now > call.expires_at else None

    def _run(self, call: Call, row: Command, args: Any, desk: Desk) -> None:
        log.info("command %s, id %s", call.name, call.id)
        try:
            answer = row.run(desk, args)
        except Busy as exc:
            self._seen.forget(call.id)
            self._answer(call.name, call.id, "busy", {"reason": str(exc)})
        except (EdgeAgentError, OSError) as exc:
            self._end(call.name, call.id, "failed", {"reason": in_one_line(exc, MAX_REASON_CHARS)})
        else:
            if answer is None:
                self._answer(call.name, call.id, "accepted", {})
            elif isinstance(answer, Mapping):
                self._end(call.name, call.id, "done", {"result": answer})
            else:
                desk.jobs[call.name] = answer
                self._jobs[call.name] = call.id
                self._answer(call.name, call.id, "accepted", {})

    def _close(self, name: str, desk: Desk) -> None:
        del self._jobs[name]
        desk.jobs.pop(name).close()

    def _end(self, name: str, command_id: str, state: CommandState, body: Mapping[str, Any]) -> None:
        self._seen.end(command_id, "done" if state == "done" else "failed", body)
        self._answer(name, command_id, state, body)

    def _answer(self, name: str, command_id: str | None, state: CommandState, body: Mapping[str, Any]) -> None:
        message = messages.command_reply(name, command_id, state, body, self._unix())
        size_bytes = len(message.payload)
        if size_bytes > self._max_answer_bytes:
            reason = f"the answer has {size_bytes} bytes, more than mqtt.max_payload_bytes, {self._max_answer_bytes}"
            message = messages.command_reply(name, command_id, state, {"reason": reason}, self._unix())
        self.counts[state] += 1
        self._publish(message)

    def _ignore(self, reason: str, name: str) -> None:
        self.counts[f"ignored_{reason}"] += 1
        text = f"a command was not carried out ({reason}): {name[:40]!r}"
        self._journal.write(logging.WARNING, f"ignored {reason}", text)

    def _too_many(self, name: str) -> None:
        """Answered now and then only: whoever floods the device shall not make it flood the broker."""
        self.counts["ignored_too_many"] += 1
        now_mono = self._monotonic()
        if now_mono - self._busy_said_mono >= BUSY_EVERY_S:
            self._busy_said_mono = now_mono
            most = self._settings.command_rate_per_min
            reason = (
                f"more than {most} commands a minute came (remote.command_rate_per_min); this one was not looked at"
            )
            self._answer(name, None, "busy", {"reason": reason})


def parse_call(name: str, payload: bytes, max_bytes: int) -> Call:
    """The command that a payload holds: {"id": "c-1", "args": {...}, "expires_at": "2026-11-30T12:00:00Z"}; ConfigError
    for anything else."""
    values = parse_json(payload, f"command/{name}", max_bytes)
    command_id, args, expires_at = values.get("id"), values.get("args"), values.get("expires_at")
    unknown = sorted(set(values) - set(MEMBERS))
    if unknown:
        raise ConfigError(f"{unknown[0][:40]!r} is unknown here; known are {', '.join(MEMBERS)}")
    if not isinstance(command_id, str) or not _ID.fullmatch(command_id):
        raise ConfigError("id is missing or wrong; expected 1 to 64 of A-Z a-z 0-9 . _ : -, another one each time")
    if args is not None and not isinstance(args, dict):
        raise ConfigError("args is no object; expected {...}")
    return Call(name, command_id, args or {}, None if expires_at is None else unix_s(expires_at))


def unix_s(text: object) -> float:
    """A time as in RFC 3339, with its offset, as unix seconds; ConfigError for anything else."""
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    try:
        # the fraction apart: before Python 3.11 fromisoformat takes three or six of its digits, and no Z
        when = None if match is None else datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00"))
    except ValueError:
        when = None
    if match is None or when is None:
        raise ConfigError("expires_at is no time; expected one such as 2026-11-30T12:00:00Z")
    return when.timestamp() + float(match[2] or 0)


def remembered(seen: Seen) -> dict[str, Any]:
    """The members of the answer to a command that comes again: how it is with the first."""
    return {"first": {"command": seen.name, "state": seen.state, **seen.body}}
