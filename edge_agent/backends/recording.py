"""Recording engine: another engine's feeds, exactly as they arrive at it, handed on to be kept for calibration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edge_agent.backends.base import Array, Engine, Feed, TensorSpec

Sink = Callable[[Feed], None]


class RecordingEngine:
    """Runs `inner` and hands a copy of each feed whose run ended well to `sink`; `runs` counts these runs.

    Results, errors and fingerprint are the inner engine's: whoever infers sees no difference. What only some engines
    can (Profiled, TimedOnGpu) it does not offer: measuring would be recorded. Errors of `sink` reach the caller of
    `infer` or `collect`. Closing it closes the inner engine.
    """

    def __init__(self, inner: Engine, sink: Sink) -> None:
        self._inner = inner
        self._sink = sink
        self._under_way: Feed | None = None
        self.runs = 0

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        return self._inner.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return self._inner.outputs

    @property
    def fingerprint(self) -> str:
        return self._inner.fingerprint

    def infer(self, feed: Feed) -> dict[str, Array]:
        """The inner engine's `infer`."""
        outputs = self._inner.infer(feed)
        self._record(feed)
        return outputs

    def enqueue(self, feed: Feed) -> None:
        """The inner engine's `enqueue`; the feed is recorded by `collect`, until when it stays as it is."""
        self._inner.enqueue(feed)
        self._under_way = feed

    def collect(self) -> dict[str, Array]:
        """The inner engine's `collect`."""
        feed, self._under_way = self._under_way, None
        outputs = self._inner.collect()
        if feed is not None:
            self._record(feed)
        return outputs

    def close(self) -> None:
        """Closes the inner engine; calling it again does nothing."""
        self._under_way = None
        self._inner.close()

    def _record(self, feed: Feed) -> None:
        self.runs += 1
        self._sink({name: np.array(array, order="C") for name, array in feed.items()})
