"""Which backend runs here, and why: never a guess that nobody hears of (field case ENG-8).

`look()` finds out what the machine has, `choose_backend` decides from that, `open_backend` makes it.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from edge_agent import registry
from edge_agent.backends import BACKENDS
from edge_agent.backends.base import Backend
from edge_agent.backends.build_job import Report
from edge_agent.backends.trt_settings import TrtSettings
from edge_agent.errors import ConfigError

Kind = Literal["auto", "onnxruntime", "tensorrt"]

LIBRARY_PATTERNS = ("libnvinfer*.so*", "libnvonnxparser.so*", "libcuda.so*")
LIBRARY_FOLDERS = (
    "usr/lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu/nvidia",
    "usr/lib/aarch64-linux-gnu/tegra",
    "usr/lib/x86_64-linux-gnu",
    "usr/local/cuda/lib64",
    "usr/local/nvidia/lib64",
)
JETSON_MARKS = ("etc/nv_tegra_release", "dev/nvmap")
CONTAINER_MARKS = (".dockerenv", "run/.containerenv")
CONTAINER_HINT = (
    "this is a container: it was probably started without the NVIDIA runtime (docker run --runtime nvidia, "
    "runtime: nvidia in compose.yaml)"
)
CUDA_SUCCESS = 0


@dataclass(frozen=True)
class Findings:
    """What speaks against TensorRT here (`problems`, none if it can run), and what says that it was meant to run.

    `tensorrt`: its version if it can be imported.
    """

    problems: tuple[str, ...]
    tensorrt: str | None = None
    jetson: bool = False
    container: bool = False
    broken: bool = False

    @property
    def gpu_meant(self) -> bool:
        """Whether this machine was made for TensorRT: a Jetson, or one with TensorRT's files, whole or not."""
        return self.jetson or self.broken

    @property
    def why_not(self) -> str:
        """The problems as one sentence, with the likely cause in a container."""
        return "; ".join([*self.problems, *([CONTAINER_HINT] if self.container else [])])


@dataclass(frozen=True)
class Choice:
    """The backend to use. `fallback`: it computes on the CPU although a GPU was asked for or meant."""

    name: Literal["onnxruntime", "tensorrt"]
    reason: str
    fallback: bool = False

    def __str__(self) -> str:
        return f"backend {self.name}: {self.reason}"


def choose_backend(kind: Kind, allow_cpu_fallback: bool, findings: Findings) -> Choice:
    """Decides. ConfigError where TensorRT was asked for or meant, cannot run, and the CPU is not allowed instead."""
    if kind == "onnxruntime":
        return Choice("onnxruntime", "backend.kind is onnxruntime")
    if not findings.problems:
        return Choice("tensorrt", f"TensorRT {findings.tensorrt} and a GPU are here")
    asked = kind == "tensorrt" or findings.gpu_meant
    if asked and not allow_cpu_fallback:
        why = "backend.kind is tensorrt" if kind == "tensorrt" else "this machine is made for TensorRT"
        raise ConfigError(
            f"{why}, but it cannot run: {findings.why_not}. Mend that, or set backend.kind: onnxruntime, or "
            "backend.allow_cpu_fallback: true to read on the CPU, much slower"
        )
    return Choice("onnxruntime", f"TensorRT cannot run here ({findings.why_not})", fallback=asked)


def open_backend(
    choice: Choice, threads: int = 0, settings: TrtSettings | None = None, report: Report | None = None
) -> Backend:
    """The chosen backend, for the calling thread. `settings` and `report` are TensorRT's, `threads` the CPU's."""
    make = registry.load(BACKENDS, choice.name, "backend")
    if choice.name == "onnxruntime":
        backend: Backend = make(threads)
    else:
        if settings is None:
            raise ConfigError("the tensorrt backend needs settings: where its plans lie")
        backend = make(settings, report)
    return backend


