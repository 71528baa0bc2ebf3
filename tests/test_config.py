"""Config: files and environments become frozen settings, or a list of everything that is wrong with them."""

from __future__ import annotations

import fnmatch
import logging
import os
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from edge_agent.config import LIVE, Config, cautions, changed_keys, is_live, load, patched, plain, shown, without_file
from edge_agent.errors import ConfigError
from edge_agent.settings.cameras import CameraConfig
from edge_agent.settings.keys import covers, entry_of, kinds_of, leaves, section_of, value_at
from edge_agent.settings.mqtt import MqttConfig
from edge_agent.settings.pipeline import PipelineConfig
from edge_agent.settings.problems import dotted
from edge_agent.settings.strict_yaml import dump, parse, parse_document
from tests.conftest import ROOT

SHIPPED = ROOT / "config.yaml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, so that messages say config.yaml without a path."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load_text(text: str | bytes, environ: dict[str, str] | None = None) -> Config:
    Path("config.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    return load(Path("config.yaml"), environ or {})


def refusal(text: str | bytes, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_text(text, environ)
    assert caught.value.exit_code == 78
    return str(caught.value).splitlines()


def camera(**settings: Any) -> CameraConfig:
    return CameraConfig(**{"kind": "rtsp", "source": "rtsp://host/live", **settings})


# --- config.yaml as shipped ---


def shipped_with_camera() -> bytes:
    """The shipped file with its sample camera brought in."""
    text = SHIPPED.read_text(encoding="utf-8")
    return re.sub(r"^  # ( *\w+:)", r"  \1", text, flags=re.MULTILINE).encode()


def test_shipped_file_loads_and_sets_nothing_but_defaults(folder: Path) -> None:
    assert load(SHIPPED, {}) == Config()


def test_shipped_file_has_every_key_at_its_default() -> None:
    document = parse_document(shipped_with_camera(), "config.yaml")
    assert not document.problems
    assert list(document.values["cameras"]) == ["line1"]
    defaults = plain(Config(cameras={"line1": camera(rois={"date": {}})}, fields={"custom": {"lot": {}}}))
    for leaf in leaves(Config, document.values):
        if SecretStr in leaf.kinds:
            continue
        assert leaf.path in document.lines, f"config.yaml lacks {dotted(leaf.path)}"
        if leaf.path[-1] != "source":
            assert value_at(document.values, leaf.path) == value_at(defaults, leaf.path), dotted(leaf.path)
    assert {path for path in document.lines if isinstance(path[-1], str)} == {
        path[:n]
        for path in (leaf.path for leaf in leaves(Config, document.values) if SecretStr not in leaf.kinds)
        for n in range(1, len(path) + 1)
    }


def test_shipped_file_documents_every_key_in_place() -> None:
    lines = SHIPPED.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if re.match(r" *(# +)?\w+:", line) and not line.startswith("#"):
            about = re.sub(r"^ *# ", "", line).partition("#")[2] or lines[number - 1] + lines[number + 1]
            assert "#" in about or about.strip(), f"line {number + 1} says nothing about its key: {line}"


def test_shipped_file_names_the_unit_of_each_number() -> None:
    units = {"s": "s", "px": "px", "bytes": "bytes", "years": "years", "chars": "characters", "fps": "frames/s"}
    for line in SHIPPED.read_text(encoding="utf-8").splitlines():
        key, _, rest = line.strip("# ").partition(":")
        unit = units.get(key.rpartition("_")[2])
        if unit and re.fullmatch(r"[a-z_]+", key):
            about = rest.partition("#")[2]
            assert re.search(rf"(?<!\w){unit}(?!\w)", about), f"{key} lacks its unit, {unit}: {line}"


def test_every_key_of_every_model_is_described() -> None:
    def check(model: type[BaseModel]) -> None:
        for name, info in model.model_fields.items():
            assert info.description, f"{model.__name__}.{name} has no text below it"
            below = section_of(info.annotation) or entry_of(info.annotation)
            if below is not None:
                check(below)

    check(Config)


# --- what an item must say ---


def test_rule_that_cannot_be_followed_is_refused_with_its_place(folder: Path) -> None:
    for rule, said in (
        ("{date: expiry >= todday}", "expected[0].date: 'todday' is no date"),
        ("{date: today >= 2026-01-01}", "names no date of the item"),
        ("{date: expiry}", "has 0 comparisons, one is needed"),
        ("{field: lot, pattern: '/L[/'}", "expected[0].pattern: pattern /L[/: character 3"),
        ("{field: lot, text: A, pattern: A}", "expected[0].pattern: stands beside text"),
        ("{one_of: [A]}", "expected[0].field: is missing; one_of is about a field"),
        ("{}", "expected[0].field: is missing; expected a field, or one of text, pattern"),
        ("{field: LOT}", "expected[0].field"),
    ):
        with pytest.raises(ConfigError) as caught:
            load_text(f"cameras: {{a: {{kind: folder, source: x, expected: [{rule}]}}}}")
        assert said in str(caught.value)


def test_modbus_trigger_needs_the_controllers_address(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"cameras.a.trigger.modbus_host: is missing"):
        load_text("cameras: {a: {kind: folder, source: x, trigger: {kind: modbus}}}")


def test_variable_sets_a_key_of_a_new_cameras_own_section(folder: Path) -> None:
    environ = {
        "EDGE_AGENT_CAMERAS__D__KIND": "folder",
        "EDGE_AGENT_CAMERAS__D__SOURCE": "x",
        "EDGE_AGENT_CAMERAS__D__TRIGGER__KIND": "motion",
    }
    config = load_text("", environ)
    assert (config.cameras["d"].kind, config.cameras["d"].trigger.kind) == ("folder", "motion")


# --- regions ---


def test_regions_are_shares_of_the_picture_and_end_inside_it(folder: Path) -> None:
    text = "cameras:\n  a: {kind: folder, source: x, rois: {date: {x: 0.5, width: 0.5, angle_deg: 90}}}\n"
    config = load_text(text)
    assert config.cameras["a"].rois["date"].angle_deg == 90
    assert config.cameras["a"].rois["date"].height == 1.0
    for wrong, said in (
        ("{x: 0.6, width: 0.5}", r"rois\.date\.width: x \+ width is 1\.1"),
        ("{y: 0.5}", r"rois\.date\.height: y \+ height is 1\.5"),
        ("{width: 0.0}", r"rois\.date\.width"),
        ("{x: 120}", r"rois\.date\.x"),
        ("{angle_deg: left}", r"rois\.date\.angle_deg"),
    ):
        with pytest.raises(ConfigError, match=said):
            load_text(f"cameras:\n  a: {{kind: folder, source: x, rois: {{date: {wrong}}}}}\n")


def test_region_is_set_by_the_environment_where_the_file_names_it(folder: Path) -> None:
    text = "cameras:\n  a: {kind: folder, source: x, rois: {date: {}}}\n"
    config = load_text(
        text, {"EDGE_AGENT_CAMERAS__A__ROIS__DATE__Y": "0.25", "EDGE_AGENT_CAMERAS__A__ROIS__DATE__HEIGHT": "0.5"}
    )
    assert (config.cameras["a"].rois["date"].y, config.cameras["a"].rois["date"].height) == (0.25, 0.5)


# --- load ---


def test_whole_file_becomes_settings(folder: Path) -> None:
    config = load_text(
        """
device_id: press-7
cameras:
  line1:
    kind: rtsp
    source: rtsp://admin@host/live
    password_file: secrets/line1
    max_fps: 5
  line2: {kind: csi, source: 1, width_px: 1280, height_px: 720}
pipeline: {languages: [en, "no"], encoder: null}
mqtt: {host: broker, protocol: 3.1.1, tls: true, ca_file: /etc/ca.pem}
"""
    )
    assert config.device_id == "press-7"
    assert config.cameras["line1"].password_file == folder / "secrets" / "line1"
    assert config.cameras["line1"].max_fps == 5.0
    assert config.cameras["line2"].source == "1"
    assert config.pipeline.languages == ("en", "no")
    assert config.pipeline.encoder is None
    assert config.mqtt.ca_file == Path("/etc/ca.pem")
    assert config.mqtt.protocol == "3.1.1"


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Config().mqtt.port = 1  # type: ignore[misc]


@pytest.mark.parametrize("text", [b"", b"# nothing yet\n", b"---\n", b"\xef\xbb\xbf"])
def test_empty_file_means_defaults_said_aloud(folder: Path, text: bytes) -> None:
    assert load_text(text) == Config()
    said = [caution.text for caution in cautions(Config(), Path("config.yaml"))]
    assert said[0] == "is empty: every setting has its default"


def test_settings_from_a_pipe_are_read_once(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"mqtt: {port: 1884}\n")
    os.close(writing)
    pipe = Path(f"/dev/fd/{reading}")
    config = load(pipe, {})
    assert config.mqtt.port == 1884
    assert [caution.text for caution in cautions(config, pipe)] == ["none is configured; nothing will be read"]
    os.close(reading)
    os.mkfifo(tmp_path / "pipe")  # nobody writes: opening it would block
    assert len(cautions(config, tmp_path / "pipe")) == 1


def test_heading_with_nothing_below_means_defaults(folder: Path) -> None:
    assert load_text("mqtt:\ncameras:\nlog:\n  # level: debug\n") == Config()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_mark_and_utf_16_load(folder: Path, encoding: str) -> None:
    assert load_text("mqtt:\n  host: münchen.local\n".encode(encoding)).mqtt.host == "münchen.local"


def test_missing_file_says_what_to_do(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"^config.yaml: there is no such file; .* copy of config.yaml"):
        load(Path("config.yaml"), {})


def test_folder_in_place_of_a_file_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="directory"):
        load(folder, {})


def test_endless_file_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="larger than 262144 bytes"):
        load(Path("/dev/zero"), {})


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (b"mqtt:\n  host: a\n  port: 1883\nmqtt:\n  port: 8883\n", "config.yaml:4: mqtt: is here a second time; first"),
        (b"mqtt:\n\thost: a\n", "config.yaml:2: is not YAML: a tab"),
        (b"site: M\xfcnchen\n", "config.yaml:1: byte 0xfc is not UTF-8"),
        (b"- a\n", "config.yaml:1: the top is a list"),
        (b"hello\n", "config.yaml:1: the top is a single value"),
        (b"log: {}\n---\nlog: {}\n", "config.yaml:2: a second document"),
        (b"log: " + b"[" * 5000, "config.yaml:1: is nested deeper"),
        (b"log: &a [*a]\n", "config.yaml:1: an alias (*) stands inside"),
        (b'x: !!python/object/apply:os.system ["true"]\n', "config.yaml:1: tags (!...) are not allowed"),
    ],
)
def test_broken_file_is_one_clear_line(folder: Path, text: bytes, start: str) -> None:
    (line,) = refusal(text)
    assert line.startswith(start)


