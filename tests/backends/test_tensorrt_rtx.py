"""The builder over TensorRT-RTX, which parses and builds without a GPU: every shipped model in float and float16.
What recipes make of them is built by tests/calibrate/test_tensorrt_builds.py.

Needs the package tensorrt-rtx-cu13 (extra `rtx`); its API is that of TensorRT 11: precision lives in the graph.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from edge_agent.backends.base import Profile
from edge_agent.backends.build_job import BuildFailed, BuildRequest
from edge_agent.backends.model_file import file_sha256, is_quantised
from edge_agent.backends.plan import BuildOptions, Environment, PlanKey
from edge_agent.backends.plan_store import PlanStore
from edge_agent.models.spec import ModelSpec, available
from tests.backends import fake_trt
from tests.backends.small_models import layered
from tests.backends.test_trt_build import quantised
from tests.conftest import ROOT

rtx = pytest.importorskip("tensorrt_rtx", reason="needs the package tensorrt-rtx-cu13")

ENGINES = ROOT / "engines"
ENVIRONMENT = Environment("rtx", "8.7", "none", 1)
IMAGE_PROFILE = Profile({"image": (1, 8, 8, 3)}, {"image": (2, 16, 16, 3)}, {"image": (4, 32, 32, 3)})


def shipped() -> list[tuple[str, Path, tuple[Profile, ...]]]:
    """Name, file and profiles of every model file that is there."""
    found = []
    for name in available(ENGINES):
        profiles = tuple(Profile(p.min, p.opt, p.max) for p in ModelSpec.load(ENGINES, name).profiles)
        found += [(f"{name}/{path.name}", path, profiles) for path in sorted((ENGINES / name).glob("model*.onnx"))]
    return found


@pytest.fixture
def trt(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(rtx, "__version__", "11.0.0")
    return fake_trt.put(monkeypatch, rtx)


def request_for(path: Path, profiles: tuple[Profile, ...], precision: Any, plans: Path) -> BuildRequest:
    key = PlanKey("net", file_sha256(path), profiles, BuildOptions(precision), ENVIRONMENT)
    return BuildRequest(path, plans, key)


@pytest.mark.parametrize(("name", "path", "profiles"), shipped(), ids=lambda v: v if isinstance(v, str) else "")
def test_shipped_model_builds_and_is_smaller_in_float16(
    trt: Any, name: str, path: Path, profiles: tuple[Profile, ...], tmp_path: Path
) -> None:
    sizes: list[int] = []
    for precision in ("int8",) if is_quantised(path) else ("fp32", "fp16"):
        said: list[dict[str, Any]] = []
        request = request_for(path, profiles, precision, tmp_path)
        content = trt.build.build(request, said.append)
        sizes.append(len(content))
        assert len(content) > 100_000, precision
        assert any(event["event"] == "progress" and event["total"] > 0 for event in said)
        assert PlanStore(tmp_path).timing_cache_path(ENVIRONMENT).exists()
    assert all(larger > smaller for larger, smaller in pairwise(sizes))


def test_quantised_model_builds(trt: Any, tmp_path: Path) -> None:
    path = quantised(tmp_path / "q.onnx")
    assert trt.build.build(request_for(path, (IMAGE_PROFILE,), "int8", tmp_path), lambda event: None)


def test_rubbish_is_refused_with_the_parsers_words(trt: Any, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"\xff\xff not a model")
    with pytest.raises(BuildFailed, match=r"cannot read net\.onnx: .+"):
        trt.build.build(request_for(path, (IMAGE_PROFILE,), "fp32", tmp_path), lambda event: None)


def test_profile_outside_the_model_is_refused(trt: Any, tmp_path: Path) -> None:
    path = layered(tmp_path / "net.onnx")
    wrong = Profile({"image": (1, 8, 8, 3)}, {"image": (1, 8, 4, 3)}, {"image": (1, 8, 8, 3)})
    with pytest.raises(BuildFailed, match="image"):
        trt.build.build(request_for(path, (wrong,), "fp32", tmp_path), lambda event: None)
