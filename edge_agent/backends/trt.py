"""TensorRT: the backend of machines with an NVIDIA GPU. TrtBackend finds or builds plans, TrtEngine runs them.

One thread owns the GPU: the one that made the backend; it also loads, infers and closes (field case ENG-6).
"""

from __future__ import annotations

import atexit
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import WeakSet

import numpy as np
import tensorrt as trt

from edge_agent import registry
from edge_agent.backends import BACKENDS, trt_api
from edge_agent.backends.base import Array, Condition, Engine, Feed, GpuTimes, LayerTime, Profile, Shape, check_feed
from edge_agent.backends.buffers import Buffers
from edge_agent.backends.build_job import (
    BuildFailed,
    BuildRequest,
    Report,
    build_plan,
    memory_advice,
    sounds_like_memory,
)
from edge_agent.backends.gpu import Gpu, open_gpu
from edge_agent.backends.interim import BuildQueue, covers
from edge_agent.backends.plan import (
    Manifest,
    PlanKey,
    PlanStore,
    PlanUnusable,
    StoredPlan,
    file_sha256,
    has_convolutions,
    is_quantised,
    model_name,
)
from edge_agent.backends.profiles import ShapeLog, shapes_path
from edge_agent.backends.trt_lanes import Lane, LaneCounters, Lanes, Shapes
from edge_agent.backends.trt_layers import layer_times
from edge_agent.backends.trt_settings import TrtSettings
from edge_agent.errors import ConfigError, EngineError, FrameError, ModelError

logger = logging.getLogger(__name__)


