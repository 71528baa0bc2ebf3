"""What differs between TensorRT 8.6 (JetPack 6.0), 10.3 (6.1, 6.2), 10.16 (7.2) and 11, in one place.

Everything is decided by looking (`hasattr`), not by version numbers; the one exception is the refusal of what is too
old to try. Names that a version lacks are looked up with getattr, so that one type checker run fits all versions.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorrt as trt

from edge_agent.backends.base import Profile, Shape, TensorSpec
from edge_agent.backends.plan import BuildOptions
from edge_agent.errors import ConfigError, EngineError, ModelError

OLDEST = (8, 6)
SUPPORTED = "TensorRT 8.6 (JetPack 6.0), 10.3 (6.1 and 6.2), 10.16 (7.2) and 11"
LOG_LINES_KEPT = 20

# trt.DataType member -> numpy dtype name; trt.nptype breaks on some numpy versions, and raises for what is not here
NUMPY_NAMES = {
    "FLOAT": "float32",
    "HALF": "float16",
    "INT8": "int8",
    "INT32": "int32",
    "BOOL": "bool",
    "UINT8": "uint8",
    "INT64": "int64",
}

logger = logging.getLogger("edge_agent.backends.tensorrt")


def require_supported() -> str:
    """The running TensorRT's version. ConfigError for 8.5 and older, or bindings without the calls that we make."""
    version = str(trt.__version__)
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
    missing = [
        f"{kind.__name__}.{name}"
        for kind, names in (
            (trt.ICudaEngine, ("num_io_tensors", "get_tensor_name", "get_tensor_profile_shape")),
            (trt.IExecutionContext, ("set_input_shape", "set_tensor_address", "execute_async_v3", "infer_shapes")),
        )
        for name in names
        if not hasattr(kind, name)
    ]
    if numbers < OLDEST or missing:
        lacks = f" (it lacks {', '.join(missing)})" if missing else ""
        raise ConfigError(
            f"TensorRT {version} is not supported{lacks}; supported are {SUPPORTED}. "
            "On JetPack 5 set backend.kind: onnxruntime, or move to JetPack 6"
        )
    return version


class LastMessages:
    """The newest warnings and errors of TensorRT: a call that failed says only None or False, the reason is here."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LOG_LINES_KEPT)

    def add(self, line: str) -> None:
        """Keeps one line, drops the oldest."""
        self._lines.append(" ".join(line.split())[:500])

    def clear(self) -> None:
        """Forgets all; call it before a call whose reasons are wanted."""
        self._lines.clear()

    def __str__(self) -> str:
        return " | ".join(list(self._lines)[-6:]) or "TensorRT gave no reason"


class _Logger(trt.ILogger):
    """Passes warnings and errors on to Python's logging and to LastMessages."""

    def __init__(self, messages: LastMessages) -> None:
        trt.ILogger.__init__(self)
        self.messages = messages

    def log(self, severity: trt.ILogger.Severity, msg: str) -> None:
        """Called by TensorRT, from any thread."""
        name = str(getattr(severity, "name", severity)).rpartition(".")[2]
        if name in ("INTERNAL_ERROR", "ERROR", "WARNING"):
            self.messages.add(f"{name}: {msg}")
            logger.log(logging.WARNING if name == "WARNING" else logging.ERROR, "%s", msg)


def make_logger(messages: LastMessages) -> trt.ILogger:
    """A TensorRT logger; keep it alive as long as anything made with it."""
    return _Logger(messages)


# ---- building


def strongly_typed_only() -> bool:
    """Whether precision lives in the graph alone: builder flags for it are gone since TensorRT 11."""
    return not hasattr(trt.BuilderFlag, "FP16")


def network_flags() -> int:
    """Flags of a network with explicit batch; by name, for bit 1 means something else in 11 than in 10."""
    member = getattr(trt.NetworkDefinitionCreationFlag, "EXPLICIT_BATCH", None)
    return 0 if member is None else 1 << int(member)


def set_precision(config: trt.IBuilderConfig, options: BuildOptions) -> None:
    """Allows the reduced precisions asked for. On TensorRT 11 the graph itself says them: nothing to set."""
    if strongly_typed_only():
        return
    for flag in {"fp32": (), "fp16": ("FP16",), "int8": ("INT8", "FP16")}[options.precision]:
        config.set_flag(getattr(trt.BuilderFlag, flag))


def set_workspace(config: trt.IBuilderConfig, workspace_bytes: int) -> None:
    """The most scratch memory one layer's kernel may take."""
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, workspace_bytes)


