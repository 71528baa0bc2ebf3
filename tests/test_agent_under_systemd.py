"""Agent as a service: what the manager hears through a real NOTIFY_SOCKET, and how a stop ends it from every state."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psutil
import pytest

from tests.broker import DEADLINE_S, Broker, Observer, wait_until
from tests.test_agent import config_file, ended, label_folder, under_way
from tests.test_agent_remote import Device

START_S = 60.0
STOP_S = 20.0  # as long as systemd waits, see TimeoutStopSec


class ServiceManager:
    """The other end of NOTIFY_SOCKET: everything it was told, in order."""

    def __init__(self, folder: Path) -> None:
        self.address = folder / "notify"
        self.told: list[str] = []
        self._channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._channel.bind(str(self.address))
        self._channel.setblocking(False)

    def hear(self) -> list[str]:
        while True:
            try:
                self.told += self._channel.recv(4096).decode().split("\n")
            except BlockingIOError:
                return self.told

    def count(self, start: str) -> int:
        return sum(line.startswith(start) for line in self.hear())

    def close(self) -> None:
        self._channel.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[ServiceManager]:
    manager = ServiceManager(tmp_path)
    yield manager
    manager.close()


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "mark"


@pytest.fixture
def config(tmp_path: Path, broker: Broker) -> Path:
    source = label_folder(tmp_path / "left", 1)
    left = {"kind": "folder", "source": str(source), "loop": True, "max_fps": 10, "read_timeout_s": 600}
    return config_file(tmp_path, broker.port, {"left": left})


@contextmanager
def service(
    module: list[str], config: Path, manager: ServiceManager, watchdog_s: float = 0.4
) -> Iterator[subprocess.Popen[str]]:
    """The agent as systemd starts it: with NOTIFY_SOCKET, WATCHDOG_USEC and the unit's PYTHONFAULTHANDLER."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_AGENT_")}
    environ |= {"NOTIFY_SOCKET": str(manager.address), "WATCHDOG_USEC": str(int(watchdog_s * 1e6))}
    environ["PYTHONFAULTHANDLER"] = "1"
    command = [sys.executable, "-m", *module, "run", "--config", str(config)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ) as process:
        try:
            yield process
        finally:
            process.kill()


def stop(process: subprocess.Popen[str]) -> None:
    """SIGTERM, as `systemctl stop` sends it; 0 in time, and no child is left."""
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGTERM)
    assert process.wait(STOP_S) == 0
    _, alive = psutil.wait_procs(children, DEADLINE_S)
    assert alive == []


# ---- what the manager hears ------------------------------------------------------------------------------------------


def test_readiness_comes_after_the_first_inference_not_before(
    config: Path, manager: ServiceManager, mark: Path
) -> None:
    with service(["tests.blocked", "warm-up", str(mark)], config, manager) as process:
        wait_until(mark.exists, "the warm-up", START_S)
        assert manager.count("READY=1") == 0
        mark.with_suffix(".go").touch()
        wait_until(lambda: manager.count("READY=1") == 1, "readiness", START_S)
        wait_until(lambda: manager.count("WATCHDOG=1") >= 3, "turns of the main loop")
        assert manager.told.index("READY=1") < manager.told.index("WATCHDOG=1")
        assert "STATUS=reading 1 cameras" in manager.told
        stop(process)
    assert manager.hear()[-1] == "STOPPING=1"


def test_camera_that_never_reads_keeps_nobody_from_feeding_the_watchdog(
    config: Path, manager: ServiceManager, mark: Path
) -> None:
    """Turns of the main loop are its finished work: a dead camera is shown as such and is no reason to start again."""
    with service(["tests.blocked", "camera", str(mark)], config, manager) as process:
        wait_until(mark.exists, "the blocked read", START_S)
        count = manager.count("WATCHDOG=1")
        wait_until(lambda: manager.count("WATCHDOG=1") >= count + 5, "heartbeats meanwhile")
        stop(process)


def test_inference_that_hangs_starves_the_watchdog_and_the_log_says_where(
    config: Path, manager: ServiceManager, mark: Path
) -> None:
    with service(["tests.blocked", "inference", str(mark)], config, manager) as process:
        wait_until(mark.exists, "the hanging inference", START_S)
        manager.hear()
        count = manager.count("WATCHDOG=1")
        deadline = time.monotonic() + 3 * 0.4  # three times what the manager would wait
        while time.monotonic() < deadline:
            assert manager.count("WATCHDOG=1") == count
            time.sleep(0.02)
        process.send_signal(signal.SIGABRT)  # as systemd does then
        assert process.wait(STOP_S) == -signal.SIGABRT
        assert process.stderr is not None
        said = process.stderr.read()
    assert "Fatal Python error: Aborted" in said
    assert "in block\n" in said
    assert "in main_loop\n" in said


