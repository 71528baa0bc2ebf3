"""Site: what the running agent lets the remote room see and do; called by the main loop's thread alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from edge_agent.config import Config
from edge_agent.records import Frame
from edge_agent.remote.trial import Look
from edge_agent.transports.base import Inbound


class Site(Protocol):
    """The agent, from here."""

    def look(self) -> Look:
        """The figures of this moment."""
        ...

    def apply(self, config: Config) -> None:
        """Puts the LIVE keys of `config` to use, from the next frame on."""
        ...

    def hear_camera(self, inbound: Inbound) -> None:
        """A message to one of the cameras: what its items must say, or that one is there."""
        ...

    def newest(self, camera: str) -> Frame | None:
        """The frame of a camera that was read last; None before the first."""
        ...

    def ledger(self) -> Mapping[str, Any]:
        """What became of the readings, by camera and day."""
        ...

    def discard_plans(self) -> list[str]:
        """Puts the plans of the models in use aside, so that the next start builds them; their names.

        Raises EdgeAgentError where what runs has no plans.
        """
        ...

    def replay(self) -> int:
        """Queues again what was given up and kept; how many messages."""
        ...