def test_relative_paths_start_at_the_folder_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etc").mkdir()
    monkeypatch.chdir(tmp_path)
    path = Path("etc/config.yaml")
    path.write_text(
        "models_dir: engines\n"
        "mqtt: {tls: true, ca_file: ca.pem, username: u, password_file: /run/p}\n"
        "cameras:\n  a: {kind: folder, source: frames}\n  b: {kind: video, source: 'http://host/x.mjpg'}\n"
        "  c: {kind: rtsp, source: 'rtsp://host/live'}\n"
    )
    config = load(path, {"EDGE_AGENT_CAMERAS__D__KIND": "video", "EDGE_AGENT_CAMERAS__D__SOURCE": "clip.mp4"})
    assert config.models_dir == tmp_path / "etc" / "engines"
    assert config.mqtt.ca_file == tmp_path / "etc" / "ca.pem"
    assert config.mqtt.password_file == Path("/run/p")
    assert [c.source for c in config.cameras.values()] == [
        str(tmp_path / "etc" / "frames"),
        "http://host/x.mjpg",
        "rtsp://host/live",
        "clip.mp4",
    ]


# --- what is wrong ---


def test_every_problem_is_listed_at_once_with_line_and_key(folder: Path) -> None:
    lines = refusal(
        """
mqtt:
  port: 70000
  fsp: 3
cameras:
  line1:
    kind: rtsp
    source: rtsp://host/live
    fsp: 3
    max_fps: yes
log: {level: inf}
"""
    )
    assert [line.split(":", 3)[1:3] for line in lines] == [
        ["3", " mqtt.port"],
        ["4", " mqtt.fsp"],
        ["9", " cameras.line1.fsp"],
        ["10", " cameras.line1.max_fps"],
        ["11", " log.level"],
    ]
    assert lines[0] == "config.yaml:3: mqtt.port: 70000 is greater than 65535"
    assert lines[2].endswith("unknown key; did you mean max_fps?")
    assert lines[4].endswith("did you mean info?")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mqtt: {port: 70000}", "mqtt.port: 70000 is greater than 65535"),
        ("mqtt: {port: 0}", "mqtt.port: 0 is less than 1"),
        ("mqtt: {port: -1}", "mqtt.port: -1 is less than 1"),
        ("mqtt: {port: true}", "mqtt.port: true is not a whole number"),
        ("mqtt: {port: 1.5}", "mqtt.port: 1.5 is not a whole number"),
        ("mqtt: {port: '1883'}", "mqtt.port: '1883' is not a whole number"),
        ("mqtt: {port: }", "mqtt.port: is empty; expected a whole number"),
        ("mqtt: {tls: 1}", "mqtt.tls: 1 is not true or false"),
        ("mqtt: {tls: flase}", "mqtt.tls: 'flase' is not true or false"),
        ("mqtt: {host: ''}", "mqtt.host: is empty"),
        ("mqtt: {host: 12}", "mqtt.host: 12 is a number, not text; put it in quotes"),
        ("mqtt: {host: mqtt://broker}", "mqtt.host: a host is a name or an IP address alone"),
        ("mqtt: {host: 'broker:1883'}", "the port has its own key"),
        ("mqtt: {host: a b}", "mqtt.host: a host is a name or an IP address"),
        ("mqtt: {protocol: 4}", "mqtt.protocol: '4' is not '5' or '3.1.1'"),
        ("mqtt: {ca_file: ~/ca.pem, tls: true}", "mqtt.ca_file: a path cannot begin with ~"),
        ("mqtt: {ca_file: '', tls: true}", "mqtt.ca_file: is no path"),
        ("mqtt: 5", "mqtt: has keys below it, not 5"),
        ("cameras: [a]", "cameras: has keys below it, not a list"),
        ("cameras: {a: rtsp}", "cameras.a: has keys below it, not 'rtsp'"),
        ("cameras: {a: {kind: csi}}", "cameras.a.source: is missing; rtsp: an address"),
        ("cameras: {a: {source: 0}}", "cameras.a.kind: is missing; What delivers"),
        ("cameras: {a: {kind: usb, source: 0}}", "cameras.a.kind: 'usb' is not 'csi'"),
        ("pipeline: {languages: en}", "pipeline.languages: 'en' is not a list"),
        ("pipeline: {languages: [en, 5]}", "pipeline.languages[1]: 5 is a number, not text"),
        ("pipeline: {box_threshold: 1.5}", "pipeline.box_threshold: 1.5 is greater than 1.0"),
        ("telemetry: {interval_s: 1e999}", "telemetry.interval_s: '1e999' is too large a number"),
        ("port: 5", "port: unknown key; did you mean mqtt.port or metrics.port or web.port?"),
        ("password: x", "password: unknown key; did you mean mqtt.password_file?"),
        ("cameras: {a: {kind: csi, source: 0, password: x}}", "a.password: unknown key; did you mean password_file?"),
        ("zzzzz: 5", "zzzzz: unknown key; known here: backend, calibration, cameras"),
        ("__class__: 5", "__class__: unknown key"),
        ("transport: NO", "transport: 'NO' is true or false to YAML 1.1; put it in quotes"),
    ],
)
def test_wrong_value_is_named(folder: Path, text: str, message: str) -> None:
    (line,) = refusal(text)
    assert message in line
    assert line.startswith("config.yaml:1: ")


