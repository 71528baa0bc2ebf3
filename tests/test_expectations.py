from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from edge_agent import expectations as room
from edge_agent.config import Config, patched
from edge_agent.expectations import FILE, Expectations
from edge_agent.files import write_atomically
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

    def hear(self, wish: object, camera: str = "line1") -> None:
        self.expectations.hear(camera, wish if isinstance(wish, bytes) else json.dumps(wish).encode())

    def say(self, wish: object, camera: str = "line1") -> dict[str, Any]:
        self.hear(wish, camera)
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
    assert set(found.masks(None)) == {"lot"}
    report = plant.say(b"")
    assert (report["id"], report["code"], plant.id) == (of_settings, 200, of_settings)


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


# --- several at once ---


def answers(report: dict[str, Any]) -> list[tuple[str | None, int]]:
    return [(each["id"], each["code"]) for each in report["answers"]]


def test_each_of_several_that_come_while_a_frame_is_read_is_answered_in_the_order_of_arrival(tmp_path: Path) -> None:
    plant = Plant(tmp_path / FILE)
    came: list[object] = [
        {**JOB, "id": "job-1"},
        {"id": "job-2", "more": 1},
        b"",
        {**JOB, "id": "job-3"},
        b"no json",
        {"id": "a b"},
    ]
    for wish in came[:-1]:
        plant.hear(wish)
    report = plant.say(came[-1])
    assert len(plant.messages) == 1
    assert answers(report) == [
        ("job-1", 409),
        ("job-2", 400),
        (None, 409),
        ("job-3", 200),
        (None, 400),
        (None, 400),
    ]
    details = [each["detail"] for each in report["answers"]]
    assert details[0] == "not in force: replaced by job-3, which came behind it"
    assert "more: unknown key" in details[1]
    # what stays is the last that can be followed, and the last that came is told of by itself as well
    assert (report["id"], report["code"], report["detail"]) == ("job-3", 400, details[-1])
    assert Plant(tmp_path / FILE).id == plant.id == "job-3"


def test_one_that_is_taken_back_at_once_was_never_in_force() -> None:
    plant = Plant()
    before = plant.id
    plant.hear(JOB)
    report = plant.say(b"")
    assert answers(report) == [("job-7", 409), (None, 200)]
    assert "replaced by one that takes back what the plant said" in report["answers"][0]["detail"]
    assert (report["id"], plant.id) == (before, before)


def test_answers_stay_in_later_reports_until_newer_ones_push_them_out() -> None:
    plant = Plant()
    plant.say({**JOB, "id": "job-1"})
    assert answers(plant.say({"id": "job-2", "more": 1})) == [("job-1", 200), ("job-2", 400)]
    for n in range(room.KEPT_ANSWERS):
        plant.now += 60.0
        plant.say({**JOB, "id": f"late-{n}"})
    assert answers(plant.last()) == [(f"late-{n}", 200) for n in range(room.KEPT_ANSWERS)]


def test_flood_costs_neither_memory_nor_disk_and_the_answer_tells_of_those_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def write(path: Path, content: bytes, mode: int) -> None:
        written.append(path)
        write_atomically(path, content, mode)

    monkeypatch.setattr(room, "write_atomically", write)
    plant = Plant(tmp_path / FILE)
    payload = json.dumps({**JOB, "expected": [{"field": "lot", "one_of": ["L" * 1000] * 10}]}).encode()
    tracemalloc.start()
    for n in range(10_000):
        plant.hear(payload.replace(b"job-7", b"job-%d" % n))
        if n % 20 == 19:  # so many are heard between two frames
            plant.expectations.attend()
    most_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(written) == len(plant.messages) <= room.TAKEN_PER_MIN / 4
    assert most_bytes < 200 * len(payload)  # of the 10,000
    plant.now += 1.0
    plant.expectations.attend()
    report = plant.last()
    looked_at = [(f"job-{n}", 409) for n in range(9_984, 9_999)]
    assert answers(report)[-17:] == [(None, 429), *looked_at, ("job-9999", 200)]
    unheard = 10_000 - 20 * (len(plant.messages) - 1) - room.MOST_WAITING
    assert report["answers"][-17]["detail"] == f"{unheard} were not looked at: at most 16 wait for a frame"
    assert plant.id == "job-9999"


def test_cameras_take_their_turns_in_the_order_in_which_they_began_to_wait() -> None:
    cameras = {f"line{n}": {"kind": "folder", "source": "x"} for n in (1, 2, 3)}
    plant = Plant(config=patched(Config(), {"cameras": cameras}))
    for camera in ("line3", "line1", "line3", "line2"):
        plant.hear(JOB, camera)
    plant.expectations.attend()
    assert [message.topic.partition("/")[0] for message in plant.messages] == ["line3", "line1", "line2"]


def test_one_that_comes_again_after_the_disk_was_full_is_written_then(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    plant = Plant(tmp_path / "state" / FILE)
    assert "until the next start alone" in plant.say(JOB)["detail"]
    (tmp_path / "state").unlink()
    assert plant.say(JOB)["detail"] == "in force"
    assert Plant(tmp_path / "state" / FILE).id == "job-7"


def test_camera_that_is_no_more_is_not_reported_at_the_start(tmp_path: Path) -> None:
    Plant(tmp_path / FILE).say(JOB)
    other = patched(Config(), {"cameras": {"line2": {"kind": "folder", "source": "x"}}})
    assert Plant(tmp_path / FILE, other).messages == []
    assert Plant(tmp_path / FILE).id == "job-7"


def test_what_is_about_to_change_is_told_while_it_still_holds() -> None:
    plant = Plant()
    of_settings = plant.id
    told: list[tuple[str, str | None]] = []
    plant.expectations.before_change = lambda camera: told.append((camera, plant.id))
    plant.say(JOB)
    plant.say(JOB)  # no change
    plant.say({"id": "job-8", "more": 1})
    plant.say(b"")
    plant.expectations.tune(patched(CONFIG, {"cameras": {"line1": {"expected": [{"field": "serial"}]}}}))
    assert told == [("line1", of_settings), ("line1", "job-7"), ("line1", of_settings)]


def test_one_without_rules_says_that_nothing_gets_a_verdict(tmp_path: Path) -> None:
    plant = Plant(tmp_path / FILE)
    report = plant.say({"id": "pause", "expected": [], "rois": {"top": []}})
    assert (report["code"], report["detail"]) == (200, "in force: it has no rules, so no item gets a verdict")
