"""Builds in real child processes, with a fake TensorRT inside: progress, death and second tries (field case ENG-7)."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from edge_agent.backends import build_job
from edge_agent.backends.base import Profile
from edge_agent.backends.build_job import BuildFailed, BuildJob, BuildProgress, BuildRequest, build_plan
from edge_agent.backends.model_file import file_sha256
from edge_agent.backends.plan import BuildOptions, Environment, PlanKey
from edge_agent.backends.plan_store import MAX_TRIES, PlanStore, PlanUnusable
from edge_agent.errors import ModelError
from tests.backends.fake_trt import MAGIC, fake_child
from tests.backends.small_models import mean_colour

PROFILE = Profile({"image": (1, 8, 8, 3)}, {"image": (2, 16, 16, 3)}, {"image": (4, 32, 32, 3)})
ENVIRONMENT = Environment("10.3.0", "8.7", "Fake Orin", 8)


@pytest.fixture
def request_(tmp_path: Path) -> BuildRequest:
    onnx_path = mean_colour(tmp_path / "net.onnx")
    key = PlanKey("net", file_sha256(onnx_path), (PROFILE,), BuildOptions(), ENVIRONMENT)
    return BuildRequest(onnx_path, tmp_path / "plans", key, workspace_bytes=512 << 20)


@pytest.fixture
def store(request_: BuildRequest) -> PlanStore:
    return PlanStore(request_.plans_dir)


def build(request_: BuildRequest, store: PlanStore, behaviour: str, version: str = "10.3.0") -> list[str]:
    seen: list[BuildProgress] = []
    build_plan(request_, store, seen.append, fake_child(behaviour, version))
    said = [f"{progress.phase} {progress.done}/{progress.total}" for progress in seen]
    return list(dict.fromkeys(line for line in said if line != "starting 0/0"))  # waiting says the last word again


def test_request_survives_the_pipe(request_: BuildRequest) -> None:
    assert BuildRequest.from_json(request_.to_json()) == request_


def test_built_plan_is_stored_with_its_manifest_and_progress_was_told(request_: BuildRequest, store: PlanStore) -> None:
    assert build(request_, store, "well") == ["Building 0/2", "Building 1/2", "Building 2/2"]
    stored = store.load(request_.key)
    assert stored.content.startswith(MAGIC)
    assert stored.manifest.workspace_bytes == request_.workspace_bytes
    assert store.tries(request_.key) == 0
    assert store.timing_cache_path(ENVIRONMENT).read_bytes() == b"+measured"


def test_version_without_progress_says_that_it_is_alive(request_: BuildRequest, store: PlanStore) -> None:
    assert build(request_, store, "well", "8.6.2") == ["building 0/0"]


def test_plan_is_kept_where_tensorrt_would_crash_when_it_frees_its_builder(
    request_: BuildRequest, store: PlanStore
) -> None:
    build(request_, store, "crash when freed")
    assert store.load(request_.key).manifest.key == request_.key


def test_second_build_starts_from_the_timing_cache_and_an_estimate(request_: BuildRequest, store: PlanStore) -> None:
    build(request_, store, "well")
    seen: list[BuildProgress] = []
    build_plan(request_, store, seen.append, fake_child("well"))
    assert store.timing_cache_path(ENVIRONMENT).read_bytes() == b"+measured+measured"
    assert all(progress.estimate_s is not None for progress in seen)


def test_killed_build_is_reported_as_memory_after_one_retry_with_half_the_workspace(
    request_: BuildRequest, store: PlanStore, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(BuildFailed) as failure:
        build(request_, store, "killed")
    assert failure.value.kind == "memory"
    for part in ("killed (SIGKILL)", "memory runs out", "workspace 256 MiB", "free memory", "MiB: stop other", "swap"):
        assert part in str(failure.value)
    assert "trying once more with a workspace of 256 MiB" in caplog.text
    assert store.tries(request_.key) == 2


def test_retry_with_half_the_workspace_can_succeed(request_: BuildRequest, store: PlanStore) -> None:
    build(request_, store, "killed above 300")
    assert store.load(request_.key).manifest.workspace_bytes == 256 << 20
    assert store.tries(request_.key) == 0


def test_no_implementation_means_memory(request_: BuildRequest, store: PlanStore) -> None:
    with pytest.raises(BuildFailed, match="Could not find any implementation for node Conv_7.*workspace 256 MiB") as it:
        build(request_, store, "no implementation")
    assert it.value.kind == "memory"


def test_restarts_do_not_build_for_ever(request_: BuildRequest, store: PlanStore) -> None:
    for _ in range(2):
        with pytest.raises(ModelError):
            build(request_, store, "killed")
    assert store.tries(request_.key) == MAX_TRIES
    with pytest.raises(PlanUnusable, match="not trying again by itself"):
        build(request_, store, "well")


def test_crash_is_told_with_its_last_words(request_: BuildRequest, store: PlanStore) -> None:
    with pytest.raises(BuildFailed, match="by signal 11 and no plan: .*Segmentation fault in libnvinfer") as failure:
        build(request_, store, "crash")
    assert failure.value.kind == "crash"


CRASHER = """
import faulthandler, json, os, signal, sys
faulthandler.enable(all_threads=False)
from edge_agent.backends.build_job import BuildRequest
from edge_agent.backends.plan_store import PlanStore
request = BuildRequest.from_json(json.load(sys.stdin))
store = PlanStore(request.plans_dir)
if store.timing_cache_path(request.key.environment).exists():
    print("one | two", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
store.save(request.key, b"plan", 1.0, 1)
print(json.dumps({"event": "done"}), flush=True)
"""


def test_crash_is_tried_again_without_the_timing_cache(
    request_: BuildRequest, store: PlanStore, caplog: pytest.LogCaptureFixture
) -> None:
    cache = store.timing_cache_path(ENVIRONMENT)
    cache.parent.mkdir()
    cache.write_bytes(b"measured")
    build_plan(request_, store, None, [sys.executable, "-c", CRASHER])
    assert store.load(request_.key).content == b"plan"
    assert not cache.exists()
    assert cache.with_name(cache.name + ".bad").read_bytes() == b"measured"
    assert "trying once more without the timing cache" in caplog.text
    assert 'ended by signal 11 and no plan: one | two | Segmentation fault | File "<string>", line 10' in caplog.text


def test_crash_without_a_timing_cache_is_not_tried_again(request_: BuildRequest, store: PlanStore) -> None:
    command = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"]
    with pytest.raises(BuildFailed, match="signal 11") as failure:
        build_plan(request_, store, None, command)
    assert failure.value.kind == "crash"
    assert "optimisation_level: 0" in str(failure.value)
    assert store.tries(request_.key) == 1


def test_child_that_says_nothing_is_an_error_with_its_exit_code(request_: BuildRequest, store: PlanStore) -> None:
    with pytest.raises(BuildFailed, match="with exit code 3 and no plan: it said nothing"):
        build(request_, store, "mute")


def test_builder_that_cannot_be_started_is_a_model_error(request_: BuildRequest) -> None:
    with pytest.raises(ModelError, match="builder /nowhere/python cannot be started: No such file"):
        BuildJob(request_, command=("/nowhere/python",))


def test_machine_without_tensorrt_fails_at_once_and_says_what_is_missing(
    request_: BuildRequest, store: PlanStore
) -> None:
    hidden = "import sys; sys.modules['tensorrt'] = None; import runpy; "
    command = [sys.executable, "-c", hidden + "runpy.run_module('edge_agent.backends.trt_build', run_name='__main__')"]
    with pytest.raises(BuildFailed, match="tensorrt"):
        build_plan(request_, store, None, command)


def test_model_that_cannot_be_parsed_is_the_models_fault_and_not_retried(
    request_: BuildRequest, store: PlanStore
) -> None:
    request_.onnx_path.write_bytes(b"not an ONNX file")
    with pytest.raises(BuildFailed, match=r"cannot read net\.onnx: ModelImporter") as failure:
        build(request_, store, "well")
    assert failure.value.kind == "model"
    assert store.tries(request_.key) == 1


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def wait_for(condition: object, deadline_s: float = 20.0) -> None:
    assert callable(condition)
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def test_poll_does_not_block_and_leaving_the_job_ends_the_child(
    request_: BuildRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "building"
    monkeypatch.setenv("EDGE_AGENT_TEST_MARK", str(mark))
    with BuildJob(request_, command=fake_child("slow")) as job:
        wait_for(lambda: mark.exists() and mark.read_text())
        assert not job.poll()
        pid = job.pid
        assert alive(pid)
    assert not alive(pid)


def test_child_ends_with_the_agent_even_if_that_is_killed(
    request_: BuildRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "building"
    monkeypatch.setenv("EDGE_AGENT_TEST_MARK", str(mark))
    script = f"""
import json
from edge_agent.backends.build_job import BuildJob, BuildRequest
from tests.backends.fake_trt import fake_child
request = BuildRequest.from_json(json.loads({__import__("json").dumps(request_.to_json())!r}))
with BuildJob(request, command=fake_child("slow")) as job:
    job.wait()
"""
    agent = subprocess.Popen([sys.executable, "-c", script])
    wait_for(lambda: mark.exists() and mark.read_text())
    builder = int(mark.read_text())
    assert Path(f"/proc/{builder}/oom_score_adj").read_text().strip() == "800"
    agent.kill()
    agent.wait()
    wait_for(lambda: not alive(builder))


def test_progress_reads_well_with_and_without_an_estimate() -> None:
    assert str(BuildProgress("det", "Tactics", 3, 90, 12.4, 61.0)) == "det: Tactics 3/90, 12 of about 61 s"
    assert str(BuildProgress("det", "building", 0, 0, 12.4)) == "det: building, 12 s"


def test_free_memory_is_read_from_meminfo(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:        7814512 kB\nMemFree: 1 kB\nMemAvailable:     921600 kB\n")
    assert build_job.available_bytes(meminfo) == 900 << 20
    assert "free memory 900 MiB" in build_job.memory_advice(1 << 30, meminfo)
    assert "free memory unknown" in build_job.memory_advice(1 << 30, tmp_path / "absent")


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("Error Code 10: Could not find any implementation for node {ForeignNode}", True),
        ("Error Code 2: OutOfMemory (no further information)", True),
        ("CUDA out of memory", True),
        ("Unsupported ONNX data type: DOUBLE", False),
    ],
)
def test_complaints_that_mean_memory_are_known(text: str, memory: bool) -> None:
    assert build_job.sounds_like_memory(text) == memory


def test_no_child_is_left_behind() -> None:
    with contextlib.suppress(psutil.NoSuchProcess):  # one that ends just now is not left behind
        assert [word for child in psutil.Process().children() for word in child.cmdline() if "fake_trt" in word] == []
