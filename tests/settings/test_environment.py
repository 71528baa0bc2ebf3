"""Environment: EDGE_AGENT_* sets keys over the file, and nothing else passes unseen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edge_agent.config import Config
from edge_agent.settings.environment import overrides, variable_of

CAMERAS: dict[str, Any] = {"cameras": {"line1": {"kind": "rtsp"}, "Line-2.a": {"kind": "csi"}}}


def values(environ: dict[str, str], base: dict[str, Any] | None = None) -> dict[str, Any]:
    found = overrides(Config, base or {}, environ)
    assert not found.problems
    return found.values


def problem(variable: str, text: str, base: dict[str, Any] | None = None) -> str:
    found = overrides(Config, base or {}, {variable: text})
    assert not found.values
    (only,) = found.problems
    assert only.origin == variable
    return only.text


def test_section_key_and_top_key_are_set() -> None:
    environ = {"EDGE_AGENT_MQTT__HOST": "broker", "EDGE_AGENT_MQTT__PORT": "8883", "EDGE_AGENT_DEVICE_ID": "press7"}
    assert values(environ) == {"mqtt": {"host": "broker", "port": 8883}, "device_id": "press7"}


def test_other_variables_are_not_looked_at() -> None:
    assert values({"PATH": "/bin", "EDGE_AGENTS": "x", "edge_agent_mqtt__host": "x"}) == {}


def test_empty_variable_is_as_good_as_none() -> None:
    assert values({"EDGE_AGENT_MQTT__PORT": "", "EDGE_AGENT_MQTT__TLS": "", "EDGE_AGENT_TYPO": ""}) == {}


@pytest.mark.parametrize("text", ["true", "True", "YES", "on", "1"])
def test_boolean_words_for_true(text: str) -> None:
    assert values({"EDGE_AGENT_MQTT__TLS": text}) == {"mqtt": {"tls": True}}


@pytest.mark.parametrize("text", ["false", "False", "No", "OFF", "0"])
def test_boolean_words_for_false(text: str) -> None:
    assert values({"EDGE_AGENT_MQTT__TLS": text}) == {"mqtt": {"tls": False}}


@pytest.mark.parametrize("text", ["flase", "2", "y", " true", "none"])
def test_other_words_are_no_boolean(text: str) -> None:
    assert "is neither true (yes, on, 1) nor false" in problem("EDGE_AGENT_MQTT__TLS", text)


@pytest.mark.parametrize(
    ("text", "number"), [("10", 10), ("0.5", 0.5), (".5", 0.5), ("+3", 3), ("007", 7), ("1e3", 1e3)]
)
def test_numbers_are_decimal(text: str, number: float) -> None:
    assert values({"EDGE_AGENT_TELEMETRY__INTERVAL_S": text}) == {"telemetry": {"interval_s": number}}


@pytest.mark.parametrize("text", ["nan", "inf", "1_000", "0x10", "ten", "1 ", "1e9999", "--1", "٣"])
def test_what_is_no_number_is_refused(text: str) -> None:
    assert "is not a number" in problem("EDGE_AGENT_TELEMETRY__INTERVAL_S", text)


def test_list_is_separated_by_commas() -> None:
    assert values({"EDGE_AGENT_PIPELINE__LANGUAGES": "en, de"}) == {"pipeline": {"languages": ["en", "de"]}}


def test_relative_path_starts_at_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert values({"EDGE_AGENT_MODELS_DIR": "engines"}) == {"models_dir": str(tmp_path / "engines")}


def test_text_that_looks_like_a_number_stays_text() -> None:
    assert values({"EDGE_AGENT_DEVICE_ID": "0012"}) == {"device_id": "0012"}


def test_camera_of_the_file_is_found_whatever_its_case_and_signs() -> None:
    environ = {"EDGE_AGENT_CAMERAS__LINE1__SOURCE": "rtsp://h/a", "EDGE_AGENT_CAMERAS__LINE_2_A__MAX_FPS": "5"}
    assert values(environ, CAMERAS) == {"cameras": {"line1": {"source": "rtsp://h/a"}, "Line-2.a": {"max_fps": 5}}}


def test_camera_that_the_file_lacks_is_a_new_one() -> None:
    environ = {"EDGE_AGENT_CAMERAS__LINE3__KIND": "csi", "EDGE_AGENT_CAMERAS__LINE3__SOURCE": "0"}
    assert values(environ) == {"cameras": {"line3": {"kind": "csi", "source": "0"}}}


def test_variable_that_fits_two_cameras_is_refused() -> None:
    base = {"cameras": {"line-1": {"kind": "csi"}, "line.1": {"kind": "csi"}}}
    text = problem("EDGE_AGENT_CAMERAS__LINE_1__SOURCE", "0", base)
    assert "could be cameras.line-1.source or cameras.line.1.source" in text


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("EDGE_AGENT_MQTT__HOSTS", "EDGE_AGENT_MQTT__HOST"),
        ("EDGE_AGENT_MQTT_HOST", "EDGE_AGENT_MQTT__HOST"),
        ("EDGE_AGENT_DEVICEID", "EDGE_AGENT_DEVICE_ID"),
        ("EDGE_AGENT_CAMERAS__LINE1__SORCE", "EDGE_AGENT_CAMERAS__LINE1__SOURCE"),
    ],
)
def test_unknown_variable_is_refused_with_the_near_one(variable: str, near: str) -> None:
    assert f"did you mean {near}?" in problem(variable, "S3cret", CAMERAS)


def test_unknown_variable_without_a_near_one_is_refused() -> None:
    assert "sets no key; expected a name such as EDGE_AGENT_" in problem("EDGE_AGENT_ZZZZZZ", "1")


def test_no_problem_repeats_a_secret() -> None:
    assert "S3cret" not in problem("EDGE_AGENT_CAMERAS__LINE1__SOURCE", "rtsp://a:S3cret@h\n", CAMERAS)
    assert "S3cret" not in problem("EDGE_AGENT_MQTT__PASSWORD", "S3cret\udcff")


def test_variable_of_a_key() -> None:
    assert variable_of(("cameras", "line-1", "max_fps")) == "EDGE_AGENT_CAMERAS__LINE_1__MAX_FPS"
