"""Reading goes on while plans are built (field cases ENG-1, ENG-7): builds are real child processes with a fake
TensorRT inside, plans are real files, the CPU's engine is onnxruntime's own."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from edge_agent.backends.base import Condition, Engine, Profile
from edge_agent.backends.build_job import BuildRequest
from edge_agent.backends.interim import BuildQueue, covers
from edge_agent.backends.model_file import file_sha256
from edge_agent.backends.plan import BuildOptions, Environment, PlanKey
from edge_agent.backends.plan_store import MAX_TRIES, PlanStore, PlanUnusable
from edge_agent.backends.swap import SwapEngine
from edge_agent.backends.trt_settings import TrtSettings
from tests.backends import fake_trt
from tests.backends.fake_cuda import fake_gpu
from tests.backends.small_models import echo_and_total
from tests.backends.test_swap import named, picture

PROFILE = Profile({"image": (1, 8, 8, 3)}, {"image": (2, 16, 16, 3)}, {"image": (4, 32, 32, 3)})
DEADLINE_S = 30.0


def check(engine: Engine, seed: int = 0) -> None:
    image = picture(seed)
    outputs = engine.infer({"image": image})
    assert np.array_equal(outputs["echo"], image + 1)
    assert np.array_equal(outputs["total"], image.sum(axis=(1, 2, 3)))


def attend_until(attend: Callable[[], Condition], over: Callable[[Condition], bool]) -> Condition:
    """Calls `attend` as the main loop does until its condition is the one."""
    end = time.monotonic() + DEADLINE_S
    while not over(condition := attend()):
        assert time.monotonic() < end, f"waited too long: {condition}"
        time.sleep(0.01)
    return condition


def settled(condition: Condition) -> bool:
    return condition.state != "building"


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a slow builder writes its process id; it goes on when `<mark>.go` is there."""
    path = tmp_path / "builder"
    monkeypatch.setenv("EDGE_AGENT_TEST_MARK", str(path))
    return path


def test_plan_covers_shapes_only_within_one_of_its_profiles() -> None:
    def profile(least: int, most: int) -> Profile:
        return Profile({"image": (1, least)}, {"image": (1, least)}, {"image": (1, most)})

    assert covers([profile(8, 64)], [profile(8, 32), profile(16, 64)])
    assert not covers([profile(8, 64)], [profile(8, 65)])
    assert not covers([profile(8, 32), profile(16, 64)], [profile(8, 64)])
    assert covers([], [])


# ---- the queue


class Site:
    """A plans folder with a queue of builds, and engines that wait for them."""

    def __init__(self, folder: Path, behaviour: str) -> None:
        self.folder = folder
        self.store = PlanStore(folder / "plans")
        self.now_s = 0.0
        self.queue = BuildQueue(self.store, fake_trt.fake_child(behaviour), lambda: self.now_s)
        self.loaded: list[str] = []
        self.onnx_path = echo_and_total(folder / "net.onnx")

    def request(self, model: str) -> BuildRequest:
        environment = Environment("10.3.0", "8.7", "Fake Orin", 8)
        key = PlanKey(model, file_sha256(self.onnx_path), (PROFILE,), BuildOptions(), environment)
        return BuildRequest(self.onnx_path, self.store.directory, key, workspace_bytes=512 << 20)

    def add(self, model: str, load: Callable[[], Engine] | None = None) -> SwapEngine:
        request = self.request(model)

        def usual() -> Engine:
            self.store.load(request.key)
            self.loaded.append(model)
            return named(f"gpu {model}")

        return self.queue.add(named(f"cpu {model}"), request, load or usual)

    def tries(self, model: str) -> int:
        return self.store.tries(self.request(model).key)

    def attend(self) -> Condition:
        self.now_s += 1.0
        return self.queue.attend()


def test_queue_without_builds_is_running(tmp_path: Path) -> None:
    assert Site(tmp_path, "well").attend() == Condition("running")


def test_builds_run_one_after_the_other_and_their_progress_is_told(tmp_path: Path, mark: Path) -> None:
    site = Site(tmp_path, "slow")
    first, second = site.add("first"), site.add("second")
    condition = attend_until(site.attend, lambda said: "first: Building 1/2, " in str(said.reason))
    assert condition.state == "building"
    attend_until(site.attend, lambda _: bool(mark.exists() and mark.read_text()))
    builder = mark.read_text()
    for n in range(20):
        assert site.attend().state == "building"
        assert first.infer({"image": picture(n)})["value"][1] == picture(n)[0, 0, 0, 0]
    reason = str(site.attend().reason)
    assert reason.startswith("first: ")
    assert ", then second; reading meanwhile with cpu first" in reason
    assert mark.read_text() == builder, "the second has not begun"
    mark.with_suffix(".go").touch()
    assert attend_until(site.attend, settled) == Condition("running")
    assert (first.fingerprint, second.fingerprint) == ("gpu first", "gpu second")
    assert site.loaded == ["first", "second"]
    assert mark.read_text() != builder


