"""InterimEngine: reads with what there is while the wanted plan is built, then with that; BuildQueue: those builds.

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

from edge_agent.backends.base import Array, Condition, Engine, Feed, Profile, TensorSpec
from edge_agent.backends.build_job import BUILDER_COMMAND, BuildRequest, PlanBuild
from edge_agent.backends.plan import PlansBusy, PlanStore, PlanUnusable
from edge_agent.errors import ConfigError, EngineError, ModelError

BUSY_RETRY_S = 5.0

logger = logging.getLogger(__name__)


class InterimEngine:
    """An Engine that runs on a stand-in until `swap` gives it the wanted one. One thread owns it.

    `fingerprint` is of the engine that makes the next outputs to be collected: a run that was under way during the swap
    is the stand-in's.
    """

    def __init__(self, model: str, stand_in: Engine, on_close: Callable[[], None] = lambda: None) -> None:
        """`on_close` is called once, when the engine is closed."""
        self.model = model
        self._engine = stand_in
        self._on_close = on_close
        self._closed = False
        self._under_way = False
        self._held: tuple[str, dict[str, Array]] | None = None

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The inputs, the same before and after the swap but for dimensions that one of them leaves open."""
        return self._engine.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """The outputs, as `inputs`."""
        return self._engine.outputs

    @property
    def fingerprint(self) -> str:
        """The running engine's; may be asked for from any thread."""
        held = self._held
        return self._engine.fingerprint if held is None else held[0]

    def infer(self, feed: Feed) -> dict[str, Array]:
        """As the running engine does."""
        self.enqueue(feed)
        return self.collect()

    def enqueue(self, feed: Feed) -> None:
        """As the running engine does."""
        if self._under_way:
            raise EngineError(f"{self.model}: a run is under way; collect it before the next one")
        self._engine.enqueue(feed)
        self._under_way = True

    def collect(self) -> dict[str, Array]:
        """As the running engine does; what the stand-in computed before it left is given here."""
        held, self._held, self._under_way = self._held, None, False
        return self._engine.collect() if held is None else held[1]

    def swap(self, load: Callable[[], Engine]) -> None:
        """Goes on with the engine that `load` gives and closes the stand-in, whose run under way is finished first.

        Where both do not fit into memory together, the stand-in goes first, as if the process started with the wanted
        one: ConfigError or EngineError says then why there is none. ModelError leaves the stand-in in place.
        """
        if self._under_way and self._held is None:
            self._held = (self._engine.fingerprint, self._engine.collect())
        wanted = self._load_beside(load)
        differing = differences(self._engine, wanted)
        if differing:
            wanted.close()
            raise ModelError(f"{self.model}: the plan differs from what runs: {differing}; start afresh to use it")
        self._engine.close()
        self._engine = wanted

    def close(self) -> None:
        """Closes the running engine and gives up the build; calling it again does nothing."""
        if self._closed:
            return
        self._closed = True
        self._on_close()
        self._held = None
        self._engine.close()

    def _load_beside(self, load: Callable[[], Engine]) -> Engine:
        try:
            return load()
        except ModelError:
            raise
        except (ConfigError, EngineError) as exc:
            logger.warning("%s: the new plan does not load beside %s: %s", self.model, self._engine.fingerprint, exc)
        self._engine.close()
        try:
            return load()
        except ModelError as exc:
            raise EngineError(f"{exc}; nothing is left to go on with: start afresh") from exc


@dataclass(eq=False)
class _Wanted:
    """One plan that an interim engine waits for; `load` gives its engine, PlanUnusable where TensorRT refuses it."""

    engine: InterimEngine
    request: BuildRequest
    load: Callable[[], Engine]
    retry_mono: float | None = None  # set while another process builds


class BuildQueue:
    """Builds the plans that interim engines wait for, one after the other: a small Jetson has no memory for two.

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

    def add(self, stand_in: Engine, request: BuildRequest, load: Callable[[], Engine]) -> InterimEngine:
        """The engine that runs on `stand_in` until the plan of `request` is built and `load` gives its engine."""
        engine = InterimEngine(request.key.model, stand_in, lambda: self._withdraw(engine))
        self._waiting.append(_Wanted(engine, request, load))
        return engine

    def note_failure(self, model: str, reason: str) -> None:
        """`model` runs for good on something else than it should."""
        self._failures[model] = reason

    def attend(self) -> Condition:
        """Takes the queue one step on without waiting for the builder: begins a build, or puts its plan to use.

        Putting to use loads the plan, which takes as long as at start-up; its errors are those of InterimEngine.swap.
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

    def _withdraw(self, engine: InterimEngine) -> None:
        """Nobody waits for this plan any longer."""
        if self._waiting and self._waiting[0].engine is engine:
            self._end_build()
        self._waiting = deque(wanted for wanted in self._waiting if wanted.engine is not engine)

    def _end_build(self) -> None:
        build, self._build = self._build, None
        if build is not None:
            build.close()


def differences(running: Engine, wanted: Engine) -> str:
    """Where tensors differ in name, type or rank, or in a dimension that both fix; empty where they agree."""
    before = {spec.name: spec for spec in (*running.inputs, *running.outputs)}
    after = {spec.name: spec for spec in (*wanted.inputs, *wanted.outputs)}
    found = [f"tensor {name} is on one side only" for name in sorted(before.keys() ^ after.keys())]
    found += [
        f"{before[name]} became {after[name]}"
        for name in sorted(before.keys() & after.keys())
        if not agree(before[name], after[name])
    ]
    return "; ".join(found)


def agree(one: TensorSpec, other: TensorSpec) -> bool:
    """Whether an array can fit both."""
    return (
        one.dtype == other.dtype
        and len(one.shape) == len(other.shape)
        and all(a is None or b is None or a == b for a, b in zip(one.shape, other.shape, strict=True))
    )


def covers(built: Sequence[Profile], wanted: Sequence[Profile]) -> bool:
    """Whether a plan built for some profiles takes every shape that others admit, each from one of its own."""
    return all(any(have.admits(want.min) and have.admits(want.max) for have in built) for want in wanted)
