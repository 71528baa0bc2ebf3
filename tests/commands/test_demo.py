"""`edge-agent demo`: its options reach the demo; a wrong one is refused."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from edge_agent.commands import demo as verb
from edge_agent.demo import run as demo
from edge_agent.demo.run import DemoOptions


def parsed(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    verb.add_parser(parser.add_subparsers())
    return parser.parse_args(["demo", *argv])


def test_options_reach_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[DemoOptions] = []

    def run_demo(options: DemoOptions) -> int:
        given.append(options)
        return 0

    monkeypatch.setattr(demo, "run_demo", run_demo)
    args = parsed("--source", "x.mp4", "--frames", "30", "--json", "--keep", "--models-dir", str(tmp_path))
    assert args.func(args) == 0
    assert given == [DemoOptions("x.mp4", 30, tmp_path, json=True, keep=True)]


def test_without_options_the_sample_video_plays_until_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    args = parsed()
    assert (args.source, args.frames, args.json, args.keep) == (None, 0, False, False)


@pytest.mark.parametrize("count", ["-1", "many", "", "1.5", "²"])
def test_a_number_of_frames_that_is_none_is_refused(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        parsed("--frames", count)
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert "--frames" in said
    assert "expected a number of readings" in said
