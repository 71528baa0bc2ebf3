"""OutputWatch: an engine whose outputs are looked at: NaN, constant, or the same whatever comes in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from edge_agent.backends.base import Array, Engine, Feed, TensorSpec

ENOUGH_RUNS = 4  # from here on a fault in all runs ends the judging


@dataclass(frozen=True)
class SeenOutput:
    """One output of one run: how many of its values are no finite numbers, its one value if it has just one, its shape,
    and digests of the feed and of the output."""

    not_finite: int
    only_value: float | None
    shape: tuple[int, ...]
    feed: bytes
    digest: bytes


class OutputWatch:
    """An Engine that passes everything through and remembers what each run's outputs were like, 100 bytes a run."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.seen: dict[str, list[SeenOutput]] = {spec.name: [] for spec in engine.outputs}
        self._feed = b""

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        return self.engine.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return self.engine.outputs

    @property
    def fingerprint(self) -> str:
        return self.engine.fingerprint

    def infer(self, feed: Feed) -> dict[str, Array]:
        """As the engine does."""
        self.enqueue(feed)
        return self.collect()

    def enqueue(self, feed: Feed) -> None:
        """As the engine does."""
        self.engine.enqueue(feed)
        self._feed = digest_of([feed[name] for name in sorted(feed)])

    def collect(self) -> dict[str, Array]:
        """As the engine does; the outputs are looked at on the way."""
        outputs = self.engine.collect()
        for name, array in outputs.items():
            self.seen.setdefault(name, []).append(look_at(array, self._feed))
        return outputs

    def close(self) -> None:
        """As the engine does."""
        self.engine.close()

    def fault(self, reference: OutputWatch | None = None, *, at_end: bool = True) -> str:
        """What is wrong with the outputs so far, in words, or "".

        A run counts against the engine where `reference`, the float engine on the same feeds, was without that fault;
        it had the same feeds in the same order. Until the end a fault counts only once ENOUGH_RUNS runs were seen.
        """
        for name, runs in self.seen.items():
            theirs = reference.seen.get(name, []) if reference else []
            if words := not_finite(name, runs, theirs):
                return words
            enough = at_end or len(runs) >= ENOUGH_RUNS
            if enough and (words := one_value(name, runs, theirs) or unmoved(name, runs, theirs)):
                return words
        return ""


def look_at(array: Array, feed: bytes) -> SeenOutput:
    """What is worth remembering of one output."""
    not_finite = 0
    if np.issubdtype(array.dtype, np.floating):
        not_finite = int(array.size - np.count_nonzero(np.isfinite(array)))
    low, high = (array.min(), array.max()) if array.size else (0, 1)
    return SeenOutput(not_finite, float(low) if low == high else None, array.shape, feed, digest_of([array]))


def digest_of(arrays: Sequence[Array]) -> bytes:
    """16 bytes that differ where types, shapes or values do."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()


def not_finite(name: str, runs: Sequence[SeenOutput], theirs: Sequence[SeenOutput]) -> str:
    """Any run with NaN or infinity is one too many."""
    bad = _blamed(runs, theirs, lambda run: run.not_finite > 0)
    return f"output `{name}` holds NaN or infinity on {bad} of {len(runs)} runs" if bad else ""


def one_value(name: str, runs: Sequence[SeenOutput], theirs: Sequence[SeenOutput]) -> str:
    """The same single value in most of the runs in which the float engine's output has several."""
    values = [run.only_value for run in runs if run.only_value is not None]
    value = max(sorted(set(values)), key=values.count, default=None)
    if value is None:
        return ""
    bad = _blamed(runs, theirs, lambda run: run.only_value is not None)
    innocent = sum(run.only_value is not None for run in theirs[: len(runs)])
    if bad * 2 <= len(runs) - innocent:
        return ""
    return f"output `{name}` is {value:g} everywhere on {values.count(value)} of {len(runs)} runs"


def unmoved(name: str, runs: Sequence[SeenOutput], theirs: Sequence[SeenOutput]) -> str:
    """One and the same output of each shape whatever came in, where the float engine's outputs differ."""
    feeds = _differing_feeds(runs)
    stuck = feeds > 0 and all(len(outputs) == 1 for outputs in _outputs_of_many_feeds(runs))
    theirs_too = bool(theirs) and all(len(outputs) == 1 for outputs in _outputs_of_many_feeds(theirs))
    return f"output `{name}` is the same for {feeds} different inputs" if stuck and not theirs_too else ""


def _by_shape(runs: Sequence[SeenOutput]) -> list[list[SeenOutput]]:
    """Runs by the shape of their outputs, of those shapes that several different feeds led to."""
    shapes: dict[tuple[int, ...], list[SeenOutput]] = {}
    for run in runs:
        shapes.setdefault(run.shape, []).append(run)
    return [alike for alike in shapes.values() if len({run.feed for run in alike}) > 1]


def _differing_feeds(runs: Sequence[SeenOutput]) -> int:
    return sum(len({run.feed for run in alike}) for alike in _by_shape(runs))


def _outputs_of_many_feeds(runs: Sequence[SeenOutput]) -> list[set[bytes]]:
    return [{run.digest for run in alike} for alike in _by_shape(runs)]


def _blamed(runs: Sequence[SeenOutput], theirs: Sequence[SeenOutput], fault: Callable[[SeenOutput], bool]) -> int:
    """Runs with the fault in which the float engine is without it."""
    return sum(fault(run) and not (n < len(theirs) and fault(theirs[n])) for n, run in enumerate(runs))
