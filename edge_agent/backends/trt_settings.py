"""TrtSettings: how the TensorRT backend works; importable where TensorRT is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edge_agent.backends.build_job import BUILDER_COMMAND, DEFAULT_WORKSPACE_BYTES
from edge_agent.backends.plan import BuildOptions

# each lane is an execution context of some MB at most; the recogniser has 4 batch sizes x 12 widths, and shapes beyond
# run too, without a graph of their own
MAX_LANES = 64


@dataclass(frozen=True)
class TrtSettings:
    """`graphs`: each known shape is launched as one CUDA graph; `max_lanes`: how many shapes an engine keeps so.

    `half_encoders`: models without convolutions get `explicit_half`.

    `serve_while_building`: `load` gives an engine that runs on the last good plan, or on the CPU with `cpu_threads`
    threads (0: one per core), until the plan is built; for who calls `attend`. Else `load` waits for the build.

    `detailed`: plans that are built tell types, formats and kernels of their layers; binds a plan to nothing.

    `gpu_memory_bytes`: what buffers, scratch and weights may take together, None for no bound.
    """

    plans_dir: Path
    options: BuildOptions = field(default_factory=BuildOptions)
    workspace_bytes: int = DEFAULT_WORKSPACE_BYTES
    graphs: bool = True
    max_lanes: int = MAX_LANES
    half_encoders: bool = False
    device_index: int = 0
    gpu_memory_bytes: int | None = None
    builder: Sequence[str] = BUILDER_COMMAND
    serve_while_building: bool = False
    cpu_threads: int = 0
    detailed: bool = False
