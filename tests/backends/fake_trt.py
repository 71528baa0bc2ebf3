"""Fake TensorRT modules, one per version the agent meets, for what differs between them; plans are JSON, ONNX is real.

A fake engine doubles its `image`: `echo` uint8 (N, H, W, 3) = image + 1 and `total` int32 (N,) = its sum. Contexts work
as the real ones do where it matters: shapes outside the profile are refused, what is enqueued runs with the state that
the context has when it runs, the scratch block carries a value from one step of a run to the next.
"""

from __future__ import annotations

import ctypes
import enum
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest

import edge_agent.backends
from tests.backends.fake_cuda import FakeCuda

MAGIC = b"ftrtFAKE"
VERSIONS = ("8.6.2", "10.3.0", "10.16.2", "11.4.1")
FAKED = ("trt_api", "trt_lanes", "trt_layers", "trt_engine", "trt", "trt_build")
NAMED = {"api": "trt_api", "lanes": "trt_lanes", "layers": "trt_layers", "backend": "trt", "build": "trt_build"}
SCRATCH_BYTES = 4096


def plan(
    profiles: Sequence[tuple[Sequence[int], Sequence[int]]] = (((1, 8, 8, 3), (4, 32, 32, 3)),),
    scratch_bytes: int = SCRATCH_BYTES,
    shared: bool = True,
    **changes: Any,
) -> bytes:
    """The bytes of a fake plan; profiles are (min, max) of the input `image`."""
    described = {
        "profiles": [list(map(list, p)) for p in profiles],
        "scratch": scratch_bytes,
        "shared": shared,
        **changes,
    }
    return MAGIC + json.dumps(described).encode()


def install(monkeypatch: pytest.MonkeyPatch, version: str, cuda: FakeCuda | None = None) -> Any:
    """Puts a fake in TensorRT's place and imports the modules that use it afresh; returns the fake module.

    `fake.api`, `fake.lanes`, `fake.layers`, `fake.backend`, `fake.build` are those modules.
    """
    return put(monkeypatch, make(version, cuda))


def put(monkeypatch: pytest.MonkeyPatch, fake: Any) -> Any:
    """Puts a module in TensorRT's place; as `install`."""
    monkeypatch.setitem(sys.modules, "tensorrt", fake)
    for name in FAKED:
        monkeypatch.delitem(sys.modules, f"edge_agent.backends.{name}", raising=False)
        monkeypatch.delattr(edge_agent.backends, name, raising=False)
    for attribute, name in NAMED.items():
        setattr(fake, attribute, import_module(f"edge_agent.backends.{name}"))
    # what was imported now must not outlive the test
    for name in FAKED:
        module = sys.modules.pop(f"edge_agent.backends.{name}")
        delattr(edge_agent.backends, name)
        monkeypatch.setitem(sys.modules, f"edge_agent.backends.{name}", module)
        monkeypatch.setattr(edge_agent.backends, name, module, raising=False)
    return fake


def make(version: str, cuda: FakeCuda | None = None) -> Any:
    """A fake tensorrt module of this version, running on a fake CUDA."""
    numbers = tuple(int(part) for part in version.split(".")[:2])
    trt: Any = ModuleType("tensorrt")
    trt.__version__ = version
    trt.cuda = cuda or FakeCuda()
    trt.seen = {}  # what the builder was told
    trt.refuse_build = None  # a message: build_serialized_network returns None
    trt.refuse_context = False
    trt.refuse_execute = False
    _enums(trt, numbers)
    _running(trt, numbers)
    _building(trt, numbers)
    return trt