NO_TOPIC_LEVELS = ["line#1", "a/+/b", "x\\0", "x" * 70_000, "../other", "..", ".hidden", "", "a b", "ü", "a\\n", "$SYS"]


@pytest.mark.parametrize("name", NO_TOPIC_LEVELS)
def test_name_that_is_no_topic_level_is_refused(folder: Path, name: str) -> None:
    mqtt = [f'mqtt: {{{key}: "{name}"}}' for key in ("base_topic", "client_id", "home_assistant")]
    for text in (f'device_id: "{name}"', *mqtt, f'pipeline: {{detector: "{name}"}}'):
        (line,) = refusal(text)
        assert "is no name; expected 1 to 64 letters" in line or "control character" in line
        assert len(line) < 300
    (line,) = refusal(f'cameras: {{"{name[:1000]}": {{kind: csi, source: 0}}}}')  # YAML allows keys up to 1024
    assert "is no name; expected 1 to 64 letters" in line or "control character" in line


@pytest.mark.parametrize("name", ["line-1", "LINE_1.a", "7", "x" * 64])
def test_name_of_letters_digits_dot_dash_underscore_is_taken(name: str) -> None:
    assert Config(device_id=name, cameras={name: camera()}).device_id == name


@pytest.mark.parametrize("name", ["command", "config", "event", "health", "status", "telemetry"])
def test_camera_cannot_have_the_name_of_a_device_topic(folder: Path, name: str) -> None:
    (line,) = refusal(f"cameras:\n  {name}: {{kind: csi, source: 0}}\n")
    assert line.startswith(f"config.yaml:2: cameras.{name}: is a topic of the device itself")


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "models/../../x", "..%2f..%2fetc", "x" * 300])
def test_model_name_that_leaves_the_folder_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        PipelineConfig(detector=name)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reconnect_min_s": 40}, "reconnect_min_s: 40 is greater than reconnect_max_s, 30"),
        ({"width_px": 640}, "height_px: is missing; width_px and height_px go together"),
        ({"height_px": 480}, "width_px: is missing"),
        ({"pace": "every_frame"}, "pace: every_frame is for folder and video, not for rtsp"),
        ({"loop": True}, "loop: true is for folder and video"),
        ({"source": "rtps://host/live"}, "source: an rtsp source cannot begin with rtps://; did you mean rtsp://"),
        ({"kind": "csi", "source": "16"}, "source: a csi source is the number of the sensor"),
        ({"password_file": Path("p")}, "password_file: needs a user in the source"),
        ({"kind": "csi", "source": "0", "password_file": Path("p")}, "password_file: is for rtsp, not for csi"),
    ],
)
def test_camera_keys_that_disagree_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(message)):
        camera(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reconnect_min_s": 100}, "reconnect_min_s: 100 is greater than reconnect_max_s, 60"),
        ({"ca_file": Path("/ca")}, "ca_file: is for an encrypted connection; write tls: true"),
        ({"tls": True, "cert_file": Path("/c")}, "key_file: is missing; cert_file and key_file go together"),
        ({"tls": True, "key_file": Path("/k")}, "cert_file: is missing"),
        ({"password_file": Path("/p")}, "username: is missing; a password needs one"),
        ({"username": "u", "password_file": Path("/p"), "password": SecretStr("x")}, "both give a password"),
    ],
)
def test_mqtt_keys_that_disagree_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(message)):
        MqttConfig(**settings)


