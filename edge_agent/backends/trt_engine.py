"""TrtEngine: one loaded plan, run on the GPU by the thread that owns it."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorrt as trt

from edge_agent.backends import trt_api
from edge_agent.backends.base import Array, Feed, GpuTimes, LayerTime, Shape, check_feed
from edge_agent.backends.buffers import Buffers
from edge_agent.backends.gpu import Gpu
from edge_agent.backends.plan import Manifest, PlanKey
from edge_agent.backends.profiles import ShapeLog, shapes_path
from edge_agent.backends.trt_lanes import Lane, LaneCounters, Lanes, Loaded, Shapes
from edge_agent.backends.trt_layers import layer_times
from edge_agent.backends.trt_settings import TrtSettings
from edge_agent.errors import EngineError, FrameError

logger = logging.getLogger(__name__)


class TrtEngine:
    """One loaded plan with its buffers, sized for the largest profile: running allocates nothing.

    `infer` runs once; `enqueue` and `collect` do the same in two halves, so that the CPU can work meanwhile.
    """

    def __init__(
        self,
        engine: trt.ICudaEngine,
        runtime: trt.Runtime,
        manifest: Manifest,
        gpu: Gpu,
        messages: trt_api.LastMessages,
        settings: TrtSettings,
    ) -> None:
        """ModelError for tensors that cannot be fed, ConfigError over the memory budget, EngineError from CUDA."""
        self.manifest = manifest
        self.name = manifest.key.model
        self.fingerprint = fingerprint(manifest.key)
        self.shapes = ShapeLog()
        self._shapes_path = shapes_path(settings.plans_dir, self.name)
        self._gpu = gpu
        self._messages = messages
        self._graphs = gpu.graphs if settings.graphs else None
        self._engine: trt.ICudaEngine | None = engine
        self._runtime: trt.Runtime | None = runtime
        self._lanes: Lanes | None = None
        self._buffers: Buffers | None = None
        self._pending: Lane | None = None
        self._broken: str | None = None
        self._stream: Any = None
        self._done: Any = None
        try:
            self.inputs, self.outputs = trt_api.tensor_specs(engine)
            self.profiles = trt_api.engine_profiles(engine, self.inputs)
            with gpu.errors_named(f"loading {self.name}"):
                self.counters = self._prepare(engine, settings.max_lanes)
        except BaseException:
            self._free()
            raise
        # by the work they are made for: the smallest profile that admits a shape wins
        self._smallest_first = sorted(range(len(self.profiles)), key=lambda index: _volume(self.profiles[index].max))

    def _prepare(self, engine: trt.ICudaEngine, max_lanes: int) -> LaneCounters:
        self._stream = self._gpu.stream()
        self._done = self._gpu.event()
        loaded = Loaded(self.name, engine, self.outputs, self.profiles)
        self._lanes = Lanes(loaded, self._gpu, self._stream, self._messages, max_lanes)
        self._buffers = Buffers(
            self._gpu, pool_owner(self.manifest.key), (*self.inputs, *self.outputs), self._lanes.largest
        )
        self._lanes.bind(self._buffers)
        self._gpu.synchronize()
        return self._lanes.counters

    @property
    def stream(self) -> Any:
        """The pycuda stream that this engine's work goes on, for events that measure it; None once closed."""
        return self._stream

    def infer(self, feed: Feed) -> dict[str, Array]:
        """Runs once. Raises FrameError for a feed that fits no profile, EngineError when inference fails."""
        self.enqueue(feed)
        return self.collect()

    def enqueue(self, feed: Feed) -> None:
        """Starts a run and returns at once; `collect` gives its outputs. The feed may be changed afterwards.

        Raises FrameError for a feed that fits no profile, EngineError when TensorRT or CUDA refuses.
        """
        lanes, buffers = self._ready()
        if self._pending is not None:
            raise EngineError(f"{self.name}: a run is under way; collect it before the next one")
        check_feed(self.inputs, feed)
        shapes: Shapes = tuple((spec.name, tuple(feed[spec.name].shape)) for spec in self.inputs)
        profile = self._choose_profile(shapes)
        with self._failing_for_good(shapes):
            lane = lanes.at(profile, shapes)
            buffers.fill(feed)
            self._launch(lane)
            self._done.record(self._stream)
        self.shapes.count(shapes)
        self._pending = lane

    def collect(self) -> dict[str, Array]:
        """Waits for the run that `enqueue` started and gives its outputs, which belong to the caller."""
        _, buffers = self._ready()
        lane, self._pending = self._pending, None
        if lane is None:
            raise EngineError(f"{self.name}: nothing to collect; enqueue a feed first")
        with self._failing_for_good(lane.inputs):
            self._done.synchronize()
            self._gpu.look_at_free_memory()
        return {name: buffers.view(name, shape).copy() for name, shape in lane.outputs}

    def warm_up(self, shapes: Mapping[str, Shape], runs: int = 2) -> None:
        """Runs zeros of these input shapes; after two runs the shape has its CUDA graph."""
        feed = {spec.name: np.zeros(shapes[spec.name], spec.dtype) for spec in self.inputs}
        for _ in range(runs):
            self.infer(feed)

    def time_gpu_ms(self, feed: Feed, runs: int = 50) -> float:
        """GPU time of one run of this feed in ms, copies included: `runs` launches back to back between two events."""
        lane = self._warm_lane(feed)
        start, end = self._gpu.drv.Event(), self._gpu.drv.Event()
        with self._failing_for_good(lane.inputs):
            start.record(self._stream)
            for _ in range(runs):
                self._launch(lane)
            end.record(self._stream)
            end.synchronize()
            return float(start.time_till(end)) / runs

    def gpu_times(self, feed: Feed, runs: int) -> GpuTimes:
        """Of runs that follow each other without a pause; the kernels as a CUDA graph where `infer` would use one."""
        lane = self._warm_lane(feed)
        _, buffers = self._ready()
        marks = [[self._gpu.drv.Event() for _ in range(4)] for _ in range(runs)]
        with self._failing_for_good(lane.inputs):
            execute, close = self._kernels(lane)
            for mark in marks:
                with self._gpu.scratch.turn(self._stream):
                    mark[0].record(self._stream)
                    buffers.upload(lane.inputs, self._stream)
                    mark[1].record(self._stream)
                    execute()
                    mark[2].record(self._stream)
                    buffers.download(lane.outputs, self._stream)
                    mark[3].record(self._stream)
            self._stream.synchronize()
            close()
            spans = [[float(mark[n].time_till(mark[n + 1])) for mark in marks] for n in range(3)]
        return GpuTimes(*(tuple(span) for span in spans))

    def layers(self, feed: Feed, runs: int) -> list[LayerTime]:
        """By TensorRT's profiler, on a context that exists for this call; without graphs."""
        lanes, buffers = self._ready()
        if self._pending is not None:
            raise EngineError(f"{self.name}: a run is under way; collect it before measuring")
        check_feed(self.inputs, feed)
        shapes: Shapes = tuple((spec.name, tuple(feed[spec.name].shape)) for spec in self.inputs)
        profile = self._choose_profile(shapes)
        with self._gpu.errors_named(f"measuring {self.name}"):
            lane = lanes.alone(profile, shapes)

        def run() -> None:
            with self._gpu.scratch.turn(self._stream):
                self._issue(lane)
            self._stream.synchronize()

        with self._failing_for_good(shapes):
            buffers.fill(feed)
            assert self._engine is not None
            return layer_times(self._engine, lane.context, run, runs)

    def close(self) -> None:
        """Frees contexts, buffers and the engine, keeps the shapes' counts; calling it again does nothing."""
        if self._engine is None:
            return
        self._gpu.require_owner(f"{self.name}.close")
        try:
            if self._broken is None:
                with self._failing_for_good(()):
                    self._stream.synchronize()
        finally:
            self._free()
        try:
            self.shapes.save(self._shapes_path)
        except OSError as exc:
            logger.warning("%s: the counts of its shapes are lost: %s", self.name, exc)

    def _choose_profile(self, shapes: Shapes) -> int:
        for index in self._smallest_first:
            if self.profiles[index].admits(dict(shapes)):
                return index
        ranges = " or ".join(
            ", ".join(f"{name} {profile.min[name]}..{profile.max[name]}" for name, _ in shapes)
            for profile in self.profiles
        )
        raise FrameError(f"{self.name}: {_shown(shapes)} fits no profile; built for {ranges}: split, scale or pad it")

    def _warm_lane(self, feed: Feed) -> Lane:
        """The lane that runs this feed, after two runs: with its graph where there are graphs."""
        self.infer(feed)
        self.enqueue(feed)
        lane = self._pending
        self.collect()
        assert lane is not None
        return lane

    def _kernels(self, lane: Lane) -> tuple[Callable[[], None], Callable[[], None]]:
        """What puts a lane's kernels on the stream, without copies, and what frees it afterwards."""
        if self._graphs is None or lane.graph is None:
            return lambda: self._execute(lane), lambda: None
        graph = self._graphs.capture(self._stream.handle, lambda: self._execute(lane))
        return lambda: graph.launch(self._stream.handle), graph.close

    def _launch(self, lane: Lane) -> None:
        """Puts copies and kernels on the stream, as one graph from the second run of a shape on."""
        # what is enqueued first after a change of shape also uploads TensorRT's own state: never record that
        if self._graphs is not None and lane.graph is None and lane.runs > 0:
            self._capture(lane)
        with self._gpu.scratch.turn(self._stream):
            if lane.graph is not None:
                lane.graph.launch(self._stream.handle)
                self.counters.graph_launches += 1
            else:
                self._issue(lane)
                self.counters.plain_launches += 1
        lane.runs += 1

    def _issue(self, lane: Lane) -> None:
        """Copies in, kernels, copies out."""
        assert self._buffers is not None
        self._buffers.upload(lane.inputs, self._stream)
        self._execute(lane)
        self._buffers.download(lane.outputs, self._stream)

    def _execute(self, lane: Lane) -> None:
        """Kernels alone."""
        self._messages.clear()
        if not lane.context.execute_async_v3(self._stream.handle):
            raise EngineError(f"{self.name} on {_shown(lane.inputs)}: TensorRT did not execute: {self._messages}")

    def _capture(self, lane: Lane) -> None:
        """Records the lane; where that is impossible the engine goes on without graphs, and says so."""
        assert self._graphs is not None
        try:
            lane.graph = self._graphs.capture(self._stream.handle, lambda: self._issue(lane))
            self.counters.captures += 1
        except (EngineError, self._gpu.drv.Error) as exc:
            self.counters.capture_failures += 1
            self._graphs = None
            logger.warning("%s: CUDA graphs are off, the engine cannot be recorded: %s", self.name, exc)

    def _ready(self) -> tuple[Lanes, Buffers]:
        self._gpu.require_owner(self.name)
        if self._engine is None or self._lanes is None or self._buffers is None:
            raise EngineError(f"engine {self.name} is closed; load it again to infer")
        if self._broken is not None:
            raise EngineError(f"engine {self.name} failed before: {self._broken}")
        return self._lanes, self._buffers

    @contextmanager
    def _failing_for_good(self, shapes: Shapes) -> Iterator[None]:
        """After an EngineError the engine answers nothing more: no later call may read what is in its buffers."""
        try:
            with self._gpu.errors_named(f"{self.name} on {_shown(shapes)}"):
                yield
        except EngineError as exc:
            self._broken = str(exc)
            raise

    def _free(self) -> None:
        """Lets go of everything in the order that TensorRT and CUDA need."""
        self._pending = None
        if self._lanes is not None:
            self._lanes.close(broken=self._broken is not None)
        if self._buffers is not None:
            self._buffers.free()
        self._lanes = self._buffers = None
        self._engine = self._runtime = None
        self._done = self._stream = None
        self._gpu.pool.release(pool_owner(self.manifest.key))


def fingerprint(key: PlanKey) -> str:
    """`tensorrt-10.3.0:<model sha256>:fp16:<plan>`; engines of equal plans agree."""
    return f"tensorrt-{key.environment.tensorrt}:{key.model_sha256[:12]}:{key.options.precision}:{key.fingerprint[:8]}"


def pool_owner(key: PlanKey) -> str:
    """The name that an engine has in the pool's books."""
    return f"{key.model} ({key.options.precision} {key.fingerprint[:8]})"


def _volume(shapes: Mapping[str, Shape]) -> int:
    return sum(math.prod(shape) for shape in shapes.values())


def _shown(shapes: Shapes) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes)
