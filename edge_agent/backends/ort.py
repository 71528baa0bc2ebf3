"""ONNX Runtime on the CPU: the backend of machines without an NVIDIA GPU, and the reference on those with one."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

from edge_agent.backends.base import Array, Condition, Feed, LayerTime, Profile, TensorSpec, check_feed
from edge_agent.backends.cpu import processor
from edge_agent.errors import EngineError, ModelError

PROVIDERS = ("CPUExecutionProvider",)
# They have no base class of their own; what C++ throws besides arrives as RuntimeError or MemoryError.
ORT_ERRORS: tuple[type[Exception], ...] = (
    state.EPFail,
    state.Fail,
    state.InvalidArgument,
    state.InvalidGraph,
    state.InvalidProtobuf,
    state.ModelLoaded,
    state.NoModel,
    state.NoSuchFile,
    state.NotImplemented,
    state.RuntimeException,
    RuntimeError,
    MemoryError,
)
DTYPES = {
    "tensor(bool)": "bool",
    "tensor(double)": "float64",
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(int32)": "int32",
    "tensor(int64)": "int64",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
}
QUANTISED = b"DequantizeLinear"
KERNEL_TIME = "_kernel_time"  # how a node's own event ends in onnxruntime's profile


class OrtBackend:
    """Makes engines that compute with `threads` threads; 0 = as many as this process has cores to itself."""

    name = "onnxruntime"
    any_shape = True
    overlaps = False

    def __init__(self, threads: int = 0) -> None:
        self.threads = threads or usable_cores()

    @property
    def device(self) -> dict[str, str]:
        """The processor."""
        return processor()

    @property
    def versions(self) -> dict[str, str]:
        """onnxruntime's."""
        return {"onnxruntime": onnxruntime.__version__}

    def load(self, onnx_path: Path, profiles: tuple[Profile, ...] = (), meanwhile: Path | None = None) -> OrtEngine:
        """An engine for the model file; the rest is not needed here. Raises ModelError where it cannot be loaded."""
        return OrtEngine(onnx_path, self.threads)

    def counters(self) -> dict[str, Any]:
        """Nothing: onnxruntime does not tell what its arena holds, and the process's memory is in the sensors."""
        return {}

    def attend(self) -> Condition:
        """Nothing is built here."""
        return Condition("running")

    def give_up_builds(self) -> None:
        """Nothing is built here."""

    def close(self) -> None:
        """Nothing to free: sessions end with their engines."""


