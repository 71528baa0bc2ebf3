"""RemoteControl: a thread of its own answers until the agent runs, then the main loop does; nothing is heard twice."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from edge_agent.config import Config, rebuilt
from edge_agent.models.spec import DEFAULT_MODELS_DIR
from edge_agent.records import Message
from edge_agent.remote.config_store import ConfigStore
from edge_agent.remote.control import MOST_EARLY, RemoteAccess, RemoteControl
from edge_agent.remote.in_force import begin
from edge_agent.transports.base import Inbound
from tests.broker import wait_until
from tests.conftest import ROOT
from tests.remote.test_command_control import FakeSite

MODELS = ROOT / DEFAULT_MODELS_DIR


class Device:
    """A process that starts: what came, and what was said, by topic."""

    def __init__(self, folder: Path, **remote: Any) -> None:
        self.inbound: Queue[Inbound] = Queue()
        self.said: list[tuple[str, dict[str, Any]]] = []
        local = rebuilt(Config(), {"remote": remote}, "settings")
        store = ConfigStore(folder / "state" / "config")
        access = RemoteAccess(begin(local, store, MODELS), store, MODELS)
        self.control = RemoteControl(access, self.inbound, self.hear, self.hear)

    def hear(self, message: Message) -> None:
        self.said.append((message.topic, json.loads(message.payload)))

    def send(self, topic: str, **members: Any) -> None:
        self.inbound.put(Inbound(topic, json.dumps(members).encode(), retained=False))

    def states(self, topic: str) -> list[Any]:
        return [body.get("state", body.get("code")) for each, body in list(self.said) if each == topic]

    def wait(self, topic: str, *states: Any) -> None:
        wait_until(lambda: self.states(topic) == list(states), f"{states} on {topic}; said {self.said}")


@pytest.fixture
def device(tmp_path: Path) -> Device:
    return Device(tmp_path)


def test_commands_are_answered_while_start_up_goes_on_and_a_wish_waits_for_its_end(device: Device) -> None:
    with device.control as control:
        device.send("config/desired", version=4, patch={"pipeline": {"min_confidence": 0.7}})
        device.send("command/restart", id="c-1")
        device.send("command/ping", id="c-2")
        device.wait("command/ping/reply", "done")
        assert device.states("command/restart/reply") == ["busy"]
        assert device.states("config/reported") == []
        control.open_to(FakeSite())
        control.attend()
        assert device.states("config/reported") == [202]
        device.send("command/restart", id="c-1")
        control.attend()
        assert device.states("command/restart/reply") == ["busy", "accepted"]
        assert control.restart == "asked for by a command"


def test_from_the_end_of_start_up_on_nothing_is_heard_but_by_the_main_loop(device: Device) -> None:
    with device.control as control:
        control.open_to(FakeSite())
        assert "remote" not in {thread.name for thread in threading.enumerate()}
        device.send("command/ping", id="c-1")
        assert device.said == []
        control.attend()
        assert device.states("command/ping/reply") == ["done"]


def test_command_that_ended_the_process_before_is_done_once_this_one_runs(tmp_path: Path) -> None:
    before = Device(tmp_path)
    with before.control as control:
        control.open_to(FakeSite())
        before.send("command/restart", id="c-1")
        control.attend()
    device = Device(tmp_path)
    with device.control as control:
        device.send("command/restart", id="c-1")
        device.wait("command/restart/reply", "duplicate")
        control.open_to(FakeSite())
        assert device.states("command/restart/reply") == ["duplicate", "done"]


def test_messages_to_cameras_wait_for_the_end_of_start_up_and_what_is_too_early_or_too_much_is_counted(
    device: Device,
) -> None:
    site = FakeSite()
    with device.control as control:
        device.send("line1/trigger")
        for n in range(MOST_EARLY + 2):
            device.send(f"line{n}/expected")
        device.send("command/ping", id="c-1")
        device.wait("command/ping/reply", "done")
        assert site.asked == []
        control.open_to(site)
        assert site.asked == [f"line{n}/expected" for n in range(2, MOST_EARLY + 2)]
        assert control.section()["dropped"] == 3
        device.send("line1/trigger")
        control.attend()
        assert "line1/trigger" in site.asked


def test_start_up_that_fails_leaves_no_thread(device: Device) -> None:
    with pytest.raises(RuntimeError), device.control:
        raise RuntimeError("the models cannot be loaded")
    assert "remote" not in {thread.name for thread in threading.enumerate()}


def test_device_that_hears_nothing_counts_what_came(tmp_path: Path) -> None:
    device = Device(tmp_path, enabled=False)
    with device.control as control:
        device.send("command/ping", id="c-1")
        wait_until(lambda: control.section()["disabled"] == 1, "the count")
        control.open_to(FakeSite())
        device.send("config/desired", version=4, patch={})
        control.attend()
        assert control.section()["disabled"] == 2
    assert device.said == []
