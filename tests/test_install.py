"""What `make` installs and runs: packages that a plain index has for any machine, and the user's words as typed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess

import pytest

from tests.conftest import ROOT


def declared(extra: str) -> list[str]:
    """The requirement lines of an extra, or of the base install for ''; tomllib came with Python 3.11 only."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(rf"^{extra or 'dependencies'} = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"pyproject.toml declares no {extra or 'dependencies'}"
    return re.findall(r'"([^"]+)"', found[1].replace("edge-agent[cpu,demo]", ""))


@pytest.mark.parametrize("extra", ["", "cpu", "demo", "dev"])
def test_what_make_installs_asks_for_nothing_of_nvidias(extra: str) -> None:
    lines = declared(extra)

    assert lines
    assert [line for line in lines if re.match(r"(tensorrt|nvidia|pycuda|cuda)", line, re.IGNORECASE)] == []


@pytest.mark.parametrize("extra", ["", "demo", "jetson"])
def test_opencv_comes_with_the_cpu_extra_alone(extra: str) -> None:
    assert [line for line in declared(extra) if "opencv" in line.lower()] == []


@pytest.mark.parametrize(
    "source",
    [
        "clip.mp4",
        "a folder",
        "it's here",
        'the "best" one',
        "rtsp://u:p$a$$b#c;d@192.0.2.1/live?x=1&y",
        "$(x)",
        "`id`",
        "~",
    ],
)
def test_make_demo_hands_the_source_on_as_it_was_typed(source: str) -> None:
    if shutil.which("make") is None:
        pytest.skip("needs make")
    command = ["make", "--dry-run", "--silent", "demo", f"SOURCE={source}", "FRAMES=15"]

    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout

    (line,) = [line for line in shown.splitlines() if "edge-agent demo" in line]
    assert shlex.split(line)[1:] == ["demo", "--frames", "15", f"--source={source}"]


def test_make_test_arm64_hands_on_what_is_to_be_run() -> None:
    if shutil.which("make") is None:
        pytest.skip("needs make")
    command = ["make", "--dry-run", "--silent", "test-arm64", "TESTS=tests/outbox -k 'two words'"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
    assert shlex.split(shown.splitlines()[-1]) == ["tests/arm64.sh", "tests/outbox", "-k", "two words"]
    script = ROOT / "tests/arm64.sh"
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", str(script)], check=True, capture_output=True, timeout=60).stderr == b""
    extras = re.search(r"'\.\[([a-z,]+)\]'", script.read_text("utf-8"))
    assert extras is not None
    assert set(extras[1].split(",")) >= {"cpu", "demo", "dev"}, "what make test installs"