def test_detector_sides_must_be_in_order(folder: Path) -> None:
    assert refusal("pipeline:\n  detector_max_side_px: 64\n") == [
        "config.yaml:1: pipeline.detector_min_side_px: 736 is greater than detector_max_side_px, 64"
    ]


def test_all_disagreements_of_a_camera_are_listed_on_their_lines(folder: Path) -> None:
    text = "cameras:\n  a:\n    kind: csi\n    source: 99\n    loop: true\n    width_px: 640\n"
    assert [line.split(":", 3)[1:3] for line in refusal(text)] == [
        ["2", " cameras.a.height_px"],
        ["4", " cameras.a.source"],
        ["5", " cameras.a.loop"],
    ]


def test_consequences_of_a_trap_are_not_listed(folder: Path) -> None:
    text = "cameras:\n  a: {kind: no, source: 0, width_px: 0640, height_px: 480}\n"
    assert [line.split(": ")[1] for line in refusal(text)] == ["cameras.a.kind", "cameras.a.width_px"]
    (line,) = refusal("mqtt: {ca_file: /ca}", {"EDGE_AGENT_MQTT__TLS": "flase"})
    assert line.startswith("EDGE_AGENT_MQTT__TLS: ")


# --- environment ---


def test_environment_overrides_the_file(folder: Path) -> None:
    text = "mqtt: {host: a, port: 1884}\ncameras: {Line-1: {kind: rtsp, source: 'rtsp://h/a'}}\n"
    environ = {
        "EDGE_AGENT_MQTT__HOST": "b",
        "EDGE_AGENT_MQTT__PORT": "",
        "EDGE_AGENT_CAMERAS__LINE_1__SOURCE": "rtsp://h/b",
        "EDGE_AGENT_PIPELINE__LANGUAGES": "en,fr",
    }
    config = load_text(text, environ)
    assert (config.mqtt.host, config.mqtt.port) == ("b", 1884)
    assert config.cameras["Line-1"].source == "rtsp://h/b"
    assert config.pipeline.languages == ("en", "fr")


