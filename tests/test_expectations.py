from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edge_agent import expectations as room
from edge_agent.config import Config, patched
from edge_agent.expectations import FILE, Expectations
from edge_agent.records import Message
from tests.contract import check

CONFIG = patched(
    Config(),
    {"cameras": {"line1": {"kind": "folder", "source": "x", "rois": {"top": {}}, "expected": [{"field": "lot"}]}}},
)
JOB = {"id": "job-7", "expected": [{"field": "lot", "pattern": "L9999A"}], "rois": {"top": [{"field": "serial"}]}}


class Plant:
    """Expectations, and what they report."""

    def __init__(self, file: Path | None = None, config: Config = CONFIG) -> None:
        self.now = 0.0
        self.messages: list[Message] = []
        self.expectations = Expectations(config, self.messages.append, file, lambda: 5.0, lambda: self.now)

    def say(self, wish: object, camera: str = "line1") -> dict[str, Any]:
        self.expectations.hear(camera, wish if isinstance(wish, bytes) else json.dumps(wish).encode())
        self.expectations.attend()
        return self.last()

    def last(self) -> dict[str, Any]:
        message = self.messages[-1]
        check(message.topic, message.payload)
        assert message.retain
        return dict(json.loads(message.payload))

    @property
    def id(self) -> str | None:
        found = self.expectations.of("line1")
        return None if found is None else found.id


def test_plant_takes_the_place_of_the_settings_until_it_takes_its_word_back() -> None:
    plant = Plant()
    of_settings = plant.id
    assert of_settings is not None and of_settings.startswith("config-")
    report = plant.say(JOB)
    assert (report["id"], report["code"], plant.id) == ("job-7", 200, "job-7")
    found = plant.expectations.of("line1")
    assert found is not None and [rule.field for rule in found.rois["top"]] == ["serial"]
    assert set(plant.expectations.masks("line1", None)) == {"lot"}
    report = plant.say(b"")
    assert (report["id"], report["code"], plant.id) == (of_settings, 200, of_settings)
    assert plant.expectations.masks("line1", None) == {}


def test_expectation_outlives_a_restart_and_is_reported_again(tmp_path: Path) -> None:
    file = tmp_path / FILE
    assert Plant(file).say(JOB)["detail"] == "in force"
    after = Plant(file)
    assert after.id == "job-7"
    assert after.last()["detail"] == "in force since before this start"
    after.say(b"")
    assert Plant(file).id == Plant().id


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (b"no json", "is not JSON"),
        ({"expected": []}, "id: is missing"),
        ({"id": "config-1"}, "config- begins the ids"),
        ({"id": "j", "rois": {"side": []}}, "the camera has no region side"),
        ({"id": "j", "expected": [{"date": "expiry >= yesterday"}]}, "expected[0].date: 'yesterday' is no date"),
        ({"id": "j", "expected": [{"field": "lot"}] * 65}, "65"),
        ({"id": "j", "more": 1}, "unknown key"),
        (b'{"id": "' + b"j" * 70_000 + b'"}', "bytes are more than remote.max_bytes"),
        (b'{"id": "a", "id": "b"}', "twice in one object"),
    ],
)
def test_expectation_that_cannot_be_followed_is_refused_and_the_one_before_stays(wish: object, why: str) -> None:
    plant = Plant()
    plant.say(JOB)
    report = plant.say(wish)
    assert (report["code"], report["id"], plant.id) == (400, "job-7", "job-7")
    assert why in report["detail"]


def test_unknown_camera_is_answered_by_nothing() -> None:
    plant = Plant()
    plant.expectations.hear("line9", json.dumps(JOB).encode())
    plant.expectations.attend()
    assert plant.messages == []


def test_flood_is_taken_by_the_minute_and_only_the_newest_counts(tmp_path: Path) -> None:
    plant = Plant(tmp_path / FILE)
    for n in range(500):
        plant.expectations.hear("line1", json.dumps({**JOB, "id": f"job-{n}"}).encode())
        plant.expectations.attend()
    assert len(plant.messages) <= room.TAKEN_PER_MIN
    plant.now = 120.0
    plant.expectations.attend()
    assert plant.id == "job-499"


def test_disk_that_keeps_nothing_is_told_and_the_expectation_holds(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    plant = Plant(tmp_path / "file" / FILE)
    report = plant.say(JOB)
    assert (report["code"], plant.id) == (200, "job-7")
    assert "in force, until the next start alone" in report["detail"]


@pytest.mark.parametrize(
    "content", ['{"line1": {"id": 7}}', "", "[]", "[" * 200_000, "\0"], ids=["id", "none", "list", "deep", "nul"]
)
def test_damaged_file_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    assert Plant(tmp_path / FILE).id == Plant().id


def test_changed_settings_hold_where_the_plant_says_nothing() -> None:
    plant = Plant()
    before = plant.id
    plant.expectations.tune(patched(CONFIG, {"cameras": {"line1": {"expected": [{"field": "serial"}]}}}))
    assert plant.id not in (before, None)
    plant.say(JOB)
    plant.expectations.tune(CONFIG)
    assert plant.id == "job-7"