def test_failed_build_leaves_the_stand_in_says_why_and_lets_the_next_one_begin(tmp_path: Path) -> None:
    site = Site(tmp_path, "no implementation")
    first, second = site.add("first"), site.add("second")
    condition = attend_until(site.attend, settled)
    assert condition.state == "degraded"
    for model, engine in (("first", first), ("second", second)):
        assert f"building {model} failed" in str(condition.reason)
        assert f"reading on with cpu {model}" in str(condition.reason)
        assert engine.infer({"image": picture()})
    assert "Could not find any implementation" in str(condition.reason)
    assert "free memory" in str(condition.reason)
    assert site.attend() == condition
    assert (site.tries("first"), site.tries("second")) == (2, 2)


def test_restarts_do_not_build_for_ever(tmp_path: Path) -> None:
    begun = []
    for _ in range(4):
        site = Site(tmp_path, "killed")
        engine = site.add("net")
        before = site.tries("net")
        condition = attend_until(site.attend, settled)
        begun.append(site.tries("net") - before)
        assert condition.state == "degraded"
        assert engine.fingerprint == "cpu net"
        site.queue.close()
    assert sum(begun) == MAX_TRIES
    assert begun[-1] == 0
    assert "not trying again by itself" in str(condition.reason)
    assert "edge-agent build net" in str(condition.reason)


def test_plan_that_is_refused_after_each_build_is_not_built_for_ever(tmp_path: Path) -> None:
    builds = 0
    for _ in range(MAX_TRIES + 1):
        site = Site(tmp_path, "well")

        def refused() -> Engine:
            nonlocal builds
            builds += 1
            key = site.request("net").key  # noqa: B023 - called before the next round
            raise PlanUnusable(site.store.set_aside(site.store.plan_path(key), "is refused"))  # noqa: B023

        site.add("net", refused)
        assert attend_until(site.attend, settled).state == "degraded"
    assert builds == MAX_TRIES


def test_giving_up_ends_the_child_leaves_nothing_half_written_and_counts_no_try(tmp_path: Path, mark: Path) -> None:
    site = Site(tmp_path, "slow")
    site.add("net")
    attend_until(site.attend, lambda _: bool(mark.exists() and mark.read_text()))
    pid = int(mark.read_text())
    key = site.request("net").key
    half_written = site.store.directory / f".{site.store.plan_path(key).name}-x1y2.partial"
    half_written.write_bytes(b"the first half of a plan")
    assert alive(pid)
    assert site.tries("net") == 1
    site.queue.give_up()
    assert not alive(pid)
    assert site.tries("net") == 0
    assert [path.name for path in site.store.directory.iterdir()] == ["build.lock"]
    with site.store.building():
        pass  # another may build now


def test_close_during_a_build_kills_the_child_and_counts_the_try(tmp_path: Path, mark: Path) -> None:
    site = Site(tmp_path, "slow")
    site.add("net")
    attend_until(site.attend, lambda _: bool(mark.exists() and mark.read_text()))
    pid = int(mark.read_text())
    site.queue.close()
    site.queue.close()
    assert not alive(pid)
    assert site.tries("net") == 1


def test_engine_that_is_closed_takes_its_build_along(tmp_path: Path, mark: Path) -> None:
    site = Site(tmp_path, "slow")
    first, second = site.add("first"), site.add("second")
    attend_until(site.attend, lambda _: bool(mark.exists() and mark.read_text()))
    pid = int(mark.read_text())
    second.close()
    first.close()
    assert not alive(pid)
    assert site.attend() == Condition("running")


def test_plan_that_another_process_builds_is_waited_for_and_used(tmp_path: Path) -> None:
    site = Site(tmp_path, "crash")
    engine = site.add("net")
    request = site.request("net")
    with site.store.building():
        condition = site.attend()
        assert condition.state == "building"
        assert "net: waits for another process that builds plans" in str(condition.reason)
        site.store.save(request.key, fake_trt.plan(), 1.0, 1 << 30)
    assert attend_until(site.attend, settled) == Condition("running")
    assert engine.fingerprint == "gpu net"
    assert site.tries("net") == 0