class OrtEngine:
    """One model in one session. Calls from one thread; the outputs are the caller's."""

    def __init__(self, onnx_path: Path, threads: int) -> None:
        digest, precision = read_identity(onnx_path)
        self.fingerprint = f"onnxruntime-{onnxruntime.__version__}:{digest[:12]}:{precision}"
        try:
            session = onnxruntime.InferenceSession(str(onnx_path), session_options(threads), providers=list(PROVIDERS))
        except ORT_ERRORS as exc:
            raise ModelError(
                f"{onnx_path} cannot be loaded by onnxruntime {onnxruntime.__version__}: {' '.join(str(exc).split())}; "
                "fetch it again with `edge-agent models fetch`, or update onnxruntime"
            ) from exc
        self._onnx_path = onnx_path
        self.threads = threads
        self.inputs = tuple(tensor_spec(argument) for argument in session.get_inputs())
        self.outputs = tuple(tensor_spec(argument) for argument in session.get_outputs())
        self._output_names = [spec.name for spec in self.outputs]
        self._session: onnxruntime.InferenceSession | None = session
        self._feed: Feed | None = None

    def infer(self, feed: Feed) -> dict[str, Array]:
        """Runs once. Raises FrameError for a feed that does not fit, EngineError when inference fails."""
        self.enqueue(feed)
        return self.collect()

    def enqueue(self, feed: Feed) -> None:
        """Takes the feed; the CPU is busy either way, so the run is `collect`'s."""
        if self._session is None:
            raise EngineError(f"engine {self.fingerprint} is closed; load it again to infer")
        if self._feed is not None:
            raise EngineError(f"engine {self.fingerprint} has a run under way; collect it before the next one")
        check_feed(self.inputs, feed)
        self._feed = feed

    def collect(self) -> dict[str, Array]:
        """Runs the feed that `enqueue` took."""
        feed, self._feed = self._feed, None
        if self._session is None:
            raise EngineError(f"engine {self.fingerprint} is closed; load it again to infer")
        if feed is None:
            raise EngineError(f"engine {self.fingerprint} has nothing to collect; enqueue a feed first")
        try:
            outputs = self._session.run(self._output_names, dict(feed))
        except ORT_ERRORS as exc:
            shapes = {name: array.shape for name, array in feed.items()}
            raise EngineError(f"onnxruntime failed on a feed of {shapes} for {self.fingerprint}: {exc}") from exc
        return dict(zip(self._output_names, outputs, strict=True))

    def layers(self, feed: Feed, runs: int) -> list[LayerTime]:
        """The nodes of the optimised graph, measured in a second session that exists for this call."""
        if self._session is None:
            raise EngineError(f"engine {self.fingerprint} is closed; load it again to measure it")
        check_feed(self.inputs, feed)
        with TemporaryDirectory() as folder:
            options = session_options(self.threads)
            options.enable_profiling = True
            options.profile_file_prefix = str(Path(folder) / "profile")
            try:
                session = onnxruntime.InferenceSession(str(self._onnx_path), options, providers=list(PROVIDERS))
                for _ in range(1 + runs):
                    session.run(self._output_names, dict(feed))
                events = json.loads(Path(session.end_profiling()).read_bytes())
            except ORT_ERRORS as exc:
                raise EngineError(f"onnxruntime could not measure the layers of {self.fingerprint}: {exc}") from exc
        return node_times(events, runs)

    def close(self) -> None:
        """Frees the session; calling it again does nothing."""
        self._session = self._feed = None


def node_times(events: Sequence[Mapping[str, Any]], runs: int) -> list[LayerTime]:
    """Mean time of each node over the last `runs` runs, from a profile's events, `ts` and `dur` in us."""
    ends_us = sorted(int(event["ts"]) + int(event["dur"]) for event in events if event["name"] == "model_run")
    warm_us = ends_us[-runs - 1] if len(ends_us) > runs else 0
    spent_us: dict[str, int] = {}
    told: dict[str, Mapping[str, Any]] = {}
    for event in events:
        name = str(event["name"])
        if event.get("cat") == "Node" and name.endswith(KERNEL_TIME) and int(event["ts"]) >= warm_us:
            name = name.removesuffix(KERNEL_TIME)
            spent_us[name] = spent_us.get(name, 0) + int(event["dur"])
            told[name] = event.get("args", {})
    total_us = sum(spent_us.values()) or 1
    return [
        LayerTime(name, str(told[name].get("op_name", "")), us / 1e3 / runs, us / total_us, shown_tensors(told[name]))
        for name, us in spent_us.items()
    ]


def shown_tensors(args: Mapping[str, Any]) -> str:
    """`uint8 1x48x320x3 -> float 1x48x320x3` of a node's event; its weights are among the inputs."""

    def shown(tensors: Sequence[Mapping[str, Sequence[int]]]) -> str:
        return ", ".join(f"{kind} {'x'.join(map(str, shape))}" for tensor in tensors for kind, shape in tensor.items())

    return f"{shown(args.get('input_type_shape', ()))} -> {shown(args.get('output_type_shape', ()))}"


