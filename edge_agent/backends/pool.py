"""Pool: device and page-locked memory from pycuda's pools, counted, so that "allocates nothing" can be shown.

Blocks go back to the pool when their Python object is freed and are handed out again; a hit is a request served
from a held block, a miss one that had to ask CUDA.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from edge_agent.errors import ConfigError

ByteArray = npt.NDArray[np.uint8]


class MemoryPool(Protocol):
    """What pycuda.tools.DeviceMemoryPool and PageLockedMemoryPool have in common."""

    @property
    def managed_bytes(self) -> int: ...

    @property
    def active_bytes(self) -> int: ...

    def stop_holding(self) -> None: ...


@dataclass(frozen=True)
class PoolCounters:
    """One pool in numbers. `held_bytes` is all that CUDA gave us, `active_bytes` what is in use of it now."""

    held_bytes: int
    active_bytes: int
    hits: int
    misses: int
    high_water_bytes: int

    def to_json(self) -> dict[str, int]:
        """For telemetry."""
        return asdict(self)


class Pool:
    """Two pools under one budget. Owned by the GPU thread; every call comes from it.

    `device_pool.allocate(size)` gives an object whose int() is a device address; `page_locked_pool.allocate(shape,
    dtype)` a numpy array. `budget_bytes` bounds the device memory asked for: over it ConfigError, saying who asked for
    how much.
    """

    def __init__(self, device_pool: Any, page_locked_pool: Any, budget_bytes: int | None = None) -> None:
        self.budget_bytes = budget_bytes
        self._device = _Counted(device_pool)
        self._page_locked = _Counted(page_locked_pool)
        self._device_pool = device_pool
        self._page_locked_pool = page_locked_pool
        self._asked: dict[str, int] = {}

    def device(self, size_bytes: int, owner: str) -> Any:
        """Device memory; freed when the returned object is. ConfigError when the budget does not allow it."""
        self._admit(size_bytes, owner)
        block = self._device.count(lambda: self._device_pool.allocate(max(size_bytes, 1)))
        self._asked[owner] = self._asked.get(owner, 0) + size_bytes
        return block

    def take_outside(self, size_bytes: int, owner: str) -> None:
        """Counts device memory that TensorRT allocates for itself (weights) against the budget, as `device` would."""
        self._admit(size_bytes, owner)
        self._asked[owner] = self._asked.get(owner, 0) + size_bytes

    def page_locked(self, size_bytes: int) -> ByteArray:
        """Page-locked host memory, uint8 (size_bytes,), freed when the array and all views of it are."""
        size = max(size_bytes, 1)
        array: ByteArray = self._page_locked.count(lambda: self._page_locked_pool.allocate((size,), np.uint8))
        return array

    def release(self, owner: str) -> None:
        """Takes all that an owner asked for off the budget; its blocks are freed by whoever holds them."""
        self._asked.pop(owner, None)

    def counters(self) -> dict[str, PoolCounters]:
        """`device` and `page_locked`, as they are now."""
        return {"device": self._device.counters(), "page_locked": self._page_locked.counters()}

    def _admit(self, size_bytes: int, owner: str) -> None:
        if self.budget_bytes is not None and sum(self._asked.values()) + size_bytes > self.budget_bytes:
            asked = ", ".join(f"{name} {_mib(size)}" for name, size in sorted(self._asked.items())) or "nobody"
            raise ConfigError(
                f"{owner} asks for {_mib(size_bytes)} of GPU memory, over the budget of {_mib(self.budget_bytes)} "
                f"(backend.gpu_memory_mb); taken so far: {asked}. Raise the budget or narrow the models' profiles"
            )

    def close(self) -> None:
        """Gives all unused blocks back to CUDA and holds none from now on; the GPU's context must be current."""
        self._device_pool.stop_holding()
        self._page_locked_pool.stop_holding()


class _Counted:
    """Hits, misses and the high-water mark of one pool."""

    def __init__(self, pool: MemoryPool) -> None:
        self.pool = pool
        self.hits = 0
        self.misses = 0
        self.high_water_bytes = 0

    def count(self, allocate: Callable[[], Any]) -> Any:
        before = self.pool.managed_bytes
        block = allocate()
        if self.pool.managed_bytes > before:
            self.misses += 1
        else:
            self.hits += 1
        self.high_water_bytes = max(self.high_water_bytes, self.pool.managed_bytes)
        return block

    def counters(self) -> PoolCounters:
        return PoolCounters(
            held_bytes=self.pool.managed_bytes,
            active_bytes=self.pool.active_bytes,
            hits=self.hits,
            misses=self.misses,
            high_water_bytes=self.high_water_bytes,
        )


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:.0f} MiB"
