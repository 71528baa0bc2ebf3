"""Service: what a real NOTIFY_SOCKET receives, and what signals do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from edge_agent.service import Notifier, stop_on_signals
from tests.broker import DEADLINE_S
from tests.conftest import ROOT


def received(channel: socket.socket) -> list[str]:
    channel.setblocking(False)
    messages = []
    while True:
        try:
            messages.append(channel.recv(4096).decode())
        except BlockingIOError:
            return messages


def test_manager_hears_readiness_heartbeat_and_farewell(tmp_path: Path) -> None:
    path = tmp_path / "notify"
    now = [0.0]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(path))
        notifier = Notifier({"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "8000000"}, lambda: now[0])
        notifier.ready("reading")
        for now[0] in (0.0, 0.5, 1.9, 2.0, 2.1, 4.0):  # a quarter of 8 s apart at most
            notifier.heartbeat()
        notifier.extend(30)
        notifier.stopping()
        assert received(channel) == [
            "READY=1\nSTATUS=reading\nWATCHDOG_USEC=8000000",
            "WATCHDOG=1",
            "WATCHDOG=1",
            "WATCHDOG=1",
            "EXTEND_TIMEOUT_USEC=30000000\nWATCHDOG=1",
            "STOPPING=1",
        ]


def test_manager_waits_longer_for_a_process_that_starts_afresh(tmp_path: Path) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(path))
        Notifier({"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "8000000"}, lambda: 0.0).restarting(300)
        Notifier({"NOTIFY_SOCKET": str(path)}, lambda: 0.0).restarting(300)
        assert received(channel) == [
            "STATUS=restarting\nWATCHDOG_USEC=300000000\nWATCHDOG=1",
            "STATUS=restarting",
        ]


def test_heartbeat_file_is_as_old_as_the_last_turn(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat"
    now = [0.0]
    notifier = Notifier({"HEARTBEAT_FILE": str(path)}, lambda: now[0])
    assert not path.exists()
    for now[0], touched in ((0.0, True), (4.9, False), (5.0, True), (10.0, True)):
        notifier.heartbeat()
        assert (path.stat().st_mtime > 0) == touched
        os.utime(path, (0, 0))
    now[0] = 15.0
    notifier.extend(30)  # a build goes on
    assert path.stat().st_mtime > 0
    Notifier({"HEARTBEAT_FILE": str(tmp_path / "gone" / "heartbeat")}, lambda: 0.0).heartbeat()


def test_heartbeat_file_says_whether_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat"
    notifier = Notifier({"HEARTBEAT_FILE": str(path)}, lambda: 0.0)
    steps: list[tuple[Callable[[], None], str]] = [
        (lambda: notifier.extend(30), "starting"),
        (lambda: notifier.ready("reading"), "ready"),
        (notifier.heartbeat, "ready"),
        (lambda: notifier.restarting(300), "starting"),
        (notifier.stopping, "stopping"),
    ]
    for step, state in steps:
        step()
        assert path.read_text() == f"{state}\n"


def probe(path: Path, *words: str) -> int:
    environ = {"PATH": os.environ["PATH"], "HEARTBEAT_FILE": str(path)}
    return subprocess.run(
        [str(ROOT / "docker/probe.sh"), *words], env=environ, capture_output=True, check=False
    ).returncode


def test_probe_of_the_images_tells_a_loop_that_hangs_and_an_agent_that_does_not_read_yet(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat"
    assert probe(path, "alive") != 0
    notifier = Notifier({"HEARTBEAT_FILE": str(path)}, lambda: 0.0)
    notifier.extend(30)
    assert (probe(path), probe(path, "alive")) == (0, 0)
    assert probe(path, "ready") != 0
    notifier.ready("reading 1 cameras")
    assert probe(path, "ready") == 0
    hour_ago = time.time() - 3600
    os.utime(path, (hour_ago, hour_ago))
    assert probe(path, "alive") != 0
    assert probe(path, "ready") != 0
    assert probe(path, "redy") != 0


def test_abstract_socket_is_reached() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        name = f"edge-agent-test-{os.getpid()}"
        channel.bind("\0" + name)
        Notifier({"NOTIFY_SOCKET": "@" + name}, lambda: 0.0).status("hello")
        assert received(channel) == ["STATUS=hello"]


def test_no_manager_or_a_gone_one_is_no_trouble(tmp_path: Path) -> None:
    Notifier({}, lambda: 0.0).ready("x")
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")}, lambda: 0.0).ready("x")


def test_signal_is_a_wish_and_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    stop = threading.Event()
    with stop_on_signals(stop):
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(DEADLINE_S)
    assert signal.getsignal(signal.SIGTERM) is before


# takes its time to stop: until it is told to go on
CHILD = """
import sys, threading
from edge_agent.service import stop_on_signals
stop = threading.Event()
with stop_on_signals(stop):
    print('up', flush=True)
    stop.wait()
    print('stopping', flush=True)
    sys.stdin.readline()
print('down', flush=True)
"""


def child() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def test_second_interrupt_ends_the_process_at_once() -> None:
    with child() as process:
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == -signal.SIGINT


def test_second_terminate_changes_nothing() -> None:
    with child() as process:
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdin is not None
        process.stdin.write("go on\n")
        assert process.stdout.readline() == "down\n"
        assert process.wait(DEADLINE_S) == 0


# starts afresh at SIGHUP, until a stop is wished for; a descriptor without O_CLOEXEC is open meanwhile
AFRESH = """
import os, signal, sys, threading
from pathlib import Path
from edge_agent.service import start_afresh, stop_on_signals
stop, again = threading.Event(), threading.Event()
signal.signal(signal.SIGHUP, lambda *_: again.set())
os.set_inheritable(os.open('/dev/null', os.O_RDONLY), True)
with stop_on_signals(stop):
    held = [fd for fd in os.listdir('/proc/self/fd')]
    print('up', os.getpid(), sys.argv[1:], len(held), flush=True)
    while not stop.wait(0.01):
        if again.is_set():
            BEFORE
            start_afresh(stop)
            print('not afresh', flush=True)
            again.clear()
print('down', flush=True)
"""


def starting_afresh(before: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", AFRESH.replace("BEFORE", before or "pass"), "--option", "a b"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_program_starts_afresh_by_the_same_command_line_and_process_id() -> None:
    with starting_afresh() as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith(f"up {process.pid} ['--option', 'a b']")
        for _ in range(3):
            process.send_signal(signal.SIGHUP)
            assert process.stdout.readline() == first, "nothing stays open, the signals are as they were"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "down\n"
        assert process.wait(DEADLINE_S) == 0


def test_signal_that_comes_just_before_the_start_afresh_ends_the_program() -> None:
    with starting_afresh("os.kill(os.getpid(), signal.SIGTERM)") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("up")
        process.send_signal(signal.SIGHUP)
        assert process.stdout.readline() == "not afresh\n"
        assert process.stdout.readline() == "down\n"


def test_signal_that_comes_in_between_reaches_the_new_program() -> None:
    """After the last look for signals: os.execv itself sends it here."""
    before = "execv = os.execv; os.execv = lambda *a: (os.kill(os.getpid(), signal.SIGTERM), execv(*a))"
    with starting_afresh(before) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("up")
        process.send_signal(signal.SIGHUP)
        assert process.stdout.readline().startswith("up")
        assert process.stdout.readline() == "down\n"
        assert process.wait(DEADLINE_S) == 0