# ---- TensorRT


class Bench:
    """A backend over fakes that serves while it builds."""

    def __init__(self, trt: Any, tmp_path: Path, behaviour: str = "well", **settings: Any) -> None:
        self.folder = tmp_path / "tiny"
        self.folder.mkdir(exist_ok=True)
        self.onnx_path = echo_and_total(self.folder / "model.onnx")
        self.settings = TrtSettings(
            tmp_path / "plans",
            builder=fake_trt.fake_child(behaviour),
            serve_while_building=True,
            cpu_threads=1,
            **settings,
        )
        self.backend = trt.backend.TrtBackend(self.settings, gpu=fake_gpu(trt.cuda))
        self.store: PlanStore = self.backend.store
        self.key: PlanKey = self.backend.key(self.onnx_path, (PROFILE,))
        self.path = self.store.plan_path(self.key)

    def load(self) -> Engine:
        engine: Engine = self.backend.load(self.onnx_path, (PROFILE,))
        return engine

    def save(self, **plan: Any) -> None:
        self.store.save(self.key, fake_trt.plan(**plan), 1.0, 1 << 30)

    def read_until_settled(self, engine: Engine) -> tuple[Condition, list[str]]:
        """Runs the engine between two looks at the build, as the pipeline does; who ran, in order."""
        ran: list[str] = []

        def step() -> Condition:
            condition: Condition = self.backend.attend()
            check(engine, len(ran))
            ran.append(engine.fingerprint)
            return condition

        return attend_until(step, settled), ran


