"""Plans on a real disk: what is loaded, what is refused and in which words (field cases ENG-1 and ENG-7)."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from edge_agent.backends.base import Profile
from edge_agent.backends.model_file import file_sha256, model_name
from edge_agent.backends.plan import BuildOptions, Environment, Manifest, PlanKey, l4t_release
from edge_agent.backends.plan_store import MAX_TRIES, PLANS_KEPT, PlanStore, PlanUnusable, find_plans_dir
from edge_agent.errors import ModelError
from edge_agent.files import write_atomically

CONTENT = b"ftrt" + bytes(range(256)) * 40
ORIN = Environment(tensorrt="10.3.0", compute_capability="8.7", gpu="Orin (nvgpu)", sm_count=8, l4t="36.4.3")
PROFILES = (Profile({"image": (1, 32, 32, 3)}, {"image": (1, 736, 1312, 3)}, {"image": (1, 2016, 2016, 3)}),)
KEY = PlanKey("ppocrv6-small-det", "ab" * 32, PROFILES, BuildOptions(), ORIN)


@pytest.fixture
def store(tmp_path: Path) -> PlanStore:
    now = iter(range(1_000_000, 2_000_000))
    return PlanStore(tmp_path / "plans", clock=lambda: float(next(now)))


def changed(**environment: object) -> PlanKey:
    return dataclasses.replace(KEY, environment=dataclasses.replace(ORIN, **environment))


def save(store: PlanStore, key: PlanKey = KEY, content: bytes = CONTENT) -> Manifest:
    return store.save(key, content, build_s=61.0, workspace_bytes=1 << 30)


def test_saved_plan_is_loaded_with_its_manifest(store: PlanStore) -> None:
    save(store)
    stored = store.load(KEY)
    assert stored.content == CONTENT
    assert stored.manifest.key == KEY
    assert (stored.manifest.build_s, stored.manifest.workspace_bytes) == (61.0, 1 << 30)


def test_manifest_and_plan_lie_side_by_side_under_model_and_fingerprint(store: PlanStore) -> None:
    save(store)
    names = sorted(path.name for path in store.directory.iterdir())
    assert names == [f"ppocrv6-small-det-{KEY.fingerprint}.json", f"ppocrv6-small-det-{KEY.fingerprint}.plan"]
    shown = json.loads((store.directory / names[0]).read_text())
    assert {
        "model_sha256", "precision", "profiles", "tensorrt", "compute_capability", "gpu", "sm_count", "l4t",
        "optimisation_level", "dla_core", "hardware_compatible", "tactic_sources", "plan_bytes", "plan_sha256",
    } <= set(shown)  # fmt: skip


@pytest.mark.parametrize(
    ("running", "said"),
    [
        (changed(tensorrt="10.16.2"), "tensorrt: built with 10.3.0, running with 10.16.2"),
        (changed(compute_capability="8.6"), "compute_capability: built with 8.7, running with 8.6"),
        (changed(gpu="NVIDIA H200"), "gpu: built with Orin (nvgpu), running with NVIDIA H200"),
        (changed(sm_count=16), "sm_count: built with 8, running with 16"),
        (changed(l4t="39.2.0"), "l4t: built with 36.4.3, running with 39.2.0"),
        (changed(l4t=None), "l4t: built with 36.4.3, running with None"),
        (dataclasses.replace(KEY, model_sha256="cd" * 32), f"model_sha256: built with {'ab' * 32}"),
        (dataclasses.replace(KEY, options=BuildOptions("int8")), "precision: built with fp16, running with int8"),
        (dataclasses.replace(KEY, options=BuildOptions(optimisation_level=5)), "optimisation_level: built with 3"),
        (dataclasses.replace(KEY, profiles=()), "profiles: built with [{"),
    ],
)
def test_plan_of_another_make_is_refused_with_both_values(store: PlanStore, running: PlanKey, said: str) -> None:
    save(store)
    with pytest.raises(PlanUnusable) as refusal:
        store.load(running)
    assert said in str(refusal.value)
    assert store.load(KEY).content == CONTENT, "the plan that fits elsewhere is kept"


@pytest.mark.parametrize("field", ["tensorrt", "gpu", "model_sha256", "precision", "profiles"])
def test_manifest_that_contradicts_its_file_name_is_found_before_the_bytes_are_used(
    store: PlanStore, field: str
) -> None:
    save(store)
    path = store.plan_path(KEY).with_suffix(".json")
    value = json.loads(path.read_text())
    value[field] = {"profiles": [], "precision": "fp32"}.get(field, "other")
    path.write_text(json.dumps(value))
    with pytest.raises(PlanUnusable, match=f"belongs elsewhere: {field}: built with .*, running with"):
        store.load(KEY)
    assert not store.plan_path(KEY).exists()


ONNX_HEAD = b"\x08\x08\x12\x07pytorch\x1a\x052.1.0:" + bytes(3000)
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (b"", "is empty"),
        (CONTENT[:5000], f"is truncated: 5000 bytes, expected {len(CONTENT)}"),
        (CONTENT[:77] + b"\x00" + CONTENT[78:], "is damaged: its sha256"),
        (LFS_POINTER, "Git LFS pointer"),
        (ONNX_HEAD, "is an ONNX file"),
        (CONTENT + b"x", "is too long"),
    ],
    ids=["zero", "truncated", "flipped", "lfs", "onnx", "longer"],
)
def test_damaged_plan_is_named_moved_aside_and_can_be_built_again(store: PlanStore, damage: bytes, said: str) -> None:
    save(store)
    path = store.plan_path(KEY)
    path.write_bytes(damage)
    with pytest.raises(PlanUnusable, match=said):
        store.load(KEY)
    assert path.with_name(path.name + ".bad").read_bytes() == damage
    with pytest.raises(PlanUnusable, match="no plan was built yet"):
        store.load(KEY)
    save(store)
    assert store.load(KEY).content == CONTENT


@pytest.mark.parametrize("manifest", [b"", b"{", b"[]", b"{}", b'{"v": 1, "model": "x"}', b"\xff\xfe"])
def test_damaged_manifest_makes_its_plan_unusable(store: PlanStore, manifest: bytes) -> None:
    save(store)
    store.plan_path(KEY).with_suffix(".json").write_bytes(manifest)
    with pytest.raises(PlanUnusable, match="damaged manifest"):
        store.load(KEY)
    assert not store.plan_path(KEY).exists()


def test_plan_without_manifest_counts_as_half_written(store: PlanStore) -> None:
    save(store)
    store.plan_path(KEY).with_suffix(".json").unlink()
    with pytest.raises(PlanUnusable, match="half-written"):
        store.load(KEY)


def test_writer_killed_half_way_leaves_the_old_plan_in_place(store: PlanStore) -> None:
    save(store)
    script = f"""