def test_while_plans_are_built_the_manager_is_asked_for_more_time_and_commands_are_answered(
    config: Path, manager: ServiceManager, broker: Broker, mark: Path, tmp_path: Path
) -> None:
    module = ["tests.building", "wait", str(tmp_path / "plans"), str(mark)]
    with Observer(broker.port, "edge/#") as observer, service(module, config, manager, watchdog_s=60) as process:

        def answers(name: str) -> list[str]:
            return [json.loads(payload)["state"] for payload in observer.payloads(f"edge/press7/command/{name}/reply")]

        wait_until(lambda: under_way(mark), "the builder", START_S)
        wait_until(lambda: bool(observer.payloads("edge/press7/status")), "the agent, online")
        for name, state in {"ping": "done", "restart": "busy", "snapshot": "busy"}.items():
            args = {"camera": "left"} if name == "snapshot" else {}
            observer.publish(f"edge/press7/command/{name}", json.dumps({"id": f"c-{name}", "args": args}).encode())
            wait_until(lambda name=name, state=state: answers(name) == [state], f"the answer to {name}")
        wait_until(lambda: manager.count("EXTEND_TIMEOUT_USEC=") >= 2, "more time, twice", START_S)
        assert manager.count("READY=1") == 0
        longer_s = [int(line.partition("=")[2]) / 1e6 for line in manager.told if line.startswith("EXTEND")]
        assert min(longer_s) >= 30.0
        assert any(line.startswith("STATUS=building ppocrv4-mobile-det") for line in manager.told)
        stop(process)
    assert ended(int(mark.read_text()))


# ---- a stop, from every state ----------------------------------------------------------------------------------------


def test_stop_during_the_start_ends_it_before_it_is_ready(config: Path, manager: ServiceManager, mark: Path) -> None:
    with service(["tests.blocked", "warm-up", str(mark)], config, manager) as process:
        wait_until(mark.exists, "the warm-up", START_S)
        process.send_signal(signal.SIGTERM)
        mark.with_suffix(".go").touch()
        assert process.wait(STOP_S) == 0
        assert manager.count("READY=1") == 0


def test_stop_at_any_moment_of_the_start_is_a_clean_end(tmp_path: Path, broker: Broker) -> None:
    """The moments fall into the imports, the opening of the outbox, or the loading of models, as the machine is fast.
    The very first of them, before Python runs our code, is systemd's own: it holds SIGTERM for a clean end."""
    source = str(label_folder(tmp_path / "left", 1))
    with ExitStack() as opened:
        began, starting = time.monotonic(), []
        for moment_s in (0.3, 0.6, 1.2, 1.8):
            folder = tmp_path / str(moment_s)
            folder.mkdir()
            manager = opened.enter_context(closing(ServiceManager(folder)))
            config = config_file(folder, broker.port, {"left": {"kind": "folder", "source": source, "loop": True}})
            starting.append((moment_s, opened.enter_context(service(["edge_agent"], config, manager))))
        for moment_s, process in starting:
            time.sleep(max(0.0, began + moment_s - time.monotonic()))
            process.send_signal(signal.SIGTERM)
        for _, process in starting:  # all of them load their models at once
            assert process.wait(START_S) in (0, -signal.SIGTERM)


def test_frozen_broker_a_calibration_that_does_not_answer_and_a_second_stop_do_not_hold_a_stop_up(
    broker: Broker, manager: ServiceManager, tmp_path: Path
) -> None:
    """The slowest stop there is: each of its steps takes all of its time."""
    with Observer(broker.port, "edge/#") as observer:
        device = Device(tmp_path, broker.port, observer)
        with service(["edge_agent"], device.config, manager, watchdog_s=60) as process:
            device.wait_reading(None, 1)
            device.command("calibrate", "c-1")
            agent = psutil.Process(process.pid)
            wait_until(lambda: bool(calibrations(agent)), "the calibration")
            (child,) = calibrations(agent)
            child.suspend()
            broker.freeze()
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            wait_until(lambda: manager.count("STOPPING=1") == 1, "that it stops")
            process.send_signal(signal.SIGTERM)
            assert process.wait(STOP_S) == 0
            assert time.monotonic() - began < STOP_S
            assert ended(child.pid)


def calibrations(agent: psutil.Process) -> list[psutil.Process]:
    return [each for each in agent.children() if "edge_agent.calibrate.child" in " ".join(each.cmdline())]


def test_builder_goes_with_an_agent_that_is_killed(
    config: Path, manager: ServiceManager, mark: Path, tmp_path: Path
) -> None:
    module = ["tests.building", "wait", str(tmp_path / "plans"), str(mark)]
    with service(module, config, manager) as process:
        wait_until(lambda: under_way(mark), "the builder", START_S)
        process.kill()
        process.wait(STOP_S)
        wait_until(lambda: ended(int(mark.read_text())), "the builder's end")


# ---- wrong settings and floods (field case SYS-3) --------------------------------------------------------------------


def test_wrong_settings_end_it_with_the_code_that_the_unit_does_not_try_again(
    config: Path, manager: ServiceManager
) -> None:
    config.write_text(config.read_text().replace('"port"', '"prot"'))
    with service(["edge_agent"], config, manager) as process:
        assert process.wait(START_S) == 78
        assert process.stderr is not None
        assert "prot" in process.stderr.read()
    assert manager.count("READY=1") == 0


def test_camera_that_fails_two_hundred_times_a_second_does_not_flood_the_log(
    config: Path, manager: ServiceManager, mark: Path
) -> None:
    config.write_text(config.read_text().replace('"loop": true', '"reconnect_min_s": 0.001, "reconnect_max_s": 0.001'))
    with service(["tests.blocked", "failing", str(mark)], config, manager, watchdog_s=60) as process:
        wait_until(mark.exists, "300 failures", START_S)
        stop(process)
        assert process.stderr is not None
        said = process.stderr.read().splitlines()
    assert sum("the cable is loose" in line for line in said) >= 1, "the first one is shown"
    assert len(said) < 30, said