@pytest.fixture
def ten(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_trt.install(monkeypatch, "10.3.0")


def no_plan(bench: Bench) -> None:
    bench.path.unlink()
    bench.path.with_suffix(".json").unlink()


def empty(bench: Bench) -> None:
    bench.path.write_bytes(b"")


def truncated(bench: Bench) -> None:
    bench.path.write_bytes(bench.path.read_bytes()[:-9])


def flipped_byte(bench: Bench) -> None:
    content = bytearray(bench.path.read_bytes())
    content[len(content) // 2] ^= 1
    bench.path.write_bytes(content)


def lfs_pointer(bench: Bench) -> None:
    bench.path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0f\nsize 9\n")


def onnx_renamed(bench: Bench) -> None:
    bench.path.write_bytes(bench.onnx_path.read_bytes())


def half_written(bench: Bench) -> None:
    bench.path.with_suffix(".json").unlink()


def refused(bench: Bench) -> None:
    bench.save(refused="The engine plan file is not compatible with this version of TensorRT")


def other(**changes: Any) -> Callable[[Bench], None]:
    """The manifest has another value."""

    def change(bench: Bench) -> None:
        path = bench.path.with_suffix(".json")
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


OTHER_PROFILES = [{part: {"image": [1, 8, 8, 3]} for part in ("min", "opt", "max")}]
DAMAGE: dict[str, tuple[Callable[[Bench], None], str]] = {
    "no plan": (no_plan, "no plan was built yet"),
    "0 bytes": (empty, "is empty (0 bytes)"),
    "truncated": (truncated, "is truncated"),
    "flipped byte": (flipped_byte, "is damaged: its sha256"),
    "LFS pointer": (lfs_pointer, "Git LFS pointer"),
    "ONNX renamed": (onnx_renamed, "is an ONNX file under a plan's name"),
    "half-written": (half_written, "has no manifest beside it"),
    "deserialize gives None": (refused, "is refused by TensorRT"),
    "other TensorRT": (other(tensorrt="8.6.2"), "tensorrt: built with 8.6.2, running with 10.3.0"),
    "other GPU": (other(compute_capability="8.9"), "compute_capability: built with 8.9, running with 8.7"),
    "other model": (other(model_sha256="00"), "model_sha256: built with 00"),
    "other precision": (other(precision="fp32"), "precision: built with fp32, running with fp16"),
    "other profile": (other(profiles=OTHER_PROFILES), "profiles: built with"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_reading_goes_on_on_the_cpu_until_the_plan_is_built_again(ten: Any, tmp_path: Path, kind: str) -> None:
    damage, said = DAMAGE[kind]
    bench = Bench(ten, tmp_path)
    bench.save()
    damage(bench)
    engine = bench.load()
    assert said in bench.backend.notes[0]
    check(engine)
    assert engine.fingerprint.startswith("onnxruntime-")
    condition, ran = bench.read_until_settled(engine)
    assert condition == Condition("running")
    assert ran[0].startswith("onnxruntime-")
    assert ran[-1].startswith(f"tensorrt-10.3.0:{bench.key.model_sha256[:12]}:fp16:")
    assert bench.store.load(bench.key)
    bench.backend.close()
    assert ten.cuda.stack == []


def test_last_plan_that_fits_serves_while_the_wanted_one_is_built(ten: Any, tmp_path: Path) -> None:
    old = Bench(ten, tmp_path, options=BuildOptions("fp32"))
    old.save()
    old.backend.close()
    bench = Bench(ten, tmp_path)
    engine = bench.load()
    assert "precision: built with fp32, running with fp16" in bench.backend.notes[0]
    condition, ran = bench.read_until_settled(engine)
    assert condition == Condition("running")
    assert ":fp32:" in ran[0]
    assert ":fp16:" in ran[-1]
    bench.backend.close()
    assert ten.cuda.stack == []


def quantised(onnx_path: Path) -> bytes:
    """A model of the same tensors that counts as quantised."""
    model = onnx.load(onnx_path)
    model.graph.initializer.append(onnx.helper.make_tensor("one", onnx.TensorProto.FLOAT, [], [1.0]))
    model.graph.node.append(onnx.helper.make_node("QuantizeLinear", ["one", "one"], ["quantised"]))
    model.graph.node.append(onnx.helper.make_node("DequantizeLinear", ["quantised", "one"], ["again"]))
    return bytes(model.SerializeToString())


def artefact_of(bench: Bench) -> Path:
    path = bench.folder / "artefacts" / "1" / "model.int8.onnx"
    path.parent.mkdir(parents=True)
    path.write_bytes(quantised(bench.onnx_path))
    return path


def test_plan_of_the_float_model_serves_while_the_artefacts_is_built(ten: Any, tmp_path: Path) -> None:
    bench = Bench(ten, tmp_path)
    bench.save()
    engine = bench.backend.load(artefact_of(bench), (PROFILE,), bench.onnx_path)
    assert engine.fingerprint.endswith(f":fp16:{bench.key.fingerprint[:8]}")
    condition, ran = bench.read_until_settled(engine)
    assert condition == Condition("running")
    assert ":fp16:" in ran[0]
    assert ":int8:" in ran[-1]
    assert bench.store.load(bench.key), "the float plan stays for a rollback"
    assert [path.name.rpartition("-")[0] for path in sorted(bench.store.directory.glob("*.plan"))] == [
        "tiny",
        "tiny.int8",
    ]
    bench.backend.close()


def test_float_model_serves_on_the_cpu_where_it_has_no_plan_either(ten: Any, tmp_path: Path) -> None:
    bench = Bench(ten, tmp_path, "killed")
    engine = bench.backend.load(artefact_of(bench), (PROFILE,), bench.onnx_path)
    assert engine.fingerprint.startswith(f"onnxruntime-{onnxruntime.__version__}:{bench.key.model_sha256[:12]}")
    condition, _ = bench.read_until_settled(engine)
    assert (condition.state, "building tiny.int8 was killed" in str(condition.reason)) == ("degraded", True)
    engine.close()
    assert bench.backend.attend() == Condition("running"), "who waited for the plan has gone"
    bench.backend.close()


def test_last_plan_that_takes_fewer_shapes_does_not_serve(ten: Any, tmp_path: Path) -> None:
    bench = Bench(ten, tmp_path)
    small = Profile({"image": (1, 8, 8, 3)}, {"image": (1, 8, 8, 3)}, {"image": (1, 16, 16, 3)})
    bench.store.save(replace(bench.key, profiles=(small,)), fake_trt.plan(), 1.0, 1 << 30)
    assert bench.load().fingerprint.startswith("onnxruntime-")
    bench.backend.close()


def test_last_plan_that_tensorrt_refuses_does_not_serve(ten: Any, tmp_path: Path) -> None:
    bench = Bench(ten, tmp_path)
    older = replace(bench.key, options=BuildOptions("fp32"))
    bench.store.save(older, fake_trt.plan(refused="not compatible"), 1.0, 1 << 30)
    assert bench.load().fingerprint.startswith("onnxruntime-")
    assert not bench.store.plan_path(older).exists()
    bench.backend.close()


def test_frames_come_out_all_through_a_long_build(ten: Any, tmp_path: Path, mark: Path) -> None:
    bench = Bench(ten, tmp_path, "slow")
    engine = bench.load()
    attend_until(bench.backend.attend, lambda _: bool(mark.exists() and mark.read_text()))
    for n in range(50):
        condition = bench.backend.attend()
        check(engine, n)
        assert engine.fingerprint.startswith("onnxruntime-")
        assert condition.state == "building"
    condition = attend_until(bench.backend.attend, lambda said: "tiny: Building 1/2" in str(said.reason))
    assert f"reading meanwhile with {engine.fingerprint}" in str(condition.reason)
    mark.with_suffix(".go").touch()
    condition, ran = bench.read_until_settled(engine)
    assert (condition.state, ran[-1].partition("-")[0]) == ("running", "tensorrt")
    bench.backend.close()


def test_failed_build_leaves_the_cpu_in_place_and_says_why(ten: Any, tmp_path: Path) -> None:
    bench = Bench(ten, tmp_path, "killed")
    engine = bench.load()
    condition, ran = bench.read_until_settled(engine)
    assert condition.state == "degraded"
    for part in ("building tiny was killed (SIGKILL)", "workspace 512 MiB", "reading on with onnxruntime-"):
        assert part in str(condition.reason)
    assert {fingerprint.partition("-")[0] for fingerprint in ran} == {"onnxruntime"}
    check(engine)
    bench.backend.close()


def test_built_plan_that_tensorrt_refuses_leaves_the_cpu_in_place(
    ten: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(ten, tmp_path)
    engine = bench.load()
    monkeypatch.setattr(ten.Runtime, "deserialize_cuda_engine", lambda *_: None)
    condition, _ = bench.read_until_settled(engine)
    assert condition.state == "degraded"
    assert "is refused by TensorRT" in str(condition.reason)
    assert bench.store.tries(bench.key) == 1
    assert not bench.path.exists()
    check(engine)
    bench.backend.close()


def test_close_during_a_build_kills_the_child(ten: Any, tmp_path: Path, mark: Path) -> None:
    bench = Bench(ten, tmp_path, "slow")
    engine = bench.load()
    attend_until(bench.backend.attend, lambda _: bool(mark.exists() and mark.read_text()))
    pid = int(mark.read_text())
    assert alive(pid)
    bench.backend.give_up_builds()
    engine.close()
    bench.backend.close()
    bench.backend.close()
    assert not alive(pid)
    assert list(bench.store.directory.glob(f"{bench.path.stem}*")) == []


def test_without_onnxruntime_load_waits_for_the_build(
    ten: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(ten, tmp_path)
    monkeypatch.delitem(sys.modules, "edge_agent.backends.ort", raising=False)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    engine = bench.load()
    assert engine.fingerprint.startswith("tensorrt-")
    assert any("the CPU cannot serve: backend 'onnxruntime' needs the Python package" in n for n in bench.backend.notes)
    check(engine)
    assert bench.backend.attend() == Condition("running")
    bench.backend.close()


def test_last_plan_that_serves_after_a_failed_wait_is_degraded(ten: Any, tmp_path: Path) -> None:
    old = Bench(ten, tmp_path, options=BuildOptions("fp32"))
    old.save()
    old.backend.close()
    bench = Bench(ten, tmp_path, "killed")
    bench.backend.settings = replace(bench.settings, serve_while_building=False)
    engine = bench.load()
    assert ":fp32:" in engine.fingerprint
    condition = bench.backend.attend()
    assert condition.state == "degraded"
    assert "Going on with the last good plan" in str(condition.reason)
    bench.backend.close()


def test_over_the_budget_beside_the_last_plan_the_new_one_takes_its_place(ten: Any, tmp_path: Path) -> None:
    old = Bench(ten, tmp_path, options=BuildOptions("fp32"))
    old.save()
    engine = old.load()
    check(engine)
    needs_bytes = sum(old.backend.gpu.pool.counters()[kind].active_bytes for kind in ("device", "page_locked"))
    old.backend.close()
    bench = Bench(ten, tmp_path)
    bench.backend.gpu.pool.budget_bytes = needs_bytes + needs_bytes // 4
    engine = bench.load()
    assert ":fp32:" in engine.fingerprint
    condition, ran = bench.read_until_settled(engine)
    assert (condition.state, ":fp16:" in ran[-1]) == ("running", True)
    bench.backend.close()


def test_no_child_is_left_behind() -> None:
    children = [path.parent.name for path in Path("/proc").glob("[0-9]*/stat") if parent(path) == os.getpid()]
    assert not [pid for pid in children if "fake_trt" in Path(f"/proc/{pid}/cmdline").read_text()]


def parent(stat: Path) -> int:
    try:
        return int(stat.read_text().rpartition(") ")[2].split()[1])
    except (OSError, ValueError):
        return -1
