"""BuildJob: one build of a plan in a child process, watched from here; the child is `trt_build`.

A builder can take all memory and be killed for it: the agent must outlive that, say so in plain words, try once more
with half the workspace and then leave it (field case ENG-7). Nothing here needs TensorRT or a GPU.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from edge_agent.backends.plan import Manifest, PlanKey
from edge_agent.backends.plan_store import PlanStore
from edge_agent.child_process import Child
from edge_agent.errors import EdgeAgentError, ModelError

DEFAULT_WORKSPACE_BYTES = 1 << 30
LEAST_WORKSPACE_BYTES = 64 << 20
BUILDER_COMMAND = (sys.executable, "-m", "edge_agent.backends.trt_build")
MEMINFO = Path("/proc/meminfo")
WAIT_S = 0.5
FailureKind = Literal["build", "crash", "memory", "model"]
CRASH_ADVICE = (
    "TensorRT itself crashed; backend.tensorrt.optimisation_level: 0, precision: fp32 or another TensorRT may do better"
)
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
    """What the child is told. `detailed`: the plan is to tell types, formats and kernels of its layers."""

    onnx_path: Path
    plans_dir: Path
    key: PlanKey
    workspace_bytes: int = DEFAULT_WORKSPACE_BYTES
    device_index: int = 0
    detailed: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain values for the child's standard input."""
        return {
            "onnx_path": str(self.onnx_path),
            "plans_dir": str(self.plans_dir),
            "key": self.key.to_json(),
            "workspace_bytes": self.workspace_bytes,
            "device_index": self.device_index,
            "detailed": self.detailed,
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
            detailed=bool(value["detailed"]),
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
    """No plan was made; `kind` is `memory`, `crash` (a signal), `model` (it cannot be parsed or built) or `build`."""

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
        self._failure: dict[str, Any] | None = None
        self._finished = False
        self._said = ("starting", 0, 0)
        try:
            self._child = Child(command, request.to_json(), "plan-build")
        except OSError as exc:
            raise ModelError(f"the builder {command[0]} cannot be started: {exc.strerror}") from exc

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._child.pid

    @property
    def progress(self) -> BuildProgress:
        """What the child said last, and how long it has been at it now."""
        elapsed_s = self._clock() - self._began
        return BuildProgress(self.request.key.model, *self._said, elapsed_s, self.estimate_s)

    def poll(self, report: Report | None = None, block_s: float = 0.0) -> bool:
        """Passes on what the child said since the last call; True once it ended well. BuildFailed if it did not.

        Waits `block_s` for a word at most; without one the report is told the last one again, so that it hears often.
        """
        return self._step(report, block_s)

    def wait(self, report: Report | None = None) -> None:
        """Blocks until the plan is stored. Raises BuildFailed."""
        while not self._step(report, WAIT_S):
            pass

    def close(self) -> None:
        """Ends the child if it still runs."""
        self._child.close()

    def __enter__(self) -> BuildJob:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _step(self, report: Report | None, block_s: float) -> bool:
        events = self._child.events(block_s)
        for event in events:
            self._take(event, report)
        if block_s and report is not None and not events:
            report(self.progress)
        if not self._child.ended:
            return False
        if self._child.code == 0 and self._finished:
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
        elif kind == "progress":
            self._said = (str(event.get("phase", "building")), int(event.get("done", 0)), int(event.get("total", 0)))
            if report is not None:
                report(self.progress)

    def _failed(self) -> BuildFailed:
        code = self._child.code
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
        tail = self._child.stderr_tail()
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        kind = "memory" if sounds_like_memory(tail) else "crash" if code < 0 else "build"
        advice = {"memory": f"; {memory_advice(self.request.workspace_bytes)}", "crash": f"; {CRASH_ADVICE}"}.get(
            kind, ""
        )
        return BuildFailed(f"building {model} ended {how} and no plan: {tail or 'it said nothing'}{advice}", kind)


class PlanBuild:
    """All that building one plan takes: the folder's permit, tries counted on disk before they begin, and a second one
    with half the workspace when memory was the reason. A context manager: leaving it ends the child.

    `tries_before`: how many tries of this plan had not ended well before this build.
    """

    def __init__(self, request: BuildRequest, store: PlanStore, command: Sequence[str] = BUILDER_COMMAND) -> None:
        """Begins. ModelError where the child cannot be started; PlanUnusable when too many tries failed before,
        PlansBusy while another process is building."""
        self._store = store
        self._command = command
        self._second_try = True
        self._ended = False
        self.tries_before = store.tries(request.key)
        self.estimate_s = next((manifest.build_s for manifest in store.manifests(request.key.model)), None)
        with ExitStack() as opened:
            opened.enter_context(store.building())
            self._job = self._begin(request)
            self._permit = opened.pop_all()

    @property
    def progress(self) -> BuildProgress:
        """How far the build is."""
        return self._job.progress

    def poll(self, report: Report | None = None, block_s: float = 0.0) -> bool:
        """As BuildJob.poll, over both tries; PlanUnusable when there may be no second one."""
        try:
            self._ended = self._job.poll(report, block_s)
        except BuildFailed as exc:
            self._ended = True
            again, how = self._again(exc.kind)
            if again is None or not self._second_try:
                raise
            self._second_try = False
            logger.warning("%s; trying once more %s", exc, how)
            self._job.close()
            self._job = self._begin(again)
            self._ended = False
        return self._ended

    def _again(self, kind: FailureKind) -> tuple[BuildRequest | None, str]:
        """What to try after a failure of this kind and how that differs; None where nothing may help."""
        request = self._job.request
        half = request.workspace_bytes // 2
        if kind == "memory" and half >= LEAST_WORKSPACE_BYTES:
            return replace(request, workspace_bytes=half), f"with a workspace of {half >> 20} MiB"
        # a cache that TensorRT misreads crashes it, as memory that ran out may
        if kind == "crash" and self._second_try and self._store.set_timing_cache_aside(request.key.environment):
            return request, "without the timing cache"
        return None, ""

    def give_up(self) -> None:
        """Ends the child because nobody waits for it any longer: its tries do not count, nothing half-written stays."""
        self._job.close()
        if not self._ended:
            self._ended = True
            self._store.put_tries(self._job.request.key, self.tries_before)
            self._store.sweep(self._job.request.key)
        self.close()

    def close(self) -> None:
        """Ends the child if it still runs, which then counts as a try that did not end well."""
        self._job.close()
        self._permit.close()

    def __enter__(self) -> PlanBuild:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, EdgeAgentError):
            self.close()
        else:
            self.give_up()

    def _begin(self, request: BuildRequest) -> BuildJob:
        self._store.begin_try(request.key)
        return BuildJob(request, self.estimate_s, self._command)


def build_plan(
    request: BuildRequest,
    store: PlanStore,
    report: Report | None = None,
    command: Sequence[str] = BUILDER_COMMAND,
) -> Manifest:
    """Builds as PlanBuild does, waits for it, and gives the manifest. What `report` raises ends the build.

    Raises BuildFailed; PlanUnusable when too many tries failed before or another process is building.
    """
    with PlanBuild(request, store, command) as build:
        while not build.poll(report, WAIT_S):
            pass
    return store.load(request.key).manifest


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