def test_wrong_variable_is_named_with_its_key(folder: Path) -> None:
    assert refusal("", {"EDGE_AGENT_MQTT__PORT": "70000", "EDGE_AGENT_MQTT__HOTS": "x"}) == [
        "EDGE_AGENT_MQTT__HOTS: sets no key; did you mean EDGE_AGENT_MQTT__HOST?",
        "EDGE_AGENT_MQTT__PORT: mqtt.port: 70000 is greater than 65535",
    ]


def test_without_a_file_there_are_defaults_and_environment() -> None:
    assert without_file({}) == Config()
    assert without_file({"EDGE_AGENT_MQTT__PORT": "8883"}).mqtt.port == 8883
    with pytest.raises(ConfigError, match=r"^EDGE_AGENT_MQTT__PORT: mqtt.port: 0 is less than 1$"):
        without_file({"EDGE_AGENT_MQTT__PORT": "0"})


# --- secrets ---


def test_password_comes_by_environment_or_file_only(folder: Path) -> None:
    (line,) = refusal("mqtt:\n  username: u\n  password: S3cret\n")
    assert line.startswith("config.yaml:3: mqtt.password: does not belong here; use password_file, or the variable")
    assert "S3cret" not in line
    config = load_text("mqtt: {username: u}", {"EDGE_AGENT_MQTT__PASSWORD": "S3cret!"})
    assert config.mqtt.read_password() == "S3cret!"
    Path("password").write_text("fr0m file\n")
    Path("password").chmod(0o600)
    assert load_text("mqtt: {username: u, password_file: password}").mqtt.read_password() == "fr0m file"
    assert Config().mqtt.read_password() is None


SECRET_SOURCES = [
    "rtsp://admin:S3cret%21pw@127.0.0.1:1/live",
    "rtsp://admin:S3cr#t@pw@host/live",
    "rtps://admin:S3cret%21pw@127.0.0.1:1/live",
    "rtsp://admin:S3cr/t@pw@host/live",
    "admin:S3cret@host",
]


