"""Are there TensorRT plans for these models, and were they built for this machine as it is now?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from edge_agent.backends.choose import look
from edge_agent.backends.model_file import file_sha256
from edge_agent.backends.plan import Manifest, l4t_release
from edge_agent.backends.plan_store import PlanStore, find_plans_dir
from edge_agent.doctor.base import Patient, Row
from edge_agent.doctor.models import models_in_use
from edge_agent.models.spec import model_directory

CURE = "run: edge-agent build"


def check(patient: Patient) -> Iterator[Row]:
    findings = look(patient.root, patient.environ)
    if findings.problems or patient.models_dir is None or findings.tensorrt is None:
        yield Row("plans", "ok", "none are needed where TensorRT does not run")
        return
    configured = None if patient.config is None else patient.config.backend.tensorrt.plans_dir
    store = PlanStore(configured or find_plans_dir(patient.models_dir, patient.environ))
    l4t = l4t_release(patient.root / "etc/nv_tegra_release")
    for name in models_in_use(patient.config):
        yield judged(
            name, store.manifests(name), hashes(model_directory(patient.models_dir, name)), findings.tensorrt, l4t
        )


def hashes(directory: Path) -> set[str]:
    """Those of every graph of the model."""
    return {file_sha256(path) for path in directory.glob("*.onnx")}


def judged(name: str, manifests: list[Manifest], graphs: set[str], tensorrt: str, l4t: str | None) -> Row:
    """A plan of this model for this TensorRT and this release, or why there is none."""
    if not manifests:
        return Row("plans", "warn", f"{name}: none yet; the first start builds it, which takes minutes", CURE)
    fresh = [
        plan
        for plan in manifests
        if plan.key.model_sha256 in graphs
        and plan.key.environment.tensorrt == tensorrt
        and plan.key.environment.l4t == l4t
    ]
    if fresh:
        return Row("plans", "ok", f"{name}: {len(fresh)} for TensorRT {tensorrt}")
    made = manifests[0].key.environment
    return Row("plans", "warn", f"{name}: stale, the newest was built for TensorRT {made.tensorrt}, {made.l4t}", CURE)
