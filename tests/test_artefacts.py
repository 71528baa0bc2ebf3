"""Artefacts: real files; interruptions are real processes that are killed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edge_agent.artefacts import (
    NODES,
    Artefacts,
    ArtefactUnfit,
    ArtefactUnusable,
    Binding,
    Promotion,
    find_calibration_dir,
)
from edge_agent.errors import CalibrationRefused, ConfigError
from tests.artefact_site import BINDING, CONTENT, MODEL, manifest, numbered, site
from tests.conftest import ROOT


@pytest.fixture
def artefacts(tmp_path: Path) -> Artefacts:
    return Artefacts(tmp_path / "calibration", MODEL, lambda: 1_800_000_000.0)


# ---- what may be stored


def test_stored_artefact_is_whole_and_not_in_use(artefacts: Artefacts) -> None:
    stored = artefacts.store(CONTENT, manifest())
    assert stored.onnx.read_bytes() == CONTENT
    assert stored.directory == artefacts.directory / "artefacts" / stored.id
    assert stored.manifest["bytes"] == len(CONTENT)
    assert json.loads((stored.directory / "manifest.json").read_text())["sha256"] == stored.manifest["sha256"]
    assert artefacts.active(BINDING) is None
    assert artefacts.promotion() == Promotion()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"judgement": {"passed": False}}, "no judgement passed it"),
        ({"judgement": {"figures": {}}}, "no judgement passed it"),
        ({"judgement": None}, "no judgement passed it"),
        ({"batches": 0}, "its ranges come from 0 batches"),
        ({"batches": None}, "its ranges come from None batches"),
        ({"batches": True}, "its ranges come from True batches"),
        ({"collection": ""}, "collection is missing"),
        ({"method": None}, "method is missing"),
        ({"source_sha256": None}, "source_sha256 is missing"),
        ({"preprocessing": {}}, "preprocessing is missing"),
        ({"device": {}}, "device is missing"),
        ({"versions": {}}, "versions is missing"),
        ({"model": "another"}, "it is for model 'another', expected reader"),
        ({"judgement": {"passed": True, "cer": float("nan")}}, "no strict JSON"),
    ],
)
def test_nothing_becomes_an_artefact_without_ranges_and_a_verdict(
    artefacts: Artefacts, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(CalibrationRefused, match=says):
        artefacts.store(CONTENT, manifest(**changes))
    assert artefacts.stored() == []


@pytest.mark.parametrize("content", [b"", b"a float model", b"a model" + NODES["DequantizeLinear"]])
def test_model_without_quantised_nodes_is_no_artefact(artefacts: Artefacts, content: bytes) -> None:
    with pytest.raises(CalibrationRefused, match="the model has no QuantizeLinear node"):
        artefacts.store(content, manifest())


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc", "x" * 65])
def test_name_that_leaves_the_folder_is_no_model(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="no model name"):
        Artefacts(tmp_path, name)


# ---- which one is in use


def test_promoted_artefact_is_in_use_until_it_is_rolled_back(tmp_path: Path) -> None:
    artefacts = Artefacts(tmp_path, MODEL)
    first, second = (artefacts.store(*numbered(number)) for number in (1, 2))
    assert artefacts.promote(first.id).previous is None
    assert artefacts.active(BINDING) == first
    assert artefacts.promote(second.id).previous == first.id
    assert artefacts.active(BINDING) == second
    assert artefacts.rollback().active == first.id
    assert artefacts.active(BINDING) == first
    assert artefacts.rollback().active is None, "what was rolled back from does not come back by rolling back again"
    assert artefacts.active(BINDING) is None
    with pytest.raises(
        CalibrationRefused, match=r"nothing to roll back to: the float model is in use \(.*promoted.json"
    ):
        artefacts.rollback()


def test_rollback_to_float_leaves_the_one_before_out(tmp_path: Path) -> None:
    artefacts = site(tmp_path, 2, 2)
    assert artefacts.rollback(to_float=True).active is None


def test_rollback_passes_over_a_damaged_artefact(tmp_path: Path) -> None:
    artefacts = site(tmp_path, 2, 2)
    (artefacts.directory / "artefacts" / artefacts.stored()[0] / "model.int8.onnx").write_bytes(b"x")
    assert artefacts.rollback().active is None


def test_promoting_what_is_in_use_keeps_the_one_before(tmp_path: Path) -> None:
    artefacts = site(tmp_path, 2, 2)
    first, second = artefacts.stored()
    promotion = artefacts.promote(second)
    assert (promotion.active, promotion.previous) == (second, first)


def test_three_are_kept_the_one_in_use_and_the_one_before_among_them(tmp_path: Path) -> None:
    artefacts = site(tmp_path, 6, 6)
    ids = artefacts.stored()
    assert len(ids) == 3
    artefacts.rollback()
    in_use = artefacts.promotion().active
    artefacts.store(*numbered(7))
    artefacts.store(*numbered(8))
    assert in_use in artefacts.stored()
    promoted = artefacts.promote(artefacts.store(*numbered(9)).id)
    assert promoted.previous == in_use
    assert set(artefacts.stored()) >= {promoted.active, in_use}
    assert len(artefacts.stored()) == 3


# ---- what it holds for


def other_device(binding: Binding) -> Binding:
    return replace(binding, device={**binding.device, "cpu": "Made-up 7000"})


@pytest.mark.parametrize(
    ("running", "says"),
    [
        (replace(BINDING, variant="latin"), "variant: made with full, running with latin"),
        (replace(BINDING, scheme="tensorrt"), "scheme: made with onnxruntime, running with tensorrt"),
        (replace(BINDING, source_sha256="cd" * 32), "source_sha256: made with abababababab..., running with cdcdcd"),
        (other_device(BINDING), "device cpu: made with Made-up 9000, running with Made-up 7000"),
        (replace(BINDING, device={"gpu": "Orin"}), "device gpu: made with nothing, running with Orin"),
        (
            replace(BINDING, versions={"onnxruntime": "1.31.0"}),
            "versions onnxruntime: made with 1.30.0, running with 1.31.0",
        ),
        (
            replace(BINDING, preprocessing={"height_px": 32, "widths_px": (96, 160)}),
            "preprocessing height_px: made with 48, running with 32",
        ),
        (
            replace(BINDING, preprocessing={"height_px": 48, "widths_px": (96,)}),
            r"preprocessing widths_px: made with \[96, 160\], running with \[96\]",
        ),
    ],
)
def test_artefact_serves_nothing_else_than_what_it_was_made_for(tmp_path: Path, running: Binding, says: str) -> None:
    artefacts = site(tmp_path, 1, 1)
    with pytest.raises(ArtefactUnfit, match=f"reader: its INT8 artefact .* does not fit: {says}"):
        artefacts.active(running)
    assert artefacts.active(BINDING) is not None


def onnx_of(artefacts: Artefacts) -> Path:
    return artefacts.directory / "artefacts" / artefacts.stored()[0] / "model.int8.onnx"


def flip(artefacts: Artefacts) -> None:
    path = onnx_of(artefacts)
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")


def change_manifest(**changes: Any) -> Callable[[Artefacts], None]:
    def change(artefacts: Artefacts) -> None:
        path = onnx_of(artefacts).with_name("manifest.json")
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


def write_promoted(text: str) -> Callable[[Artefacts], None]:
    return lambda artefacts: artefacts.promoted_path.write_text(text) and None


DAMAGE: dict[str, tuple[Callable[[Artefacts], Any], str]] = {
    "flipped byte": (flip, "its sha256 is not its manifest's"),
    "empty file": (lambda a: onnx_of(a).write_bytes(b""), "its sha256 is not its manifest's"),
    "no file": (lambda a: onnx_of(a).unlink(), "is not whole"),
    "no manifest": (lambda a: onnx_of(a).with_name("manifest.json").unlink(), "cannot be read: No such file"),
    "half a manifest": (lambda a: onnx_of(a).with_name("manifest.json").write_text('{"v": 1'), "damaged manifest"),
    "a list": (lambda a: onnx_of(a).with_name("manifest.json").write_text("[1]"), "damaged manifest"),
    "no verdict": (change_manifest(judgement={}), "no judgement passed it"),
    "another's": (change_manifest(id="20270115T080000Z-000000000000"), "it is that of 20270115T080000Z-000000000000"),
    "half a promotion": (write_promoted('{"v": 1,'), "promoted.json is damaged"),
    "no promotion": (write_promoted("{}"), "promoted.json is damaged"),
    "a later version": (write_promoted('{"v": 2, "active": null, "previous": null, "promoted_at": 1}'), "of version 1"),
    "a path": (
        write_promoted('{"v": 1, "active": "../../../x", "previous": null, "promoted_at": 1}'),
        "is no artefact's id",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_artefact_is_not_used_and_is_said(tmp_path: Path, kind: str) -> None:
    damage, says = DAMAGE[kind]
    artefacts = site(tmp_path, 1, 1)
    before = artefacts.mark(artefacts.promotion().active)
    artefact_id = artefacts.promotion().active
    damage(artefacts)
    with pytest.raises(ArtefactUnusable, match=says):
        artefacts.active(BINDING)
    assert artefacts.mark(artefact_id) != before, "it is noticed by who looks at the mark"
    assert artefacts.rollback().active is None, "and a rollback mends it"
    assert artefacts.active(BINDING) is None


def test_damaged_artefact_is_not_promoted(tmp_path: Path) -> None:
    artefacts = site(tmp_path, 1, 0)
    flip(artefacts)
    with pytest.raises(ArtefactUnusable, match="damaged"):
        artefacts.promote(artefacts.stored()[0])
    assert artefacts.promotion().active is None


def test_mark_changes_with_a_promotion_and_with_nothing_else(tmp_path: Path) -> None:
    artefacts = site(tmp_path, 2, 1)
    first, second = artefacts.stored()
    mark = artefacts.mark(first)
    artefacts.active(BINDING)
    artefacts.store(*numbered(5))
    assert artefacts.mark(first) == mark
    artefacts.promote(second)
    assert artefacts.mark(first) != mark


# ---- whatever ends the process


@pytest.mark.parametrize("operation", ["store", "promote", "rollback"])
def test_kill_at_any_point_leaves_the_old_or_the_new(tmp_path: Path, operation: str) -> None:
    command = [sys.executable, "-m", "tests.artefact_site", operation, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(lines) > 15
    assert [line["ended"] for line in lines] == [False] * (len(lines) - 1) + [True]
    before = lines[0]["before"]
    old, new = before[2], {"store": before[2], "promote": before[3], "rollback": before[1]}[operation]
    active = [line["active"] for line in lines]
    assert active == [old] * active.count(old) + [new] * (len(active) - active.count(old)), "old, then new, never else"
    assert active[-1] == new
    for line in lines:
        assert {line["active"], old} <= set(line["stored"])
        assert line["in_folder"] == (5 if operation == "store" else 3), "nothing half-written is left by the next one"


@pytest.mark.parametrize(
    ("configured", "state", "expected"),
    [
        (Path("/data/cal"), "/var/lib/edge-agent", Path("/data/cal")),
        (None, "/var/lib/edge-agent:/var/lib/other", Path("/var/lib/edge-agent/calibration")),
        (None, "", Path("/opt/edge/calibration")),
    ],
)
def test_folder_is_the_configured_one_else_the_services_else_beside_the_models(
    configured: Path | None, state: str, expected: Path
) -> None:
    assert find_calibration_dir(configured, Path("/opt/edge/engines"), {"STATE_DIRECTORY": state}) == expected