@pytest.mark.parametrize("source", SECRET_SOURCES)
@pytest.mark.parametrize(
    "text",
    [
        "cameras: {{a: {{kind: csi, source: '{}'}}}}",
        "cameras: {{a: {{kind: rtsp, source: '{}', pace: every_frame, width_px: 5}}}}",
        "cameras: {{a: {{kind: rtsp, source: ['{}']}}}}",
        "cameras: {{a: {{kind: rtsp, surce: '{}'}}}}",
        "cameras: {{a: {{kind: rtsp, source: rtsp://h/, password_file: '{}'}}}}",
        "cameras: {{'{}': {{kind: rtsp}}}}",
        "cameras: ['{}']",
        "cameras: '{}'",
        "mqtt: {{password: '{}'}}",
        "mqtt: {{username: ['{}']}}",
        "'{}': 1",
    ],
)
def test_no_message_repeats_a_password(folder: Path, text: str, source: str) -> None:
    assert "S3cr" not in "\n".join(refusal(text.format(source)))


@pytest.mark.parametrize("source", SECRET_SOURCES)
def test_no_pydantic_error_repeats_a_password(source: str) -> None:
    with pytest.raises(ValidationError) as caught:
        CameraConfig(kind="csi", source=source)
    assert "S3cr" not in str(caught.value)


@pytest.mark.parametrize(("mode", "warned"), [(0o644, True), (0o640, True), (0o600, False)])
def test_file_with_a_password_that_others_may_read_is_warned_of(folder: Path, mode: int, warned: bool) -> None:
    Path("config.yaml").touch()
    Path("config.yaml").chmod(mode)
    config = load_text("cameras: {a: {kind: rtsp, source: 'rtsp://u:S3cret@h/'}}")
    said = "\n".join(caution.text for caution in cautions(config, Path("config.yaml")))
    assert ("holds a password: config.yaml may be read by others" in said) == warned
    assert "S3cret" not in said


def test_private_files_that_others_may_read_are_warned_of_once_each(folder: Path) -> None:
    for name in ("camera", "mqtt", "key", "spare"):
        Path(name).write_text("S3cret\n", encoding="utf-8")
        Path(name).chmod(0o644)
    config = load_text(
        "cameras:\n"
        "  a: {kind: rtsp, source: rtsp://u@h/, password_file: camera}\n"
        "  b: {kind: rtsp, source: rtsp://u@h/, password_file: spare, enabled: false}\n"
        "mqtt: {tls: true, ca_file: ca, cert_file: cert, key_file: key, port: 8883, username: u, password_file: mqtt}\n"
    )
    said = {dotted(caution.path): caution.text for caution in cautions(config)}
    assert set(said) == {"cameras.a.password_file", "mqtt.password_file", "mqtt.key_file"}
    assert said["mqtt.key_file"] == f"{folder}/key may be read by others (mode 0644); run: chmod 600 {folder}/key"
    for name in ("camera", "mqtt", "key"):
        Path(name).chmod(0o600)
    assert cautions(config) == []


@pytest.mark.parametrize("key", ["models_dir", "mqtt.ca_file", "mqtt.password_file"])
def test_address_in_place_of_a_path_is_refused_without_its_password(folder: Path, key: str) -> None:
    section, _, name = key.rpartition(".")
    line = f"{name}: rtsp://admin:S3cret@host/live"
    (said,) = refusal(f"{section}: {{username: u, tls: true, {line}}}" if section else line)
    assert f"{key}: is an address; expected a path to a file or folder" in said
    assert "S3cret" not in said


def test_shown_settings_hold_no_password() -> None:
    config = Config(
        cameras={"a": camera(source="rtsp://admin:S3cr#t@pw@host/live")},
        mqtt=MqttConfig(username="u", password=SecretStr("S3cret")),
    )
    text = dump(shown(config))
    assert "rtsp://admin:***@host/live" in text
    assert "S3cr" not in text + repr(config.mqtt)
    assert value_at(plain(config), ("mqtt", "password")) is None


def test_plain_settings_load_back_the_same(folder: Path) -> None:
    config = load_text("cameras: {'no': {kind: folder, source: frames, max_fps: 5}}\nmodels_dir: '0012'\n")
    assert load_text(dump(plain(config))) == config


# --- cautions ---


def test_settings_that_are_hardly_meant_are_cautioned() -> None:
    config = Config(
        cameras={
            "a": CameraConfig(kind="v4l2", source="0"),
            "b": camera(source="rtsp://u:S3cret@h/"),
            "c": camera(source="rtsp://u:S3cret@h/"),
            "d": camera(source="rtsp://u:S3cret@h/", enabled=False),
        },
        mqtt=MqttConfig(host="broker", username="u", port=8883),
    )
    found = [(dotted(caution.path), caution.text) for caution in cautions(config)]
    assert [path for path, _ in found] == [
        *["cameras.a.source", "cameras.b.source", "cameras.c.source", "cameras.c.source", "cameras.d.source"],
        *["mqtt.port", "mqtt.tls"],
    ]
    assert "/dev/v4l/by-id" in found[0][1]
    assert "that of camera b as well" in found[3][1]
    assert "S3cret" not in str(found)


