"""Job changes while items are before the camera: a whole agent with real models, a real broker, and a kill."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.broker import DEADLINE_S, Broker, Observer, wait_until
from tests.test_agent import agent_process, config_file, label_folder, last

SETTINGS = [{"field": "lot"}]
ITEMS = {
    "min_reads": 100,
    "decide_within_ms": 600_000,
    "publish_readings": True,
}  # nothing settles before it is told to


def job(name: str, **more: Any) -> bytes:
    return json.dumps({"id": name, "expected": [{"field": "lot", "pattern": "L*****"}], **more}).encode()


def readings(observer: Observer) -> int:
    return len(observer.payloads("edge/press7/left/result"))


def captured_after(observer: Observer, at: str) -> list[str]:
    """When the readings since then were captured: others are told again after a kill."""
    said = [json.loads(payload)["captured_at"] for payload in observer.payloads("edge/press7/left/result")]
    return [each for each in said if each > at]


def items(observer: Observer) -> list[dict[str, Any]]:
    return [json.loads(payload) for payload in observer.payloads("edge/press7/left/item")]


def answers(observer: Observer) -> list[tuple[str | None, int]]:
    told = last(observer, "left/expected/reported").get("answers", [])
    return [(each["id"], each["code"]) for each in told]


def send(observer: Observer, wishes: Sequence[bytes], then_in_force: str) -> list[tuple[str | None, int]]:
    """What became of wishes that are sent in one go; two frames are read after them."""
    before = len(answers(observer))
    for wish in wishes:
        observer.publish("edge/press7/left/expected", wish)
    wait_until(lambda: len(answers(observer)) == before + len(wishes), f"an answer to each of {wishes}", 60)
    assert str(last(observer, "left/expected/reported")["id"]).startswith(then_in_force)
    read = readings(observer)
    wait_until(lambda: readings(observer) >= read + 2, "readings after them", 60)
    return answers(observer)[before:]


def test_item_before_the_camera_is_judged_by_what_was_expected_when_it_came(broker: Broker, tmp_path: Path) -> None:
    source = str(label_folder(tmp_path / "left", 1))
    left = {"kind": "folder", "source": source, "loop": True, "max_fps": 10, "items": "still", "expected": SETTINGS}
    config = config_file(tmp_path, broker.port, {"left": left}, items=ITEMS)
    with Observer(broker.port, "edge/#") as observer:
        with agent_process(config) as process:
            wait_until(lambda: readings(observer) >= 2, "readings", 60)
            assert send(observer, [b"no job", b'{"id": "j-0", "more": 1}'], "config-") == [(None, 400), ("j-0", 400)]
            assert items(observer) == []
            became = send(observer, [job("j-1"), job("j-2"), b'{"id": "j-3"', job("j-4")], "j-4")
            # how many came while one frame was read is the scheduler's; each was in force, or the next replaced it
            assert [(name, code in (200, 409)) for name, code in became] == [
                ("j-1", True),
                ("j-2", True),
                (None, False),
                ("j-4", True),
            ]
            assert became[-1] == ("j-4", 200)
            (first,) = items(observer)  # and no second one, whatever is expected now: it lies where it lay
            assert (first["verdict"], first["decided_by"]) == ("NO_READ", "expected")
            assert first["reasons"][-1]["why"] == "few_reads"
            assert first["expectation_id"].startswith("config-")
            assert send(observer, [b""], "config-") == [(None, 200)]
            assert send(observer, [job("j-5")], "j-5") == [("j-5", 200)]
            assert len(items(observer)) == 1
            process.send_signal(signal.SIGKILL)
            process.wait(DEADLINE_S)
        with agent_process(config) as process:
            since = "in force since before this start"
            wait_until(lambda: last(observer, "left/expected/reported")["detail"] == since, "the next process")
            assert last(observer, "left/expected/reported")["id"] == "j-5"
            started_at = last(observer, "status")["started_at"]
            wait_until(lambda: len(captured_after(observer, started_at)) >= 2, "readings of the next process")
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        wait_until(lambda: len(items(observer)) == 2, "the item that was open", 60)
    assert [(each["expectation_id"], each["decided_by"]) for each in items(observer)[1:]] == [("j-5", "stop")]
