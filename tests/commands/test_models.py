"""`edge-agent models`: what an operator sees, and the exit codes scripts rely on."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from edge_agent.commands.models import add_parser
from edge_agent.errors import ModelError
from tests.models import small


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="edge-agent")
    add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["models", *arguments])
    return int(args.func(args))


@pytest.fixture
def world(tmp_path: Path) -> tuple[str, str]:
    models_dir, wheels = small.world(tmp_path)
    return str(models_dir), str(wheels)


def rows(out: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}


def test_list_shows_missing_ready_and_damaged(world: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    models_dir, wheels = world
    assert run("fetch", "--models-dir", models_dir, "--from", wheels, "det") == 0
    capsys.readouterr()
    assert run("list", "--models-dir", models_dir) == 0
    out = capsys.readouterr().out
    assert rows(out)["name"] == ["name", "task", "licence", "size", "state"]
    assert rows(out)["det"][1:3] == ["text_detection", "Apache-2.0"]
    assert rows(out)["det"][-1] == "ready"
    assert rows(out)["rec"][-1] == "missing"
    assert "edge-agent models fetch" in out
    (Path(models_dir) / "det" / "model.onnx").write_bytes(b"x")
    run("list", "--models-dir", models_dir)
    assert rows(capsys.readouterr().out)["det"][-1] == "damaged"


def test_list_goes_on_after_a_model_yaml_that_is_wrong(
    world: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    models_dir, _ = world
    (Path(models_dir) / "det" / "model.yaml").write_text("name: det\n")
    assert run("list", "--models-dir", models_dir) == 0
    out = capsys.readouterr().out
    assert "det/model.yaml: task: Field required" in out
    assert rows(out)["rec"][-1] == "missing"


def test_fetch_without_names_makes_all_and_again_says_ready(
    world: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    models_dir, wheels = world
    assert run("fetch", "--models-dir", models_dir, "--from", wheels) == 0
    assert "rec: ready, 4 files" in capsys.readouterr().out
    assert run("fetch", "--models-dir", models_dir, "--from", wheels) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"models in {models_dir}",
        "det: ready, nothing to do",
        "rec: ready, nothing to do",
    ]
    assert run("fetch", "--models-dir", models_dir, "--from", wheels, "--force", "det") == 0
    assert "det: building" in capsys.readouterr().out


def test_verify_lists_each_fault_and_exits_non_zero(world: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    models_dir, wheels = world
    run("fetch", "--models-dir", models_dir, "--from", wheels)
    assert run("verify", "--models-dir", models_dir) == 0
    path = Path(models_dir) / "rec" / "model.latin.onnx"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    (Path(models_dir) / "rec" / "charset.json").unlink()
    capsys.readouterr()
    assert run("verify", "--models-dir", models_dir) == 1
    out = capsys.readouterr().out
    assert "det: whole" in out
    assert "rec: charset.json is missing" in out
    assert "rec: model.latin.onnx was changed" in out
    assert run("verify", "--models-dir", models_dir, "det") == 0
    assert run("fetch", "--models-dir", models_dir, "--from", wheels) == 0
    assert run("verify", "--models-dir", models_dir) == 0


def test_verify_goes_on_after_a_model_yaml_that_is_wrong(
    world: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    models_dir, wheels = world
    run("fetch", "--models-dir", models_dir, "--from", wheels)
    (Path(models_dir) / "det" / "model.yaml").write_bytes(b"\xff")
    capsys.readouterr()
    assert run("verify", "--models-dir", models_dir) == 1
    out = capsys.readouterr().out
    assert "det/model.yaml:1: byte 0xff is not UTF-8" in out
    assert "rec: whole" in out
    assert "1 not whole" in out


def test_add_takes_a_model_in_and_says_how_to_use_it(
    world: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models_dir, _ = world
    path = tmp_path / "mine.onnx"
    path.write_bytes(small.detector().SerializeToString())
    options = ["--name", "mine", "--task", "text_detection", "--mean", "0.4", "0.4", "0.4", "--licence", "MIT"]
    assert run("add", str(path), "--models-dir", models_dir, *options) == 0
    assert "use it in config.yaml: pipeline.detector: mine" in capsys.readouterr().out
    assert run("verify", "--models-dir", models_dir, "mine") == 0
    with pytest.raises(ModelError, match="already"):
        run("add", str(path), "--models-dir", models_dir, *options)


def test_unknown_model_and_unknown_task_are_refused(world: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    models_dir, wheels = world
    with pytest.raises(ModelError, match="there is no model 'dat'; choose one of det, rec"):
        run("fetch", "--models-dir", models_dir, "--from", wheels, "dat")
    with pytest.raises(SystemExit) as ended:
        run("add", "x.onnx", "--name", "a", "--task", "guessing")
    assert ended.value.code == 2
    assert "text_detection" in capsys.readouterr().err


def test_folder_comes_from_the_settings_or_the_environment(
    world: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "config.yaml"
    settings.write_text("models_dir: engines\n")  # beside the settings, wherever the command is given
    assert run("list", "--config", str(settings)) == 0
    assert rows(capsys.readouterr().out)["det"][-1] == "missing"
    monkeypatch.setenv("EDGE_AGENT_MODELS_DIR", world[0])
    assert run("list") == 0
    assert "ppocrv6-small-det" not in rows(capsys.readouterr().out)


def test_verify_says_when_a_model_was_made_by_another_version_or_never_compared(
    world: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    models_dir, wheels = world
    run("fetch", "--models-dir", models_dir, "--from", wheels)
    path = Path(models_dir) / "det" / "manifest.json"
    path.write_text(path.read_text().replace('"checked": true', '"checked": false'))
    path = Path(models_dir) / "rec" / "model.yaml"
    path.write_text(path.read_text().replace("- 0.4", "- 0.41"))
    capsys.readouterr()
    assert run("verify", "--models-dir", models_dir) == 0
    out = capsys.readouterr().out
    assert "det: whole, never compared with the original" in out
    assert "rec: whole, but made by another version" in out