def test_no_camera_is_cautioned_and_the_system_store_is_said() -> None:
    assert [dotted(caution.path) for caution in cautions(Config())] == ["cameras"]
    config = Config(cameras={"a": camera()}, mqtt=MqttConfig(tls=True, port=8883))
    (caution,) = cautions(config)
    assert "those that the system trusts" in caution.text


def test_sound_settings_are_not_cautioned() -> None:
    mqtt = MqttConfig(host="broker", username="u", tls=True, port=8883, ca_file=Path("/ca.pem"))
    assert cautions(Config(cameras={"a": camera(source="rtsp://u@h/")}, mqtt=mqtt)) == []


# --- device ---


def test_device_name_is_configured_or_made_from_the_hashed_machine_id(tmp_path: Path) -> None:
    machine_id = tmp_path / "machine-id"
    machine_id.write_text("0123456789abcdef0123456789abcdef\n")
    assert Config(device_id="press-7").device(machine_id) == "press-7"
    name = Config().device(machine_id)
    assert re.fullmatch(r"edge-[0-9a-f]{12}", name)
    assert name.removeprefix("edge-") not in machine_id.read_text()
    assert Config().device(machine_id) == name
    machine_id.write_text("1123456789abcdef0123456789abcdef\n")
    assert Config().device(machine_id) != name


