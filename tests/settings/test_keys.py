"""Keys: the tree of settings, and small operations on trees of plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edge_agent.config import Config
from edge_agent.settings.cameras import CameraConfig
from edge_agent.settings.keys import (
    covers,
    filled,
    kinds_of,
    leaves,
    merge_patched,
    merged,
    model_at,
    near_keys,
    value_at,
)
from edge_agent.settings.mqtt import MqttConfig


def test_kinds_are_types_without_constraints() -> None:
    fields = CameraConfig.model_fields
    assert kinds_of(fields["password_file"].annotation) == {Path, type(None)}
    assert kinds_of(fields["kind"].annotation) == {str}
    assert kinds_of(fields["max_fps"].annotation) == {float, type(None)}


def test_leaves_are_all_keys_and_those_of_cameras_that_are_there() -> None:
    paths = {leaf.path for leaf in leaves(Config, {"cameras": {"line1": None}})}
    assert {("device_id",), ("mqtt", "port"), ("cameras", "line1", "source")} <= paths
    assert ("mqtt",) not in paths


def test_model_at_a_path() -> None:
    assert model_at(Config, ("mqtt",)) is MqttConfig
    assert model_at(Config, ("cameras", "line1")) is CameraConfig
    assert model_at(Config, ("nothing",)) is None


@pytest.mark.parametrize(
    ("word", "near"),
    [("fsp", ["max_fps"]), ("prot", ["port"]), ("reconnect_min", ["reconnect_min_s"]), ("zzz", [])],
)
def test_near_keys_look_at_parts_too(word: str, near: list[str]) -> None:
    assert near_keys(word, ["max_fps", "port", "reconnect_min_s"]) == near


def test_merged_keeps_what_is_not_overridden() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 9}, "e": {"f": 1}}) == {
        "a": {"b": 9, "c": 2},
        "d": 3,
        "e": {"f": 1},
    }


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [  # RFC 7396, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_follows_rfc_7396(target: Any, patch: Any, result: Any) -> None:
    assert merge_patched(target, patch) == result


def test_heading_without_keys_is_an_empty_block() -> None:
    assert filled(Config, {"mqtt": None, "cameras": {"line1": None}, "device_id": None}) == {
        "mqtt": {},
        "cameras": {"line1": {}},
        "device_id": None,
    }
    assert filled(Config, {"cameras": None}) == {"cameras": {}}


def test_value_at_a_path() -> None:
    assert value_at({"a": {"b": 1}}, ("a", "b")) == 1
    assert value_at({"a": 1}, ("a", "b")) is None


@pytest.mark.parametrize(
    ("pattern", "key", "covered"),
    [
        ("fields", "fields.date_order", True),
        ("fields", "fields", True),
        ("fields", "fieldsx.date_order", False),
        ("log.level", "log.level", True),
        ("log.level", "log", False),
        ("log.level", "log.level.x", True),
        ("cameras.*.max_fps", "cameras.line1.max_fps", True),
        ("cameras.*.max_fps", "cameras.line1.source", False),
        ("cameras.*.max_fps", "cameras.line1", False),
        ("cameras.*", "cameras.line1.source", True),
    ],
)
def test_pattern_covers_a_key_and_those_below_it(pattern: str, key: str, covered: bool) -> None:
    assert covers(pattern, tuple(key.split("."))) == covered


def test_part_of_a_key_may_hold_dots() -> None:
    assert covers("cameras.*.max_fps", ("cameras", "line.1", "max_fps"))