import os, signal
from pathlib import Path
from edge_agent.files import write_atomically
real = os.fsync
os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)
write_atomically(Path({str(store.plan_path(KEY))!r}), b"new" * 100000)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    assert len(list(store.directory.glob("*.partial"))) == 1
    assert store.load(KEY).content == CONTENT
    save(store)
    assert list(store.directory.glob("*.partial")) == []


def test_last_good_plan_is_of_the_same_model_and_environment_with_other_options(store: PlanStore) -> None:
    wanted = dataclasses.replace(KEY, options=BuildOptions("int8"))
    save(store, changed(tensorrt="8.6.2"), b"other device")
    assert store.last_good(wanted) is None
    save(store)
    found = store.last_good(wanted)
    assert found is not None
    assert (found.content, found.manifest.key.options.precision) == (CONTENT, "fp16")
    store.plan_path(KEY).write_bytes(b"")
    assert store.last_good(wanted) is None, "a damaged plan is no good one"


def test_only_the_newest_plans_of_a_model_are_kept(store: PlanStore) -> None:
    keys = [dataclasses.replace(KEY, options=BuildOptions(optimisation_level=level)) for level in range(5)]
    other = dataclasses.replace(KEY, model="ppocrv6-small-rec")
    save(store, other)
    for key in keys:
        save(store, key)
    kept = [manifest.key.options.optimisation_level for manifest in store.manifests(KEY.model)]
    assert kept == [4, 3]
    assert store.load(other).content == CONTENT


