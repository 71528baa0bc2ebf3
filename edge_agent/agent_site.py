"""AgentSite: what the remote room sees of the running agent, and does to it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from edge_agent.agent_report import accounts
from edge_agent.config import Config
from edge_agent.live import take_up
from edge_agent.records import Frame
from edge_agent.remote.trial import Look
from edge_agent.transports.base import Inbound

if TYPE_CHECKING:
    from edge_agent.agent import Agent


class AgentSite:
    """A remote.site.Site; for the main loop's thread."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def look(self) -> Look:
        """What was read so far, and how cameras and pipeline are."""
        agent = self._agent
        cameras = {camera.name: camera.status().state for camera in agent.cameras}
        # a disk that fails, a hot day, a catalogue's file and the time that it takes are no fault of a configuration
        faults = (agent.outbox.fault, agent.pipeline.catalogue.fault)
        excused = agent.cooling.level > 0 or any(fault is not None for fault in faults)
        state = "running" if agent.told[0] == "degraded" and excused else agent.told[0]
        results = agent.results
        return Look(time.monotonic(), dict(results.frames_read), dict(results.frames_with_text), cameras, state)

    def apply(self, config: Config) -> None:
        """Puts the LIVE keys of `config` to use, from the next frame on."""
        agent = self._agent
        take_up(config, agent.pipeline, agent.results, agent.cameras, agent.sampler)

    def hear_camera(self, inbound: Inbound) -> None:
        """A message to one of the cameras."""
        self._agent.results.hear(inbound)

    def newest(self, camera: str) -> Frame | None:
        """The frame of a camera that was read last."""
        return self._agent.results.newest.get(camera)

    def ledger(self) -> Mapping[str, Any]:
        """What became of the readings."""
        return accounts(self._agent)

    def discard_plans(self) -> list[str]:
        """Puts the plans in use aside; the models' names."""
        return self._agent.pipeline.discard_plans()

    def replay(self) -> int:
        """Queues again what was given up; how many messages."""
        return self._agent.outbox.revive()
