"""Nvpmodel, over a real little script: modes are set, looked at again, and given back."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from edge_agent.errors import ConfigError, SensorError
from edge_agent.nvpmodel import ENDING, Nvpmodel, mode_kept
from tests import nvpmodel_script


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return nvpmodel_script.make(tmp_path, 0)[1]


@pytest.fixture
def nvpmodel(state: Path) -> Nvpmodel:
    return Nvpmodel(str(state.with_name("nvpmodel")))


def test_mode_is_set_and_told(nvpmodel: Nvpmodel) -> None:
    assert str(nvpmodel.current()) == "15W"
    nvpmodel.switch(1)
    assert (nvpmodel.current().id, nvpmodel.current().name) == (1, "7W")


def test_mode_that_wants_a_reboot_is_declined_and_said(nvpmodel: Nvpmodel) -> None:
    with pytest.raises(SensorError, match=r"mode 2 was not taken, 15W is in force: NVPM WARN: Reboot required"):
        nvpmodel.switch(2)


def test_missing_tool_is_named_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"needs the tool no-such-nvpmodel.*leave out --power-modes"):
        Nvpmodel("no-such-nvpmodel")


def test_tool_that_says_something_else_is_quoted(tmp_path: Path) -> None:
    tool = tmp_path / "other"
    tool.write_text("#!/bin/sh\necho usage: other\n")
    tool.chmod(0o755)
    with pytest.raises(SensorError, match="says 'usage: other'"):
        Nvpmodel(str(tool)).current()


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit), (signal.SIGHUP, SystemExit)]
)
def test_mode_is_given_back_whatever_ends_the_work(
    nvpmodel: Nvpmodel, number: signal.Signals, error: type[BaseException]
) -> None:
    before = [signal.getsignal(each) for each in ENDING]
    with pytest.raises(error), mode_kept(nvpmodel) as mode:
        assert mode.id == 0
        nvpmodel.switch(1)
        os.kill(os.getpid(), number)
    assert nvpmodel.current().id == 0
    assert [signal.getsignal(each) for each in ENDING] == before


def test_mode_that_cannot_be_given_back_is_said(
    nvpmodel: Nvpmodel, state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with mode_kept(nvpmodel):
        nvpmodel.switch(1)
        Path(f"{state}.locked").touch()
    assert "the power mode 15W (0) could not be set again" in caplog.text
    assert "must be run as root" in caplog.text


def test_mode_that_never_changed_is_not_set(nvpmodel: Nvpmodel, state: Path) -> None:
    with mode_kept(nvpmodel):
        pass
    assert not Path(f"{state}.log").exists()