def session_options(threads: int) -> onnxruntime.SessionOptions:
    """How sessions run. Figures: PP-OCRv6 detector and recogniser by turns, 1280x720 frames, 2 threads of a Xeon.

    - Threads stop spinning when a run ends (1.17x): detector and recogniser have a pool each, and one that spins
      takes the cores from the one that works. onnxruntime's process-wide pool is no faster, and once it exists every
      other session of the process fails unless it uses it too.
    - All sessions share one memory arena and plan no memory pattern per input shape: resident memory peaks at 280 MB
      instead of 530, and stays there whatever shapes come.
    - Denormal numbers count as zero: on Intel a denormal costs a hundred times a normal one.
    - INT8 products are exact on x86 without VNNI, too: sums of two products saturate there at 16 bits otherwise, which
      cost a tenth of a value in a net of two layers.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors; what matters is raised
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    options.add_session_config_entry("session.x64quantprecision", "1")
    if share_arena():
        options.add_session_config_entry("session.use_env_allocators", "1")
    return options


@functools.cache
def share_arena() -> bool:
    """Makes the arena that all sessions of this process take memory from, once; False where onnxruntime cannot."""
    try:
        onnxruntime.create_and_register_allocator(
            onnxruntime.OrtMemoryInfo(
                "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
            ),
            None,
        )
    except AttributeError:  # a version that names things otherwise
        return False
    except ORT_ERRORS:  # a build without arenas (32 bit)
        return False
    return True


def read_identity(onnx_path: Path) -> tuple[str, str]:
    """(sha256, `fp32` or `int8`) of a model file. Raises ModelError where it cannot be read."""
    try:
        model = onnx_path.read_bytes()
    except OSError as exc:
        raise ModelError(
            f"{onnx_path} cannot be read: {exc.strerror or exc}; fetch it with `edge-agent models fetch`"
        ) from exc
    return hashlib.sha256(model).hexdigest(), "int8" if QUANTISED in model else "fp32"


def tensor_spec(argument: onnxruntime.NodeArg) -> TensorSpec:
    """An input or output as onnxruntime describes it; named and unknown dimensions are dynamic."""
    if argument.type not in DTYPES:
        raise ModelError(f"tensor {argument.name} is {argument.type}; expected one of {', '.join(sorted(DTYPES))}")
    shape = tuple(size if isinstance(size, int) else None for size in argument.shape or ())
    return TensorSpec(argument.name, DTYPES[argument.type], shape)


def usable_cores(sys: Path = Path("/sys")) -> int:
    """Physical cores this process may use: its CPU affinity, two hardware threads of a core counted once, and no more
    than the CPU quota of its container, rounded up."""
    try:
        cpus = os.sched_getaffinity(0)
    except AttributeError:  # not Linux
        return os.cpu_count() or 1
    cores = {core_of(cpu, sys) for cpu in cpus}
    quota = cpu_quota(sys / "fs" / "cgroup")
    return max(1, min(len(cores), len(cores) if quota is None else int(-(-quota // 1))))


def core_of(cpu: int, sys: Path) -> str:
    """A name that the hardware threads of one core share; its own number where the kernel does not tell."""
    siblings = sys / "devices" / "system" / "cpu" / f"cpu{cpu}" / "topology" / "thread_siblings_list"
    try:
        return siblings.read_text(encoding="ascii").strip()
    except OSError:
        return str(cpu)


def cpu_quota(cgroup: Path) -> float | None:
    """CPUs that a container's limit allows (`docker run --cpus`), by cgroup v2 or v1; None without a limit."""
    try:
        if (cgroup / "cpu.max").exists():
            quota, period = (cgroup / "cpu.max").read_text(encoding="ascii").split()
        else:
            quota = (cgroup / "cpu" / "cpu.cfs_quota_us").read_text(encoding="ascii").strip()
            period = (cgroup / "cpu" / "cpu.cfs_period_us").read_text(encoding="ascii").strip()
        return None if quota == "max" or int(quota) <= 0 or int(period) <= 0 else int(quota) / int(period)
    except (OSError, ValueError):
        return None