class TrtBackend:
    """Makes engines; one per process. A context manager: leave it, on its own thread, after closing the engines.

    Raises ConfigError where TensorRT is too old, CUDA does not start, or the memory budget is exceeded.
    """

    name = "tensorrt"
    any_shape = False
    overlaps = True

    def __init__(self, settings: TrtSettings, report: Report | None = None, gpu: Gpu | None = None) -> None:
        """`report` is called with the progress of builds; `gpu` by default is opened here."""
        version = trt_api.require_supported()
        self.settings = settings
        self.report = report
        self.store = PlanStore(settings.plans_dir)
        self.builds = BuildQueue(self.store, settings.builder)
        self.notes: list[str] = []
        self._engines: WeakSet[TrtEngine] = WeakSet()
        self._messages = trt_api.LastMessages()
        self._logger = trt_api.make_logger(self._messages)
        self.gpu = gpu or open_gpu(settings.device_index, settings.gpu_memory_bytes, settings.graphs)
        self._environment = self.gpu.environment(version)
        # a context left on pycuda's stack aborts the process at its end
        atexit.register(self._close_at_exit)

    def key(self, onnx_path: Path, profiles: tuple[Profile, ...] = ()) -> PlanKey:
        """The plan that `load` would want. A model with QuantizeLinear nodes is int8 whatever the settings say."""
        options = self.settings.options
        if is_quantised(onnx_path):
            options = replace(options, precision="int8", explicit_half=False)
        elif options.precision == "int8":
            options = replace(options, precision="fp16")
        if self.settings.half_encoders and options.precision == "fp16" and not has_convolutions(onnx_path):
            options = replace(options, explicit_half=True)
        return PlanKey(model_name(onnx_path), file_sha256(onnx_path), profiles, options, self._environment)

    @property
    def device(self) -> dict[str, str]:
        """The GPU. All Orin modules have one name and compute capability: only the count of SMs tells them apart."""
        environment = self._environment
        return {
            "gpu": environment.gpu,
            "compute_capability": environment.compute_capability,
            "sm_count": str(environment.sm_count),
        }

    @property
    def versions(self) -> dict[str, str]:
        """TensorRT's."""
        return {"tensorrt": self._environment.tensorrt}

    def load(self, onnx_path: Path, profiles: tuple[Profile, ...] = (), meanwhile: Path | None = None) -> Engine:
        """An engine for the model file, from its plan; a plan that is missing, stale or damaged is built, once.

        With `serve_while_building` something else runs in a SwapEngine meanwhile, where there is something: the plan of
        `meanwhile`, a model file with the same tensors, before the CPU.
        When a build fails, the last plan of the same model that fits this device serves; what happened is in `notes`.
        Raises ModelError when there is no plan to run, ConfigError over the memory budget, EngineError from CUDA.
        """
        self.gpu.require_owner("TrtBackend.load")
        key = self.key(onnx_path, profiles)
        try:
            stored = self.store.load(key)
        except PlanUnusable as exc:
            return self._replacement(key, onnx_path, str(exc), meanwhile)
        try:
            return self._engine(stored)
        except _NotLoaded as exc:
            reason = self.store.set_aside(self.store.plan_path(key), f"is refused by TensorRT ({exc})")
        return self._replacement(key, onnx_path, reason, meanwhile)

    def build(self, onnx_path: Path, profiles: tuple[Profile, ...] = ()) -> Manifest:
        """Builds the model's plan anew, whatever there is and however often it failed before."""
        key = self.key(onnx_path, profiles)
        self.store.forget_tries(key)
        return self._build(key, onnx_path)

    def discard(self, onnx_path: Path, profiles: tuple[Profile, ...]) -> None:
        """As in Planned."""
        key = self.key(onnx_path, profiles)
        self.store.forget_tries(key)
        self._note(self.store.set_aside(self.store.plan_path(key), "was to be built anew"))

    def counters(self) -> dict[str, Any]:
        """`pool`, `engines` (by model: contexts, graphs, launches), `scratch_bytes`, `gpu_free_bytes`: plain numbers.

        Asks CUDA nothing, so any thread may call it; the free memory is what the GPU thread saw some seconds ago.
        """
        return {
            "pool": {kind: counters.to_json() for kind, counters in self.gpu.pool.counters().items()},
            "engines": {engine.name: engine.counters.to_json() for engine in list(self._engines)},
            "scratch_bytes": self.gpu.scratch.size_bytes,
            "gpu_free_bytes": self.gpu.last_free_bytes,
        }

    def attend(self) -> Condition:
        """Takes the builds that engines wait for one step on, see BuildQueue."""
        self.gpu.require_owner("TrtBackend.attend")
        return self.builds.attend()

    def give_up_builds(self) -> None:
        """Ends a build that is under way; it does not count as a failed one."""
        self.builds.give_up()

    def close(self) -> None:
        """Ends the build under way, closes the engines that are left, frees the pools and pops the context; calling it
        again does nothing."""
        atexit.unregister(self._close_at_exit)
        if self.gpu.owned:
            self.builds.close()
        self.gpu.close()

    def _close_at_exit(self) -> None:
        if self.gpu.owned:
            self.close()

    def __enter__(self) -> TrtBackend:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _request(self, key: PlanKey, onnx_path: Path) -> BuildRequest:
        return BuildRequest(
            onnx_path.absolute(),
            self.store.directory.absolute(),
            key,
            self.settings.workspace_bytes,
            self.settings.device_index,
            self.settings.detailed,
        )

    def _build(self, key: PlanKey, onnx_path: Path) -> Manifest:
        return build_plan(self._request(key, onnx_path), self.store, self.report, self.settings.builder)

    def _replacement(self, key: PlanKey, onnx_path: Path, reason: str, meanwhile: Path | None) -> Engine:
        """Where the plan itself cannot be loaded, for a `reason`."""
        stand_in = self._stand_in(key, onnx_path, meanwhile) if self.settings.serve_while_building else None
        if stand_in is None:
            return self._engine(self._built_or_last_good(key, onnx_path, reason))
        self._note(f"{reason}; building it, reading meanwhile with {stand_in.fingerprint}")
        return self.builds.add(stand_in, self._request(key, onnx_path), lambda: self._built(key))

    def _stand_in(self, key: PlanKey, onnx_path: Path, meanwhile: Path | None) -> Engine | None:
        """What can run now: the last good plan where its shapes suffice, else that of `meanwhile`, else the CPU; None:
        nothing."""
        while (last_good := self.store.last_good(key)) is not None:
            if not covers(last_good.manifest.key.profiles, key.profiles):
                break
            try:
                return self._engine(last_good)
            except _NotLoaded as exc:
                path = self.store.plan_path(last_good.manifest.key)
                self._note(self.store.set_aside(path, f"is refused by TensorRT ({exc})"))
            except ConfigError as exc:
                self._note(f"{key.model}: the last good plan cannot serve: {exc}")
                break
        if meanwhile is not None:
            try:
                return self._built(self.key(meanwhile, key.profiles))
            except (ConfigError, EngineError) as exc:
                self._note(f"{key.model}: {meanwhile.name} cannot serve: {exc}")
        try:
            make = registry.load(BACKENDS, "onnxruntime", "backend")
            on_cpu: Engine = make(self.settings.cpu_threads).load(meanwhile or onnx_path, key.profiles)
        except (ConfigError, ImportError) as exc:
            self._note(f"{key.model}: the CPU cannot serve: {exc}")
            return None
        return on_cpu

    def _built(self, key: PlanKey) -> TrtEngine:
        """The engine of a plan that is there; PlanUnusable where it is not, or TensorRT refuses it."""
        stored = self.store.load(key)
        try:
            return self._engine(stored)
        except _NotLoaded as exc:
            reason = self.store.set_aside(self.store.plan_path(key), f"is refused by TensorRT ({exc})")
            raise PlanUnusable(reason) from exc

    def _built_or_last_good(self, key: PlanKey, onnx_path: Path, reason: str) -> StoredPlan:
        self._note(f"{reason}; building it")
        try:
            self._build(key, onnx_path)
            return self.store.load(key)
        except (BuildFailed, PlanUnusable) as exc:
            last_good = self.store.last_good(key)
            if last_good is None:
                raise ModelError(f"{exc}. There is no older plan to go on with: {reason}") from exc
            differing = "; ".join(key.differences(last_good.manifest.key))
            text = f"{exc}. Going on with the last good plan ({differing})"
            self._note(text)
            self.builds.note_failure(key.model, text)
            return last_good

    def _engine(self, stored: StoredPlan) -> TrtEngine:
        key = stored.manifest.key
        # the weights are about as large as the plan
        self.gpu.pool.take_outside(stored.manifest.plan_bytes, pool_owner(key))
        try:
            runtime, engine = trt_api.deserialise(stored.content, self._logger, self._messages)
        except EngineError as exc:
            self.gpu.pool.release(pool_owner(key))
            if sounds_like_memory(str(exc)):
                raise EngineError(f"{exc}; {memory_advice(self.settings.workspace_bytes)}") from exc
            raise _NotLoaded(str(exc)) from exc
        loaded = TrtEngine(engine, runtime, stored.manifest, self.gpu, self._messages, self.settings)
        self.gpu.engines.add(loaded)
        self._engines.add(loaded)
        return loaded

    def _note(self, text: str) -> None:
        logger.warning("%s", text)
        self.notes.append(text)


class _NotLoaded(ModelError):
    """TensorRT gave None for bytes that are what we stored."""


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
        self._lanes = Lanes(
            self.name, engine, self._gpu, self._stream, self.outputs, self.profiles, self._messages, max_lanes
        )
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
