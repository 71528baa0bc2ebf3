"""The demo of items: a real broker, the real agent and models, loaves that pass by."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from edge_agent.config import load
from edge_agent.demo import items
from edge_agent.demo.broker import mosquitto
from edge_agent.demo.child import Child
from edge_agent.demo.items import RULES, loaves, run_items_demo, summary
from edge_agent.demo.run import DemoOptions
from edge_agent.evidence import list_evidence, read_evidence
from edge_agent.models.spec import DEFAULT_MODELS_DIR, find_models_dir
from edge_agent.verify.expectation import rule_to_json
from tests.conftest import ROOT
from tests.contract import check
from tests.light import LIGHT

MODELS = ROOT / DEFAULT_MODELS_DIR


def test_demo_expects_what_the_bakery_of_the_docs_expects() -> None:
    camera = load(ROOT / "docs" / "examples" / "bakery.yaml", {}).cameras["packing"]
    assert [rule_to_json(rule) for rule in camera.expected] == list(RULES)


def test_summary_says_whether_the_verdicts_are_right_in_the_order_of_the_belt(tmp_path: Path) -> None:
    shown = loaves(date(2026, 11, 30))[:2]
    items = [{"verdict": "FAIL", "first_seq": 9}, {"verdict": "PASS", "first_seq": 2}]
    assert "2 items: PASS 1, FAIL 1, NO_READ 0; all as they are" in summary(items, shown, tmp_path)
    wrong = [{"verdict": "PASS", "first_seq": 9}, {"verdict": "PASS", "first_seq": 2}]
    assert "2 items: PASS 2, FAIL 0, NO_READ 0; they are: PASS, FAIL" in summary(wrong, shown, tmp_path)


@pytest.mark.skipif(not mosquitto(), reason="Mosquitto is not installed")
@pytest.mark.skipif(not (MODELS / "ppocrv4-mobile-det" / "model.onnx").is_file(), reason="models are missing")
def test_loaves_pass_by_and_get_their_verdicts_over_a_real_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = DemoOptions(frames=3, models_dir=find_models_dir(MODELS), json=True, out=tmp_path)
    assert run_items_demo(options, more={"pipeline": LIGHT, "backend": {"threads": 1}}) == 0
    shown = capsys.readouterr()
    lines = [line for line in shown.out.splitlines() if line]
    for line in lines:
        check("line1/item", line.encode())
    items: list[dict[str, Any]] = sorted((json.loads(line) for line in lines), key=lambda item: item["first_seq"])
    assert [item["verdict"] for item in items] == ["PASS", "FAIL", "NO_READ"]
    assert "3 items: PASS 1, FAIL 1, NO_READ 1; all as they are" in shown.err
    assert all(item["n_reads"] >= 2 and item["expectation_id"].startswith("config-") for item in items)
    fields = [{field["name"]: field["value"] for field in item["fields"]} for item in items]
    assert [each["lot"] for each in fields] == ["L2345B", "L2344A", "L2345B"]
    assert "expiry_date" not in fields[2]
    kept = {piece.content["id"]: piece for piece in map(read_evidence, list_evidence(tmp_path / "evidence"))}
    assert set(kept) == {item["evidence_id"] for item in items[1:]}
    assert items[0]["evidence_id"] is None


@pytest.mark.skipif(not mosquitto(), reason="Mosquitto is not installed")
@pytest.mark.skipif(not (MODELS / "ppocrv4-mobile-det" / "model.onnx").is_file(), reason="models are missing")
def test_kept_demo_stays_up_when_each_loaf_has_passed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[int | None] = []

    def seen(agent: Child) -> int:
        codes.append(agent.exit_code())
        return 0

    monkeypatch.setattr(items, "kept_up", seen)
    options = DemoOptions(frames=1, models_dir=find_models_dir(MODELS), json=True, keep=True, out=tmp_path)
    assert run_items_demo(options, more={"pipeline": LIGHT, "backend": {"threads": 1}}) == 0
    assert codes == [None]  # the agent goes on
    assert "1 items: PASS 1, FAIL 0, NO_READ 0; all as they are" in capsys.readouterr().err
