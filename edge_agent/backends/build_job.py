"""BuildJob: one build of a plan in a child process, watched from here; the child is `trt_build`.

A builder can take all memory and be killed for it: the agent must outlive that, say so in plain words, try once more
with half the workspace and then leave it (field case ENG-7). Nothing here needs TensorRT or a GPU.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Literal

from edge_agent.backends.plan import Manifest, PlanKey, PlanStore
from edge_agent.errors import ModelError

DEFAULT_WORKSPACE_BYTES = 1 << 30
LEAST_WORKSPACE_BYTES = 64 << 20
BUILDER_COMMAND = (sys.executable, "-m", "edge_agent.backends.trt_build")
MEMINFO = Path("/proc/meminfo")
STDERR_KEPT_BYTES = 4000
FailureKind = Literal["build", "memory", "model"]
# what TensorRT's builder says when memory ran out, next to plain "out of memory"
MEMORY_WORDS = (
    "out of memory",
    "outofmemory",
    "could not find any implementation",
    "insufficient workspace",
    "cuda failure 2",
    "bad_alloc",
    "cannot allocate memory",
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class BuildRequest:
    """What the child is told."""

    onnx_path: Path
    plans_dir: Path
    key: PlanKey
    workspace_bytes: int = DEFAULT_WORKSPACE_BYTES
    device_index: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain values for the child's standard input."""
        return {
            "onnx_path": str(self.onnx_path),
            "plans_dir": str(self.plans_dir),
            "key": self.key.to_json(),
            "workspace_bytes": self.workspace_bytes,
            "device_index": self.device_index,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> BuildRequest:
        """The inverse of `to_json`; KeyError, TypeError or ValueError for anything else."""
        return BuildRequest(
            onnx_path=Path(value["onnx_path"]),
            plans_dir=Path(value["plans_dir"]),
            key=PlanKey.from_json(value["key"]),
            workspace_bytes=int(value["workspace_bytes"]),
            device_index=int(value["device_index"]),
        )


@dataclass(frozen=True)
class BuildProgress:
    """How far a build is. `total` is 0 where TensorRT does not tell (8.6); `estimate_s`: how long the last one took."""

    model: str
    phase: str
    done: int
    total: int
    elapsed_s: float
    estimate_s: float | None = None

    def __str__(self) -> str:
        share = f" {self.done}/{self.total}" if self.total else ""
        estimate = f" of about {self.estimate_s:.0f} s" if self.estimate_s else " s"
        return f"{self.model}: {self.phase}{share}, {self.elapsed_s:.0f}{estimate}"


class BuildFailed(ModelError):
    """No plan was made; `kind` is `memory`, `model` (it cannot be parsed or built) or `build` (all else)."""

    def __init__(self, message: str, kind: FailureKind) -> None:
        super().__init__(message)
        self.kind = kind


Report = Callable[[BuildProgress], None]


class BuildJob:
    """A running child. A context manager: leaving it ends the child. `poll` never blocks, `wait` does."""

    def __init__(
        self,
        request: BuildRequest,
        estimate_s: float | None = None,
        command: Sequence[str] = BUILDER_COMMAND,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts the child at once. ModelError where it cannot be started."""
        self.request = request
        self.estimate_s = estimate_s
        self._clock = clock
        self._began = clock()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child, `close` closes it
        self._events: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._failure: dict[str, Any] | None = None
        self._finished = False
        try:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr
            )
        except OSError as exc:
            self._stderr.close()
            raise ModelError(f"the builder {command[0]} cannot be started: {exc.strerror}") from exc
        self._reader = threading.Thread(target=self._read_events, name="plan-build", daemon=True)
        self._reader.start()
        self._send(json.dumps(request.to_json()).encode())

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def poll(self, report: Report | None = None) -> bool:
        """Passes on what the child said since the last call; True once it ended well. BuildFailed if it did not."""
        return self._step(report, block_s=0.0)

    def wait(self, report: Report | None = None) -> None:
        """Blocks until the plan is stored. Raises BuildFailed."""
        while not self._step(report, block_s=0.5):
            pass

    def close(self) -> None:
        """Ends the child if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join(timeout=5)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._stderr.close()

    def __enter__(self) -> BuildJob:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _step(self, report: Report | None, block_s: float) -> bool:
        try:
            event = self._events.get(timeout=block_s) if block_s else self._events.get_nowait()
            while True:
                self._take(event, report)
                event = self._events.get_nowait()
        except Empty:
            pass
        if self._reader.is_alive() or self._process.poll() is None or not self._events.empty():
            return False
        if self._process.returncode == 0 and self._finished:
            return True
        raise self._failed()

    def _take(self, event: Mapping[str, Any], report: Report | None) -> None:
        kind = event.get("event")
        if kind == "failed":
            self._failure = dict(event)
        elif kind == "done":
            self._finished = True
        elif kind == "log":
            logger.info("build of %s: %s", self.request.key.model, event.get("message"))
        elif kind == "progress" and report is not None:
            report(
                BuildProgress(
                    self.request.key.model,
                    str(event.get("phase", "building")),
                    int(event.get("done", 0)),
                    int(event.get("total", 0)),
                    self._clock() - self._began,
                    self.estimate_s,
                )
            )

    def _failed(self) -> BuildFailed:
        code = self._process.returncode
        model = self.request.key.model
        if self._failure is not None:
            kind: FailureKind = self._failure.get("kind", "build")
            text = str(self._failure.get("message", "no reason given"))
            if kind == "memory":
                text = f"{text}; {memory_advice(self.request.workspace_bytes)}"
            return BuildFailed(f"building {model} failed: {text}", kind)
        if code == -signal.SIGKILL:
            return BuildFailed(
                f"building {model} was killed (SIGKILL), as the kernel does when memory runs out; "
                f"{memory_advice(self.request.workspace_bytes)}",
                "memory",
            )
        tail = self._stderr_tail()
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        kind = "memory" if sounds_like_memory(tail) else "build"
        advice = f"; {memory_advice(self.request.workspace_bytes)}" if kind == "memory" else ""
        return BuildFailed(f"building {model} ended {how} and no plan: {tail or 'it said nothing'}{advice}", kind)

    def _stderr_tail(self) -> str:
        size = self._stderr.seek(0, 2)
        self._stderr.seek(max(0, size - STDERR_KEPT_BYTES))
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return " | ".join(line.strip() for line in lines[-4:])

    def _send(self, text: bytes) -> None:
        assert self._process.stdin is not None
        try:
            with self._process.stdin as pipe:
                pipe.write(text)
        except BrokenPipeError:
            pass  # it ended before it listened: its exit code tells why

    def _read_events(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # a native library printed something
            if isinstance(event, dict):
                self._events.put(event)


def build_plan(
    request: BuildRequest,
    store: PlanStore,
    report: Report | None = None,
    command: Sequence[str] = BUILDER_COMMAND,
) -> Manifest:
    """Builds in a child, a second time with half the workspace when memory was the reason, and gives the manifest.

    Every try is counted on disk before it begins. Raises BuildFailed; PlanUnusable when too many tries failed before
    or another process is building.
    """
    estimate_s = next((manifest.build_s for manifest in store.manifests(request.key.model)), None)
    with store.building():
        try:
            _build_once(request, store, report, command, estimate_s)
        except BuildFailed as exc:
            half = request.workspace_bytes // 2
            if exc.kind != "memory" or half < LEAST_WORKSPACE_BYTES:
                raise
            logger.warning("%s; trying once more with a workspace of %d MiB", exc, half >> 20)
            smaller = BuildRequest(request.onnx_path, request.plans_dir, request.key, half, request.device_index)
            _build_once(smaller, store, report, command, estimate_s)
    return store.load(request.key).manifest


def _build_once(
    request: BuildRequest, store: PlanStore, report: Report | None, command: Sequence[str], estimate_s: float | None
) -> None:
    store.begin_try(request.key)
    with BuildJob(request, estimate_s, command) as job:
        job.wait(report)


def sounds_like_memory(text: str) -> bool:
    """Whether a builder's complaint really means that memory ran out."""
    lowered = text.lower()
    return any(word in lowered for word in MEMORY_WORDS)


def memory_advice(workspace_bytes: int, meminfo: Path = MEMINFO) -> str:
    """The sentence that every memory failure ends with: workspace, free memory, what to do."""
    free = available_bytes(meminfo)
    shown = f"{free >> 20} MiB" if free is not None else "unknown"
    return (
        f"workspace {workspace_bytes >> 20} MiB, free memory {shown}: stop other programs (the desktop: sudo systemctl "
        "isolate multi-user), add swap, set a smaller workspace, or copy plans from an equal device"
    )


def available_bytes(meminfo: Path = MEMINFO) -> int | None:
    """MemAvailable of /proc/meminfo: on a Jetson the GPU's memory too; None where it cannot be read."""
    try:
        for line in meminfo.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None
