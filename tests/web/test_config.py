"""Settings over HTTP: changed the way of those from afar, tried, reported, taken back; and commands, by their table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from edge_agent.config import Config
from edge_agent.messages import command_reply
from edge_agent.remote.config_store import ConfigStore
from edge_agent.remote.control import RemoteAccess
from edge_agent.remote.in_force import look
from edge_agent.settings.keys import merge_patched
from edge_agent.transports.base import Inbound
from edge_agent.web.site import Refused
from edge_agent.web_remote import ANSWER_S, PageRemote, composed
from tests.broker import wait_until
from tests.conftest import ROOT
from tests.web.doors import Door, opened

ROI = {"x": 0.1, "y": 0.2, "width": 0.5, "height": 0.5, "angle_deg": 90}


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """A door whose settings are changed; a trial takes so long that a busy machine does something meanwhile."""
    remote = {"trial_s": 8.0, "min_fps_share": 0.01, "min_read_share": 0.0}
    folder = tmp_path_factory.mktemp("changing")
    left = {"kind": "folder", "source": str(folder / "labels"), "loop": True, "max_fps": 1}
    with opened(folder, remote=remote, cameras={"left": left}) as door:
        yield door


def reported(door: Door, code: int, version: int) -> dict[str, Any]:
    def is_there() -> bool:
        answer = door.http.get("/v1/config/reported")
        said = answer.json() if answer.status_code == 200 else {}
        return (said.get("code"), said.get("version")) == (code, version)

    wait_until(is_there, f"report {code} of version {version}; {door.http.get('/v1/config/reported').text}", 60)
    return dict(door.get("/v1/config/reported"))


def test_change_is_tried_kept_laid_over_and_taken_back(changing: Door) -> None:
    assert changing.http.get("/v1/config/reported").status_code == 404
    first = changing.http.patch("/v1/config", json={"cameras": {"left": {"rois": {"date": ROI}}}})
    assert (first.status_code, first.json()) == (202, {"version": 1})
    trial = reported(changing, 202, 1)["trial"]
    assert trial["trial_s"] == 8.0
    answer = changing.http.patch("/v1/config", json={"pipeline": {"min_confidence": 0.6}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "on_trial")
    (camera,) = changing.get("/v1/cameras")["cameras"]
    assert camera["rois"]["date"]["angle_deg"] == 90
    assert reported(changing, 200, 1)["trial"] is None
    kind = {"Content-Type": "application/merge-patch+json"}
    second = changing.http.patch("/v1/config", content=b'{"pipeline":{"min_confidence":0.6}}', headers=kind)
    assert second.json() == {"version": 2}
    reported(changing, 202, 2)
    settings = changing.get("/v1/config")
    assert settings["pipeline"]["min_confidence"] == 0.6
    assert settings["cameras"]["left"]["rois"]["date"]["x"] == 0.1  # the first save stays
    assert changing.http.post("/v1/config/rollback").status_code == 202
    back = reported(changing, 500, 2)
    assert (back["detail"], back["rolled_back_from"], back["active_version"]) == ("taken back on the page", 2, 1)
    assert changing.get("/v1/config")["pipeline"]["min_confidence"] == 0.5
    assert changing.http.post("/v1/config/rollback").status_code == 202
    reported(changing, 500, 1)
    answer = changing.http.post("/v1/config/rollback")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "nothing_to_take_back")
    assert "starting afresh" not in changing.log()


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        ({"mqtt": {"host": "192.0.2.1"}}, "mqtt.host: is never changed from afar"),
        ({"web": {"allow_insecure": True}}, "web.allow_insecure: is never changed from afar"),
        ({"remote": {"allowed_keys": ["cameras"]}}, "remote.allowed_keys: is never changed from afar"),
        ({"backend": {"threads": 4}}, "backend.threads: is not among remote.allowed_keys"),
        ({"cameras": {"left": {"source": "/etc"}}}, "cameras.left.source: is not among remote.allowed_keys"),
        ({"cameras": {"left": {"rois": {"a": {"x": 0.9}}}}}, "x + width is 1.9"),
        ({"pipeline": {"min_confidence": "much"}}, "pipeline.min_confidence"),
        ({"nothing": {"here": 1}}, "nothing.here"),
    ],
)
def test_change_that_may_not_be_is_refused_with_its_reason(door: Door, patch: dict[str, Any], reason: str) -> None:
    before = door.http.get("/v1/config/reported").text
    answer = door.http.patch("/v1/config", json=patch)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "refused")
    assert reason in answer.json()["error"]["text"]
    assert door.http.get("/v1/config/reported").text == before


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"[]", "application/json", 422),
        (b"{", "application/json", 422),
        (b"{}", "text/plain", 415),
        (b"[" * 99_999, "application/json", 422),
    ],
)
def test_change_of_another_shape_is_refused(door: Door, body: bytes, kind: str, status: int) -> None:
    answer = door.http.patch("/v1/config", content=body, headers={"Content-Type": kind})
    assert answer.status_code == status
    too_long = door.http.patch("/v1/config", content=b" " * 200_000, headers={"Content-Type": "application/json"})
    assert too_long.status_code == 413


def test_schema_describes_the_settings(door: Door) -> None:
    schema = door.get("/v1/config/schema")
    assert set(schema["properties"]) == set(door.get("/v1/config"))


def test_command_is_carried_out_and_answered_by_its_id(door: Door) -> None:
    answer = door.http.post("/v1/commands/ping", json={"args": {}})
    assert answer.status_code == 202
    command_id = answer.json()["id"]
    wait_until(lambda: door.get(f"/v1/commands/{command_id}")["state"] == "done", "the answer")
    assert door.get(f"/v1/commands/{command_id}")["result"]["uptime_s"] > 0


def test_command_that_there_is_not_or_that_is_wrong_says_so(door: Door) -> None:
    assert door.http.post("/v1/commands/nothing", json={}).status_code == 404
    assert door.http.post("/v1/commands/ping", json={"more": 1}).status_code == 422
    assert door.http.get("/v1/commands/page-0").status_code == 404
    command_id = door.http.post("/v1/commands/rollback", json={"args": {"model": "../x"}}).json()["id"]
    wait_until(lambda: door.get(f"/v1/commands/{command_id}")["state"] == "failed", "the answer")
    assert "model" in door.get(f"/v1/commands/{command_id}")["reason"]


# ---- the way by itself ----------------------------------------------------------------------------------------------


def made_remote(tmp_path: Path, inbound: Queue[Inbound], now: list[float], **remote: Any) -> PageRemote:
    local = Config.model_validate_json(json.dumps({"remote": {"command_rate_per_min": 60, **remote}}))
    store = ConfigStore(tmp_path / "config")
    return PageRemote(
        RemoteAccess(look(local, store, ROOT / "engines"), store, ROOT / "engines"), inbound, lambda: now[0]
    )


def test_more_commands_than_a_minute_takes_are_told_to_wait(tmp_path: Path) -> None:
    remote = made_remote(tmp_path, Queue(), [0.0])
    with pytest.raises(Refused) as refused:
        for _ in range(100):
            remote.submit_command("ping", {})
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "5"})


def test_command_without_an_answer_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    now = [0.0]
    remote = made_remote(tmp_path, Queue(), now)
    command_id = remote.submit_command("ping", {})
    assert remote.command(command_id) == {"id": command_id, "state": "accepted"}
    remote.hear(command_reply("ping", None, "busy", {"reason": "too many"}, 0.0))
    remote.hear(command_reply("ping", "another", "failed", {"reason": "x"}, 0.0))
    now[0] = ANSWER_S + 1
    assert (remote.command(command_id) or {})["state"] == "busy"
    remote.hear(command_reply("ping", command_id, "failed", {"reason": "it was late"}, 0.0))
    assert (remote.command(command_id) or {})["reason"] == "it was late"


def test_nothing_is_taken_where_nothing_is_heard_from_afar(tmp_path: Path) -> None:
    asked = [
        lambda remote: remote.submit_command("ping", {}),
        lambda remote: remote.submit_patch({}),
        lambda remote: remote.roll_back(),
    ]
    for remote in (made_remote(tmp_path, Queue(), [0.0], enabled=False), PageRemote(None, Queue())):
        for ask in asked:
            with pytest.raises(Refused) as refused:
                ask(remote)
            assert (refused.value.status, refused.value.code) == (409, "remote_off")


def test_full_inbox_is_told(tmp_path: Path) -> None:
    inbound: Queue[Inbound] = Queue(1)
    remote = made_remote(tmp_path, inbound, [0.0])
    remote.submit_command("ping", {})
    with pytest.raises(Refused) as refused:
        remote.submit_command("ping", {})
    assert refused.value.status == 429


def test_second_change_waits_until_the_first_was_looked_at(tmp_path: Path) -> None:
    now = [0.0]
    remote = made_remote(tmp_path, Queue(), now)
    assert remote.submit_patch({"log": {"level": "debug"}}) == 1
    with pytest.raises(Refused) as refused:
        remote.submit_patch({"log": {"level": "info"}})
    assert refused.value.status == 409
    now[0] = 60.0  # the main loop has looked at it and refused it
    assert remote.submit_patch({"log": {"level": "info"}}) == 2


@pytest.mark.parametrize(
    ("file", "first", "second"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"c": 4}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 4}}),
        ({"a": {"b": 1}}, {"a": {"b": 3}}, {"a": {"b": None}}),
        ({"a": {"b": 1}}, {"a": None}, {"d": [1]}),
        ({}, {"a": {"b": {"c": 1}}}, {"a": {"b": {"d": 2}}}),
        ({"a": 1}, {"a": {"b": 1}}, {"a": 2}),
    ],
)
def test_two_patches_become_one(file: dict[str, Any], first: dict[str, Any], second: dict[str, Any]) -> None:
    assert merge_patched(file, composed(first, second)) == merge_patched(merge_patched(file, first), second)