def _enums(trt: Any, numbers: tuple[int, ...]) -> None:
    eight, eleven = numbers < (9, 0), numbers >= (11, 0)
    flags = ["GPU_FALLBACK", "TF32"] + ([] if eleven else ["FP16", "INT8"])
    trt.BuilderFlag = enum.Enum("BuilderFlag", flags)
    network = [] if eleven else [("EXPLICIT_BATCH", 0)]
    network += [] if eight else [("STRONGLY_TYPED", 0 if eleven else 1)]
    trt.NetworkDefinitionCreationFlag = enum.IntEnum("NetworkDefinitionCreationFlag", network)
    sources = [] if eleven else [("CUBLAS", 0), ("CUBLAS_LT", 1), ("CUDNN", 2)]
    trt.TacticSource = enum.IntEnum("TacticSource", [*sources, ("EDGE_MASK_CONVOLUTIONS", 3), ("JIT_CONVOLUTIONS", 4)])
    trt.MemoryPoolType = enum.Enum("MemoryPoolType", ["WORKSPACE"])
    trt.DataType = enum.Enum("DataType", ["FLOAT", "HALF", "INT8", "INT32", "BOOL", "UINT8", "FP8"])
    trt.TensorIOMode = enum.Enum("TensorIOMode", ["NONE", "INPUT", "OUTPUT"])
    trt.TensorLocation = enum.Enum("TensorLocation", ["DEVICE", "HOST"])
    trt.DeviceType = enum.Enum("DeviceType", ["GPU", "DLA"])
    trt.LayerType = enum.Enum("LayerType", ["QUANTIZE", "DEQUANTIZE", "OTHER"])
    trt.ProfilingVerbosity = enum.Enum("ProfilingVerbosity", ["LAYER_NAMES_ONLY", "NONE", "DETAILED"])
    trt.LayerInformationFormat = enum.Enum("LayerInformationFormat", ["ONELINE", "JSON"])
    trt.HardwareCompatibilityLevel = enum.Enum("HardwareCompatibilityLevel", ["NONE", "AMPERE_PLUS"])
    if not eleven:
        trt.PreviewFeature = enum.Enum("PreviewFeature", ["PROFILE_SHARING_0806"])
    if not eight:
        strategies = ["STATIC", "ON_PROFILE_CHANGE", "USER_MANAGED"]
        trt.ExecutionContextAllocationStrategy = enum.Enum("ExecutionContextAllocationStrategy", strategies)


