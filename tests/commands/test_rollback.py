"""`edge-agent rollback`, on artefacts that were promoted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from edge_agent.__main__ import main
from tests.artefact_site import MODEL, numbered, site


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps({"calibration": {"directory": "calibration"}}))
    return str(path)


def rollback(config: str, *options: str) -> int:
    return main(["rollback", MODEL, "--config", config, *options])


def test_one_step_back_then_to_float_then_no_further(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    artefacts = site(tmp_path / "calibration", 2, 2)
    first, second = artefacts.stored()
    assert rollback(config) == 0
    assert capsys.readouterr().out == f"{MODEL}: now in use: artefact {first}; before: artefact {second}\n"
    assert rollback(config) == 0
    assert capsys.readouterr().out == f"{MODEL}: now in use: the float model; before: artefact {first}\n"
    assert artefacts.promotion().active is None
    assert rollback(config) == 1
    assert "nothing to roll back to: the float model is in use" in capsys.readouterr().err


def test_to_float_at_once_and_to_an_artefact_again(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    artefacts = site(tmp_path / "calibration", 2, 2)
    _, second = artefacts.stored()
    assert rollback(config, "--to", "float") == 0
    assert artefacts.promotion().active is None
    assert rollback(config, "--to", second) == 0
    assert artefacts.promotion().active == second
    capsys.readouterr()
    assert rollback(config, "--to", "20270115T080000Z-000000000000") == 1
    assert f"cannot be read: No such file or directory; kept are: {', '.join(artefacts.stored())}" in (
        capsys.readouterr().err
    )
    assert artefacts.promotion().active == second


@pytest.mark.parametrize(("model", "code"), [("ppocrv6-smal-det", 1), ("../etc", 78)])
def test_model_that_was_never_promoted_leaves_no_trace(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str], model: str, code: int
) -> None:
    assert main(["rollback", model, "--config", config]) == code
    assert capsys.readouterr().err.startswith("edge-agent: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml"]


def test_damaged_promotion_is_mended(tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]) -> None:
    artefacts = site(tmp_path / "calibration", 1, 1)
    artefacts.promoted_path.write_text("{")
    assert rollback(config) == 0
    assert "now in use: the float model; before: not known" in capsys.readouterr().out
    assert artefacts.promotion().active is None


def test_folder_beside_the_models_is_the_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    (tmp_path / "engines").mkdir()
    artefacts = site(tmp_path / "calibration", 1, 1)
    assert main(["rollback", MODEL, "--models-dir", str(tmp_path / "engines")]) == 0
    assert "the float model" in capsys.readouterr().out
    assert artefacts.promotion().active is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folder_that_cannot_be_written_is_one_clear_line(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    artefacts = site(tmp_path / "calibration", 1, 1)
    artefacts.directory.chmod(0o500)
    try:
        assert rollback(config) == 1
    finally:
        artefacts.directory.chmod(0o700)
    assert "run this as the user that the agent runs as" in capsys.readouterr().err


def test_disk_that_fails_is_one_clear_line(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    artefacts = site(tmp_path / "calibration", 1, 0)
    artefacts.promote(artefacts.store(*numbered(3)).id)
    before = artefacts.promotion()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert rollback(config) == 1
    assert "promoted.json cannot be written: No space left on device" in capsys.readouterr().err
    assert artefacts.promotion() == before
