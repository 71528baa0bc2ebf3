"""Allowed: what a wish may change; everything else is named, one by one, and nothing is taken in part (SEC-2)."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from edge_agent.config import Config, changed_keys, plain, rebuilt
from edge_agent.models.spec import DEFAULT_MODELS_DIR
from edge_agent.remote.allowed import wished_config
from edge_agent.remote.desired import DesiredRefused, parse_desired
from edge_agent.settings.keys import flat, merged, tree_of
from tests.conftest import ROOT

MODELS = ROOT / DEFAULT_MODELS_DIR


def settings(**sections: Any) -> Config:
    line1 = {"kind": "rtsp", "source": "rtsp://viewer@192.0.2.10/live"}
    values = {"mqtt": {"username": "agent"}, "cameras": {"line1": line1}, **sections}
    return rebuilt(Config(), values, "settings")


LOCAL = settings()
OPEN = settings(remote={"allowed_keys": ["cameras", "pipeline", "log", "backend"]})


def wished(local: Config = LOCAL, kind: str = "patch", models: Path = MODELS, **content: Any) -> Config:
    desired = parse_desired(json.dumps({"version": 1, kind: content}).encode(), 65_536)
    return wished_config(desired, local, models, lambda: ["192.0.2.5"])


def refused(local: Config = LOCAL, kind: str = "patch", models: Path = MODELS, **content: Any) -> dict[str, str]:
    with pytest.raises(DesiredRefused) as caught:
        wished(local, kind, models, **content)
    assert caught.value.version == 1
    return {refusal.key or refusal.why.partition(":")[0]: refusal.why for refusal in caught.value.refusals}


def test_allowed_keys_are_changed_and_nothing_else() -> None:
    config = wished(pipeline={"min_confidence": 0.7}, cameras={"line1": {"max_fps": 5}}, log={"level": "debug"})
    assert changed_keys(LOCAL, config) == {"pipeline.min_confidence", "cameras.line1.max_fps", "log.level"}


def test_every_key_that_is_not_allowed_is_named_and_nothing_is_taken() -> None:
    keys = refused(
        mqtt={"host": "evil.example", "port": 1},
        state_dir="/tmp",
        __class__={"__init__": 1},
        log={"level": "debug", "file": "/etc/passwd"},
        device_id="other",
        remote={"allowed_keys": ["mqtt"]},
        outbox={"max_bytes": 1},
        models_dir="/tmp",
        backend={"tensorrt": {"plans_dir": "/tmp"}},
    )
    assert set(keys) == {
        "mqtt.host",
        "mqtt.port",
        "state_dir",
        "__class__.__init__",
        "log.file",
        "device_id",
        "remote.allowed_keys",
        "outbox.max_bytes",
        "models_dir",
        "backend.tensorrt.plans_dir",
    }
    assert keys["mqtt.host"] == "is never changed from afar; set it in the device's own file"
    assert keys["state_dir"] == "is not among remote.allowed_keys of this device"
    assert keys["models_dir"].startswith("names a file")


@pytest.mark.parametrize("section", ["mqtt", "remote", "cameras", "device_id", "transport"])
@pytest.mark.parametrize("value", [None, [], 1, "x"])
def test_whole_section_cannot_be_wiped(section: str, value: Any) -> None:
    assert section in refused(**{section: value})


def test_paths_and_passwords_are_local_whatever_the_file_allows() -> None:
    keys = refused(OPEN, cameras={"line1": {"password_file": "/etc/passwd"}}, backend={"tensorrt": {"plans_dir": "/x"}})
    assert set(keys) == {"cameras.line1.password_file", "backend.tensorrt.plans_dir"}


def test_values_are_as_strict_as_in_a_file() -> None:
    assert refused(
        pipeline={"min_confidence": 3, "max_boxes": "5", "min_confidnce": 0.2}, telemetry={"interval_s": True}
    ) == {
        "pipeline.min_confidence": "pipeline.min_confidence: 3 is greater than 1.0",
        "pipeline.max_boxes": "pipeline.max_boxes: '5' is not a whole number",
        "telemetry.interval_s": "telemetry.interval_s: true is not a number",
        "pipeline.min_confidnce": "pipeline.min_confidnce: unknown key; did you mean min_confidence?",
    }


def test_many_refusals_are_cut_short() -> None:
    assert len(refused(**{f"key{n}": 1 for n in range(200)})) == 41


# ---- a whole configuration ------------------------------------------------------------------------------------------


def test_whole_configuration_as_it_is_changes_nothing() -> None:
    assert wished(kind="config", **plain(LOCAL)) == LOCAL


def test_whole_configuration_gives_defaults_to_what_may_change_and_is_not_named() -> None:
    local = settings(pipeline={"min_confidence": 0.9, "max_boxes": 7}, telemetry={"interval_s": 3.0})
    config = wished(local, "config", pipeline={"max_boxes": 7})
    assert changed_keys(local, config) == {"pipeline.min_confidence", "telemetry.interval_s"}
    assert config.pipeline.min_confidence == Config().pipeline.min_confidence
    assert config.mqtt.username == "agent"
    assert set(config.cameras) == {"line1"}


def test_whole_configuration_can_say_null_where_null_is_a_value() -> None:
    assert wished(kind="config", pipeline={"encoder": None}).pipeline.encoder is None
    assert wished(settings(pipeline={"encoder": None}), "config", pipeline={"encoder": None}).pipeline.encoder is None


def test_whole_configuration_that_changes_what_it_may_not_is_refused() -> None:
    whole = plain(LOCAL)
    whole["mqtt"] = {**whole["mqtt"], "host": "evil.example"}
    assert set(refused(kind="config", **whole)) == {"mqtt.host"}
    assert set(refused(kind="config", cameras={"line1": {"loop": 0}})) == {"cameras.line1.loop"}


def test_camera_that_a_whole_configuration_does_not_name_goes_where_cameras_may_go() -> None:
    line2 = {"line2": {"kind": "rtsp", "source": "rtsp://192.0.2.11/live"}}
    assert set(wished(OPEN, "config", cameras=line2).cameras) == {"line2"}
    assert set(refused(LOCAL, "config", cameras=line2)) == {"cameras.line2.kind", "cameras.line2.source"}


@pytest.mark.parametrize("cameras", [True, 1.5, "line1", ["line1"]])
def test_cameras_that_are_none_are_refused(cameras: Any) -> None:
    assert list(refused(OPEN, "config", cameras=cameras)) == ["cameras"]


def test_source_that_is_shown_masked_is_no_change() -> None:
    with_password = {"line1": {"kind": "rtsp", "source": "rtsp://admin:S3cret@192.0.2.10/live"}}
    local = settings(cameras=with_password)
    shown = {"line1": {"kind": "rtsp", "source": "rtsp://admin:***@192.0.2.10/live", "max_fps": 5}}
    assert wished(local, "config", cameras=shown).cameras["line1"].source.endswith("admin:S3cret@192.0.2.10/live")


# ---- sources --------------------------------------------------------------------------------------------------------


def source(value: str, kind: str = "rtsp", remote: dict[str, Any] | None = None, **more: Any) -> str | None:
    local = settings(remote={"allowed_keys": ["cameras"], **(remote or {})})
    try:
        wished(local, cameras={"new": {"kind": kind, "source": value, **more}})
    except DesiredRefused as exc:
        return str(exc)
    return None


def test_network_camera_at_a_plain_address_is_taken() -> None:
    assert source("rtsp://viewer@192.0.2.11:554/live") is None
    assert source("rtsps://[2001:db8::7]/live") is None
    assert source("rtsp://cam7.plant.example/x", remote={"camera_hosts": ["*.plant.example"]}) is None


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("rtsp", "rtsp://127.0.0.1/live"),
        ("rtsp", "rtsp://2130706433/live"),
        ("rtsp", "rtsp://[::ffff:127.0.0.1]/live"),
        ("rtsp", "rtsp://169.254.169.254/latest/meta-data"),
        ("rtsp", "rtsp://192.0.2.5/live"),
        ("rtsp", "rtsp://cam7.plant.example/x"),
        ("rtsp", "rtsp://a@192.0.2.11@127.0.0.1/"),
        ("rtsp", "rtsp://admin:S3cret@192.0.2.11/live"),
        ("rtsp", "rtsp://192.0.2.11/live?password=S3cret"),
        ("video", "http://192.0.2.11/stream"),
        ("video", "concat:/etc/passwd|/etc/group"),
        ("video", "subfile,,start,0,end,0,,:/etc/passwd"),
        ("video", "file:///etc/passwd"),
        ("video", "/etc/passwd"),
        ("video", "pipe:0"),
        ("folder", "/etc"),
        ("folder", "pictures"),
        ("v4l2", "/etc/passwd"),
        ("v4l2", "/dev/sda"),
        ("v4l2", "/dev/v4l/by-id/../../../etc/passwd"),
        ("v4l2", "/dev/video0/../../etc/passwd"),
    ],
)
def test_source_that_leads_astray_is_refused_without_being_repeated(kind: str, value: str) -> None:
    said = source(value, kind)
    assert said is not None
    assert "cameras.new" in said
    assert "S3cret" not in said
    assert "/etc" not in said


def test_devices_of_this_machine_are_taken() -> None:
    assert source("/dev/v4l/by-id/usb-046d_C270-video-index0", "v4l2") is None
    assert source("/dev/video2", "v4l2") is None
    assert source("0", "csi") is None
    assert "csi is not among remote.camera_schemes" in str(source("0", "csi", {"camera_schemes": ["rtsp"]}))


def test_stored_source_must_lie_in_a_folder_that_the_file_names(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.avi").touch()
    (inside / "link").symlink_to(outside)
    (inside / "link.avi").symlink_to(outside / "a.avi")
    remote = {"camera_schemes": ["file"], "camera_folders": [str(inside)]}
    assert source(str(inside), "folder", remote) is None
    assert source(str(inside / "a.avi"), "video", remote) is None
    assert source(str(inside / "not-there.avi"), "video", remote) is None
    refusals = {
        source(str(path), "video", remote)
        for path in (
            outside / "a.avi",
            outside / "not-there.avi",
            inside / ".." / "out" / "a.avi",
            inside / "link" / "a.avi",
            inside / "link.avi",
            inside / "%03d.avi",
            inside / "*.avi",
            f"{inside}/a.avi|{inside}/b.avi",
            f"concat:{inside}/a.avi",
            f"{inside}x/a.avi",
        )
    }
    assert refusals == {"cameras.new.source: does not lie in remote.camera_folders, or is no plain path"}


def test_password_file_is_shown_to_no_other_host() -> None:
    line1 = {"kind": "rtsp", "source": "rtsp://viewer@192.0.2.10/live", "password_file": "/etc/secret"}
    local = settings(cameras={"line1": line1}, remote={"allowed_keys": ["cameras"]})
    assert wished(local, cameras={"line1": {"source": "rtsp://viewer@192.0.2.10/other"}})
    said = refused(local, cameras={"line1": {"source": "rtsp://viewer@192.0.2.66/live"}})
    assert "password_file may only be shown" in said["cameras.line1.source"]


def test_source_that_stays_is_not_judged() -> None:
    loopback = {"line1": {"kind": "rtsp", "source": "rtsp://127.0.0.1/live"}}
    assert wished(settings(cameras=loopback), cameras={"line1": {"max_fps": 2}}).cameras["line1"].max_fps == 2


# ---- models ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    models = tmp_path / "models"
    models.mkdir()
    for name in ("ppocrv6-small-det", "ppocrv4-mobile-rec"):
        (models / name).symlink_to(MODELS / name)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "model.yaml").write_bytes((MODELS / "ppocrv4-mobile-det" / "model.yaml").read_bytes())
    (models / "ppocrv4-mobile-det").symlink_to(outside)
    (tmp_path / "model.yaml").touch()
    return models


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "/etc/passwd", "models/../../x", "..%2f..%2fetc", "x" * 300, "..", ".", "", "-x", "nowhere"],
)
def test_model_name_that_leaves_the_folder_is_refused_alike_whether_a_file_is_there_or_not(
    name: str, models_dir: Path
) -> None:
    (said,) = refused(models=models_dir, pipeline={"detector": name}).values()
    assert "there is no model" in said or "is no name" in said or "is empty" in said
    assert "exists" not in said


def test_model_that_a_link_leads_out_of_the_folder_to_is_as_one_that_is_not_there(models_dir: Path) -> None:
    linked = refused(models=models_dir, pipeline={"detector": "ppocrv4-mobile-det"})
    absent = refused(models=models_dir, pipeline={"detector": "ppocrv9-mobile-det"})
    assert linked["pipeline.detector"].replace("v4", "v9") == absent["pipeline.detector"]


def test_nul_in_a_model_name_never_gets_so_far() -> None:
    with pytest.raises(DesiredRefused, match="control character"):
        parse_desired(b'{"version": 1, "patch": {"pipeline": {"detector": "a\\u0000.onnx"}}}', 65_536)


def test_model_for_another_task_or_without_its_files_is_refused(tmp_path: Path) -> None:
    said = refused(pipeline={"detector": "ppocrv4-mobile-rec"})
    assert "is for text_recognition; expected a model for text_detection" in said["pipeline.detector"]
    folder = tmp_path / "ppocrv4-mobile-det"
    folder.mkdir()
    (folder / "model.yaml").write_bytes((MODELS / "ppocrv4-mobile-det" / "model.yaml").read_bytes())
    said = refused(models=tmp_path, pipeline={"detector": "ppocrv4-mobile-det"})
    assert "edge-agent models fetch" in said["pipeline.detector"]


def test_model_that_is_there_is_taken() -> None:
    if not (MODELS / "ppocrv4-mobile-det" / "model.onnx").is_file():
        pytest.skip("models are missing: edge-agent models fetch")
    assert wished(pipeline={"detector": "ppocrv4-mobile-det"}).pipeline.detector == "ppocrv4-mobile-det"


STRANGE: list[Any] = [
    None,
    True,
    0,
    -1,
    1e308,
    "",
    "x",
    "a" * 3000,
    [],
    {},
    [1],
    {"a": 1},
    [{}],
    "../../x",
    "/tmp/../etc",
    "\u202e",
]
STRANGE += [
    "rtsp://[::1]/",
    "rtsp://1.1.1.1\n/",
    "\uff52tsp://192.0.2.9/",
    "file:///etc/passwd",
    "concat:/etc/passwd",
    "0",
]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_wished_for_is_taken_or_refused(seed: int) -> None:
    """A wish is retained: one that ended the process would end each process after it as well."""
    rng = random.Random(seed)
    allowed = ["backend", "cameras", "fields", "log", "outbox.replay_per_s", "pipeline", "telemetry"]
    local = settings(remote={"allowed_keys": allowed, "camera_schemes": ["rtsp", "http", "file", "v4l2", "csi"]})
    paths = [path for path, _ in flat(plain(local)) if path[0] in ("cameras", "pipeline", "telemetry", "log", "mqtt")]
    paths += [("cameras",), ("pipeline",), ("cameras", "b"), ("cameras", "../x", "kind"), ("",), ("a.b",)]
    outcomes = set()
    for _ in range(250):
        content: dict[str, Any] = {}
        for _ in range(rng.randint(1, 3)):
            content = merged(content, tree_of(rng.choice(paths), rng.choice(STRANGE)))
        try:
            wished(local, rng.choice(("patch", "config")), **content)
            outcomes.add("taken")
        except DesiredRefused as exc:
            assert exc.refusals
            outcomes.add("refused")
    assert outcomes == {"taken", "refused"}


# ---- the catalogue --------------------------------------------------------------------------------------------------


def test_names_that_do_not_go_with_the_device_s_own_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "products.txt"
    path.write_text("\n".join(f"Widget {n}" for n in range(99_999)), encoding="utf-8")
    local = settings(catalogue={"file": str(path)}, remote={"allowed_keys": ["catalogue.names", "fields"]})
    assert wished(local, catalogue={"names": ["Oat Bar"]}).catalogue.names == ("Oat Bar",)
    assert "100001 products; at most 100000" in refused(local, catalogue={"names": ["Oat Bar", "Rye Bar"]})["catalogue"]
    path.write_bytes(b"\xff\xfe")
    assert "expected text in UTF-8" in refused(local, catalogue={"names": ["Oat Bar"]})["catalogue"]
