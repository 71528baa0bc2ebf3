"""The builder: ONNX in, plan out, in a process of its own: `python -m edge_agent.backends.trt_build`.

Reads one JSON request (BuildRequest) from standard input, writes JSON lines to standard output:

    {"event": "progress", "phase": ..., "done": n, "total": m}      {"event": "log", "message": ...}
    {"event": "done"}                                               {"event": "failed", "kind": ..., "message": ...}
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

import tensorrt as trt

from edge_agent.backends import trt_api
from edge_agent.backends.build_job import (
    LEAST_WORKSPACE_BYTES,
    BuildFailed,
    BuildRequest,
    available_bytes,
    sounds_like_memory,
)
from edge_agent.backends.half import half_precision
from edge_agent.backends.model_file import is_quantised
from edge_agent.backends.plan_store import PlanStore
from edge_agent.child_process import be_the_first_to_go, own_standard_output
from edge_agent.errors import EdgeAgentError, ModelError
from edge_agent.files import write_atomically

BEAT_S = 5.0  # how often a builder that cannot tell its progress says that it is alive
# beside workspace and weights a builder holds the CUDA context, its kernels and the libraries
BUILDER_BYTES = 512 << 20
WEIGHT_COPIES = 3
Say = Callable[[dict[str, Any]], None]


def build(request: BuildRequest, say: Say, held: list[Any] | None = None) -> bytes:
    """The serialised plan. BuildFailed when TensorRT cannot read the model or cannot build it.

    `held` takes every TensorRT object made, so that none is freed while the list lives: TensorRT 8.6.1 crashes when it
    frees the builder of some FP16 and INT8 networks, after a build that went well (seen on an H200, 2026-11-30).
    """
    held = [] if held is None else held
    trt_api.require_supported()
    messages = trt_api.LastMessages()
    trt_logger = trt_api.make_logger(messages)
    builder = trt.Builder(trt_logger)
    network = builder.create_network(trt_api.network_flags())
    parser = trt.OnnxParser(network, trt_logger)
    parse(parser, request, messages)
    refuse_wrong_precision(network, request)
    config = builder.create_builder_config()
    held += [messages, trt_logger, builder, network, parser, config]
    configure(builder, config, request, say)
    add_profiles(builder, config, network, request)
    load_timing_cache(config, request)
    reports = trt_api.watch_progress(config, lambda phase, done, total: say(progress(phase, done, total)))
    messages.clear()
    with Heartbeat(say, quiet=reports):
        plan: trt.IHostMemory | None = builder.build_serialized_network(network, config)
    if plan is None:
        raise BuildFailed(
            f"TensorRT {trt.__version__} built nothing: {messages}",
            "memory" if sounds_like_memory(str(messages)) else "build",
        )
    held.append(plan)
    save_timing_cache(config, request)
    return bytes(memoryview(plan))


def parse(parser: trt.OnnxParser, request: BuildRequest, messages: trt_api.LastMessages) -> None:
    """Reads the model, as float16 where the graph is to decide on precision; BuildFailed gives the reasons."""
    path, options = request.onnx_path, request.key.options
    by_graph = options.explicit_half or trt_api.strongly_typed_only()
    if by_graph and options.precision == "fp16" and not is_quantised(path):
        read = parser.parse(half_precision(path))
    else:
        read = parser.parse_from_file(str(path))
    if not read:
        errors = [parser.get_error(index).desc() for index in range(parser.num_errors)]
        reason = " | ".join(" ".join(str(error).split())[:400] for error in errors[:4]) or str(messages)
        raise BuildFailed(f"TensorRT {trt.__version__} cannot read {path.name}: {reason}", "model")


def refuse_wrong_precision(network: trt.INetworkDefinition, request: BuildRequest) -> None:
    """BuildFailed where the precision asked for and what the graph holds do not go together."""
    precision = request.key.options.precision
    kinds = {network.get_layer(index).type for index in range(network.num_layers)}
    quantised = trt.LayerType.QUANTIZE in kinds or trt.LayerType.DEQUANTIZE in kinds
    if precision == "int8" and not quantised:
        raise BuildFailed("int8 needs an ONNX with QuantizeLinear nodes; make one with: edge-agent calibrate", "model")
    if precision != "int8" and quantised:
        raise BuildFailed(
            f"the model is quantised (it has QuantizeLinear nodes): build it as int8, not {precision}", "model"
        )


def configure(builder: trt.Builder, config: trt.IBuilderConfig, request: BuildRequest, say: Say) -> None:
    """Sets every option of the request."""
    options = request.key.options
    workspace = affordable_workspace(request.workspace_bytes, request.onnx_path.stat().st_size, available_bytes())
    if workspace < request.workspace_bytes:
        say(log(f"little memory is free: workspace {workspace >> 20} MiB instead of {request.workspace_bytes >> 20}"))
    trt_api.set_workspace(config, workspace)
    config.builder_optimization_level = options.optimisation_level
    trt_api.set_verbosity(config, request.detailed)
    trt_api.set_precision(config, options)
    trt_api.set_tactic_sources(config, options.tactic_sources)
    trt_api.set_hardware_compatibility(config, options.hardware_compatible)
    trt_api.share_profiles(config)
    trt_api.use_dla(builder, config, options.dla_core)


def affordable_workspace(wanted_bytes: int, onnx_bytes: int, free_bytes: int | None) -> int:
    """The workspace that leaves room for the builder itself; never under LEAST_WORKSPACE_BYTES, never over `wanted`."""
    if free_bytes is None:
        return wanted_bytes
    room = free_bytes - BUILDER_BYTES - WEIGHT_COPIES * onnx_bytes
    return min(wanted_bytes, max(room, LEAST_WORKSPACE_BYTES))


def add_profiles(
    builder: trt.Builder, config: trt.IBuilderConfig, network: trt.INetworkDefinition, request: BuildRequest
) -> None:
    """One optimisation profile per Profile of the request. BuildFailed where they do not fit the network's inputs."""
    inputs = {network.get_input(index).name: network.get_input(index) for index in range(network.num_inputs)}
    dynamic = sorted(name for name, tensor in inputs.items() if min(trt_api.sizes(tensor.shape), default=1) < 0)
    if dynamic and not request.key.profiles:
        raise BuildFailed(f"inputs {', '.join(dynamic)} have dynamic shapes: model.yaml must give profiles", "model")
    for profile in request.key.profiles:
        if set(profile.min) != set(inputs):
            raise BuildFailed(f"profile names {sorted(profile.min)}; the inputs are {sorted(inputs)}", "model")
        made = builder.create_optimization_profile()
        for name in inputs:
            try:
                made.set_shape(
                    name,
                    trt_api.dims(profile.min[name]),
                    trt_api.dims(profile.opt[name]),
                    trt_api.dims(profile.max[name]),
                )
            except ValueError as exc:
                raise BuildFailed(f"profile of input {name} is refused: {exc}; got {profile}", "model") from exc
        if config.add_optimization_profile(made) < 0:
            raise BuildFailed(f"TensorRT refuses the profile {profile}", "model")


