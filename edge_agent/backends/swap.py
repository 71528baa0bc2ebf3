"""SwapEngine: an engine whose place another one can take between two frames, without losing a run."""

from __future__ import annotations

import logging
from collections.abc import Callable

from edge_agent.backends.base import Array, Engine, Feed, TensorSpec
from edge_agent.errors import ConfigError, EngineError, ModelError

logger = logging.getLogger(__name__)

Load = Callable[[], Engine]


class SwapEngine:
    """An Engine that runs on another one until `swap` puts a third in its place. One thread owns it.

    `fingerprint` is of the engine that makes the next outputs to be collected: a run that was under way during the swap
    is the former one's.
    """

    def __init__(self, model: str, engine: Engine, on_close: Callable[[], None] = lambda: None) -> None:
        """`on_close` is called once, when the engine is closed."""
        self.model = model
        self._engine = engine
        self._on_close = on_close
        self._closed = False
        self._under_way = False
        self._held: tuple[str, dict[str, Array]] | None = None

    @property
    def running(self) -> Engine:
        """The engine that runs now."""
        return self._engine

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The inputs, the same before and after a swap but for dimensions that one of them leaves open."""
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
        """As the running engine does; what the former one computed before it left is given here."""
        held, self._held, self._under_way = self._held, None, False
        return self._engine.collect() if held is None else held[1]

    def swap(self, load: Load, restore: Load | None = None) -> None:
        """Goes on with the engine that `load` gives and closes the running one, whose run under way is finished first.

        Where both do not fit into memory together, the running one goes first, as if the process started with the
        wanted one. When that does not load even so, `restore` brings the former back; without it nothing is left and
        EngineError or ConfigError says why. ModelError: the wanted one is not in use, the former is.
        """
        if self._under_way and self._held is None:
            self._held = (self._engine.fingerprint, self._engine.collect())
        try:
            wanted = self._fitting(load)
        except ModelError:
            raise
        except (ConfigError, EngineError) as exc:
            logger.warning("%s: the new engine does not load beside %s: %s", self.model, self.fingerprint, exc)
            self._engine.close()
            self._engine = self._in_its_place(load, restore)
            return
        self._engine.close()
        self._engine = wanted

    def close(self) -> None:
        """Closes the running engine; calling it again does nothing."""
        if self._closed:
            return
        self._closed = True
        self._on_close()
        self._held = None
        self._engine.close()

    def _in_its_place(self, load: Load, restore: Load | None) -> Engine:
        """The wanted engine, now that the running one is closed."""
        if restore is None:
            try:
                return self._fitting(load)
            except ModelError as exc:
                raise EngineError(f"{exc}; nothing is left to go on with: start afresh") from exc
        try:
            return self._fitting(load)
        except (ConfigError, EngineError) as exc:
            self._engine = restore()
            raise ModelError(str(exc)) from exc

    def _fitting(self, load: Load) -> Engine:
        """The loaded engine; ModelError where its tensors are others than those of what runs."""
        wanted = load()
        differing = differences(self._engine, wanted)
        if differing:
            wanted.close()
            raise ModelError(f"{self.model}: the new engine differs from what runs: {differing}; restart to use it")
        return wanted


def running(engine: Engine) -> Engine:
    """The engine that computes behind any number of SwapEngines: the one that can tell of its layers."""
    while isinstance(engine, SwapEngine):
        engine = engine.running
    return engine


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
