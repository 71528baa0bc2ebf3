"""BuildQueue: reads with what there is while the wanted plan is built, then with that.

A stale plan must not keep a line from being read for the minutes that a build takes (field case ENG-1). The last plan
that fits this device serves meanwhile, or the CPU; readings and health say which.
Nothing here needs TensorRT, nothing runs in a thread: `BuildQueue.attend` looks after the child between two frames.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edge_agent.backends.base import Condition, Engine, Profile
from edge_agent.backends.build_job import BUILDER_COMMAND, BuildRequest, PlanBuild
from edge_agent.backends.plan_store import PlansBusy, PlanStore, PlanUnusable
from edge_agent.backends.swap import SwapEngine
from edge_agent.errors import ModelError

BUSY_RETRY_S = 5.0

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class _Wanted:
    """One plan that an engine waits for; `load` gives its engine, PlanUnusable where TensorRT refuses it."""

    engine: SwapEngine
    request: BuildRequest
    load: Callable[[], Engine]
    retry_mono: float | None = None  # set while another process builds


class BuildQueue:
    """Builds the plans that engines wait for, one after the other: a small Jetson has no memory for two.

    `attend` between two frames does everything; only the engines' thread may call it.
    """

    def __init__(
        self,
        store: PlanStore,
        command: Sequence[str] = BUILDER_COMMAND,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._command = command
        self._monotonic = monotonic
        self._waiting: deque[_Wanted] = deque()
        self._build: PlanBuild | None = None  # of the first that waits
        self._failures: dict[str, str] = {}

    def add(self, stand_in: Engine, request: BuildRequest, load: Callable[[], Engine]) -> SwapEngine:
        """The engine that runs on `stand_in` until the plan of `request` is built and `load` gives its engine."""
        engine = SwapEngine(request.key.model, stand_in, lambda: self._withdraw(engine))
        self._waiting.append(_Wanted(engine, request, load))
        return engine

    def note_failure(self, model: str, reason: str) -> None:
        """`model` runs for good on something else than it should."""
        self._failures[model] = reason

    def attend(self) -> Condition:
        """Takes the queue one step on without waiting for the builder: begins a build, or puts its plan to use.

        Putting to use loads the plan, which takes as long as at start-up; its errors are those of SwapEngine.swap.
        """
        if self._waiting:
            wanted = self._waiting[0]
            try:
                if self._build is None:
                    self._start(wanted)
                elif self._build.poll():
                    self._finish(wanted)
            except PlansBusy as exc:
                if wanted.retry_mono is None:
                    logger.warning("%s: %s", wanted.request.key.model, exc)
                wanted.retry_mono = self._monotonic() + BUSY_RETRY_S
            except ModelError as exc:
                self._fail(wanted, str(exc))
        return self.condition()

    def condition(self) -> Condition:
        """`building` while a plan is to come, `degraded` when one failed, else `running`."""
        if self._waiting:
            wanted, others = self._waiting[0], [other.request.key.model for other in list(self._waiting)[1:]]
            if self._build is not None:
                progress = str(self._build.progress)
            else:
                why = "to be built" if wanted.retry_mono is None else "for another process that builds plans"
                progress = f"{wanted.request.key.model}: waits {why}"
            then = f", then {', '.join(others)}" if others else ""
            return Condition("building", f"{progress}{then}; reading meanwhile with {wanted.engine.fingerprint}")
        if self._failures:
            return Condition("degraded", "; ".join(self._failures.values()))
        return Condition("running")

    def give_up(self) -> None:
        """Builds no more; a build that is under way does not count as a failed one."""
        self._waiting.clear()
        if self._build is not None:
            self._build.give_up()
        self._build = None

    def close(self) -> None:
        """Ends the build under way, which counts as one that did not end well; calling it again does nothing."""
        self._waiting.clear()
        self._end_build()

    def _start(self, wanted: _Wanted) -> None:
        if wanted.retry_mono is not None:
            if self._monotonic() < wanted.retry_mono:
                return
            if self._store.plan_path(wanted.request.key).with_suffix(".json").exists():
                self._put_to_use(wanted)
                return
        self._build = PlanBuild(wanted.request, self._store, self._command)

    def _finish(self, wanted: _Wanted) -> None:
        assert self._build is not None
        tries_before = self._build.tries_before
        self._end_build()
        try:
            self._put_to_use(wanted)
        except PlanUnusable:
            # built well and yet of no use: without this each restart would build it again
            self._store.put_tries(wanted.request.key, tries_before + 1)
            raise

    def _put_to_use(self, wanted: _Wanted) -> None:
        wanted.engine.swap(wanted.load)
        self._waiting.remove(wanted)
        self._failures.pop(wanted.request.key.model, None)
        logger.warning("%s: its plan is built; reading on with %s", wanted.request.key.model, wanted.engine.fingerprint)

    def _fail(self, wanted: _Wanted, reason: str) -> None:
        self._end_build()
        self._waiting.remove(wanted)
        text = f"{reason}; reading on with {wanted.engine.fingerprint}"
        logger.warning("%s", text)
        self.note_failure(wanted.request.key.model, text)

    def _withdraw(self, engine: SwapEngine) -> None:
        """Nobody waits for this plan any longer, nor is it of interest whether it failed."""
        self._failures.pop(engine.model, None)
        if self._waiting and self._waiting[0].engine is engine:
            self._end_build()
        self._waiting = deque(wanted for wanted in self._waiting if wanted.engine is not engine)

    def _end_build(self) -> None:
        build, self._build = self._build, None
        if build is not None:
            build.close()


def covers(built: Sequence[Profile], wanted: Sequence[Profile]) -> bool:
    """Whether a plan built for some profiles takes every shape that others admit, each from one of its own."""
    return all(any(have.admits(want.min) and have.admits(want.max) for have in built) for want in wanted)
