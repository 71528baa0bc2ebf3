"""Gpu: the one GPU of this process, its primary CUDA context, current on the thread that opened it, and its memory.

All CUDA work happens on that thread (pycuda keeps a stack of contexts per thread). The primary context is the one that
TensorRT's own runtime uses; `pycuda.autoinit` would make a second one and leave it on the stack.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, runtime_checkable
from weakref import WeakSet

from edge_agent.backends.base import Backend
from edge_agent.backends.cuda_graph import CaptureFailed, GraphDriver
from edge_agent.backends.plan import Environment, l4t_release
from edge_agent.backends.pool import Pool
from edge_agent.errors import ConfigError, EngineError

logger = logging.getLogger(__name__)

FREE_MEMORY_EVERY_S = 5.0
STREAM_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: no implicit waits on the legacy default stream


class Closable(Protocol):
    """What is closed before the GPU is."""

    def close(self) -> None: ...


class Gpu:
    """A context manager: leaving it pops the context, so that the process ends with an empty context stack.

    `drv` and `tools` are pycuda.driver and pycuda.tools (`open_gpu` brings them). `mapped`: whether page-locked host
    memory is used by the GPU in place; by default where both share one memory (integrated GPUs).
    """

    def __init__(
        self,
        drv: Any,
        tools: Any,
        graphs: Any = None,
        index: int = 0,
        budget_bytes: int | None = None,
        mapped: bool | None = None,
    ) -> None:
        self._owner = threading.get_ident()
        self.drv = drv
        self.graphs = graphs
        self.index = index
        try:
            drv.init()
            device = drv.Device(index)
            self._context = device.retain_primary_context()
        except drv.Error as exc:
            raise ConfigError(
                f"CUDA does not start: {exc}; check that the NVIDIA driver is loaded and that this user may use the "
                "GPU (groups video and render), and in a container that it runs with the NVIDIA runtime"
            ) from exc
        self.name = str(device.name())
        self.bus_id = str(device.pci_bus_id())
        self.compute_capability = ".".join(map(str, device.compute_capability()))
        self.sm_count = int(device.get_attribute(drv.device_attribute.MULTIPROCESSOR_COUNT))
        self.integrated = bool(device.get_attribute(drv.device_attribute.INTEGRATED))
        # with unified addressing (every 64-bit Linux) a page-locked block has one address for CPU and GPU
        unified = bool(device.get_attribute(drv.device_attribute.UNIFIED_ADDRESSING))
        self.mapped = unified and (self.integrated if mapped is None else mapped)
        self._context.push()
        try:
            flags = int(drv.host_alloc_flags.DEVICEMAP) if self.mapped else 0
            page_locked = tools.PageLockedMemoryPool(tools.PageLockedAllocator(flags))
            free_bytes = self.free_bytes()
            self.pool = Pool(tools.DeviceMemoryPool(), page_locked, budget_bytes)
        except drv.Error as exc:
            drv.Context.pop()
            raise ConfigError(f"CUDA gives no memory: {exc}; end other programs that use the GPU") from exc
        self.scratch = Scratch(self)
        self.engines: WeakSet[Closable] = WeakSet()
        self.free_at_start_bytes = self.last_free_bytes = free_bytes
        self._looked_mono = time.monotonic()
        self.closed = False

    def environment(self, tensorrt_version: str) -> Environment:
        """What a plan made or loaded here is bound to."""
        return Environment(tensorrt_version, self.compute_capability, self.name, self.sm_count, l4t_release())

    @property
    def owned(self) -> bool:
        """Whether the calling thread is the one that opened the GPU."""
        return threading.get_ident() == self._owner

    def require_owner(self, what: str) -> None:
        """EngineError on any thread but the one that opened the GPU, or after `close`."""
        if not self.owned:
            raise EngineError(
                f"{what} was called from thread {threading.current_thread().name!r}; the GPU belongs to the thread "
                "that opened it, hand the work over to that one"
            )
        if self.closed:
            raise EngineError(f"{what} was called after the GPU was closed")

    def stream(self) -> Any:
        """A new stream, independent of the default one."""
        return self.drv.Stream(STREAM_NON_BLOCKING)

    def event(self) -> Any:
        """A new event without timing. On integrated GPUs waiting for it sleeps: a spinning core takes their power."""
        flags = self.drv.event_flags.DISABLE_TIMING
        return self.drv.Event(flags | self.drv.event_flags.BLOCKING_SYNC if self.integrated else flags)

    def free_bytes(self) -> int:
        """Device memory that CUDA could still give."""
        return int(self.drv.mem_get_info()[0])

    def look_at_free_memory(self) -> None:
        """Keeps `last_free_bytes`, which any thread may read, no older than FREE_MEMORY_EVERY_S while engines run."""
        now_mono = time.monotonic()
        if now_mono - self._looked_mono >= FREE_MEMORY_EVERY_S:
            self._looked_mono = now_mono
            self.last_free_bytes = self.free_bytes()

    def synchronize(self) -> None:
        """Waits for everything on the GPU that this process asked for."""
        self.drv.Context.synchronize()

    @contextmanager
    def errors_named(self, what: str) -> Iterator[None]:
        """CUDA's errors become EngineError. Most are sticky: every later call fails too, so the process must end."""
        try:
            yield
        except self.drv.Error as exc:
            raise EngineError(f"{what}: CUDA failed: {exc}; this process must start afresh") from exc

    def close(self) -> None:
        """Closes the engines that are left, frees the memory, pops the context; calling it again does nothing."""
        if self.closed:
            return
        self.require_owner("Gpu.close")
        try:
            for engine in list(self.engines):
                try:
                    engine.close()
                except EngineError as exc:
                    logger.warning("an engine could not be closed well: %s", exc)
            self.scratch.close()
            self.pool.close()
        finally:
            self.drv.Context.pop()
            self._context = None
            self.closed = True

    def __enter__(self) -> Gpu:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Scratch:
    """One block of activation memory for all execution contexts, as large as the largest needs: they take turns.

    The turns hold on the GPU, in the order of `turn`; work of two streams may be enqueued one after the other without
    waiting on the CPU. `generation` changes when the block moved: contexts must be given the new address, and graphs
    that recorded the old one are void.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._block: Any = None
        self._event: Any = None
        self._last_stream: int | None = None
        self.size_bytes = 0
        self.generation = 0

    @property
    def address(self) -> int:
        """Where the block lies; 0 before the first `reserve`."""
        return 0 if self._block is None else int(self._block)

    def reserve(self, size_bytes: int) -> None:
        """Makes the block at least this large; call it while loading, it may wait for the GPU and allocate."""
        if self._block is not None and size_bytes <= self.size_bytes:
            return
        self._gpu.synchronize()
        self._block = None  # freed first: old and new together may be more than there is
        self._gpu.pool.release("scratch")
        self._block = self._gpu.pool.device(max(size_bytes, 1), "scratch")
        self.size_bytes = size_bytes
        self.generation += 1
        if self._event is None:
            self._event = self._gpu.event()

    @contextmanager
    def turn(self, stream: Any) -> Iterator[None]:
        """Work put on `stream` inside runs on the GPU after that of the turn before, whatever stream it was on."""
        if self._last_stream is not None and self._last_stream != stream.handle:
            stream.wait_for_event(self._event)
        yield
        self._event.record(stream)
        self._last_stream = stream.handle

    def close(self) -> None:
        """Gives the block back."""
        self._block = self._event = self._last_stream = None
        self._gpu.pool.release("scratch")


@runtime_checkable
class OnGpu(Protocol):
    """A backend that computes on a GPU."""

    gpu: Gpu


def gpu_bus_id(backend: Backend) -> str | None:
    """The PCI address of the backend's GPU; None for a backend without one."""
    return backend.gpu.bus_id if isinstance(backend, OnGpu) else None


def open_gpu(index: int = 0, budget_bytes: int | None = None, graphs: bool = True, mapped: bool | None = None) -> Gpu:
    """The GPU with this number, for the calling thread. ConfigError where pycuda or CUDA is missing."""
    try:
        import pycuda.driver as drv
        from pycuda import tools
    except ImportError as exc:
        raise ConfigError(f"the tensorrt backend needs pycuda: {exc}; install it with: pip install pycuda") from exc
    return Gpu(drv, tools, _graph_driver() if graphs else None, index, budget_bytes, mapped)


def _graph_driver() -> GraphDriver | None:
    try:
        return GraphDriver()
    except CaptureFailed:
        return None  # CUDA before 11.4: engines run without graphs
