"""PageRemote: what the page asks of the agent goes the way that the same takes from afar, and is judged, limited, tried
and reported like that: the page can do no more than the plant can."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from queue import Full, Queue
from typing import Any

from edge_agent.messages import DESIRED_CONFIG_TOPIC
from edge_agent.records import Message
from edge_agent.remote.allowed import wished_config
from edge_agent.remote.bucket import Bucket
from edge_agent.remote.commands import COMMANDS
from edge_agent.remote.config_store import State
from edge_agent.remote.control import RemoteAccess
from edge_agent.remote.desired import Desired, DesiredRefused, parse_desired
from edge_agent.settings.keys import merge_patched
from edge_agent.transports.base import Inbound
from edge_agent.web.site import Refused

KEPT = 100  # commands whose answers are remembered
ANSWER_S = 30.0  # without an answer a command was not taken
JUDGED_S = 10.0  # within which the main loop has looked at a wish
TAKEN_BACK = "taken back on the page"

Answer = Mapping[str, Any]


class PageRemote:
    """For any thread. `access` None: nothing is heard from afar, and so not from the page. `monotonic` s."""

    def __init__(
        self,
        access: RemoteAccess | None,
        inbound: Queue[Inbound],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._inbound = inbound
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._sent: OrderedDict[str, tuple[str, float, Answer | None]] = OrderedDict()  # id -> name, when, answer
        self._wished: tuple[int, float] = (0, float("-inf"))  # the version sent last, and when
        per_min = 60 if access is None else access.begun.local.remote.command_rate_per_min
        self._bucket = Bucket(per_min, monotonic)

    # Commands

    def submit_command(self, name: str, args: Mapping[str, Any]) -> str:
        """Sends a command; its id. Refused: 404 for an unknown one, 429 for too many, 409 where none are heard."""
        access = self._heard()
        if name not in COMMANDS or name not in access.begun.local.remote.commands:
            raise Refused(404, "no_command", f"there is no command {name[:64]!r} on this device (remote.commands)")
        command_id = f"page-{secrets.token_hex(8)}"
        payload = json.dumps({"id": command_id, "args": dict(args)}).encode()
        most_bytes = access.begun.local.remote.max_bytes
        if len(payload) > most_bytes:
            raise Refused(413, "too_large", f"the command has {len(payload)} bytes; at most {most_bytes}")
        with self._lock:
            if not self._bucket.take():
                text = "more commands came than remote.command_rate_per_min"
                raise Refused(429, "too_many_commands", text, {"Retry-After": "5"})
            self._sent[command_id] = (name, self._monotonic(), None)
            while len(self._sent) > KEPT:
                self._sent.popitem(last=False)
        self._send(f"command/{name}", payload)
        return command_id

    def command(self, command_id: str) -> Answer | None:
        """The newest answer to a command that was sent here; None for one that is not known."""
        with self._lock:
            sent = self._sent.get(command_id)
        if sent is None:
            return None
        _, sent_mono, answer = sent
        if answer is not None:
            return answer
        if self._monotonic() - sent_mono > ANSWER_S:
            return {"id": command_id, "state": "busy", "reason": "the agent has not taken it; send it again"}
        return {"id": command_id, "state": "accepted"}

    def hear(self, message: Message) -> None:
        """An answer that the agent gives, be it to the page or to others."""
        answer = json.loads(message.payload)
        with self._lock:
            sent = self._sent.get(answer["id"]) if answer["id"] is not None else None
            if sent is not None:
                self._sent[answer["id"]] = (sent[0], sent[1], answer)

    # Settings

    def submit_patch(self, patch: Mapping[str, Any]) -> int:
        """Wishes for settings: the wish in force with `patch` over it; its version.

        Refused: 409 while another change is under way, 422 with every reason.
        """
        access = self._heard()
        state = access.store.state()
        with self._lock:
            version, wished_mono = self._wished
            underway = version > newest_version(state) and self._monotonic() - wished_mono < JUDGED_S
            if underway or state.trial is not None:
                number = version if state.trial is None else state.trial.wished.version
                text = f"version {number} is on trial; wait for its end, or take it back"
                raise Refused(409, "on_trial", text, {"Retry-After": "5"})
            desired = self._composed(access, state, patch)
            self._wished = (desired.version, self._monotonic())
        self._send(DESIRED_CONFIG_TOPIC, desired.text)
        return desired.version

    def roll_back(self) -> None:
        """Takes back what is on trial, else what is in force from afar or the page. Refused: 409 where nothing is."""
        access = self._heard()
        if access.store.state().running is None:
            raise Refused(409, "nothing_to_take_back", "the device's own file alone is in force")
        try:
            access.store.go_back(TAKEN_BACK)
        except OSError as exc:
            raise Refused(503, "not_written", f"it cannot be written down: {exc.strerror}") from exc

    def _composed(self, access: RemoteAccess, state: State, patch: Mapping[str, Any]) -> Desired:
        """The whole wish; Refused with 422 where it would not be taken."""
        kind, content = "patch", dict(patch)
        try:
            if state.active is not None:
                active = access.store.desired(state.active)
                kind = active.kind
                content = merge_patched(active.content, patch) if kind == "config" else composed(active.content, patch)
            wish = {"version": max(newest_version(state), self._wished[0]) + 1, kind: content}
            local = access.begun.local
            desired = parse_desired(json.dumps(wish).encode(), local.remote.max_bytes)
            wished_config(desired, local, access.models_dir)
        except DesiredRefused as exc:
            raise Refused(422, "refused", str(exc)) from None
        return desired

    def _heard(self) -> RemoteAccess:
        if self._access is None or not self._access.begun.local.remote.enabled:
            raise Refused(409, "remote_off", "changes and commands are not heard on this device (remote.enabled)")
        return self._access

    def _send(self, topic: str, payload: bytes) -> None:
        try:
            self._inbound.put_nowait(Inbound(topic, payload, retained=False))
        except Full:
            raise Refused(429, "too_many", "too much comes at once", {"Retry-After": "2"}) from None


def newest_version(state: State) -> int:
    """The greatest version that the store knows."""
    wishes = [state.active, state.previous, None if state.trial is None else state.trial.wished]
    versions = [wish.version for wish in wishes if wish is not None]
    return max([*versions, *(past.version for past in state.past if past.version is not None)], default=0)


def composed(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """One merge patch that does what `first` does, and `second` after it. Where `first` takes a section away and
    `second` gives it keys, the file's other keys of it come back: a merge patch cannot say otherwise."""
    result = dict(first)
    for key, value in second.items():
        before = result.get(key)
        result[key] = composed(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return result
