"""`edge-agent build`: what is built, what is left alone, what is said; the child has a fake TensorRT."""

from __future__ import annotations

import argparse
import dataclasses
import io
from pathlib import Path
from typing import Any

import pytest
import yaml

from edge_agent.backends.build_job import BuildProgress
from edge_agent.backends.plan import BuildOptions
from edge_agent.backends.profiles import ShapeLog, shapes_path
from edge_agent.commands import build as command
from edge_agent.config import Config
from edge_agent.errors import ConfigError, ModelError
from edge_agent.models.spec import find_models_dir
from tests.backends import fake_trt
from tests.backends.fake_cuda import fake_gpu
from tests.backends.small_models import mean_colour
from tests.models import small

PROFILES = """
profiles:
  - min: {image: [1, 32, 32, 3]}
    opt: {image: [1, 64, 64, 3]}
    max: {image: [1, 128, 128, 3]}
"""


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="edge-agent")
    command.add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["build", *arguments])
    return int(args.func(args))


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    """A folder with one model, `det`, whose file is there."""
    folder, wheels = small.world(tmp_path)
    from edge_agent.models.fetch import fetch

    fetch(folder, ["det"], lambda line: None, wheels_from=wheels)
    with (Path(folder) / "det" / "model.yaml").open("a") as file:
        file.write(PROFILES)
    return Path(folder)


