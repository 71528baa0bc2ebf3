"""`edge-agent bench --power-modes`: each mode of a board's tree, set by a real little script, with real models."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from edge_agent.__main__ import main
from tests import nvpmodel_script
from tests.broker import DEADLINE_S, wait_until
from tests.telemetry import boards

QUICK = ["--seconds", "0.1", "--warm-up-s", "0"]


@pytest.fixture
def config(tmp_path: Path) -> str:
    settings = {
        "pipeline": {"detector": "ppocrv4-mobile-det", "recogniser": "ppocrv4-mobile-rec", "encoder": None},
        "telemetry": {"system_root": str(boards.orin_nano(tmp_path))},
    }
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(settings), encoding="utf-8")
    return str(path)


def test_every_mode_is_measured_the_present_one_first_and_given_back(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool, state = nvpmodel_script.make(tmp_path, 1)
    options = ["--config", config, "--power-modes", "--nvpmodel", str(tool), *QUICK]
    assert main(["bench", *options, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["present"] == "7W"
    assert figures["absent"] == []
    seven, fifteen, maxn = figures["modes"]
    assert [row["name"] for row in figures["modes"]] == ["7W", "15W", "MAXN_SUPER"]
    for row in (seven, fifteen):
        assert row["fps"] > 0
        assert row["power_w"] == pytest.approx(15.2, abs=0.1)
        assert row["j_per_frame"] > 0
        assert row["temp_c"] == 52.0
    assert "Reboot required" in maxn["error"]
    assert state.read_text().strip() == "1"


def test_modes_are_shown_as_a_table(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tool, state = nvpmodel_script.make(tmp_path, 0)
    Path(f"{state}.locked").touch()
    assert main(["bench", "--config", config, "--power-modes", "--nvpmodel", str(tool), *QUICK]) == 0
    heading, present, seven, maxn, last = capsys.readouterr().out.splitlines()
    assert heading.split() == ["mode", "frames/s", "W", "J/frame", "hottest", "C"]
    assert present.startswith("15W (0) *")
    assert len(present.split()) == 7
    assert "NVPM ERROR: must be run as root" in seven
    assert "Reboot required" in maxn
    assert last == "15W is in force again"


def test_ctrl_c_gives_the_mode_back(config: str, tmp_path: Path) -> None:
    tool, state = nvpmodel_script.make(tmp_path, 0)
    command = [sys.executable, "-m", "edge_agent", "bench", "--config", config, "--power-modes"]
    options = ["--nvpmodel", str(tool), "--seconds", "0.1", "--warm-up-s", "0"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: state.read_text().strip() == "1", "the second mode", 60)
            process.send_signal(signal.SIGINT)
            assert process.wait(DEADLINE_S) == 130
        finally:
            process.kill()
    assert state.read_text().strip() == "0"
    assert Path(f"{state}.log").read_text().split() == ["0", "1", "0"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--power-modes", "--nvpmodel", "no-such-nvpmodel"], "needs the tool no-such-nvpmodel"),
        (["--power-modes", "--nvpmodel", "false"], "the power mode cannot be told"),
        (["ppocrv4-mobile-rec", "--power-modes"], "--power-modes is for the pipeline"),
        (["--power-modes", "--engines"], "leave out --engines"),
    ],
)
def test_what_is_lacking_is_one_clear_line_and_78(
    config: str, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--config", config, *options, *QUICK]) == 78
    assert says in capsys.readouterr().err


def test_board_without_a_list_of_modes_is_left_as_it_is(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool, state = nvpmodel_script.make(tmp_path, 0)
    (tmp_path / "orin_nano/etc/nvpmodel.conf").unlink()
    assert main(["bench", "--config", config, "--power-modes", "--nvpmodel", str(tool), *QUICK]) == 78
    assert "needs the board's list of modes" in capsys.readouterr().err
    assert not Path(f"{state}.log").exists()
