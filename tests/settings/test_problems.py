"""Problems: one line each, in order, and never a secret."""

from __future__ import annotations

import pytest

from edge_agent.settings.problems import Problem, dotted, listed, shown, shown_key


def test_problems_are_listed_by_line_with_origin_and_key() -> None:
    problems = [
        Problem(12, ("mqtt", "port"), "70000 is greater than 65535"),
        Problem(3, (), "is not YAML"),
        Problem(0, ("mqtt", "host"), "is empty", origin="EDGE_AGENT_MQTT__HOST"),
    ]
    assert listed("config.yaml", problems).splitlines() == [
        "EDGE_AGENT_MQTT__HOST: mqtt.host: is empty",
        "config.yaml:3: is not YAML",
        "config.yaml:12: mqtt.port: 70000 is greater than 65535",
    ]


def test_path_is_written_with_dots_and_brackets() -> None:
    assert dotted(("pipeline", "languages", 2)) == "pipeline.languages[2]"


@pytest.mark.parametrize(
    ("value", "text"),
    [("abc", "'abc'"), (70000, "70000"), (True, "true"), (None, "null"), ([1], "a list"), ({"a": 1}, "a mapping")],
)
def test_value_is_shown_as_in_the_file(value: object, text: str) -> None:
    assert shown(("mqtt", "host"), value) == text


@pytest.mark.parametrize("key", ["password", "username", "source"])
def test_value_of_a_secret_key_is_not_shown(key: str) -> None:
    assert "S3cret" not in shown(("mqtt", key), "S3cret")


def test_password_of_an_address_is_not_shown_whatever_the_key() -> None:
    assert shown(("cameras",), "rtsp://admin:S3cr#t@pw@host/live") == "'rtsp://admin:***@host/live'"


def test_long_values_and_keys_are_cut() -> None:
    assert shown(("k",), "x" * 70_000).endswith("(70002 characters)")
    assert len(shown_key("x" * 70_000)) < 100


def test_key_is_shown_without_passwords_and_control_characters() -> None:
    assert shown_key("rtsp://admin:S3cret@host/live\x00\n") == "rtsp://admin:***@host/live??"
