"""CudaGraph: a sequence of GPU work recorded once and launched with one call; pycuda knows streams but no graphs.

The driver is called through ctypes with the handles of pycuda's streams. Rules of the capture: one warm-up with the
same shapes before, nothing that synchronises inside, and the addresses recorded must stay valid while the graph lives.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from edge_agent.errors import EngineError

LIBRARY = "libcuda.so.1"
# CU_STREAM_CAPTURE_MODE_RELAXED: TensorRT may look up lazily loaded kernels while it enqueues, which the stricter
# modes forbid; no other thread of this program uses CUDA
CAPTURE_MODE_RELAXED = 2
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuStreamBeginCapture_v2": (ctypes.c_void_p, ctypes.c_int),
    "cuStreamEndCapture": (ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)),
    "cuGraphInstantiateWithFlags": (ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_ulonglong),
    "cuGraphLaunch": (ctypes.c_void_p, ctypes.c_void_p),
    "cuGraphExecDestroy": (ctypes.c_void_p,),
    "cuGraphDestroy": (ctypes.c_void_p,),
    "cuGetErrorName": (ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)),
}


class CaptureFailed(EngineError):
    """The work could not be recorded (it may still run without a graph)."""


class GraphDriver:
    """The handful of driver calls that graphs need."""

    def __init__(self, library: Any = None) -> None:
        """`library`: an opened libcuda; the system's by default. CaptureFailed where it has no graphs (CUDA < 11.4)."""
        try:
            self._library = ctypes.CDLL(LIBRARY) if library is None else library
            for name, arguments in SIGNATURES.items():
                function = getattr(self._library, name)
                function.argtypes = arguments
                function.restype = ctypes.c_int
        except (OSError, AttributeError) as exc:
            raise CaptureFailed(f"this driver offers no CUDA graphs: {exc}") from exc

    def capture(self, stream_handle: int, enqueue: Callable[[], None]) -> CudaGraph:
        """The graph of what `enqueue` puts on the stream; nothing runs yet.

        CaptureFailed when the driver does not allow it; what `enqueue` raises passes through, capture ended.
        """
        self.call("cuStreamBeginCapture_v2", stream_handle, CAPTURE_MODE_RELAXED)
        graph = ctypes.c_void_p()
        try:
            enqueue()
        except BaseException:
            self._end_quietly(stream_handle)
            raise
        self.call("cuStreamEndCapture", stream_handle, ctypes.byref(graph))
        executable = ctypes.c_void_p()
        try:
            self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, 0)
        finally:
            if graph.value:
                self.call("cuGraphDestroy", graph)
        return CudaGraph(self, executable)

    def call(self, name: str, *arguments: Any) -> None:
        """One driver call; CaptureFailed with its name and the driver's error name unless it succeeds."""
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            raise CaptureFailed(f"{name}: {self.error_name(code)}")

    def error_name(self, code: int) -> str:
        """CUDA_ERROR_... for a result code."""
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(text))
        return text.value.decode() if text.value else f"CUDA error {code}"

    def _end_quietly(self, stream_handle: int) -> None:
        """Takes the stream out of capture and throws away what was recorded; an error here is not the first one."""
        graph = ctypes.c_void_p()
        self._library.cuStreamEndCapture(stream_handle, ctypes.byref(graph))
        if graph.value:
            self._library.cuGraphDestroy(graph)


class CudaGraph:
    """One recorded sequence, ready to run. Close it before what it points to is freed."""

    def __init__(self, driver: GraphDriver, executable: ctypes.c_void_p) -> None:
        self._driver = driver
        self._executable: ctypes.c_void_p | None = executable

    def launch(self, stream_handle: int) -> None:
        """Puts the whole sequence on the stream. EngineError when the driver refuses."""
        if self._executable is None:
            raise EngineError("a CUDA graph was launched after it was closed")
        self._driver.call("cuGraphLaunch", self._executable, stream_handle)

    def close(self) -> None:
        """Frees the graph; calling it again does nothing."""
        executable, self._executable = self._executable, None
        if executable is not None:
            self._driver.call("cuGraphExecDestroy", executable)
