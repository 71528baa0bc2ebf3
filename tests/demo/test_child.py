"""Child: what the demo starts ends with it, however stubborn it is."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from edge_agent.demo.child import Child

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


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


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
    deadline = time.monotonic() + 5
    while alive(grandchild) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(grandchild)


def test_last_lines_are_the_end_without_control_characters(tmp_path: Path) -> None:
    script = "for n in range(5000): print(n)\nprint('\\x1b[31mred\\x07 caf\\xe9')"
    with Child("talker", [sys.executable, "-X", "utf8", "-c", script], tmp_path / "log") as child:
        wait_for(child, "[31mred")
        assert child.last_lines(2) == ["4999", "[31mred café"]


def test_closing_twice_does_nothing(tmp_path: Path) -> None:
    child = Child("polite", [sys.executable, "-c", POLITE], tmp_path / "log")
    wait_for(child, "ready")
    child.close()
    child.close()
    assert child.exit_code() == 0