@pytest.mark.parametrize("content", [None, b"", b"uninitialized\n", b"\xff", b"0" * 32])
def test_device_name_falls_back_to_the_host(
    tmp_path: Path, content: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Jetson #4.plant.local")
    machine_id = tmp_path / "machine-id"
    if content is not None:
        machine_id.write_bytes(content)
    name = Config().device(machine_id)
    assert name == "edge-Jetson--4"
    assert Config(device_id=name).device() == name


# --- patched ---


def test_patch_changes_what_it_names_and_nothing_else() -> None:
    config = Config(cameras={"a": camera(max_fps=5.0)}, mqtt=MqttConfig(port=1884))
    new = patched(config, {"cameras": {"a": {"max_fps": 7}}, "pipeline": {"languages": ["de"]}})
    assert new.cameras["a"].max_fps == 7.0
    assert new.pipeline.languages == ("de",)
    assert new.mqtt.port == 1884
    assert config.cameras["a"].max_fps == 5.0
    assert patched(config, {}) == config


def test_null_in_a_patch_gives_the_default_or_removes_a_camera() -> None:
    config = Config(cameras={"a": camera(), "b": camera()}, mqtt=MqttConfig(port=1884))
    assert patched(config, {"mqtt": {"port": None}}).mqtt.port == 1883
    assert patched(config, {"mqtt": None}).mqtt == MqttConfig()
    assert list(patched(config, {"cameras": {"a": None}}).cameras) == ["b"]
    assert patched(config, {"cameras": None}).cameras == {}


def test_patch_adds_a_camera_and_anchors_its_paths() -> None:
    new = patched(Config(), {"cameras": {"c": {"kind": "folder", "source": "frames"}}}, folder=Path("/etc/edge"))
    assert new.cameras["c"].source == "/etc/edge/frames"


def test_patch_is_as_strict_as_a_file() -> None:
    with pytest.raises(ConfigError) as caught:
        patched(Config(), {"mqtt": {"port": 70000, "tls": "yes"}, "nothing": 1}, origin="config/desired")
    assert str(caught.value).splitlines() == [
        "config/desired: mqtt.port: 70000 is greater than 65535",
        "config/desired: mqtt.tls: 'yes' is not true or false",
        "config/desired: nothing: unknown key; known here: " + ", ".join(sorted(Config.model_fields)),
    ]


def test_patch_cannot_set_a_password_and_keeps_that_of_the_environment() -> None:
    config = Config(mqtt=MqttConfig(username="u", password=SecretStr("S3cret")))
    assert patched(config, {"mqtt": {"port": 1884}}).mqtt.read_password() == "S3cret"
    with pytest.raises(ConfigError, match=r"^patch: mqtt.password: does not belong here"):
        patched(Config(), {"mqtt": {"username": "u", "password": "x"}})


@pytest.mark.parametrize(
    "patch",
    [
        {"cameras": []},
        {"cameras": 5},
        {"mqtt": "x"},
        {"mqtt": []},
        {"pipeline": {"languages": None, "detector": {"x": 1}}},
        {"pipeline": {"languages": "en"}},
        {"cameras": {"a": {"kind": "csi"}}},
    ],
)
def test_patch_of_the_wrong_shape_is_refused(patch: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="^patch: "):
        patched(Config(), patch)


# --- what changed, what is live ---


def test_changed_keys_are_dotted() -> None:
    old = Config(cameras={"a": camera()})
    new = patched(old, {"cameras": {"a": {"max_fps": 3}}, "mqtt": {"host": "b"}, "pipeline": {"languages": ["en"]}})
    assert changed_keys(old, new) == {"cameras.a.max_fps", "mqtt.host", "pipeline.languages"}
    assert changed_keys(old, old) == set()


def test_camera_that_comes_or_goes_changes_all_its_keys() -> None:
    old, new = Config(), Config(cameras={"x.max_fps": camera()})
    assert (
        changed_keys(old, new)
        == changed_keys(new, old)
        == {f"cameras.x.max_fps.{dotted(leaf.path)}" for leaf in leaves(CameraConfig, {})}
    )
    assert not all(is_live(key) for key in changed_keys(old, new))


def test_changed_password_is_seen() -> None:
    old = Config(mqtt=MqttConfig(username="u", password=SecretStr("a")))
    new = Config(mqtt=MqttConfig(username="u", password=SecretStr("b")))
    assert changed_keys(old, new) == {"mqtt.password"}


def test_live_keys_exist_and_others_need_a_restart() -> None:
    existing = {
        dotted(leaf.path)
        for leaf in leaves(Config, {"cameras": {"*": {"rois": {"date": {}}}}, "fields": {"custom": {"lot": {}}}})
    }
    assert all(any(fnmatch.fnmatchcase(key, pattern) for key in existing) for pattern in LIVE)
    assert is_live("cameras.line.1.max_fps")
    assert is_live("telemetry.interval_s")
    assert not is_live("mqtt.host")
    assert not is_live("cameras.a.source")


# --- what may be changed from afar ---


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("allowed_keys: [mqtt.host]", "remote.allowed_keys[0]: mqtt is never changed from afar"),
        ("allowed_keys: [fields, remote]", "remote.allowed_keys[1]: remote is never changed from afar"),
        ('allowed_keys: ["*"]', "remote.allowed_keys[0]: device_id is never changed from afar"),
        ("allowed_keys: [log.lvel]", "remote.allowed_keys[0]: names no key"),
        ("camera_hosts: [rtsp://a]", "remote.camera_hosts[0]: expected names"),
        ("camera_hosts: [1.2.3]", "remote.camera_hosts[0]: expected names"),
        ("camera_folders: [pictures]", "remote.camera_folders[0]: is relative"),
        ("commands: [reboot]", "remote.commands[0]: 'reboot' is not"),
        ("max_bytes: 100", "remote.max_bytes: 100 is less than 1024"),
    ],
)
def test_wrong_permission_for_changes_from_afar_is_named(folder: Path, settings: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(f"remote:\n  {settings}\n")
    assert message in str(caught.value)


def test_permissions_for_changes_from_afar_are_taken(folder: Path) -> None:
    remote = load_text(
        "remote:\n  allowed_keys: [cameras, log]\n  commands: [ping]\n  camera_folders: [/srv/pictures]\n"
        '  camera_hosts: [cam1, "*.plant.example", 192.0.2.0/24, "2001:db8::/32", 192.0.2.1]\n'
    ).remote
    assert remote.allowed_keys == ("cameras", "log")
    assert remote.commands == ("ping",)
    assert remote.camera_hosts[1:3] == ("*.plant.example", "192.0.2.0/24")


def test_no_path_is_among_the_keys_that_may_be_changed_from_afar_by_default() -> None:
    allowed = Config().remote.allowed_keys
    changeable = [leaf for leaf in leaves(Config, {"cameras": {"a": {}}}) if any(covers(p, leaf.path) for p in allowed)]
    assert len(changeable) > 10
    assert not [leaf for leaf in changeable if leaf.kinds & {Path, SecretStr}]
    assert not [leaf for leaf in changeable if leaf.path[-1] == "source"]


# --- the models take Python values too ---


def test_models_take_python_values_and_stay_strict() -> None:
    assert camera(open_timeout_s=2).open_timeout_s == 2.0
    assert MqttConfig(protocol="3.1.1").protocol == "3.1.1"
    assert kinds_of(CameraConfig.model_fields["loop"].annotation) == {bool}
    for settings in ({"max_fps": True}, {"loop": 1}, {"max_fps": float("nan")}, {"password_file": "x"}):
        with pytest.raises(ValidationError):
            camera(**settings)


def test_nothing_is_logged_for_a_good_file(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert load_text("device_id: a\n").device_id == "a"
    assert caplog.text == ""
    assert parse(b"device_id: a\n", "config.yaml") == {"device_id": "a"}
