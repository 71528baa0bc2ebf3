"""Output: a command whose stdout is full, closed or missing says so in a line, and never writes into a file instead."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


def edge_agent(*argv: str, redirect: str, unbuffered: str = "") -> subprocess.CompletedProcess[str]:
    """`edge-agent ARGV` with a shell's redirections."""
    script = f'exec "$@" {redirect}'
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "edge_agent", *argv]
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("argv", [("config", "schema"), ("models", "list")])
def test_a_full_disk_behind_stdout_is_said_in_one_line(argv: tuple[str, ...], unbuffered: str) -> None:
    done = edge_agent(*argv, redirect="> /dev/full", unbuffered=unbuffered)
    assert done.returncode == 1
    assert done.stderr == "edge-agent: cannot write: No space left on device\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_who_has_gone_is_no_error(unbuffered: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "edge_agent", "models", "list"]
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(command, cwd=ROOT, env=environ, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("redirect", [">&-", ">&- <&-"])
def test_a_closed_stdout_is_no_error(redirect: str) -> None:
    done = edge_agent("config", "schema", redirect=redirect)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_file_gets_the_number_of_a_missing_stream(tmp_path: Path) -> None:
    """Else what native code prints on stderr lands in the first file that is opened."""
    code = (
        "import os, sys\n"
        "from edge_agent.commands.output import open_missing_streams\n"
        "open_missing_streams()\n"
        "file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "print('out'); print('err', file=sys.stderr); os.write(2, b'native'); os.write(1, b'native')\n"
        "os.write(file, str(file).encode())\n"
    )
    script = 'exec "$@" <&- >&- 2>&-'
    command = ["sh", "-c", script, "sh", sys.executable, "-c", code, str(tmp_path / "file")]
    assert subprocess.run(command, cwd=ROOT, timeout=60, check=False).returncode == 0
    assert (tmp_path / "file").read_text() == "3"


def test_ctrl_c_while_the_verbs_are_imported_ends_quietly() -> None:
    code = (
        "import sys\n"
        "from edge_agent import __main__ as front, registry\n"
        "def interrupted(*args): raise KeyboardInterrupt\n"
        "registry.load = interrupted\n"
        "sys.exit(front.main(['config', 'schema']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, b"")


def test_terminal_that_knows_ascii_alone_ends_no_verb(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "edge_agent",
        "install",
        "--yes",
        "--root",
        str(tmp_path / "Gerät"),
        "--program",
        "/opt/e",
    ]
    environ = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Ger\\xe4t/etc/edge-agent/config.yaml" in done.stdout


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv of util-linux")
def test_what_this_user_may_not_is_said_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0)
    if os.geteuid() == 0:  # who may everything, but for those capabilities
        os.chown(folder, 12345, 12345)
    command = ["setpriv", *(["--bounding-set=-all"] if os.geteuid() == 0 else []), sys.executable, "-m", "edge_agent"]
    database = folder / "outbox.db"
    done = subprocess.run(
        [*command, "ledger", "--database", str(database)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    expected = f"edge-agent: {database}: Permission denied; do this as a user who may\n"
    assert (done.returncode, done.stderr) == (1, expected)
