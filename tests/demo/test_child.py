"""Child: what the demo starts ends with it, however stubborn it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edge_agent.demo.child import Child, interrupts_held, started

STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("grandchild", grandchild.pid, flush=True)
time.sleep(60)
"""
POLITE = """
import signal, sys, time
def end(*_):
    print("ended in order", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(60)
"""


def wait_for(child: Child, word: str) -> str:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for line in child.last_lines():
            if line.startswith(word):
                return line
        time.sleep(0.02)
    raise AssertionError(f"{word!r} did not come: {child.last_lines()}")


def wait_until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 5
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_child_is_asked_to_end_first(tmp_path: Path) -> None:
    with Child("polite", [sys.executable, "-c", POLITE], tmp_path / "log") as child:
        wait_for(child, "ready")
        assert child.exit_code() is None
    assert child.exit_code() == 0
    assert child.last_lines(1) == ["ended in order"]


def test_a_child_that_will_not_end_is_killed_with_its_own_children(tmp_path: Path) -> None:
    with Child("stubborn", [sys.executable, "-c", STUBBORN], tmp_path / "log", grace_s=0.2) as child:
        grandchild = int(wait_for(child, "grandchild").split()[1])
    assert child.exit_code() == -9
    assert wait_until(lambda: not alive(grandchild))


def test_last_lines_are_the_end_without_control_characters(tmp_path: Path) -> None:
    script = "for n in range(5000): print(n)\nprint('\\x1b[31mred\\x07 caf\\xe9')"
    with Child("talker", [sys.executable, "-X", "utf8", "-c", script], tmp_path / "log") as child:
        wait_for(child, "[31mred")
        assert child.last_lines(2) == ["4999", "[31mred café"]


def test_settings_for_another_agent_stay_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGE_AGENT_MQTT__HOST", "broker.plant.local")
    monkeypatch.setenv("SOMETHING_ELSE", "kept")
    script = "import os; print(*(n for n in os.environ if n.startswith(('EDGE_AGENT', 'SOMETHING'))), 'seen', sep=',')"
    with started("env", [sys.executable, "-c", script], tmp_path / "log") as child:
        assert wait_until(lambda: "seen" in "".join(child.last_lines()))
        assert child.last_lines() == ["SOMETHING_ELSE,seen"]


def test_closing_twice_does_nothing(tmp_path: Path) -> None:
    child = Child("polite", [sys.executable, "-c", POLITE], tmp_path / "log")
    wait_for(child, "ready")
    child.close()
    child.close()
    assert child.exit_code() == 0


def test_ctrl_c_while_a_child_is_being_started_ends_it(tmp_path: Path) -> None:
    pids: list[int] = []

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        """Ctrl-C comes when the process exists and nobody knows it yet."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            pids.append(self.pid)
            signal.raise_signal(signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", Interrupted)
        with pytest.raises(KeyboardInterrupt), started("x", [sys.executable, "-c", POLITE], tmp_path / "log"):
            raise AssertionError("the block is not entered")
    assert not alive(pids[0])


def test_held_interrupts_come_afterwards() -> None:
    reached = False
    with pytest.raises(KeyboardInterrupt), interrupts_held():
        signal.raise_signal(signal.SIGTERM)
        reached = True
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_kills_at_once(tmp_path: Path) -> None:
    child = Child("stubborn", [sys.executable, "-c", STUBBORN], tmp_path / "log", grace_s=30)
    grandchild = int(wait_for(child, "grandchild").split()[1])
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        child.close()
    assert child.exit_code() == -9
    assert wait_until(lambda: not alive(grandchild))
