"""SignalTrigger: a trigger whose signal a thread of its own waits for, and goes on after trouble."""

from __future__ import annotations

import logging
import threading
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager

from edge_agent.cameras.base import Clock
from edge_agent.cameras.repeat_log import RepeatLog
from edge_agent.errors import in_one_line
from edge_agent.items.triggers import Fire, Trigger
from edge_agent.settings.trigger import TriggerConfig

log = logging.getLogger(__name__)

AGAIN_S = 1.0  # after trouble
WAIT_S = 0.2  # at most, until it is looked whether the end has come
JOIN_S = 2.0


class SignalTrigger(Trigger):
    """`signals` gives the signal's source; what it raises as OSError is told, and the source is opened again."""

    def __init__(self, camera: str, config: TriggerConfig, fire: Fire) -> None:
        super().__init__(camera, config, fire)
        self.fault: str | None = None
        self._journal = RepeatLog(log, Clock())
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"trigger-{camera}", daemon=True)
        self._thread.start()

    @abstractmethod
    def signals(self) -> AbstractContextManager[Iterator[list[float]]]:
        """The signal's source, opened; each turn waits at most WAIT_S and gives when it came, monotonic s, or []."""

    def close(self) -> None:
        self._closing.set()
        self._thread.join(JOIN_S)

    def _watch(self) -> None:
        while not self._closing.is_set():
            try:
                with self.signals() as turns:
                    for came_mono in turns:
                        self.fault = None
                        for mono in came_mono:
                            self.fire(mono)
                        if self._closing.is_set():
                            return
            except OSError as exc:
                self.fault = in_one_line(exc)
                text = f"the {self.config.kind} trigger of camera {self.camera} is deaf: {self.fault}; trying again"
                self._journal.write(logging.WARNING, self.camera, text)
                self._closing.wait(AGAIN_S)