class Dims:
    """Like trt.Dims: indexed and measured, not iterable for type checkers."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)

    def __len__(self) -> int:
        return len(self.shape)

    def __getitem__(self, index: int) -> int:
        return self.shape[index]


class Severity(enum.Enum):
    INTERNAL_ERROR = 0
    ERROR = 1
    WARNING = 2
    INFO = 3


class ILogger:
    def log(self, severity: Severity, msg: str) -> None: ...


ILogger.Severity = Severity


def _running(trt: Any, numbers: tuple[int, ...]) -> None:
    eight = numbers < (9, 0)
    trt.Dims, trt.ILogger = Dims, ILogger
    trt.IProfiler = type("IProfiler", (), {})

    class IExecutionContext:
        def __init__(self, engine: Any, profile: int) -> None:
            self.engine = engine
            self.active_optimization_profile = profile
            self.shapes: dict[str, tuple[int, ...]] = {}
            self.addresses: dict[str, int] = {}
            self.scratch = (0, 0)
            self.profiler: Any = None
            self.nvtx_verbosity = trt.ProfilingVerbosity.DETAILED
            trt.seen.setdefault("contexts", []).append(self)

        def set_optimization_profile_async(self, profile: int, stream: int) -> bool:
            assert stream > 0
            others = [c.active_optimization_profile for c in self.engine.contexts if c is not self]
            if eight and not self.engine.described["shared"] and profile in others:
                self.engine.say(f"Profile {profile} has been chosen by another IExecutionContext")
                return False
            self.active_optimization_profile = profile
            return True

        def set_input_shape(self, name: str, shape: Sequence[int]) -> bool:
            low, high = self.engine.described["profiles"][self.active_optimization_profile]
            if not all(a <= b <= c for a, b, c in zip(low, shape, high, strict=True)):
                self.engine.say(f"setInputShape: {tuple(shape)} does not satisfy the profile")
                return False
            self.shapes[name] = tuple(shape)
            return True

        def infer_shapes(self) -> list[str]:
            return [] if "image" in self.shapes else ["image"]

        def get_tensor_shape(self, name: str) -> Dims:
            shape = self.shapes["image"]
            return Dims({"image": shape, "echo": shape, "total": shape[:1]}[name])

        def set_tensor_address(self, name: str, address: int) -> bool:
            self.addresses[name] = address
            return address > 0

        def execute_async_v3(self, stream_handle: int) -> bool:
            if trt.refuse_execute or set(self.addresses) != {"image", "echo", "total"} or not self.scratch[0]:
                self.engine.say("enqueueV3: parameter check failed")
                return False
            assert self.scratch[1] >= self.engine.described["scratch"]
            stream = trt.cuda.streams[stream_handle - 1]
            stream.put(self._first_half)
            stream.put(self._second_half)
            if self.profiler is not None:
                assert stream.recording is None
                stream.synchronize()
                self.profiler.report_layer_time("sum", 0.25)
                self.profiler.report_layer_time("add", 0.75)
            return True

        def _first_half(self) -> None:
            image = memory(self.addresses["image"], self.shapes["image"], np.uint8)
            memory(self.scratch[0], (len(image),), np.int32)[:] = image.sum(axis=(1, 2, 3), dtype=np.int32)

        def _second_half(self) -> None:
            image = memory(self.addresses["image"], self.shapes["image"], np.uint8)
            memory(self.addresses["echo"], image.shape, np.uint8)[:] = image + 1
            memory(self.addresses["total"], (len(image),), np.int32)[:] = memory(
                self.scratch[0], (len(image),), np.int32
            )

    if not eight:

        def set_device_memory(self: Any, address: int, size: int) -> None:
            self.scratch = (address, size)

        IExecutionContext.set_device_memory = set_device_memory
    else:
        IExecutionContext.device_memory = property(
            None, lambda self, address: setattr(self, "scratch", (address, 1 << 40))
        )

    class EngineInspector:
        execution_context: Any = None

        def __init__(self, described: dict[str, Any]) -> None:
            self.described = described

        def get_engine_information(self, format_: Any) -> str:
            assert format_ is trt.LayerInformationFormat.JSON
            if not self.described.get("detailed", True):
                return json.dumps({"Layers": ["sum", "add"], "Bindings": ["image", "echo", "total"]})
            image = {"Name": "image", "Format/Datatype": "UINT8", "Dimensions": self.execution_context.shapes["image"]}
            total = {"Name": "total", "Format/Datatype": "INT32", "Dimensions": image["Dimensions"][:1]}
            add = {"Name": "add", "LayerType": "PointWise", "TacticName": "add_u8", "Inputs": [image]}
            return json.dumps(
                {"Layers": [{**add, "Outputs": [image]}, {"Name": "sum", "Inputs": [], "Outputs": [total]}]}
            )

    class ICudaEngine:
        names = ("image", "echo", "total")
        num_io_tensors = 3

        def __init__(self, described: dict[str, Any], logger: ILogger) -> None:
            self.described, self.logger, self.contexts = described, logger, []
            self.num_optimization_profiles = len(described["profiles"])
            if numbers < (11, 0):
                self.device_memory_size = described["scratch"]

        def say(self, message: str) -> None:
            self.logger.log(Severity.ERROR, message)

        def get_tensor_name(self, index: int) -> str:
            return self.names[index]

        def get_tensor_dtype(self, name: str) -> Any:
            kind = self.described.get("dtype", "UINT8")
            return trt.DataType[{"image": kind, "echo": "UINT8", "total": "INT32"}[name]]

        def get_tensor_location(self, name: str) -> Any:
            return trt.TensorLocation[self.described.get("location", "DEVICE")]

        def get_tensor_mode(self, name: str) -> Any:
            return trt.TensorIOMode.INPUT if name == "image" else trt.TensorIOMode.OUTPUT

        def get_tensor_shape(self, name: str) -> Dims:
            return Dims((-1,) if name == "total" else (-1, -1, -1, 3))

        def get_tensor_profile_shape(self, name: str, profile: int) -> list[Dims]:
            low, high = self.described["profiles"][profile]
            return [Dims(low), Dims(high), Dims(high)]

        def create_engine_inspector(self) -> Any:
            return EngineInspector(self.described)

        def _context(self) -> Any:
            if trt.refuse_context:
                self.say("createExecutionContext: out of memory")
                return None
            # 8.6: the first context has profile 0, later ones none; 10: every one starts on profile 0
            self.contexts.append(IExecutionContext(self, -1 if eight and self.contexts else 0))
            return self.contexts[-1]

    def with_strategy(self: Any, strategy: Any) -> Any:
        assert strategy is trt.ExecutionContextAllocationStrategy.USER_MANAGED
        return self._context()

    if eight:
        ICudaEngine.create_execution_context_without_device_memory = ICudaEngine._context
    else:
        ICudaEngine.create_execution_context = with_strategy
        name = "get_device_memory_size_for_profile" + ("_v2" if numbers >= (10, 1) else "")
        setattr(ICudaEngine, name, lambda self, profile: self.described["scratch"])

    class Runtime:
        def __init__(self, logger: ILogger) -> None:
            self.logger = logger

        def deserialize_cuda_engine(self, content: bytes) -> Any:
            if not content.startswith(MAGIC):
                message = f"The engine plan file is not compatible, expecting library version {trt.__version__}"
                self.logger.log(Severity.ERROR, message)
                return None
            described = json.loads(content[len(MAGIC) :])
            if described.get("refused"):
                self.logger.log(Severity.ERROR, described["refused"])
                return None
            return ICudaEngine(described, self.logger)

    trt.ICudaEngine, trt.IExecutionContext, trt.Runtime = ICudaEngine, IExecutionContext, Runtime


def memory(address: int, shape: Sequence[int], dtype: Any) -> npt.NDArray[Any]:
    """The bytes at an address as an array."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype).reshape(shape)


