"""A CUDA that runs on the CPU, for tests of what calls it: addresses are real memory, streams are queues.

Nothing put on a stream happens before somebody waits for it, so that code which reads a result too early reads old
bytes here too. Every call notes its thread.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from edge_agent.backends.cuda_graph import CaptureFailed
from edge_agent.backends.gpu import Gpu

Work = Callable[[], None]


class FakePool:
    """Bins of equal size, as pycuda's pools have them."""

    def __init__(self) -> None:
        self.managed_bytes = 0
        self.active_bytes = 0
        self.holding = True
        self.free: dict[int, list[npt.NDArray[np.uint8]]] = {}

    def take(self, size: int) -> npt.NDArray[np.uint8]:
        assert size > 0
        bin_size = 1 << (size - 1).bit_length()
        self.active_bytes += size
        if self.free.get(bin_size):
            return self.free[bin_size].pop()
        self.managed_bytes += bin_size
        return np.zeros(bin_size, np.uint8)

    def give_back(self, memory: npt.NDArray[np.uint8], size: int) -> None:
        self.active_bytes -= size
        if self.holding:
            self.free.setdefault(len(memory), []).append(memory)
        else:
            self.managed_bytes -= len(memory)

    def stop_holding(self) -> None:
        self.holding = False
        self.managed_bytes -= sum(size * len(blocks) for size, blocks in self.free.items())
        self.free.clear()


class Block:
    """Memory that goes back to its pool when it is no longer referred to."""

    def __init__(self, pool: FakePool, size: int) -> None:
        self.pool, self.size, self.memory = pool, size, pool.take(size)
        self.memory[:] = 0xEE

    def __int__(self) -> int:
        return int(self.memory.ctypes.data)

    def __del__(self) -> None:
        self.pool.give_back(self.memory, self.size)


class FakeDevicePool(FakePool):
    def allocate(self, size: int) -> Block:
        return Block(self, size)


class _Loan:
    """Lets a numpy array keep its Block alive."""

    def __init__(self, block: Block, size: int) -> None:
        self.block = block
        self.__array_interface__ = {"data": (int(block), False), "shape": (size,), "typestr": "|u1", "version": 3}


class FakePageLockedPool(FakePool):
    def allocate(self, shape: Sequence[int], dtype: Any, order: str = "C") -> npt.NDArray[Any]:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return np.asarray(_Loan(Block(self, size), size)).view(dtype).reshape(shape)


class Error(Exception):
    """pycuda.driver.Error."""


class FakeStream:
    def __init__(self, cuda: FakeCuda, flags: int) -> None:
        cuda.note("Stream")
        self.cuda = cuda
        self.queue: list[Work] = []
        self.recording: list[Work] | None = None
        cuda.streams.append(self)
        self.handle = len(cuda.streams)

    def put(self, work: Work) -> None:
        (self.queue if self.recording is None else self.recording).append(work)

    def synchronize(self) -> None:
        self.cuda.note("Stream.synchronize")
        self.drain(len(self.queue))

    def wait_for_event(self, event: FakeEvent) -> None:
        assert self.recording is None, "a wait for another stream must not be recorded"
        stream, count = event.stream, event.count
        if stream is not None and stream is not self:
            self.put(lambda: stream.drain(max(0, count - stream.done)))

    def drain(self, count: int) -> None:
        for work in self.queue[:count]:
            self.done += 1
            work()
        del self.queue[:count]

    done = 0


class FakeEvent:
    def __init__(self, cuda: FakeCuda, flags: int) -> None:
        cuda.note("Event")
        self.cuda = cuda
        self.stream: FakeStream | None = None
        self.count = 0

    def time_till(self, other: FakeEvent) -> float:
        return float(other.count - self.count)

    def record(self, stream: FakeStream) -> None:
        assert stream.recording is None, "an event must not be recorded into a graph"
        self.stream, self.count = stream, stream.done + len(stream.queue)

    def synchronize(self) -> None:
        self.cuda.note("Event.synchronize")
        if self.cuda.fail_from is not None:
            raise Error("cuEventSynchronize failed: an illegal memory access was encountered")
        if self.stream is not None:
            self.stream.drain(max(0, self.count - self.stream.done))


