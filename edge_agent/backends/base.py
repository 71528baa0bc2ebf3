"""Engine: tensors in, tensors out; the seam between stages, which know models, and backends, which know tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from edge_agent.errors import FrameError

Array = npt.NDArray[Any]
Feed = Mapping[str, Array]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class TensorSpec:
    """An engine's input or output: numpy dtype name, and shape where None is a dynamic dimension."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]

    def accepts(self, shape: Shape) -> bool:
        """Whether an array of `shape` fits: same rank, fixed dimensions equal, none zero."""
        return len(shape) == len(self.shape) and all(
            got > 0 and (want is None or want == got) for got, want in zip(shape, self.shape, strict=True)
        )

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype} ({', '.join('?' if d is None else str(d) for d in self.shape)})"


@dataclass(frozen=True)
class Profile:
    """The shapes an engine is built for: per input, the smallest, the one it is tuned for, the largest."""

    min: Mapping[str, Shape]
    opt: Mapping[str, Shape]
    max: Mapping[str, Shape]

    def admits(self, shapes: Mapping[str, Shape]) -> bool:
        """Whether every input's shape lies between min and max, dimension by dimension."""
        return all(
            name in self.min
            and len(shape) == len(self.min[name])
            and all(lo <= d <= hi for lo, d, hi in zip(self.min[name], shape, self.max[name], strict=True))
            for name, shape in shapes.items()
        )


class Engine(Protocol):
    """A loaded model. One thread owns it: the one that made it also calls `infer` and `close`."""

    @property
    def inputs(self) -> tuple[TensorSpec, ...]: ...

    @property
    def outputs(self) -> tuple[TensorSpec, ...]: ...

    @property
    def fingerprint(self) -> str:
        """Names the backend, the model's bytes and the precision; two engines with one fingerprint agree."""
        ...

    def infer(self, feed: Feed) -> dict[str, Array]:
        """Runs once. The outputs belong to the caller and stay valid.

        Raises FrameError for a feed that does not fit (`check_feed`), EngineError when inference itself fails.
        """
        ...

    def enqueue(self, feed: Feed) -> None:
        """The first half of `infer`: starts a run where the backend can, so that the CPU is free meanwhile.

        The feed must stay as it is until `collect`. EngineError when a run is already under way.
        """
        ...

    def collect(self) -> dict[str, Array]:
        """The second half: waits for the run and gives its outputs. EngineError when none is under way."""
        ...

    def close(self) -> None:
        """Frees what the engine holds; calling it again does nothing."""
        ...


@dataclass(frozen=True)
class Condition:
    """How a backend serves: as it should, with something else while plans are built, or with something else for good.

    `reason`: which model, how far, what serves meanwhile; None while it is running.
    """

    state: Literal["running", "building", "degraded"]
    reason: str | None = None


class Backend(Protocol):
    """Makes engines; one per process."""

    name: str
    # whether a shape met for the first time costs no more than one met before; else stages keep to few shapes
    any_shape: bool
    # whether a run goes on while the CPU does other work
    overlaps: bool

    @property
    def device(self) -> Mapping[str, str]:
        """What computes, by name: figures measured here hold for the same only."""
        ...

    @property
    def versions(self) -> Mapping[str, str]:
        """The libraries that compute, by name."""
        ...

    def load(self, onnx_path: Path, profiles: tuple[Profile, ...] = (), meanwhile: Path | None = None) -> Engine:
        """An engine for the model file. Raises ModelError where the file cannot be loaded.

        `meanwhile`: a model file with the same tensors, for as long as the engine of the other is built.
        """
        ...

    def counters(self) -> Mapping[str, Any]:
        """What is worth watching of memory and runs, as plain values, for telemetry; may be called from any thread."""
        ...

    def attend(self) -> Condition:
        """Looks after builds in child processes and puts to use what they made; for the engines' thread, between
        frames.

        Does not wait for a builder. Raises what loading an engine raises where there is nothing left to go on with.
        """
        ...

    def give_up_builds(self) -> None:
        """Ends a build that is under way because the process is to stop, so that it does not count as a failed one."""
        ...

    def close(self) -> None:
        """Frees what the backend holds, once its engines are closed; calling it again does nothing."""
        ...


@dataclass(frozen=True)
class LayerTime:
    """One layer of an engine as it ran: mean `ms` of one run and its `share` of all layers' time, 0..1.

    `kind`: what it computes; `tensors`: types, formats and shapes of inputs and outputs; `kernel`: the code that runs.
    Each is empty where the backend does not tell.
    """

    name: str
    kind: str
    ms: float
    share: float
    tensors: str
    kernel: str = ""


@dataclass(frozen=True)
class GpuTimes:
    """GPU time in ms of each of some runs: copies to the GPU, kernels, copies back."""

    h2d_ms: tuple[float, ...]
    compute_ms: tuple[float, ...]
    d2h_ms: tuple[float, ...]


@runtime_checkable
class Profiled(Protocol):
    """An engine that can tell what its layers take."""

    def layers(self, feed: Feed, runs: int) -> list[LayerTime]:
        """The layers in the order in which they ran, means of `runs` runs after one uncounted; slower than `infer`.

        Raises FrameError and EngineError as `infer` does.
        """
        ...


@runtime_checkable
class Planned(Protocol):
    """A backend that runs plans made from the model files on this machine."""

    def discard(self, onnx_path: Path, profiles: tuple[Profile, ...]) -> None:
        """Puts the plan of a model aside, so that the next start builds it anew; what runs goes on."""
        ...


@runtime_checkable
class TimedOnGpu(Protocol):
    """An engine that can tell what a run takes on the GPU."""

    def gpu_times(self, feed: Feed, runs: int) -> GpuTimes:
        """Of `runs` runs of this feed, one after the other. Raises FrameError and EngineError as `infer` does."""
        ...


def check_feed(specs: tuple[TensorSpec, ...], feed: Feed) -> None:
    """Raises FrameError unless `feed` has exactly the named inputs, each with its dtype and a fitting shape."""
    if set(feed) != {spec.name for spec in specs}:
        raise FrameError(f"feed has {sorted(feed)}; expected {sorted(spec.name for spec in specs)}")
    for spec in specs:
        array = feed[spec.name]
        if not isinstance(array, np.ndarray) or array.dtype != np.dtype(spec.dtype):
            raise FrameError(f"input {spec.name} is {getattr(array, 'dtype', type(array))}; expected {spec}")
        if not spec.accepts(array.shape):
            raise FrameError(f"input {spec.name} has shape {array.shape}; expected {spec}")