def _building(trt: Any, numbers: tuple[int, ...]) -> None:
    eight = numbers < (9, 0)

    class Network:
        def __init__(self, flags: int) -> None:
            trt.seen["network_flags"] = flags
            self.inputs: list[Any] = []
            self.layers: list[Any] = []

        num_inputs = property(lambda self: len(self.inputs))
        num_layers = property(lambda self: len(self.layers))

        def get_input(self, index: int) -> Any:
            return self.inputs[index]

        def get_layer(self, index: int) -> Any:
            return self.layers[index]

    class Item:
        def __init__(self, **values: Any) -> None:
            self.__dict__.update(values)

    class OnnxParser:
        def __init__(self, network: Network, logger: ILogger) -> None:
            self.network, self.errors = network, list[str]()

        num_errors = property(lambda self: len(self.errors))

        def get_error(self, index: int) -> Any:
            return Item(desc=lambda: self.errors[index])

        def parse_from_file(self, path: str) -> bool:
            return self.parse(Path(path).read_bytes())

        def parse(self, content: bytes) -> bool:
            try:
                model = onnx.load_from_string(content)
            except Exception as exc:  # noqa: BLE001 - whatever protobuf raises
                self.errors.append(f"ModelImporter: failed to parse: {exc}")
                return False
            for value in model.graph.input:
                shape = [d.dim_value or -1 for d in value.type.tensor_type.shape.dim]
                self.network.inputs.append(Item(name=value.name, shape=Dims(shape)))
            half = any(t.data_type == onnx.TensorProto.FLOAT16 for t in model.graph.initializer)
            trt.seen["half"] = half
            kinds = {"QuantizeLinear": "QUANTIZE", "DequantizeLinear": "DEQUANTIZE"}
            for node in model.graph.node:
                self.network.layers.append(Item(type=trt.LayerType[kinds.get(node.op_type, "OTHER")]))
            return True

    class Config:
        def __init__(self) -> None:
            self.flags: set[str] = set()
            self.profiles: list[Any] = []
            self.cache: Any = None
            self.preview: dict[str, bool] = {}
            if not eight:
                self.progress_monitor: Any = None
            trt.seen["config"] = self

        def set_flag(self, flag: Any) -> None:
            self.flags.add(flag.name)

        def set_memory_pool_limit(self, pool: Any, size: int) -> None:
            trt.seen["workspace"] = size

        def set_tactic_sources(self, mask: int) -> bool:
            trt.seen["tactic_sources"] = mask
            return True

        def set_preview_feature(self, feature: Any, enable: bool) -> None:
            self.preview[feature.name] = enable

        def add_optimization_profile(self, profile: Any) -> int:
            self.profiles.append(profile)
            return len(self.profiles) - 1

        def create_timing_cache(self, content: bytes) -> Any:
            return Item(content=content, serialize=lambda: content + b"+measured")

        def set_timing_cache(self, cache: Any, ignore_mismatch: bool) -> bool:
            assert not ignore_mismatch
            if cache.content.startswith(b"other"):
                return False
            self.cache = cache
            return True

        def get_timing_cache(self) -> Any:
            return self.cache

    class OptimizationProfile:
        def __init__(self) -> None:
            self.shapes: dict[str, tuple[Dims, Dims, Dims]] = {}

        def set_shape(self, name: str, low: Dims, mid: Dims, high: Dims) -> None:
            assert all(type(shape) is Dims for shape in (low, mid, high))
            if not all(a <= b <= c for a, b, c in zip(low.shape, mid.shape, high.shape, strict=True)):
                raise ValueError(f"Shape provided for {name} is inconsistent")
            self.shapes[name] = (low, mid, high)

    class Builder:
        num_DLA_cores = 0

        def __init__(self, logger: ILogger) -> None:
            self.logger = logger

        def create_network(self, flags: int) -> Network:
            return Network(flags)

        def create_builder_config(self) -> Config:
            return Config()

        def create_optimization_profile(self) -> OptimizationProfile:
            return OptimizationProfile()

        def build_serialized_network(self, network: Network, config: Config) -> Any:
            if not eight and config.progress_monitor is not None:
                config.progress_monitor.phase_start("Building", None, 2)
                config.progress_monitor.step_complete("Building", 0)
                config.progress_monitor.phase_finish("Building")
            if trt.refuse_build:
                self.logger.log(Severity.ERROR, trt.refuse_build)
                return None
            image = [profile.shapes["image"] for profile in config.profiles]
            return plan([(low.shape, high.shape) for low, _, high in image])

    trt.OnnxParser, trt.Builder, trt.IBuilderConfig = OnnxParser, Builder, Config
    trt.INetworkDefinition = Network
    trt.IHostMemory = trt.ITimingCache = object
    if not eight:
        trt.IProgressMonitor = type("IProgressMonitor", (), {})


