"""CudaGraph's dealings with the driver, seen from a driver that notes its calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from edge_agent.backends.cuda_graph import SIGNATURES, CaptureFailed, GraphDriver
from edge_agent.errors import EngineError

INVALIDATED = 901  # CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
STREAM = 77


class FakeLibrary:
    """libcuda: real C functions (ctypes callbacks), so that argument types are converted as for the real one."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.fails: dict[str, int] = {}
        self.graph_of_failed_capture = 0
        for name, arguments in SIGNATURES.items():
            prototype = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)
            setattr(self, name, prototype(self._noting(name)))

    def _noting(self, name: str) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            code = self.fails.get(name, 0)
            if name == "cuGetErrorName":
                arguments[1][0] = b"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
                return 0
            self.calls.append((name, *[a for a in arguments if isinstance(a, int)]))
            if name == "cuStreamEndCapture":
                arguments[1][0] = 5 if code == 0 else self.graph_of_failed_capture
            if name == "cuGraphInstantiateWithFlags" and code == 0:
                arguments[0][0] = 6
            return code

        return call


@pytest.fixture
def library() -> FakeLibrary:
    return FakeLibrary()


def test_capture_records_instantiates_and_forgets_the_template(library: FakeLibrary) -> None:
    GraphDriver(library).capture(STREAM, lambda: library.calls.append(("work",)))
    assert library.calls == [
        ("cuStreamBeginCapture_v2", STREAM, 2),
        ("work",),
        ("cuStreamEndCapture", STREAM),
        ("cuGraphInstantiateWithFlags", 5, 0),
        ("cuGraphDestroy", 5),
    ]


def test_graph_launches_until_it_is_closed_once(library: FakeLibrary) -> None:
    graph = GraphDriver(library).capture(STREAM, lambda: None)
    library.calls.clear()
    graph.launch(STREAM)
    graph.close()
    graph.close()
    assert library.calls == [("cuGraphLaunch", 6, STREAM), ("cuGraphExecDestroy", 6)]
    with pytest.raises(EngineError, match="after it was closed"):
        graph.launch(STREAM)


def test_invalidated_capture_is_named_by_call_and_error(library: FakeLibrary) -> None:
    library.fails["cuStreamEndCapture"] = INVALIDATED
    with pytest.raises(CaptureFailed, match="cuStreamEndCapture: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"):
        GraphDriver(library).capture(STREAM, lambda: None)


def test_stream_leaves_capture_when_the_work_raises(library: FakeLibrary) -> None:
    def work() -> None:
        raise KeyError("first error")

    with pytest.raises(KeyError, match="first error"):
        GraphDriver(library).capture(STREAM, work)
    assert library.calls[-2:] == [("cuStreamEndCapture", STREAM), ("cuGraphDestroy", 5)]


def test_template_is_forgotten_when_it_cannot_be_instantiated(library: FakeLibrary) -> None:
    library.fails["cuGraphInstantiateWithFlags"] = 1
    with pytest.raises(CaptureFailed, match="cuGraphInstantiateWithFlags"):
        GraphDriver(library).capture(STREAM, lambda: None)
    assert library.calls[-1] == ("cuGraphDestroy", 5)


def test_failed_launch_is_an_engine_error(library: FakeLibrary) -> None:
    graph = GraphDriver(library).capture(STREAM, lambda: None)
    library.fails["cuGraphLaunch"] = 700
    with pytest.raises(EngineError, match="cuGraphLaunch"):
        graph.launch(STREAM)


def test_driver_without_graphs_is_told_at_once(library: FakeLibrary) -> None:
    del library.cuGraphInstantiateWithFlags  # type: ignore[attr-defined]
    with pytest.raises(CaptureFailed, match="no CUDA graphs: .*cuGraphInstantiateWithFlags"):
        GraphDriver(library)