def set_tactic_sources(config: trt.IBuilderConfig, names: Sequence[str] | None) -> None:
    """Limits where kernels come from. ConfigError names the sources that this TensorRT knows."""
    if names is None:
        return
    mask = 0
    for name in names:
        member = getattr(trt.TacticSource, name, None)
        if member is None:
            known = ", ".join(sorted(n for n in dir(trt.TacticSource) if n.isupper()))
            raise ConfigError(f"TensorRT {trt.__version__} has no tactic source {name!r}; it has {known}")
        mask |= 1 << int(member)
    if not config.set_tactic_sources(mask):
        raise ConfigError(f"TensorRT {trt.__version__} refuses the tactic sources {', '.join(names)}")


def share_profiles(config: trt.IBuilderConfig) -> None:
    """Lets several contexts use one profile: off in 8.6 unless asked for, always on later."""
    member = getattr(getattr(trt, "PreviewFeature", None), "PROFILE_SHARING_0806", None)
    if member is not None and str(trt.__version__).startswith("8."):
        config.set_preview_feature(member, True)


def set_hardware_compatibility(config: trt.IBuilderConfig, wanted: bool) -> None:
    """A plan for every GPU from Ampere on, and slower; off unless asked for."""
    if wanted:
        config.hardware_compatibility_level = trt.HardwareCompatibilityLevel.AMPERE_PLUS


def use_dla(builder: trt.Builder, config: trt.IBuilderConfig, core: int | None) -> None:
    """Puts layers on a DLA core where they fit and on the GPU where not. ConfigError where there is no such core."""
    if core is None:
        return
    cores = int(getattr(builder, "num_DLA_cores", 0))
    if not 0 <= core < cores:
        raise ConfigError(f"dla_core is {core}; TensorRT {trt.__version__} finds {cores} DLA cores here, leave it out")
    config.default_device_type = trt.DeviceType.DLA
    config.DLA_core = core
    config.set_flag(trt.BuilderFlag.GPU_FALLBACK)


def set_verbosity(config: trt.IBuilderConfig, detailed: bool) -> None:
    """What the plan tells of its layers: their names, or with `detailed` also types, formats and kernels.

    Not for every plan: with it TensorRT 8.6.0 was seen to crash while building FP16 encoders (2026-11-30).
    """
    verbosity = trt.ProfilingVerbosity
    config.profiling_verbosity = verbosity.DETAILED if detailed else verbosity.LAYER_NAMES_ONLY


def watch_progress(config: trt.IBuilderConfig, report: Callable[[str, int, int], None]) -> bool:
    """Calls report(phase, steps done, steps in all) while building; False where TensorRT cannot tell (8.6)."""
    if not hasattr(trt, "IProgressMonitor") or not hasattr(config, "progress_monitor"):
        return False
    config.progress_monitor = _make_monitor(report)
    return True


def _make_monitor(report: Callable[[str, int, int], None]) -> Any:
    class Monitor(trt.IProgressMonitor):
        """Steps of the phases under way."""

        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)
            self.steps: dict[str, int] = {}

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            self.steps[phase_name] = num_steps
            report(phase_name, 0, num_steps)

        def step_complete(self, phase_name: str, step: int) -> bool:
            report(phase_name, step + 1, self.steps.get(phase_name, step + 1))
            return True  # go on building

        def phase_finish(self, phase_name: str) -> None:
            steps = self.steps.pop(phase_name, 0)
            report(phase_name, steps, steps)

    return Monitor()


def dims(shape: Shape) -> trt.Dims:
    """A shape in TensorRT's own type."""
    return trt.Dims(list(shape))


def sizes(shape: trt.Dims) -> Shape:
    """TensorRT's shape as a tuple; -1 is a dynamic dimension."""
    return tuple(int(shape[index]) for index in range(len(shape)))


# ---- running


def tensor_specs(engine: trt.ICudaEngine) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
    """Inputs and outputs. ModelError for what the agent cannot feed: host (shape) tensors, types numpy lacks."""
    inputs: list[TensorSpec] = []
    outputs: list[TensorSpec] = []
    for index in range(engine.num_io_tensors):
        name = engine.get_tensor_name(index)
        dtype = str(engine.get_tensor_dtype(name).name)
        if dtype not in NUMPY_NAMES:
            raise ModelError(f"tensor {name} has type {dtype}; expected one of {', '.join(NUMPY_NAMES)}")
        if engine.get_tensor_location(name) != trt.TensorLocation.DEVICE:
            raise ModelError(f"tensor {name} must lie in host memory (its values are shapes); export without it")
        shape = tuple(None if d < 0 else d for d in sizes(engine.get_tensor_shape(name)))
        is_input = engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT
        (inputs if is_input else outputs).append(TensorSpec(name, NUMPY_NAMES[dtype], shape))
    return tuple(inputs), tuple(outputs)