def test_tries_are_counted_across_processes_and_stop_a_build_loop(store: PlanStore) -> None:
    for n in range(MAX_TRIES):
        again = PlanStore(store.directory)
        assert again.tries(KEY) == n
        again.begin_try(KEY)
    with pytest.raises(PlanUnusable, match="edge-agent build ppocrv6-small-det"):
        PlanStore(store.directory).begin_try(KEY)
    store.forget_tries(KEY)
    store.begin_try(KEY)
    save(store)
    assert store.tries(KEY) == 0


def test_second_process_may_not_build_at_the_same_time(store: PlanStore) -> None:
    with store.building(), pytest.raises(PlanUnusable, match="another process"), store.building():
        pass
    with store.building():
        pass


def test_timing_cache_belongs_to_the_device_and_not_to_the_board_release(store: PlanStore) -> None:
    assert store.timing_cache_path(ORIN) == store.timing_cache_path(changed(l4t="36.5.0").environment)
    assert store.timing_cache_path(ORIN) != store.timing_cache_path(changed(sm_count=16).environment)


def test_fingerprint_does_not_depend_on_the_order_of_inputs() -> None:
    one = Profile({"a": (1,), "b": (2,)}, {"a": (1,), "b": (2,)}, {"a": (1,), "b": (2,)})
    two = Profile({"b": (2,), "a": (1,)}, {"b": (2,), "a": (1,)}, {"b": (2,), "a": (1,)})
    assert (
        dataclasses.replace(KEY, profiles=(one,)).fingerprint == dataclasses.replace(KEY, profiles=(two,)).fingerprint
    )


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64, DATE: ...\n", "36.4.3"),
        ("# R39 (release), REVISION: 2.0, GCID: 1, BOARD: generic\n# KERNEL_VARIANT: oot\n", "39.2.0"),
        ("nonsense", None),
    ],
)
def test_l4t_release_is_read_from_nv_tegra_release(tmp_path: Path, text: str, release: str | None) -> None:
    file = tmp_path / "nv_tegra_release"
    file.write_text(text)
    assert l4t_release(file) == release
    assert l4t_release(tmp_path / "absent") is None


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("engines/minilm-l6-v2/model.onnx", "minilm-l6-v2"),
        ("engines/ppocrv6-small-rec/model.latin.onnx", "ppocrv6-small-rec.latin"),
        ("elsewhere/net.onnx", "net"),
        (
            "calibration/ppocrv6-small-det/artefacts/20270115T080000Z-0123456789ab/model.int8.onnx",
            "ppocrv6-small-det.int8",
        ),
    ],
)
def test_plan_is_named_after_the_model_folder(path: str, name: str) -> None:
    assert model_name(Path(path)) == name


def test_plans_of_an_artefact_push_no_float_plan_out(tmp_path: Path) -> None:
    store = PlanStore(tmp_path)
    float_key = dataclasses.replace(KEY, model="det")
    store.save(float_key, b"float", 1.0, 1)
    for number in range(PLANS_KEPT + 2):
        store.save(dataclasses.replace(KEY, model="det.int8", model_sha256=str(number)), b"int8", 1.0, 1)
    assert store.load(float_key).content == b"float"
    assert len(store.manifests("det.int8")) == PLANS_KEPT
    assert len(store.manifests("det")) == 1


def test_model_hash_covers_weights_stored_beside_the_graph(tmp_path: Path) -> None:
    onnx = tmp_path / "model.onnx"
    onnx.write_bytes(b"graph")
    alone = file_sha256(onnx)
    (tmp_path / "model.onnx.data").write_bytes(b"weights")
    assert file_sha256(onnx) != alone
    with pytest.raises(ModelError, match="models fetch"):
        file_sha256(tmp_path / "absent.onnx")


def test_unwritable_folder_leaves_no_temporary_behind(tmp_path: Path) -> None:
    folder = tmp_path / "taken.plan"
    folder.mkdir()
    (folder / "inside").write_text("x")
    with pytest.raises(OSError):
        write_atomically(folder, b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.plan"]
    assert [path.name for path in folder.iterdir()] == ["inside"]


def test_plans_lie_in_the_services_state_directory_or_beside_the_models(tmp_path: Path) -> None:
    assert find_plans_dir(tmp_path, {}) == tmp_path / "plans"
    state = {"STATE_DIRECTORY": "/var/lib/edge-agent:/var/lib/other"}
    assert find_plans_dir(tmp_path, state) == Path("/var/lib/edge-agent/plans")
