"""Buffers: an engine's tensors in host and device memory, taken once at their largest size.

On a discrete GPU each tensor has page-locked host memory to fill or read and device memory beside it; on an integrated
one, where CPU and GPU share the memory, the page-locked block is all there is and nothing is copied.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edge_agent.backends.base import Array, Feed, Shape, TensorSpec
from edge_agent.backends.gpu import Gpu
from edge_agent.backends.pool import ByteArray

NamedShapes = Sequence[tuple[str, Shape]]


class Buffers:
    """Memory for some tensors; `owner` is who the pool's books name. Owned by the GPU thread."""

    def __init__(self, gpu: Gpu, owner: str, specs: Sequence[TensorSpec], shapes: Sequence[NamedShapes]) -> None:
        """Room for the largest of `shapes` of each tensor. ConfigError over the memory budget."""
        self._gpu = gpu
        self._dtypes = {spec.name: np.dtype(spec.dtype) for spec in specs}
        self._capacity = dict.fromkeys(self._dtypes, 0)
        for group in shapes:
            for name, shape in group:
                self._capacity[name] = max(self._capacity[name], self.size_bytes(name, shape))
        self._host: dict[str, ByteArray] = {}
        self._device: dict[str, Any] = {}
        for name, size_bytes in self._capacity.items():
            self._host[name] = gpu.pool.page_locked(size_bytes)
            if not gpu.mapped:
                self._device[name] = gpu.pool.device(size_bytes, owner)

    @property
    def addresses(self) -> Mapping[str, int]:
        """Where the GPU finds each tensor; the same for the buffers' whole life."""
        if self._gpu.mapped:
            return {name: int(array.ctypes.data) for name, array in self._host.items()}
        return {name: int(block) for name, block in self._device.items()}

    def size_bytes(self, name: str, shape: Shape) -> int:
        """Bytes that a tensor of this shape takes."""
        return math.prod(shape) * self._dtypes[name].itemsize

    def holds(self, shapes: NamedShapes) -> bool:
        """Whether tensors of these shapes fit."""
        return all(self.size_bytes(name, shape) <= self._capacity[name] for name, shape in shapes)

    def view(self, name: str, shape: Shape) -> Array:
        """The host side of a tensor as an array of this shape; the next run uses the same memory."""
        array: Array = self._host[name][: self.size_bytes(name, shape)].view(self._dtypes[name]).reshape(shape)
        return array

    def fill(self, feed: Feed) -> None:
        """Puts a feed where the GPU, or the copies to it, will find it."""
        for name, array in feed.items():
            np.copyto(self.view(name, tuple(array.shape)), array)

    def upload(self, shapes: NamedShapes, stream: Any) -> None:
        """Puts the copies to the GPU on the stream; none where host memory is mapped."""
        if not self._gpu.mapped:
            for name, shape in shapes:
                self._gpu.drv.memcpy_htod_async(int(self._device[name]), self.view(name, shape), stream)

    def download(self, shapes: NamedShapes, stream: Any) -> None:
        """Puts the copies from the GPU on the stream; none where host memory is mapped."""
        if not self._gpu.mapped:
            for name, shape in shapes:
                self._gpu.drv.memcpy_dtoh_async(self.view(name, shape), int(self._device[name]), stream)

    def free(self) -> None:
        """Gives the blocks back to the pool."""
        self._host.clear()
        self._device.clear()
