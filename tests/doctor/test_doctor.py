"""Doctor: each row's verdict on a machine that has that very trouble; and nothing secret in any of it."""

from __future__ import annotations

import json
import os
import socket
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edge_agent.__main__ import main
from edge_agent.backends.plan import BuildOptions, Environment, Manifest, PlanKey
from edge_agent.cameras.base import Image
from edge_agent.config import Config
from edge_agent.doctor import CHECKS, cameras, disk, models, packages, plans, power, secret_files, unit
from edge_agent.doctor.base import Patient, Row
from edge_agent.doctor.broker import check as check_broker
from edge_agent.doctor.bundle import write
from edge_agent.doctor.examination import admit, examine, table_line, to_json
from edge_agent.errors import CameraError, TransportError
from edge_agent.models.spec import find_models_dir
from edge_agent.settings.cameras import CameraConfig
from edge_agent.settings.mqtt import MqttConfig
from edge_agent.transports.login import log_in
from tests.broker import Broker
from tests.test_agent import config_file, label_folder

SECRET = "hunter2-S3cret"


def patient(root: Path, **settings: Any) -> Patient:
    return Patient(root / "config.yaml", Config(**settings), None, find_models_dir(), root, {})


def verdicts(rows: Iterator[Row] | list[Row]) -> list[str]:
    return [row.verdict for row in rows]


# ---- the whole -------------------------------------------------------------------------------------------------------


