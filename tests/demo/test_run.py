"""Run: broker, agent and table come up together and go down together, whatever happens."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from edge_agent.config import Config
from edge_agent.demo import run as demo
from edge_agent.demo.run import DemoOptions, run_demo
from edge_agent.demo.scene import SceneText
from edge_agent.demo.video import SampleVideo
from edge_agent.errors import ConfigError
from tests.broker import DEADLINE_S

SCRIPT = Path(__file__).with_name("scripted_agent.py")


def scripted(behaviour: str = "reads") -> tuple[str, ...]:
    return (sys.executable, str(SCRIPT), behaviour)


Children = Callable[[], list[psutil.Process]]


@pytest.fixture(autouse=True)
def children() -> Iterator[Children]:
    """The processes that were started since the test began and live; none outlives the demo."""
    before = set(psutil.Process().children(recursive=True))

    def started() -> list[psutil.Process]:
        now = set(psutil.Process().children(recursive=True)) - before
        return [process for process in now if process.status() != psutil.STATUS_ZOMBIE]

    yield started
    assert started() == []


@pytest.fixture
def options(tmp_path: Path) -> DemoOptions:
    images = tmp_path / "images"
    images.mkdir()
    (images / "label.png").touch()
    return DemoOptions(source=str(images), frames=5, models_dir=tmp_path / "engines", out=tmp_path / "demo-out")


def changed(options: DemoOptions, **values: object) -> DemoOptions:
    return DemoOptions(**{**vars(options), **values})  # type: ignore[arg-type]


def interrupt_when(condition: Callable[[], bool]) -> None:
    """Sends this process SIGINT, as Ctrl-C does, once the condition holds."""

    def wait() -> None:
        deadline = time.monotonic() + 20
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()


def test_a_file_in_the_place_of_its_folder_is_a_config_error(options: DemoOptions) -> None:
    options.out.touch()
    with pytest.raises(ConfigError, match="cannot make the folder .*demo-out: File exists"):
        run_demo(options, scripted())


def test_it_ends_by_itself_after_n_readings(options: DemoOptions, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_demo(options, scripted()) == 0
    out, err = capsys.readouterr()
    rows = [line for line in out.splitlines() if line.startswith("line1  #")]
    assert len(rows) == 5
    assert all("lot A7K2093" in line and "expiry 2000-01-01" in line for line in rows)
    assert "5 readings in" in out
    assert "median: detect 80 ms, total 120 ms" in out
    assert "fields found: lot 5, expiry_date 5" in out
    assert "docs/first-steps.md" in out
    for word in ("== broker: ", "loading models", "mosquitto_sub -h 127.0.0.1 -p ", "pipeline running"):
        assert word in err, word
    assert "camera line1 offline: no such device" in err
    assert (options.out / "agent.log").read_text().endswith("scripted agent ended in order\n")


def test_the_agent_gets_a_valid_config_for_its_owners_eyes_only(options: DemoOptions) -> None:
    options.out.mkdir()
    (options.out / "config.yaml").write_text("from before")
    (options.out / "config.yaml").chmod(0o644)
    assert run_demo(options, scripted()) == 0
    path = options.out / "config.yaml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    values = yaml.safe_load(path.read_text())
    assert values["device_id"] == "demo"
    assert values["mqtt"]["host"] == "127.0.0.1"
    assert Path(values["models_dir"]).is_absolute()
    assert values["cameras"]["line1"]["source"] == options.source
    Config.model_validate({**values, "models_dir": options.models_dir})


def test_json_gives_the_messages_and_nothing_else_on_stdout(
    options: DemoOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_demo(changed(options, json=True), scripted()) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line)["seq"] for line in out.splitlines()] == [0, 1, 2, 3, 4]
    assert "5 readings in" in err


def test_fields_are_judged_by_the_truth_of_the_sample(
    options: DemoOptions, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import numpy as np

    label = {"lot": "A7K2093", "expiry": "2027-08-31", "serial": "S1"}
    text = SceneText(0, "x", np.zeros((4, 2), np.float32), False)
    sample = SampleVideo(Path(str(options.source)) / "a.avi", 20.0, (label,), ((text,),))
    sample.path.touch()
    monkeypatch.setattr(demo, "prepare_sample", lambda out: sample)
    assert run_demo(changed(options, source=None), scripted()) == 0
    out = capsys.readouterr().out
    assert "lot: 5 of 5 right" in out
    assert "expiry_date: 0 of 5 right, and 5 that no label in view carries" in out
    assert "serial_number: 0 of 5 right" in out


def test_ctrl_c_ends_everything_at_once_with_a_summary(
    options: DemoOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupt_when(lambda: "line1  #" in capsys.readouterr().out)
    assert run_demo(changed(options, frames=0), scripted()) == 0
    assert "readings in" in capsys.readouterr().out
    assert (options.out / "agent.log").read_text().endswith("ended in order\n")


def test_ctrl_c_before_the_first_reading_is_no_failure(
    options: DemoOptions, children: Children, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = (sys.executable, "-c", "import time; time.sleep(60)")
    interrupt_when(lambda: len(children()) >= 2)
    assert run_demo(options, silent) == 0
    assert "stopped" in capsys.readouterr().err


@pytest.mark.parametrize("keep", [False, True])
def test_sigterm_ends_the_children_too(options: DemoOptions, keep: bool) -> None:
    code = (
        "import sys; from pathlib import Path; from edge_agent.demo.run import DemoOptions, run_demo\n"
        f"sys.exit(run_demo(DemoOptions({options.source!r}, 0, Path('engines'), "
        f"keep={keep}, out=Path({str(options.out)!r})), {scripted()!r}))"
    )
    started = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    with started:
        assert "lot A7K2093" in started.stdout.readline()
        family = psutil.Process(started.pid).children(recursive=True)
        assert len(family) >= 2
        started.terminate()
        started.stdout.read()
        assert started.wait(DEADLINE_S) == 0
    assert psutil.wait_procs(family, timeout=DEADLINE_S)[1] == []


def test_an_agent_that_dies_shows_its_last_words(options: DemoOptions, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_demo(options, scripted("dies")) == 78
    err = capsys.readouterr().err
    assert "the agent ended with code 78" in err
    assert "edge-agent: model ppocrv6-small-det is missing; run `edge-agent models fetch`" in err


def test_an_agent_that_dies_later_is_noticed(options: DemoOptions, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_demo(changed(options, frames=0), scripted("dies-later")) == 70
    captured = capsys.readouterr()
    assert captured.out.count("line1  #") == 3
    assert "the agent ended with code 70" in captured.err


def test_the_end_of_the_source_ends_the_demo(options: DemoOptions, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_demo(changed(options, frames=0), scripted("comes-to-its-end")) == 0
    out = capsys.readouterr().out
    assert out.count("line1  #") == 3
    assert "3 readings in" in out
    assert "scripted agent --until-end reads line1=folder:" in (options.out / "agent.log").read_text()


def test_an_agent_that_reads_nothing_is_given_up(
    options: DemoOptions, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "NO_READING_S", 0.2)
    assert run_demo(options, (sys.executable, "-c", "import time; time.sleep(60)")) == 70
    assert "no reading for" in capsys.readouterr().err


def test_a_broker_that_dies_is_noticed(
    options: DemoOptions, children: Children, capsys: pytest.CaptureFixture[str]
) -> None:
    def kill_broker() -> None:
        deadline = time.monotonic() + 20
        while "line1  #" not in capsys.readouterr().out and time.monotonic() < deadline:
            time.sleep(0.02)
        for child in children():
            if "mosquitto" in child.name() or "amqtt" in " ".join(child.cmdline()):
                child.kill()

    threading.Thread(target=kill_broker, daemon=True).start()
    assert run_demo(changed(options, frames=0), scripted()) != 0
    assert "ended with code" in capsys.readouterr().err


def test_keep_leaves_the_agent_running_until_ctrl_c(
    options: DemoOptions, children: Children, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[int] = []

    def kept() -> bool:
        seen.append(len(children()))
        return "--keep" in capsys.readouterr().err

    interrupt_when(kept)
    assert run_demo(changed(options, frames=2, keep=True), scripted()) == 0
    assert seen[-1] >= 2


def test_a_source_that_is_not_there_starts_nothing(options: DemoOptions) -> None:
    with pytest.raises(ConfigError, match="there is no /nowhere"):
        run_demo(changed(options, source="/nowhere"), scripted())
    assert sorted(p.name for p in options.out.iterdir()) == []