@pytest.fixture
def tensorrt(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a fake TensorRT under the command; `tensorrt.behaviour` says how its builder ends."""
    fake = fake_trt.install(monkeypatch, "10.3.0")
    fake.behaviour = "well"

    def opened(settings: Any, report: Any) -> Any:
        settings = dataclasses.replace(settings, builder=fake_trt.fake_child(fake.behaviour))
        fake.settings = settings
        return fake.backend.TrtBackend(settings, report, fake_gpu(fake.cuda))

    monkeypatch.setattr(command, "open_backend", opened)
    return fake


def test_named_model_is_built_and_its_plan_shown(
    tensorrt: Any, models_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("det", "--models-dir", str(models_dir)) == 0
    (plan,) = (models_dir / "plans").glob("det-*.plan")
    assert f"MB: {plan}" in capsys.readouterr().out
    assert tensorrt.cuda.stack == []


def test_if_stale_leaves_a_good_plan_alone_and_mends_a_damaged_one(
    tensorrt: Any, models_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("det", "--if-stale", "--models-dir", str(models_dir))
    assert run(*arguments) == 0
    assert "det: det: no plan was built yet" in capsys.readouterr().out
    (plan,) = (models_dir / "plans").glob("det-*.plan")
    built_at = plan.stat().st_mtime_ns
    assert run(*arguments) == 0
    assert capsys.readouterr().out == "det: fits and is whole\n"
    assert plan.stat().st_mtime_ns == built_at
    plan.write_bytes(b"")
    assert run(*arguments) == 0
    assert "is empty (0 bytes)" in capsys.readouterr().out
    assert plan.stat().st_size > 0


def test_failed_build_is_told_and_exits_1(tensorrt: Any, models_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tensorrt.behaviour = "killed"
    assert run("det", "--models-dir", str(models_dir), "--workspace-mb", "256") == 1
    err = capsys.readouterr().err
    assert "was killed (SIGKILL)" in err
    assert "not built: det" in err


def test_options_become_settings(tensorrt: Any, models_dir: Path, tmp_path: Path) -> None:
    plans = tmp_path / "elsewhere"
    options = ["--precision", "fp32", "--optimisation-level", "0", "--workspace-mb", "128", "--plans-dir", str(plans)]
    assert run("det", "--models-dir", str(models_dir), *options, "--tactic-sources", "JIT_CONVOLUTIONS") == 0
    assert tensorrt.settings.plans_dir == plans
    assert tensorrt.settings.workspace_bytes == 128 << 20
    built = tensorrt.settings.options
    assert (built.precision, built.optimisation_level, built.tactic_sources) == ("fp32", 0, ("JIT_CONVOLUTIONS",))


def test_settings_of_the_agent_are_the_defaults(tensorrt: Any, models_dir: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("backend: {tensorrt: {precision: fp32, optimisation_level: 1, workspace_mb: 200}}\n")
    assert run("det", "--models-dir", str(models_dir), "--config", str(config), "--optimisation-level", "2") == 0
    assert tensorrt.settings.options == BuildOptions("fp32", optimisation_level=2)
    assert tensorrt.settings.workspace_bytes == 200 << 20
    assert not tensorrt.settings.detailed


def test_layer_details_are_kept_in_the_plan_that_the_agent_loads(
    tensorrt: Any, models_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requests = []
    make = tensorrt.backend.BuildRequest
    tensorrt.backend.BuildRequest = lambda *values: requests.append(make(*values)) or requests[-1]
    assert run("det", "--models-dir", str(models_dir), "--layer-details") == 0
    assert [request.detailed for request in requests] == [True]
    assert run("det", "--models-dir", str(models_dir), "--if-stale") == 0
    assert "fits and is whole" in capsys.readouterr().out


def test_int8_takes_the_quantised_file_or_says_how_to_make_it(models_dir: Path) -> None:
    with pytest.raises(ModelError, match=r"no .*model\.int8\.onnx: .*edge-agent calibrate"):
        command.targets(["det"], Config(), models_dir, "int8")
    mean_colour(models_dir / "det" / "model.int8.onnx")
    (target,) = command.targets(["det"], Config(), models_dir, "int8")
    assert target.onnx_path.name == "model.int8.onnx"


def test_without_names_the_models_of_the_settings_are_built() -> None:
    chosen = list(command.pipeline_models(Config(), find_models_dir()))
    assert chosen == [
        ("ppocrv6-small-det", "full"),
        ("ppocrv6-small-rec", "latin"),
        ("minilm-l6-v2", "full"),
    ]


def test_machine_without_tensorrt_is_told_what_is_missing(models_dir: Path) -> None:
    from edge_agent.backends.choose import look

    if not look().problems:
        pytest.skip("TensorRT runs here")
    with pytest.raises(ConfigError, match="plans are built where TensorRT runs, and here it cannot: "):
        run("det", "--models-dir", str(models_dir))


def test_unknown_model_is_named(models_dir: Path) -> None:
    with pytest.raises(ModelError, match="no model 'nothere'"):
        run("nothere", "--models-dir", str(models_dir))


def test_profiles_are_suggested_from_what_ran_here(models_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("det", "--suggest-profiles", "--models-dir", str(models_dir)) == 0
    assert "det: nothing was counted yet" in capsys.readouterr().out
    log = ShapeLog()
    for _ in range(7):
        log.count((("image", (1, 96, 128, 3)),))
    log.save(shapes_path(models_dir / "plans", "det"))
    assert run("det", "--suggest-profiles", "--models-dir", str(models_dir)) == 0
    out = capsys.readouterr().out
    assert out.startswith("# det: 7 runs of 1 shapes")
    assert yaml.safe_load(out)["profiles"][0]["opt"] == {"image": [1, 96, 128, 3]}


def progress(done: int) -> BuildProgress:
    return BuildProgress("det", "Tactics", done, 9, float(done))


def test_progress_off_a_terminal_is_a_line_now_and_then() -> None:
    now = iter([0.0, 1.0, 9.0, 10.5, 11.0])
    stream = io.StringIO()
    teller = command.Teller(stream, clock=lambda: next(now))
    for done in range(5):
        teller(progress(done))
    assert stream.getvalue().splitlines() == ["det: Tactics 0/9, 0 s", "det: Tactics 3/9, 3 s"]


def test_progress_on_a_terminal_stays_on_one_line() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    teller = command.Teller(stream)
    teller(progress(3))
    teller(progress(9))
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")
