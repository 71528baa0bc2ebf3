"""RemoteControl: what came from outside, looked at between two frames: configurations and commands.

The transport's callbacks only enqueue; the main loop calls `attend` at its edge. While start-up keeps the main thread
busy, for minutes where plans are built, a thread of its own answers commands: those that need no running agent are
done, the others busy; a wish waits.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from edge_agent.config import Config
from edge_agent.messages import DESIRED_CONFIG_TOPIC, TRIGGER
from edge_agent.records import Message
from edge_agent.remote.command_control import CommandControl
from edge_agent.remote.commands import Desk
from edge_agent.remote.config_control import ConfigControl
from edge_agent.remote.config_store import ConfigStore
from edge_agent.remote.in_force import InForce
from edge_agent.remote.seen_ids import FILE, SeenIds
from edge_agent.remote.site import Site
from edge_agent.transports.base import Inbound

MOST_PER_TURN = 20  # messages looked at between two frames
EARLY_TURN_S = 0.1  # and so often while start-up goes on
MOST_EARLY = 256  # messages to cameras kept until something is read
COMMAND = "command/"


@dataclass(frozen=True)
class RemoteAccess:
    """What a process knows of changes from afar before it runs: what it began with, where that is stored, and the
    files that commands work with; `config_file` is the device's own file of settings."""

    begun: InForce
    store: ConfigStore
    models_dir: Path
    config_file: Path | None = None


class RemoteControl:
    """`say_state` publishes a retained state, `say` an answer, from any thread; `inbound` is the transport's.

    A context manager: inside, commands are answered, until `open_to` by a thread of its own, from then on by the main
    loop's `attend`; at the end, work that a command began is ended. All of it is the main thread's, but `section`.
    `unix_if_trusted` gives unix seconds, None while the time of day cannot be believed.
    """

    def __init__(
        self,
        access: RemoteAccess,
        inbound: Queue[Inbound],
        say_state: Callable[[Message], None],
        say: Callable[[Message], None],
        unix_if_trusted: Callable[[], float | None] = time.time,
    ) -> None:
        begun, store = access.begun, access.store
        settings = begun.local.remote
        seen = SeenIds(store.folder.parent / FILE, settings.kept_command_ids)
        self._enabled = settings.enabled
        self._inbound = inbound
        self._configs = ConfigControl(begun, store, access.models_dir, say_state)
        max_answer_bytes = begun.config.mqtt.max_payload_bytes
        self._commands = CommandControl(
            settings, seen, say, unix_if_trusted=unix_if_trusted, max_answer_bytes=max_answer_bytes
        )
        self._desk = Desk(None, begun.config, store, access.models_dir)
        self._of_cameras: deque[Inbound] = deque(maxlen=MOST_EARLY)
        self._disabled = self._too_early = 0
        self._started = threading.Event()
        self._early = threading.Thread(target=self._attend_early, name="remote", daemon=True)

    def open_to(self, site: Site) -> None:
        """Start-up is over: the agent can be seen and changed; `attend` answers from now on, also what the process
        before this one has left."""
        self._end_early()
        self._desk.site = site
        while self._of_cameras:
            site.hear_camera(self._of_cameras.popleft())
        if self._enabled:
            self._commands.resume()

    @property
    def config(self) -> Config:
        """What is in force now."""
        return self._configs.config

    @property
    def config_version(self) -> int | None:
        """The version from afar that is in force, be it on trial; None where the device's own settings are."""
        return self._configs.version

    @property
    def trial(self) -> tuple[bool, float | None]:
        """Whether a configuration is on trial, and the seconds until it is judged, None before they count; any
        thread."""
        return self._configs.on_trial, self._configs.trial_left_s

    @property
    def restart(self) -> str | None:
        """Why the process is to start afresh; None while it is not."""
        return self._configs.restart or self._desk.restart

    def attend(self) -> None:
        """Looks at what came since the last time, and goes on with what is under way; after `open_to`."""
        self._hear_all()
        if self._enabled:
            site = self._desk.running()
            self._configs.attend(site.look(), site.apply)
            self._desk.config = self._configs.config
            self._commands.attend(self._desk)

    def section(self) -> dict[str, Any]:
        """The member `remote` of a telemetry message; any thread."""
        return {
            "config_version": self._configs.version,
            "on_trial": self._configs.on_trial,
            "disabled": self._disabled,
            "commands": dict(self._commands.counts),
            "dropped": self._too_early,
        }

    def __enter__(self) -> RemoteControl:
        self._early.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_early()
        self._commands.close(self._desk)

    def _attend_early(self) -> None:
        while not self._started.wait(EARLY_TURN_S):
            self._hear_all()

    def _end_early(self) -> None:
        self._started.set()
        self._early.join()

    def _hear_all(self) -> None:
        for _ in range(MOST_PER_TURN):
            with suppress(Empty):
                self._hear(self._inbound.get_nowait())
                continue
            break

    def _hear(self, inbound: Inbound) -> None:
        if not self._enabled:
            self._disabled += 1
        elif inbound.topic == DESIRED_CONFIG_TOPIC:
            self._configs.hear(inbound)
        elif inbound.topic.startswith(COMMAND):
            self._commands.hear(inbound, self._desk)
        elif self._desk.site is not None:
            self._desk.site.hear_camera(inbound)
        elif inbound.topic.endswith(TRIGGER):  # of an item that has gone by long before anything is read
            self._too_early += 1
        else:
            self._too_early += len(self._of_cameras) == MOST_EARLY
            self._of_cameras.append(inbound)
