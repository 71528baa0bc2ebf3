"""Lanes: the execution contexts of one engine, each kept on one shape as long as there is room.

A CUDA graph is bound to the state of the context it was recorded from, so NVIDIA asks for one context per graph; all
share one scratch block. `Lanes` bounds them: beyond it the lane unused for longest is set to the new shape.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import asdict, dataclass
from typing import Any

import tensorrt as trt

from edge_agent.backends import trt_api
from edge_agent.backends.base import Profile, Shape, TensorSpec
from edge_agent.backends.buffers import Buffers
from edge_agent.backends.cuda_graph import CudaGraph
from edge_agent.backends.gpu import Gpu
from edge_agent.errors import EngineError

Shapes = tuple[tuple[str, Shape], ...]


@dataclass
class Lane:
    """A context set to one shape. `runs`: how often it ran since; `graph`: what it does, recorded."""

    context: trt.IExecutionContext
    profile: int
    scratch_generation: int
    inputs: Shapes = ()
    outputs: Shapes = ()
    runs: int = 0
    graph: CudaGraph | None = None

    def drop_graph(self) -> None:
        """Forgets the graph; the next run is a first one again."""
        graph, self.graph = self.graph, None
        self.runs = 0
        if graph is not None:
            graph.close()


@dataclass
class LaneCounters:
    """For telemetry: contexts made, shapes set, graphs recorded, launches by graph and without."""

    contexts: int = 0
    shapes_set: int = 0
    captures: int = 0
    capture_failures: int = 0
    graph_launches: int = 0
    plain_launches: int = 0

    def to_json(self) -> dict[str, int]:
        """Plain numbers."""
        return asdict(self)


class ProfileTaken(EngineError):
    """One more context cannot have this profile (TensorRT 8.6, plan built without profile sharing)."""


@dataclass(frozen=True)
class Loaded:
    """What TensorRT made of a plan; `name` stands for it in messages."""

    name: str
    engine: trt.ICudaEngine
    outputs: tuple[TensorSpec, ...]
    profiles: tuple[Profile, ...]


class Lanes:
    """The contexts of an engine. EngineError whenever TensorRT returns None or False; its last words are in it."""

    def __init__(self, of: Loaded, gpu: Gpu, stream: Any, messages: trt_api.LastMessages, limit: int) -> None:
        """Makes the first context of every profile, in the profiles' order, set to its largest shapes."""
        self.counters = LaneCounters()
        self._name = of.name
        self._engine: trt.ICudaEngine | None = of.engine
        self._gpu = gpu
        self._stream = stream
        self._outputs = of.outputs
        self._messages = messages
        self._limit = max(1, limit)
        self._buffers: Buffers | None = None
        self._by_shape: OrderedDict[tuple[int, Shapes], Lane] = OrderedDict()
        self._one_per_profile = False
        needed = max(trt_api.scratch_bytes(of.engine, index) for index in range(len(of.profiles)))
        gpu.scratch.reserve(needed)
        self._spare = {index: self._make(index) for index in range(len(of.profiles))}
        self.largest: tuple[Shapes, ...] = tuple(
            self._largest(self._spare[index], profile) for index, profile in enumerate(of.profiles)
        )

    def bind(self, buffers: Buffers) -> None:
        """Gives the contexts the addresses of their tensors, now and when more are made."""
        self._buffers = buffers
        for lane in self._spare.values():
            self._bind(lane)

    def at(self, profile: int, shapes: Shapes) -> Lane:
        """The lane set to these input shapes."""
        key = (profile, shapes)
        lane = self._by_shape.get(key)
        if lane is None:
            lane = self._spare.pop(profile, None) or self._new_or_oldest(profile)
            self._set(lane, shapes)
            self._by_shape[key] = lane
        self._by_shape.move_to_end(key)
        if lane.scratch_generation != self._gpu.scratch.generation:
            lane.drop_graph()
            self._give_scratch(lane)
        return lane

    def alone(self, profile: int, shapes: Shapes) -> Lane:
        """A lane set to these input shapes that nobody else gets, for measuring; ProfileTaken where there is none."""
        lane = self._make(profile)
        self._bind(lane)
        self._set(lane, shapes)
        return lane

    def __len__(self) -> int:
        return len(self._by_shape) + len(self._spare)

    def close(self, broken: bool) -> None:
        """Frees graphs and contexts; `broken`: CUDA is dead, graphs go with the process."""
        for lane in (*self._by_shape.values(), *self._spare.values()):
            if not broken:
                lane.drop_graph()
        self._by_shape.clear()
        self._spare.clear()
        self._engine = self._buffers = self._stream = None

    def _make(self, profile: int) -> Lane:
        assert self._engine is not None
        self._messages.clear()
        context = trt_api.create_context(self._engine)
        if context is None:
            raise EngineError(f"{self._name}: TensorRT made no execution context: {self._messages}")
        if not trt_api.select_profile(context, profile, self._stream.handle):
            raise ProfileTaken(f"{self._name}: profile {profile} cannot be selected: {self._messages}")
        self._gpu.synchronize()  # selecting may have put copies on the stream
        self.counters.contexts += 1
        lane = Lane(context, profile, -1)
        self._give_scratch(lane)
        return lane

    def _new_or_oldest(self, profile: int) -> Lane:
        of_profile = next((key for key in self._by_shape if key[0] == profile), None)
        full = len(self) >= self._limit or self._one_per_profile
        if not full or of_profile is None:
            try:
                lane = self._make(profile)
            except ProfileTaken:
                if of_profile is None:
                    raise
                self._one_per_profile = True
            else:
                self._bind(lane)
                return lane
        assert of_profile is not None
        return self._by_shape.pop(of_profile)

    def _give_scratch(self, lane: Lane) -> None:
        scratch = self._gpu.scratch
        trt_api.set_scratch(lane.context, scratch.address, scratch.size_bytes)
        lane.scratch_generation = scratch.generation

    def _bind(self, lane: Lane) -> None:
        assert self._buffers is not None
        for name, address in self._buffers.addresses.items():
            if not lane.context.set_tensor_address(name, address):
                raise EngineError(f"{self._name}: TensorRT refuses the buffer of {name}: {self._messages}")

    def _set(self, lane: Lane, shapes: Shapes) -> None:
        """Puts a lane on other input shapes; what it had recorded is void."""
        lane.drop_graph()
        self._messages.clear()
        for name, shape in shapes:
            if not lane.context.set_input_shape(name, shape):
                raise EngineError(f"{self._name}: TensorRT refuses {name} of shape {shape}: {self._messages}")
        unsettled = trt_api.unsettled(lane.context)
        outputs = tuple((spec.name, trt_api.sizes(lane.context.get_tensor_shape(spec.name))) for spec in self._outputs)
        if unsettled or any(d < 0 for _, shape in outputs for d in shape):
            raise EngineError(
                f"{self._name}: outputs {outputs} stay open for inputs {shapes}: {unsettled} {self._messages}"
            )
        if self._buffers is not None and not self._buffers.holds((*shapes, *outputs)):
            raise EngineError(f"{self._name}: outputs {outputs} of inputs {shapes} are larger than their buffers")
        lane.inputs, lane.outputs = shapes, outputs
        self.counters.shapes_set += 1

    def _largest(self, lane: Lane, profile: Profile) -> Shapes:
        self._set(lane, tuple(profile.max.items()))
        return (*lane.inputs, *lane.outputs)
