"""Plan: a serialised TensorRT engine, and what it is bound to: model, device, options; plan_store keeps them.

Nothing here needs TensorRT: a plan is judged from its manifest and its sha256 before TensorRT sees a byte of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast

from edge_agent.backends.base import Profile, Shape

Precision = Literal["fp16", "fp32", "int8"]
PRECISIONS: tuple[Precision, ...] = ("fp16", "fp32", "int8")

MANIFEST_VERSION = 1
TEGRA_RELEASE = Path("/etc/nv_tegra_release")


@dataclass(frozen=True)
class Environment:
    """What a plan is bound to besides its model: TensorRT to the build number, the GPU, the board's release."""

    tensorrt: str
    compute_capability: str
    gpu: str
    sm_count: int
    l4t: str | None = None

    @property
    def fingerprint(self) -> str:
        """Names the device for its timing cache. The L4T release is no part of it: it moves no tactic."""
        return _digest([self.tensorrt, self.compute_capability, self.gpu, self.sm_count])


@dataclass(frozen=True)
class BuildOptions:
    """How to build. `tactic_sources`: names of trt.TacticSource, None for TensorRT's own choice.

    `explicit_half`: fp16 by converting the graph itself, where TensorRT could also choose a precision per layer.
    """

    precision: Precision = "fp16"
    optimisation_level: int = 3
    dla_core: int | None = None
    hardware_compatible: bool = False
    tactic_sources: tuple[str, ...] | None = None
    explicit_half: bool = False


@dataclass(frozen=True)
class PlanKey:
    """All that decides whether a plan may be used; `fingerprint` puts it in a file name."""

    model: str
    model_sha256: str
    profiles: tuple[Profile, ...]
    options: BuildOptions
    environment: Environment

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits; equal keys have equal ones."""
        return _digest(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Plain values, the manifest's first half."""
        return {
            "model": self.model,
            "model_sha256": self.model_sha256,
            **asdict(self.environment),
            **{name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self.options).items()},
            "profiles": [profile_to_json(profile) for profile in self.profiles],
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> PlanKey:
        """The inverse of `to_json`; KeyError, TypeError or ValueError for anything else."""
        precision, sources = value["precision"], value["tactic_sources"]
        if precision not in PRECISIONS:
            raise ValueError(f"precision {precision!r}")
        return PlanKey(
            model=str(value["model"]),
            model_sha256=str(value["model_sha256"]),
            profiles=tuple(profile_from_json(profile) for profile in value["profiles"]),
            options=BuildOptions(
                precision=cast(Precision, precision),
                optimisation_level=int(value["optimisation_level"]),
                dla_core=None if value["dla_core"] is None else int(value["dla_core"]),
                hardware_compatible=bool(value["hardware_compatible"]),
                tactic_sources=None if sources is None else tuple(str(source) for source in sources),
                explicit_half=bool(value.get("explicit_half", False)),
            ),
            environment=Environment(
                tensorrt=str(value["tensorrt"]),
                compute_capability=str(value["compute_capability"]),
                gpu=str(value["gpu"]),
                sm_count=int(value["sm_count"]),
                l4t=None if value["l4t"] is None else str(value["l4t"]),
            ),
        )

    def differences(self, built: PlanKey) -> list[str]:
        """One line per value in which `built` differs from this key, the running one."""
        running, other = self.to_json(), built.to_json()
        return [
            f"{name}: built with {_short(other[name])}, running with {_short(running[name])}"
            for name in running
            if other[name] != running[name]
        ]


@dataclass(frozen=True)
class Manifest:
    """What lies beside a plan. `workspace_bytes` and the times say how it was built and bind it to nothing."""

    key: PlanKey
    plan_bytes: int
    plan_sha256: str
    built_at: float
    build_s: float
    workspace_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Plain values, as they are stored."""
        return {
            "v": MANIFEST_VERSION,
            **self.key.to_json(),
            "plan_bytes": self.plan_bytes,
            "plan_sha256": self.plan_sha256,
            "built_at": self.built_at,
            "build_s": self.build_s,
            "workspace_bytes": self.workspace_bytes,
        }

    @staticmethod
    def from_json(value: Any) -> Manifest:
        """The inverse of `to_json`; KeyError, TypeError or ValueError for anything else."""
        if not isinstance(value, dict) or value.get("v") != MANIFEST_VERSION:
            raise ValueError(f"not a plan manifest of version {MANIFEST_VERSION}")
        return Manifest(
            key=PlanKey.from_json(value),
            plan_bytes=int(value["plan_bytes"]),
            plan_sha256=str(value["plan_sha256"]),
            built_at=float(value["built_at"]),
            build_s=float(value["build_s"]),
            workspace_bytes=int(value["workspace_bytes"]),
        )


def l4t_release(path: Path = TEGRA_RELEASE) -> str | None:
    """The Jetson's L4T release, `36.4.3`, from the first line of /etc/nv_tegra_release; None where there is none."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.match(r"#\s*R(\d+).*?REVISION:\s*([0-9.]+)", text)
    return f"{match[1]}.{match[2]}" if match else None


def profile_to_json(profile: Profile) -> dict[str, Any]:
    """min, opt and max as lists, inputs in alphabetical order."""
    return {
        part: {name: list(shape) for name, shape in sorted(getattr(profile, part).items())}
        for part in ("min", "opt", "max")
    }


def profile_from_json(value: Mapping[str, Any]) -> Profile:
    """The inverse of `profile_to_json`."""

    def shapes(part: str) -> dict[str, Shape]:
        return {str(name): tuple(int(d) for d in shape) for name, shape in value[part].items()}

    return Profile(shapes("min"), shapes("opt"), shapes("max"))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _short(value: Any) -> str:
    text = json.dumps(value) if isinstance(value, (list, dict)) else str(value)
    return text if len(text) <= 400 else text[:397] + "..."