def look(
    root: Path = Path("/"),
    environ: Mapping[str, str] = os.environ,
    load_module: Callable[[str], Any] = importlib.import_module,
    load_library: Callable[[str], Any] = ctypes.CDLL,
    ldconfig: Callable[[], str] | None = None,
) -> Findings:
    """Looks at libraries, Python packages and the driver. The parameters are what tests put in their place."""
    empty = empty_libraries(root, environ, (ldconfig or run_ldconfig)())
    problems = [
        f"{path} is empty (0 bytes): the NVIDIA container runtime should have put the real one there" for path in empty
    ]
    version, import_problems, installed = _packages(load_module)
    problems += import_problems
    driver_problem = _driver(load_library)
    problems += [driver_problem] if driver_problem else []
    return Findings(
        problems=tuple(problems),
        tensorrt=version,
        jetson=any((root / mark).exists() for mark in JETSON_MARKS),
        container=any((root / mark).exists() for mark in CONTAINER_MARKS),
        broken=bool(empty) or installed,
    )


def empty_libraries(root: Path, environ: Mapping[str, str], ldconfig_output: str) -> list[Path]:
    """NVIDIA's libraries of zero bytes, wherever the loader would look: what a wrong container runtime leaves."""
    found: dict[Path, None] = {}
    for path in _libraries(root, environ, ldconfig_output):
        try:
            if path.is_file() and path.stat().st_size == 0:
                found[path] = None
        except OSError:
            continue
    return list(found)


def run_ldconfig() -> str:
    """The loader's cache as text; empty where there is no ldconfig."""
    for command in ("ldconfig", "/sbin/ldconfig"):
        try:
            done = subprocess.run([command, "-p"], capture_output=True, text=True, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        return done.stdout
    return ""


def _libraries(root: Path, environ: Mapping[str, str], ldconfig_output: str) -> Iterator[Path]:
    named = [Path(folder) for folder in environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    for folder in [*named, *(root / folder for folder in LIBRARY_FOLDERS)]:
        for pattern in LIBRARY_PATTERNS:
            yield from sorted(folder.glob(pattern))
    for line in ldconfig_output.splitlines():
        path = Path(line.rpartition("=> ")[2].strip())
        if any(path.match(pattern) for pattern in LIBRARY_PATTERNS):
            yield path


def _packages(load_module: Callable[[str], Any]) -> tuple[str | None, list[str], bool]:
    """TensorRT's version, what is wrong with the Python packages, and whether TensorRT is there but broken."""
    version, problems, broken = None, [], False
    try:
        version = getattr(load_module("tensorrt"), "__version__", None)
    except ModuleNotFoundError as exc:
        broken = exc.name != "tensorrt"
        problems.append(_missing(exc, "tensorrt"))
    except (ImportError, OSError, RuntimeError, AttributeError) as exc:
        broken = True
        problems.append(f"the Python package tensorrt does not load: {exc}")
    else:
        if version is None:  # a folder of that name without code (type stubs)
            problems.append("the Python package tensorrt is not installed")
        else:
            try:
                load_module("edge_agent.backends.trt_api").require_supported()
            except ConfigError as exc:
                problems.append(str(exc))
    try:
        load_module("pycuda.driver")
    except ModuleNotFoundError as exc:
        problems.append(_missing(exc, "pycuda"))
    except (ImportError, OSError) as exc:
        problems.append(f"the Python package pycuda does not load: {exc}")
    return version, problems, broken or (version is not None and bool(problems))


def _missing(exc: ModuleNotFoundError, package: str) -> str:
    if exc.name is not None and exc.name.split(".")[0] != package:
        return f"the Python package {package} does not load: it needs {exc.name}"
    source = {
        "tensorrt": "apt install python3-libnvinfer, and a venv with --system-site-packages",
        "pycuda": "pip install pycuda",
    }
    return f"the Python package {package} is not installed ({source[package]})"


def _driver(load_library: Callable[[str], Any]) -> str | None:
    """What is wrong with CUDA's driver; None if it sees a GPU."""
    try:
        cuda = load_library("libcuda.so.1")
        code = cuda.cuInit(0)
        count = ctypes.c_int()
        code = code or cuda.cuDeviceGetCount(ctypes.byref(count))
    except (OSError, AttributeError) as exc:
        return f"the NVIDIA driver's libcuda.so.1 does not load: {exc}"
    if code != CUDA_SUCCESS:
        return f"the NVIDIA driver does not start: cuInit gives {code}"
    return None if count.value else "the NVIDIA driver sees no GPU"
