"""A backend that is onnxruntime's and yet builds plans: in real child processes with a fake TensorRT, which it then
loads as engines that call themselves TensorRT's.

`python -m tests.building serve|wait PLANS MARK run ...` is the agent with it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edge_agent import pipeline
from edge_agent.backends.base import Condition, Engine, Profile
from edge_agent.backends.build_job import BuildRequest, Report, build_plan
from edge_agent.backends.interim import BuildQueue
from edge_agent.backends.model_file import file_sha256, model_name
from edge_agent.backends.ort import OrtBackend
from edge_agent.backends.plan import BuildOptions, Environment, PlanKey
from edge_agent.backends.plan_store import PlanStore
from tests.backends.fake_trt import fake_child


class BuildingBackend(OrtBackend):
    """Gives engines that wait for their plan, or with `wait` those of plans that it builds first."""

    name = "tensorrt"
    any_shape = False
    overlaps = True

    def __init__(self, plans_dir: Path, behaviour: str, report: Report | None = None, wait: bool = False) -> None:
        super().__init__(1)
        self.store = PlanStore(plans_dir)
        self.command = fake_child(behaviour)
        self.report = report
        self.wait = wait
        self.builds = BuildQueue(self.store, self.command)

    def load(self, onnx_path: Path, profiles: tuple[Profile, ...] = (), meanwhile: Path | None = None) -> Any:
        environment = Environment("10.3.0", "8.7", "Fake Orin", 8)
        key = PlanKey(model_name(onnx_path), file_sha256(onnx_path), profiles, BuildOptions(), environment)
        request = BuildRequest(onnx_path.absolute(), self.store.directory, key)
        if self.wait:
            build_plan(request, self.store, self.report, self.command)
            return self.of_plan(onnx_path, key)
        return self.builds.add(super().load(onnx_path), request, lambda: self.of_plan(onnx_path, key))

    def of_plan(self, onnx_path: Path, key: PlanKey) -> Engine:
        self.store.load(key)
        engine = super().load(onnx_path)
        engine.fingerprint = f"tensorrt-10.3.0:{key.model_sha256[:12]}:fp16:{key.fingerprint[:8]}"
        return engine

    def attend(self) -> Condition:
        return self.builds.attend()

    def give_up_builds(self) -> None:
        self.builds.give_up()

    def close(self) -> None:
        self.builds.close()


def main(how: str, plans_dir: str, mark: str, *arguments: str) -> int:
    from edge_agent.__main__ import main as edge_agent

    def load_backend(
        _config: Any, _models_dir: Path, report: Report | None = None, **_flags: Mapping[str, bool]
    ) -> BuildingBackend:
        os.environ["EDGE_AGENT_TEST_MARK"] = mark  # not before: the settings would take it for one of theirs
        return BuildingBackend(Path(plans_dir), "slow", report, wait=how == "wait")

    pipeline.load_backend = load_backend  # type: ignore[assignment]
    return edge_agent(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
