"""Backend: what runs the models, and how TensorRT does."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from edge_agent.settings.scalars import LocalPath
from edge_agent.settings.section import Section


class TensorRtConfig(Section):
    """How TensorRT plans are built and run; looked at only where TensorRT runs."""

    precision: Literal["fp16", "fp32"] = "fp16"
    """Of float models; a quantised model runs in int8 whatever stands here."""
    plans_dir: LocalPath | None = None
    """The folder of the plans; null: the service's state directory, else `plans` in the folder of the models."""
    workspace_mb: Annotated[int, Field(ge=16, le=65_536)] = 1024
    """Most scratch memory, MB, that a build may use for one layer."""
    optimisation_level: Annotated[int, Field(ge=0, le=5)] = 3
    """0 builds soonest, 5 runs fastest."""
    half_encoders: bool = False
    """Whether fp16 of encoders is made by converting their graph, not left to TensorRT's choice per layer."""
    cuda_graphs: bool = True
    """Whether each known shape is launched as one CUDA graph."""
    gpu_memory_mb: Annotated[int, Field(ge=64, le=1_048_576)] | None = None
    """Most GPU memory, MB, for engines together; over it start-up ends, saying which asks for what; null: no bound."""
    dla_core: Annotated[int, Field(ge=0, le=7)] | None = None
    """Put layers on this DLA core where they fit; null: the GPU alone."""
    tactic_sources: tuple[str, ...] | None = None
    """Where kernels may come from, names of TensorRT's TacticSource; null: TensorRT's own choice."""
    serve_while_building: bool = True
    """Whether frames are read while plans are built: with the last plan that fits, else on the CPU."""


class BackendConfig(Section):
    """What runs the models."""

    kind: Literal["auto", "onnxruntime", "tensorrt"] = "auto"
    """auto: TensorRT where it is installed with a GPU, else ONNX Runtime on the CPU."""
    allow_cpu_fallback: bool = False
    """Whether to read on the CPU, much slower, where TensorRT was asked for or meant and cannot run."""
    threads: Annotated[int, Field(ge=0, le=256)] = 0
    """CPU threads for inference; 0: one per core."""
    tensorrt: TensorRtConfig = TensorRtConfig()
    """How TensorRT works, where it runs."""
