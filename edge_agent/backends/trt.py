"""TensorRT: the backend of machines with an NVIDIA GPU. TrtBackend finds or builds plans, trt_engine runs them.

One thread owns the GPU: the one that made the backend; it also loads, infers and closes (field case ENG-6).
"""

from __future__ import annotations

import atexit
import logging
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import WeakSet

from edge_agent import registry
from edge_agent.backends import BACKENDS, trt_api
from edge_agent.backends.base import Condition, Engine, Profile
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
from edge_agent.backends.model_file import file_sha256, has_convolutions, is_quantised, model_name
from edge_agent.backends.plan import Manifest, PlanKey
from edge_agent.backends.plan_store import PlanStore, PlanUnusable, StoredPlan
from edge_agent.backends.trt_engine import TrtEngine, pool_owner
from edge_agent.backends.trt_settings import TrtSettings
from edge_agent.errors import ConfigError, EngineError, ModelError

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