def fake_child(behaviour: str, version: str = "10.3.0") -> list[str]:
    """A builder command whose TensorRT is a fake: see `child`."""
    return [sys.executable, "-c", f"from tests.backends.fake_trt import child; child({behaviour!r}, {version!r})"]


def child(behaviour: str, version: str) -> None:
    """Runs the real trt_build over a fake TensorRT. `behaviour`: well, killed, killed above 300 (MiB of workspace),
    no implementation, crash, crash when freed, mute, slow (until there is a file <mark>.go)."""
    import os
    import signal
    import time

    trt = make(version)
    sys.modules["tensorrt"] = trt
    builder = import_module("edge_agent.backends.trt_build")
    real = trt.Builder.build_serialized_network

    def build(self: Any, network: Any, config: Any) -> Any:
        print("a native library prints this to standard output", flush=True)
        if behaviour == "killed" or (
            behaviour.startswith("killed above") and trt.seen["workspace"] >> 20 > int(behaviour[13:])
        ):
            os.kill(os.getpid(), signal.SIGKILL)
        if behaviour == "no implementation":
            self.logger.log(Severity.ERROR, "Error Code 10: Could not find any implementation for node Conv_7")
            return None
        if behaviour == "crash":
            sys.stderr.write("Segmentation fault in libnvinfer\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGSEGV)
        if behaviour == "slow":
            if getattr(config, "progress_monitor", None) is not None:
                config.progress_monitor.phase_start("Building", None, 2)
                config.progress_monitor.step_complete("Building", 0)
            mark = Path(os.environ["EDGE_AGENT_TEST_MARK"])
            mark.write_text(str(os.getpid()))
            deadline = time.monotonic() + 60
            while not mark.with_suffix(".go").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
        return real(self, network, config)

    trt.Builder.build_serialized_network = build
    if behaviour == "crash when freed":
        trt.Builder.__del__ = lambda self: os.kill(os.getpid(), signal.SIGSEGV)
    if behaviour == "mute":
        sys.exit(3)
    builder.serve()
