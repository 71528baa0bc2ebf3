"""Board: states are said once per change, and all again at a birth."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edge_agent.board import REASON_EVERY_S, Board
from edge_agent.outbox.memory import MemoryOutbox


@pytest.fixture
def now() -> list[float]:
    return [1000.0]


@pytest.fixture
def outbox() -> MemoryOutbox:
    return MemoryOutbox(1_000_000, 3600)


@pytest.fixture
def board(outbox: MemoryOutbox, now: list[float]) -> Board:
    return Board(outbox, lambda: now[0], lambda: now[0])


def said(outbox: MemoryOutbox) -> list[tuple[str, dict[str, Any]]]:
    entries = outbox.claim(100)
    outbox.done(entry.id for entry in entries)
    assert all(entry.message.retain for entry in entries)
    return [(entry.message.topic, json.loads(entry.message.payload)) for entry in entries]


def test_camera_state_is_said_once_per_change(board: Board, outbox: MemoryOutbox) -> None:
    for _ in range(3):
        board.say_camera("line1", "online", reason=None, last_frame_at=999.0)
    board.say_camera("line1", "offline", reason="unplugged", last_frame_at=999.0)
    ((topic, body),) = said(outbox)  # only the latest of a state waits
    assert (topic, body["state"], body["reason"]) == ("line1/status", "offline", "unplugged")
    board.say_camera("line1", "offline", reason="unplugged", last_frame_at=999.0)
    assert said(outbox) == []


def test_reason_that_keeps_changing_is_said_now_and_then(board: Board, outbox: MemoryOutbox, now: list[float]) -> None:
    counts = []
    for second in range(21):
        now[0] = 1000.0 + second
        board.say_camera("line1", "stalled", reason=f"no frame for {second} s", last_frame_at=None)
        counts.append(len(said(outbox)))
    assert sum(counts) == 1 + 20 // REASON_EVERY_S


def test_birth_says_the_device_first_and_then_every_state(board: Board) -> None:
    board.say_health("starting")
    board.say_camera("line1", "online", reason=None, last_frame_at=None)
    board.say_health("running", backend="onnxruntime", precision="fp32")
    births = board.birth()
    assert [message.topic for message in births] == ["status", "health", "line1/status"]
    assert json.loads(births[0].payload)["state"] == "online"
    assert json.loads(births[1].payload)["backend"] == "onnxruntime"


def test_health_is_said_once_per_change(board: Board, outbox: MemoryOutbox) -> None:
    board.say_health("running")
    board.say_health("running")
    assert len(said(outbox)) == 1
    board.say_health("fault", reason="engine died")
    assert said(outbox)[0][1]["reason"] == "engine died"


def test_health_is_said_again_when_something_else_computes(board: Board, outbox: MemoryOutbox) -> None:
    board.say_health("running", backend="onnxruntime", precision="fp32")
    board.say_health("running", backend="tensorrt", precision="fp32")
    board.say_health("running", backend="tensorrt", precision="fp16")
    assert [(body["backend"], body["precision"]) for _, body in said(outbox)] == [("tensorrt", "fp16")]


def test_will_and_farewell_tell_a_loss_from_a_stop(board: Board) -> None:
    will, farewell = json.loads(board.will().payload), json.loads(board.farewell().payload)
    assert (will["state"], will["reason"]) == ("offline", "lost")
    assert (farewell["state"], farewell["reason"]) == ("stopped", "shutdown")
    assert will["started_at"] == farewell["started_at"]
    assert json.loads(board.farewell("fault").payload)["reason"] == "fault"


def test_first_fault_is_the_one_that_stays(board: Board, outbox: MemoryOutbox) -> None:
    board.say_health("running", backend="onnxruntime")
    board.say_health("fault", reason="an engine died", backend="onnxruntime")
    board.say_fault("the process ends")
    (told,) = (payload for topic, payload in said(outbox) if topic == "health")
    assert (told["reason"], told["backend"]) == ("an engine died", "onnxruntime")