def test_healthy_machine_fails_nothing(broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left = {"kind": "folder", "source": str(label_folder(tmp_path / "left", 1))}
    config = config_file(tmp_path, broker.port, {"left": left})
    assert main(["doctor", "--config", str(config), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["counts"]["fail"] == 0
    texts = {row["name"]: row["text"] for row in told["rows"]}
    assert "px, the first picture after" in texts["camera left"]
    assert "in colour" in texts["camera left"]
    assert f"127.0.0.1:{broker.port} lets in nobody by name" in texts["broker"]


def test_every_trouble_is_told_with_a_cure_and_without_a_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    password = tmp_path / "password"
    password.write_text(SECRET)
    password.chmod(0o644)
    door = {"kind": "rtsp", "source": f"rtsp://admin:{SECRET}@127.0.0.1:9/live", "open_timeout_s": 1}
    config = config_file(tmp_path, 9, {"door": door, "gone": {"kind": "folder", "source": str(tmp_path / "none")}})
    settings = json.loads(config.read_text())
    settings["mqtt"] |= {"username": "press", "password_file": str(password), "connect_timeout_s": 1}
    settings["pipeline"]["detector"] = "no-such-model"
    config.write_text(json.dumps(settings))
    assert main(["doctor", "--config", str(config)]) == 1
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    for what in ("camera door", "camera gone", "broker", "models"):
        assert f"\nfail  {what}" in said.out
    assert "may be read by others" in said.out
    assert all(" -> " in below for line, below in pairs(said.out) if line.startswith("fail"))


def pairs(text: str) -> list[tuple[str, str]]:
    lines = text.splitlines()
    return list(zip(lines, [*lines[1:], ""], strict=True))


def test_wrong_settings_are_a_row_and_the_rest_is_looked_at_all_the_same(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("mqtt:\n  prot: 1883\n")
    rows = list(examine(admit(config)))
    assert (rows[0].name, rows[0].verdict) == ("settings", "fail")
    assert "line 2" in rows[0].text or ":2" in rows[0].text
    assert {row.name for row in rows} >= {"python", "opencv", "accelerator", "models", "clock", "disk", "service"}


def test_check_that_breaks_is_a_row_and_the_rest_goes_on(tmp_path: Path) -> None:
    broken = {"broken": "tests.doctor.test_doctor:break_down", "python": CHECKS["python"]}
    rows = list(examine(patient(tmp_path), broken))
    assert verdicts(rows) == ["fail", "ok", "ok"]
    assert "out of order" in rows[0].text


def test_check_whose_library_does_not_load_is_a_row_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "check_with_broken_library.py").write_text("import library_that_is_broken\n")
    checks = {"broken": "check_with_broken_library:check", "python": CHECKS["python"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        rows = list(examine(patient(tmp_path), checks))
    assert verdicts(rows) == ["fail", "ok", "ok"]
    assert "library_that_is_broken" in rows[0].text


def break_down(_patient: Patient) -> list[Row]:
    raise RuntimeError("out of order")


def test_table_shows_the_cure_of_what_is_not_well() -> None:
    assert table_line(Row("clock", "ok", "fine", "nothing")) == "ok    clock           fine"
    assert table_line(Row("clock", "warn", "late", "set it")).splitlines()[1].strip() == "-> set it"
    assert to_json([Row("clock", "warn", "late", None)])["counts"] == {"ok": 0, "warn": 1, "fail": 0}


# ---- row by row ------------------------------------------------------------------------------------------------------


def test_missing_package_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "NEEDED", [*packages.NEEDED, "no-such-package"])
    (row,) = [row for row in packages.check(patient(tmp_path)) if row.verdict == "fail"]
    assert "no-such-package" in row.text


def test_password_file_that_is_missing_or_open_to_all(tmp_path: Path) -> None:
    path = tmp_path / "password"
    ill = patient(tmp_path, mqtt=MqttConfig(username="x", password_file=path))
    assert verdicts(secret_files.check(ill)) == ["fail"]
    path.write_text("x")
    path.chmod(0o644)
    assert verdicts(secret_files.check(ill)) == ["warn"]
    path.chmod(0o600)
    assert verdicts(secret_files.check(ill)) == ["ok"]


def test_damaged_model_fails_with_the_command_that_mends_it(tmp_path: Path) -> None:
    ill = replace(patient(tmp_path), models_dir=tmp_path / "engines")
    (tmp_path / "engines").mkdir()
    rows = list(models.check(ill))
    assert set(verdicts(rows)) == {"fail"}
    assert all(row.cure is not None and row.cure.startswith("run: edge-agent models fetch ") for row in rows)


@pytest.mark.parametrize(
    ("tensorrt", "l4t", "graph", "verdict"),
    [
        ("10.3.0", "36.4.3", "a" * 64, "ok"),
        ("10.4.0", "36.4.3", "a" * 64, "warn"),
        ("10.3.0", "36.5.0", "a" * 64, "warn"),
        ("10.3.0", "36.4.3", "b" * 64, "warn"),
    ],
)
def test_plan_is_fresh_only_for_this_model_library_and_release(
    tensorrt: str, l4t: str, graph: str, verdict: str
) -> None:
    key = PlanKey("m", "a" * 64, (), BuildOptions(), Environment("10.3.0", "8.7", "Orin", 8, "36.4.3"))
    row = plans.judged("m", [Manifest(key, 1, "c" * 64, 0.0, 1.0, 1)], {graph}, tensorrt, l4t)
    assert row.verdict == verdict
    assert plans.judged("m", [], {graph}, tensorrt, l4t).verdict == "warn"


def picture(value: Any) -> Callable[[str, CameraConfig], tuple[Image, float]]:
    image = np.zeros((480, 640, 3), np.uint8)
    image[:] = value
    return lambda _name, _config: (image, 0.25)


CAMERA = CameraConfig(kind="folder", source="made", open_timeout_s=0.05, read_timeout_s=0.05)


@pytest.mark.parametrize(
    ("value", "verdict", "says"),
    [
        ((0, 0, 255), "ok", "640x480 px, the first picture after 0.2 s, in colour"),
        (128, "ok", "grey"),
        (2, "warn", "black"),
    ],
)
def test_picture_is_told_by_size_and_colour(value: Any, verdict: str, says: str) -> None:
    row = cameras.in_time("left", CAMERA, picture(value))
    assert row.verdict == verdict
    assert says in row.text


def test_camera_that_hangs_does_not_hang_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def hang(_name: str, _config: CameraConfig) -> tuple[Image, float]:
        release.wait()
        raise CameraError("released")

    began = time.monotonic()
    row = cameras.in_time("left", CAMERA, hang)
    release.set()
    assert (row.verdict, "hangs" in row.text) == ("fail", True)
    assert time.monotonic() - began < 10


def test_csi_camera_without_gstreamer_or_daemon_names_what_is_missing(tmp_path: Path) -> None:
    """Field cases CAM-6 and DKR-1: pip's OpenCV has no GStreamer, and there is no camera daemon here."""
    ill = patient(tmp_path, cameras={"top": CameraConfig(kind="csi", source="0")})
    rows = list(examine(ill, {name: CHECKS[name] for name in ("opencv", "camera")}))
    (camera,) = [row for row in rows if row.name == "camera top"]
    assert camera.verdict == "fail"
    assert "\n" not in camera.text
    failed = [row for row in rows if row.name == "opencv" and row.verdict == "fail"]
    assert len(failed) == 1
    assert failed[0].cure is not None
    assert "pip uninstall" in failed[0].cure


def test_running_agents_camera_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "proc/77").mkdir(parents=True)
    (tmp_path / "proc/77/cmdline").write_bytes(b"/opt/python\0/opt/edge-agent\0run\0")
    (tmp_path / "state").mkdir()
    words = tmp_path / "state/last-words.json"
    words.write_text('{"pid": 77}')
    held = patient(tmp_path, cameras={"top": CameraConfig(kind="v4l2", source="0")})
    (row,) = cameras.check(held)
    assert (row.verdict, "not opened" in row.text) == ("ok", True)
    words.write_text('{"pid": 77, "ended": "stop"}')
    assert not cameras.agent_runs(held)


def test_disk_that_is_nearly_full_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    free = [100_000_000]
    usage = lambda _folder: type("Usage", (), {"free": free[0]})  # noqa: E731
    monkeypatch.setattr("shutil.disk_usage", usage)
    assert verdicts(disk.check(patient(tmp_path))) == ["fail"]
    free[0] = 300_000_000
    assert verdicts(disk.check(patient(tmp_path))) == ["warn"]
    free[0] = 10_000_000_000
    assert verdicts(disk.check(patient(tmp_path))) == ["ok"]
    assert verdicts(disk.check(patient(tmp_path, outbox={"flush_ms": 0}))) == ["ok", "warn"]


def test_worn_flash_is_told(tmp_path: Path) -> None:
    device = tmp_path / "sys/block/mmcblk0/device"
    device.mkdir(parents=True)
    (device / "life_time").write_text("0x02 0x0a\n")
    assert "warn" in verdicts(disk.check(patient(tmp_path)))
    (device / "life_time").write_text("0x02 0x01\n")
    assert "warn" not in verdicts(disk.check(patient(tmp_path)))


def test_power_mode_is_read_on_a_jetson_alone(tmp_path: Path) -> None:
    assert verdicts(power.check(patient(tmp_path))) == ["ok"]
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/nv_tegra_release").write_text("# R36 (release), REVISION: 4.3\n")
    assert verdicts(power.check(patient(tmp_path))) == ["warn"]
    (tmp_path / "var/lib/nvpmodel").mkdir(parents=True)
    (tmp_path / "var/lib/nvpmodel/status").write_text("pmode:0002\n")
    (row,) = power.check(patient(tmp_path))
    assert (row.verdict, row.text) == ("ok", "power mode 2")


def test_service_that_is_missing_broken_or_not_enabled(tmp_path: Path) -> None:
    assert verdicts(unit.check(patient(tmp_path))) == ["warn"]
    wants = tmp_path / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    path = wants.parent / "edge-agent.service"
    path.write_text("[Service]\nExecStart=/opt/edge-agent run\n")
    assert verdicts(unit.check(patient(tmp_path))) == ["fail"]
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt/edge-agent").touch(mode=0o755)
    assert verdicts(unit.check(patient(tmp_path))) == ["warn"]
    (wants / "edge-agent.service").symlink_to(path)
    assert verdicts(unit.check(patient(tmp_path))) == ["ok"]
    (tmp_path / ".dockerenv").touch()
    assert verdicts(unit.check(patient(tmp_path))) == ["ok"]


# ---- the broker ------------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(make_broker: Callable[..., Broker], tmp_path: Path) -> Broker:
    """Lets in `press` with SECRET alone; the passwords are of `mosquitto_passwd`'s kind."""
    import base64
    import hashlib

    salt = b"0123456789ab"
    digest = hashlib.pbkdf2_hmac("sha512", SECRET.encode(), salt, 101, 64)
    passwords = tmp_path / "passwords"
    passwords.write_text(f"press:$7$101${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}\n")
    passwords.chmod(0o600)
    return make_broker(f"allow_anonymous false\npassword_file {passwords}").start()


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_broker_that_asks_for_a_password_is_told_one(guarded: Broker, protocol: Any, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(SECRET)
    password.chmod(0o600)
    right = MqttConfig(port=guarded.port, protocol=protocol, username="press", password_file=password)
    assert "lets in press" in log_in(right)
    password.write_text("wrong")
    with pytest.raises(TransportError, match="may not connect|is wrong"):
        log_in(right)
    with pytest.raises(TransportError, match="may not connect|is wrong"):
        log_in(MqttConfig(port=guarded.port, protocol=protocol))


def test_what_is_no_broker_is_said_to_be_none() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]

        def answer() -> None:
            channel, _ = server.accept()
            with channel:
                channel.recv(100)
                channel.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(TransportError, match="does not speak MQTT"):
            log_in(MqttConfig(port=port))


def test_frozen_broker_costs_the_time_that_connecting_may_take(broker: Broker) -> None:
    broker.freeze()
    with pytest.raises(TransportError, match="not reached"):
        log_in(MqttConfig(port=broker.port, connect_timeout_s=0.3))
    broker.thaw()


def test_nothing_is_published_by_looking(broker: Broker, tmp_path: Path) -> None:
    from tests.broker import Observer

    with Observer(broker.port, "#") as observer:
        (row,) = check_broker(patient(tmp_path, mqtt=MqttConfig(port=broker.port)))
        assert row.verdict == "ok"
        observer.publish("marker", b"{}")
        deadline = time.monotonic() + 10
        while not observer.payloads("marker") and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [heard.topic for heard in observer.heard] == ["marker"]


# ---- the bundle ------------------------------------------------------------------------------------------------------


def test_bundle_finds_what_is_kept_where_the_settings_say(tmp_path: Path) -> None:
    events = tmp_path / "reports" / "events"
    events.mkdir(parents=True)
    (events / "00000003.jsonl").write_text('{"kind": "run_hung"}\n')
    config = config_file(tmp_path, 9, {})
    settings = json.loads(config.read_text())
    settings["telemetry"] = {"directory": str(events.parent)}
    config.write_text(json.dumps(settings))
    path = tmp_path / "support.tar"
    write(path, admit(config), lambda: "")
    with tarfile.open(path) as tar:
        file = tar.extractfile("edge-agent-support/events.jsonl")
        assert file is not None
        assert file.read() == b'{"kind": "run_hung"}\n'


def test_bundle_is_its_owners_alone_also_in_the_place_of_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "support.tar"
    path.write_bytes(b"older")
    path.chmod(0o644)
    write(path, admit(config_file(tmp_path, 9, {})), lambda: "")
    assert path.stat().st_mode & 0o777 == 0o600
    assert tarfile.is_tarfile(path)


def test_bundle_that_cannot_be_written_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = config_file(tmp_path, 9, {})
    assert main(["support-bundle", str(tmp_path), "--config", str(config)]) == 78
    assert f"{tmp_path} cannot be written" in capsys.readouterr().err


def test_bundle_holds_everything_and_no_secret(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(SECRET)
    password.chmod(0o600)
    door = {"kind": "rtsp", "source": f"rtsp://admin:{SECRET}@127.0.0.1:9/live", "enabled": False}
    config = config_file(tmp_path, 9, {"door": door})
    settings = json.loads(config.read_text())
    settings["mqtt"] |= {"username": "press", "password_file": str(password), "connect_timeout_s": 1}
    config.write_text(json.dumps(settings))
    reports = tmp_path / "state/telemetry"
    reports.mkdir(parents=True)
    for n in (1, 2):  # a start anew begins a segment, and what was before it counts most then
        (reports / f"{n:08}.jsonl").write_text(f'{{"fps": {n}}}\n')
        os.utime(reports / f"{n:08}.jsonl", (n, n))
    (reports / "events").mkdir()
    for n, kind in enumerate(("run_killed", "dead_letter"), start=1):
        path = reports / "events" / f"{n:08}.jsonl"
        path.write_text(f'{{"kind": "{kind}", "text": "with {SECRET}"}}\n')
        os.utime(path, (n, n))
    (tmp_path / "state/last-words.json").write_text('{"stage": "reading"}')
    path = tmp_path / "support.tar.gz"
    names = write(path, admit(config), lambda: f"a log line that quotes {SECRET}\n")
    assert path.stat().st_mode & 0o777 == 0o600
    with tarfile.open(path) as tar:
        texts = {}
        for member in tar.getmembers():
            file = tar.extractfile(member)
            assert file is not None
            texts[member.name.removeprefix("edge-agent-support/")] = file.read().decode()
    assert set(texts) == set(names)
    reported = ["last-words.json", "telemetry.jsonl", "events.jsonl"]
    assert names == ["doctor.txt", "doctor.json", "config.yaml", *reported, "log.txt"]
    assert [json.loads(line)["kind"] for line in texts["events.jsonl"].splitlines()] == ["run_killed", "dead_letter"]
    assert texts["telemetry.jsonl"] == '{"fps": 1}\n{"fps": 2}\n'
    assert "***" in texts["config.yaml"]
    assert texts["log.txt"] == "a log line that quotes ***\n"
    assert [name for name, text in texts.items() if SECRET in text] == []