class FakeGraph:
    def __init__(self, driver: FakeGraphDriver, work: list[Work]) -> None:
        self.driver, self.work, self.closed = driver, work, False
        driver.alive += 1

    def launch(self, stream_handle: int) -> None:
        assert not self.closed
        self.driver.launches += 1
        for work in self.work:
            self.driver.cuda.streams[stream_handle - 1].put(work)

    def close(self) -> None:
        if not self.closed:
            self.driver.alive -= 1
        self.closed = True


class FakeGraphDriver:
    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda
        self.captures = self.launches = self.alive = 0
        self.refuses = False

    def capture(self, stream_handle: int, enqueue: Work) -> FakeGraph:
        if self.refuses:
            raise CaptureFailed("cuStreamEndCapture: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED")
        stream = self.cuda.streams[stream_handle - 1]
        stream.recording = []
        try:
            enqueue()
            self.captures += 1
            return FakeGraph(self, stream.recording)
        finally:
            stream.recording = None


class FakeContext:
    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda

    def push(self) -> None:
        self.cuda.note("Context.push")
        self.cuda.stack.append(self)


class FakeDevice:
    def __init__(self, cuda: FakeCuda, index: int) -> None:
        self.cuda = cuda

    def name(self) -> str:
        return "Fake Orin"

    def pci_bus_id(self) -> str:
        return "0000:3B:00.0"

    def compute_capability(self) -> tuple[int, int]:
        return (8, 7)

    def get_attribute(self, attribute: str) -> int:
        return {"sm": 8, "integrated": int(self.cuda.integrated), "unified": 1}[attribute]

    def retain_primary_context(self) -> FakeContext:
        return FakeContext(self.cuda)


class FakeCuda:
    """Stands for pycuda.driver and pycuda.tools together. `fail_from`: set it and every wait reports a dead GPU."""

    Error = Error
    host_alloc_flags = type("host_alloc_flags", (), {"DEVICEMAP": 2})
    event_flags = type("event_flags", (), {"DISABLE_TIMING": 2, "BLOCKING_SYNC": 1})
    device_attribute = type(
        "device_attribute",
        (),
        {"MULTIPROCESSOR_COUNT": "sm", "INTEGRATED": "integrated", "UNIFIED_ADDRESSING": "unified"},
    )
    DeviceMemoryPool = FakeDevicePool

    def __init__(self, integrated: bool = False) -> None:
        self.integrated = integrated
        self.threads: dict[str, set[int]] = {}
        self.streams: list[FakeStream] = []
        self.stack: list[FakeContext] = []
        self.fail_from: int | None = None
        self.copies = 0
        self.page_locked_flags: int | None = None
        self.Context = self  # pop and synchronize are static there

    def note(self, call: str) -> None:
        self.threads.setdefault(call, set()).add(threading.get_ident())

    def init(self) -> None:
        self.note("init")

    def Device(self, index: int) -> FakeDevice:
        return FakeDevice(self, index)

    def Stream(self, flags: int = 0) -> FakeStream:
        return FakeStream(self, flags)

    def Event(self, flags: int = 0) -> FakeEvent:
        return FakeEvent(self, flags)

    def PageLockedAllocator(self, flags: int = 0) -> int:
        self.page_locked_flags = flags
        return flags

    def PageLockedMemoryPool(self, allocator: int) -> FakePageLockedPool:
        return FakePageLockedPool()

    def pop(self) -> None:
        self.note("Context.pop")
        self.stack.pop()

    def synchronize(self) -> None:
        for stream in self.streams:
            stream.synchronize()

    def mem_get_info(self) -> tuple[int, int]:
        return (1 << 30, 1 << 33)

    def memcpy_htod_async(self, dest: int, src: npt.NDArray[Any], stream: FakeStream) -> None:
        assert src.flags.c_contiguous
        self.note("memcpy")
        address, size = src.ctypes.data, src.nbytes
        self._copy(dest, address, size, stream)

    def memcpy_dtoh_async(self, dest: npt.NDArray[Any], src: int, stream: FakeStream) -> None:
        assert dest.flags.c_contiguous
        self.note("memcpy")
        self._copy(dest.ctypes.data, src, dest.nbytes, stream)

    def _copy(self, dest: int, src: int, size: int, stream: FakeStream) -> None:
        def copy() -> None:
            self.copies += 1
            ctypes.memmove(dest, src, size)

        stream.put(copy)


def fake_gpu(cuda: FakeCuda, graphs: bool = True, budget_bytes: int | None = None) -> Gpu:
    return Gpu(cuda, cuda, FakeGraphDriver(cuda) if graphs else None, budget_bytes=budget_bytes)
