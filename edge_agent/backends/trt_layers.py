"""What the layers of a TensorRT engine take, by its profiler, and what they are, by its inspector.

A plan tells types, formats and kernels only where it was built with detailed verbosity (`trt_api.set_verbosity`);
of others the names remain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorrt as trt

from edge_agent.backends import trt_api
from edge_agent.backends.base import LayerTime

Described = Mapping[str, Mapping[str, Any]]


def layer_times(
    engine: trt.ICudaEngine, context: trt.IExecutionContext, run: Callable[[], None], runs: int
) -> list[LayerTime]:
    """The layers in their order, means of `runs` calls of `run` after one uncounted.

    `run` executes `context`, set to its shapes, and waits; the context keeps the profiler and should not be used on.
    """
    run()
    spent_ms: dict[str, float] = {}

    def add(name: str, ms: float) -> None:
        spent_ms[name] = spent_ms.get(name, 0.0) + ms

    with trt_api.profiling(context, add):
        for _ in range(runs):
            run()
    described = inspected(engine, context)
    total_ms = sum(spent_ms.values()) or 1.0
    return [layer_time(name, ms / runs, ms / total_ms, described) for name, ms in spent_ms.items()]


def layer_time(name: str, ms: float, share: float, described: Described) -> LayerTime:
    """One layer with what the inspector says of it; of a plan with several profiles some names tell the profile."""
    found = described.get(name) or described.get(re.sub(r" \[profile \d+\]$", "", name)) or {}
    tensors = f"{shown_tensors(found['Inputs'])} -> {shown_tensors(found['Outputs'])}" if "Outputs" in found else ""
    return LayerTime(name, str(found.get("LayerType", "")), ms, share, tensors, str(found.get("TacticName", "")))


def inspected(engine: trt.ICudaEngine, context: trt.IExecutionContext) -> Described:
    """Layer name -> what the inspector tells, at the context's shapes; nothing of a plan that keeps only names."""
    inspector = engine.create_engine_inspector()
    inspector.execution_context = context
    text = str(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
    try:
        layers = json.loads(text)["Layers"]
    except (ValueError, KeyError, TypeError):  # not JSON where a name holds what 8.6 does not escape
        return {}
    return {str(layer["Name"]): layer for layer in layers if isinstance(layer, dict) and "Name" in layer}


def shown_tensors(tensors: Sequence[Mapping[str, Any]]) -> str:
    """`Row major linear FP16 1x48x320x3`, for each tensor that the inspector lists."""
    return ", ".join(
        " ".join(
            filter(None, (str(tensor.get("Format/Datatype", "")), "x".join(map(str, tensor.get("Dimensions", ())))))
        )
        for tensor in tensors
    )
