"""RemoteControl: what came from outside, looked at between two frames: configurations and commands.

The transport's callbacks only enqueue; the main loop calls `attend` at its edge and nothing else is called from there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from edge_agent.config import Config
from edge_agent.messages import DESIRED_CONFIG_TOPIC
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
COMMAND = "command/"


class RemoteControl:
    """`say_state` publishes a retained state, `say` an answer; `inbound` is the transport's. A context manager: at the
    end, work that a command began is ended. All of it is the main loop's, but `sections`."""

    def __init__(
        self,
        begun: InForce,
        store: ConfigStore,
        site: Site,
        inbound: Queue[Inbound],
        say_state: Callable[[Message], None],
        say: Callable[[Message], None],
        config_file: Path | None = None,
    ) -> None:
        self._enabled = begun.local.remote.enabled
        self._site = site
        self._inbound = inbound
        self._configs = ConfigControl(begun, store, site.models_dir, say_state)
        self._commands = CommandControl(
            begun.local.remote, SeenIds(store.folder.parent / FILE, begun.local.remote.kept_command_ids), say
        )
        self._desk = Desk(site, begun.config, store, config_file)
        self._disabled = 0
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
    def restart(self) -> str | None:
        """Why the process is to start afresh; None while it is not."""
        return self._configs.restart or self._desk.restart

    def attend(self) -> None:
        """Looks at what came since the last time, and goes on with what is under way."""
        for _ in range(MOST_PER_TURN):
            with suppress(Empty):
                self._hear(self._inbound.get_nowait())
                continue
            break
        if self._enabled:
            self._configs.attend(self._site.look(), self._site.apply)
            self._desk.config = self._configs.config
            self._commands.attend(self._desk)

    def sections(self) -> dict[str, Any]:
        """The member `remote` of a telemetry message; any thread."""
        return {
            "config_version": self._configs.version,
            "on_trial": self._configs.on_trial,
            "disabled": self._disabled,
            "commands": dict(self._commands.counts),
        }

    def __enter__(self) -> RemoteControl:
        return self

    def __exit__(self, *_: object) -> None:
        self._commands.close(self._desk)

    def _hear(self, inbound: Inbound) -> None:
        if not self._enabled:
            self._disabled += 1
        elif inbound.topic == DESIRED_CONFIG_TOPIC:
            self._configs.hear(inbound)
        elif inbound.topic.startswith(COMMAND):
            self._commands.hear(inbound, self._desk)