def load_timing_cache(config: trt.IBuilderConfig, request: BuildRequest) -> None:
    """Starts from what was measured on this device before; a cache that does not fit is left out."""
    path = PlanStore(request.plans_dir).timing_cache_path(request.key.environment)
    content = path.read_bytes() if path.exists() else b""
    if not config.set_timing_cache(config.create_timing_cache(content), False):
        config.set_timing_cache(config.create_timing_cache(b""), False)


def save_timing_cache(config: trt.IBuilderConfig, request: BuildRequest) -> None:
    """Keeps what was measured for the next build."""
    cache: trt.ITimingCache | None = config.get_timing_cache()
    if cache is not None:
        path = PlanStore(request.plans_dir).timing_cache_path(request.key.environment)
        write_atomically(path, bytes(memoryview(cache.serialize())))


class Heartbeat:
    """Says every BEAT_S that the build goes on, where TensorRT itself cannot (8.6); `quiet` turns it off."""

    def __init__(self, say: Say, quiet: bool) -> None:
        self._say = say
        self._quiet = quiet
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        if not self._quiet:
            self._say(progress("building", 0, 0))
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if not self._quiet:
            self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(BEAT_S):
            self._say(progress("building", 0, 0))


def progress(phase: str, done: int, total: int) -> dict[str, Any]:
    """A progress event."""
    return {"event": "progress", "phase": phase, "done": done, "total": total}


def log(message: str) -> dict[str, Any]:
    """A log event."""
    return {"event": "log", "message": message}


def run(request: BuildRequest, say: Say, held: list[Any]) -> None:
    """Builds and stores; `held` as in `build`. EdgeAgentError when it cannot."""
    began = time.monotonic()
    content = build(request, say, held)
    store = PlanStore(request.plans_dir)
    store.save(request.key, content, time.monotonic() - began, request.workspace_bytes)


def main(held: list[Any]) -> int:
    """0 when the plan is stored, 1 when not (an event says why); `held` as in `build`."""
    be_the_first_to_go()
    faulthandler.enable(all_threads=False)  # where TensorRT crashes, the agent's log is to say in which call
    request = BuildRequest.from_json(json.load(sys.stdin))
    with own_standard_output() as out:
        lock = threading.Lock()

        def say(event: dict[str, Any]) -> None:
            with lock:
                out.write(json.dumps(event) + "\n")
                out.flush()

        try:
            run(request, say, held)
        except BuildFailed as exc:
            say({"event": "failed", "kind": exc.kind, "message": str(exc)})
            return 1
        except (EdgeAgentError, OSError, MemoryError) as exc:
            kind = {MemoryError: "memory", ModelError: "model"}.get(type(exc), "build")
            say({"event": "failed", "kind": kind, "message": f"{type(exc).__name__}: {exc}"})
            return 1
        say({"event": "done"})
    return 0


def serve() -> NoReturn:
    """The whole process: ends it without freeing TensorRT's objects, see `build`."""
    objects: list[Any] = []
    code = main(objects)
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve()