def engine_profiles(engine: trt.ICudaEngine, inputs: Sequence[TensorSpec]) -> tuple[Profile, ...]:
    """The optimisation profiles that the engine was built with; a static engine has one, of its only shapes."""
    found = []
    for index in range(max(1, engine.num_optimization_profiles)):
        ranges = {spec.name: _range(engine, spec, index) for spec in inputs}
        low, mid, high = ({name: shapes[part] for name, shapes in ranges.items()} for part in range(3))
        found.append(Profile(low, mid, high))
    return tuple(found)


def _range(engine: trt.ICudaEngine, spec: TensorSpec, profile: int) -> tuple[Shape, Shape, Shape]:
    """min, opt and max of one input; TensorRT is asked only where there is a choice."""
    fixed = tuple(d for d in spec.shape if d is not None)
    if len(fixed) == len(spec.shape):
        return fixed, fixed, fixed
    low, mid, high = engine.get_tensor_profile_shape(spec.name, profile)
    return sizes(low), sizes(mid), sizes(high)


def scratch_bytes(engine: trt.ICudaEngine, profile: int) -> int:
    """How much activation memory a context of this profile needs from us."""
    for name in ("get_device_memory_size_for_profile_v2", "get_device_memory_size_for_profile"):
        if hasattr(engine, name):
            return int(getattr(engine, name)(profile))
    return int(engine.device_memory_size)


def create_context(engine: trt.ICudaEngine) -> trt.IExecutionContext | None:
    """A context without activation memory of its own; None when TensorRT could not make one."""
    strategy = getattr(getattr(trt, "ExecutionContextAllocationStrategy", None), "USER_MANAGED", None)
    if strategy is not None:
        context: trt.IExecutionContext | None = engine.create_execution_context(strategy)
    else:
        context = engine.create_execution_context_without_device_memory()
    # marks for NVIDIA's tracing tools: those of a plan with detailed verbosity would slow every enqueue
    if context is not None and hasattr(context, "nvtx_verbosity"):
        context.nvtx_verbosity = trt.ProfilingVerbosity.NONE
    return context


def set_scratch(context: trt.IExecutionContext, address: int, size_bytes: int) -> None:
    """Gives a context its activation memory: 256-byte aligned, not used by another context that runs meanwhile."""
    if hasattr(context, "set_device_memory"):
        context.set_device_memory(address, size_bytes)
    else:
        setattr(context, "device_memory", address)  # noqa: B010 - write-only, and unknown to newer stubs


def select_profile(context: trt.IExecutionContext, profile: int, stream_handle: int) -> bool:
    """Puts a fresh context on a profile; False when it is taken (8.6 without sharing). Synchronise the stream after."""
    if context.active_optimization_profile == profile:
        return True
    return bool(context.set_optimization_profile_async(profile, stream_handle))


@contextmanager
def profiling(context: trt.IExecutionContext, add: Callable[[str, float], None]) -> Iterator[None]:
    """Inside, each execution of the context waits and then calls add(layer name, ms) for every layer."""

    class Profiler(trt.IProfiler):
        """Passes each layer's time on."""

        def __init__(self) -> None:
            trt.IProfiler.__init__(self)

        def report_layer_time(self, layer_name: str, ms: float) -> None:
            add(str(layer_name), float(ms))

    profiler = Profiler()  # alive until the end: the bindings of some versions keep no reference
    context.profiler = profiler
    yield


def unsettled(context: trt.IExecutionContext) -> list[str]:
    """The tensors whose shape does not follow from the input shapes that were set; none when all is well."""
    try:
        return [str(name) for name in context.infer_shapes()]
    except RuntimeError as exc:  # the bindings raise where C++ returns an error code
        return [str(exc)]


def deserialise(content: bytes, trt_logger: trt.ILogger, messages: LastMessages) -> tuple[trt.Runtime, trt.ICudaEngine]:
    """Runtime and engine from a plan's bytes; keep the runtime as long as the engine.

    EngineError with TensorRT's own words when it returns None, as it does for a plan of another make.
    """
    messages.clear()
    runtime = trt.Runtime(trt_logger)
    engine: trt.ICudaEngine | None = runtime.deserialize_cuda_engine(content)
    if engine is None:
        raise EngineError(f"TensorRT {trt.__version__} does not load the plan: {messages}")
    return runtime, engine
