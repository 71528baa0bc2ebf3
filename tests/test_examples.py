"""The three lines of docs/verify.md: their settings, and the real models on rendered labels, down to the verdict."""

from __future__ import annotations

import calendar
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from edge_agent.clock import DeviceClock
from edge_agent.commands.replay import find_past, replay
from edge_agent.config import Config, load, patched
from edge_agent.demo.line_labels import LineLabel, frame_of
from edge_agent.evidence import EvidenceStore, find_evidence, list_evidence, read_evidence
from edge_agent.expectations import Expectations
from edge_agent.inspection import Inspection
from edge_agent.models.spec import find_models_dir
from edge_agent.pipeline import Pipeline, load_pipeline
from edge_agent.records import Frame, Message, Reading
from tests.conftest import ROOT
from tests.contract import check

EXAMPLES = ROOT / "docs" / "examples"
TODAY = date.today()
NEXT_YEARS = TODAY + timedelta(days=700)
PHARMA_EXPIRY = NEXT_YEARS.replace(day=calendar.monthrange(NEXT_YEARS.year, NEXT_YEARS.month)[1])


def day(days: int) -> str:
    return (TODAY + timedelta(days=days)).strftime("%d %b %Y").upper()


def loaf(days: int = 9, lot: str = "L2345B", smeared: int | None = None) -> LineLabel:
    return LineLabel(("SEEDED RYE BREAD 500 g", f"BEST BEFORE {day(days)}", f"LOT {lot}"), smeared=smeared)


def carton(lot: str = "L2345B", smeared: int | None = None) -> LineLabel:
    texts = ("PARACETAMOL 500 mg", f"EXP {PHARMA_EXPIRY:%m/%Y}", f"LOT {lot}", "SN 48213091")
    return LineLabel(texts, f"(01)09521234567011(17){PHARMA_EXPIRY:%y%m%d}(10)L2345B(21)48213091", smeared)


def pack(days: int = -5, smeared: int | None = None) -> LineLabel:
    made = (TODAY + timedelta(days=days)).isoformat()
    return LineLabel(("LITHIUM BATTERY PACK", "48 V 100 Ah", "S/N BX7-220914-C", f"MFG {made}"), smeared=smeared)


@pytest.fixture(scope="module")
def pipeline() -> Iterator[Pipeline]:
    with load_pipeline(Config(), find_models_dir(None)) as loaded:
        yield loaded


@dataclass
class Line:
    """One example's line: labels are shown to it, its messages are kept."""

    name: str
    pipeline: Pipeline
    folder: Path
    config: Config = field(init=False)
    messages: list[Message] = field(default_factory=list)
    now: float = 1000.0
    seq: int = 0

    def __post_init__(self) -> None:
        self.config = patched(load(EXAMPLES / f"{self.name}.yaml", {}), {"items": {"trust_clock": True}})
        (self.camera,) = self.config.cameras
        self.pipeline.tune(self.config)
        self.opened = ExitStack()
        clock = DeviceClock(monotonic=lambda: self.now)
        evidence = EvidenceStore(self.folder, self.config.evidence, lambda kind, text: None)
        expectations = Expectations(self.config, self.messages.append)
        self.pipeline.expected = expectations.of
        self.opened.enter_context(evidence)
        self.inspection = self.opened.enter_context(
            Inspection(self.config, self.messages.append, clock, expectations, evidence)
        )

    def show(self, label: LineLabel, times: int = 6) -> Reading:
        """The label rests before the camera for some frames; it is read once, for they are all the same."""
        image = frame_of([label])
        if self.config.cameras[self.camera].trigger.kind == "mqtt":
            self.inspection.hear(self.camera, "trigger", b"", False, self.now)
        first = self.pipeline.read(Frame(self.camera, self.seq, clock_of_day(), self.now, image))
        for _ in range(times):
            self.now, self.seq = self.now + 0.1, self.seq + 1
            frame = Frame(self.camera, self.seq, clock_of_day(), self.now, image)
            self.inspection.look(frame, replace(first, seq=self.seq))
        self.now += 60.0  # until the next one: this one is decided
        self.inspection.attend()
        return first

    def items(self) -> list[dict[str, Any]]:
        """What was said of items."""
        said = [message for message in self.messages if message.topic.endswith("/item")]
        for message in said:
            check(message.topic, message.payload)
        return [json.loads(message.payload) for message in said]


def clock_of_day() -> float:
    return DeviceClock().unix()


def verdicts(items: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Of each item the verdict, and the rules that it did not pass."""
    return [
        (item["verdict"], [reason["rule"] for reason in item["reasons"] if reason["verdict"] != "PASS"])
        for item in items
    ]


def test_bakery_passes_fresh_loaves_fails_stale_ones_and_does_not_guess(pipeline: Pipeline, tmp_path: Path) -> None:
    line = Line("bakery", pipeline, tmp_path / "evidence")
    with line.opened:
        for label in (loaf(), loaf(days=1), loaf(smeared=1), loaf(lot="L23B45")):
            line.show(label)
        found = verdicts(line.items())
    assert found[0] == ("PASS", [])
    assert found[1] == ("FAIL", ["expiry >= today + 3d"])
    assert found[2] == ("NO_READ", ["expiry >= today + 3d", "expiry <= today + 30d"])
    assert found[3][0] != "PASS" and found[3][1] == ["lot: pattern L9999A"]
    kept = [read_evidence(path) for path in list_evidence(tmp_path / "evidence")]
    assert [piece.content["item"]["verdict"] for piece in kept][:2] == ["FAIL", "NO_READ"]


def test_pharma_holds_the_print_against_the_code(pipeline: Pipeline, tmp_path: Path) -> None:
    line = Line("pharma", pipeline, tmp_path / "evidence")
    with line.opened:
        for label in (carton(), carton(lot="L2345C"), carton(smeared=1)):
            line.show(label)
        items = line.items()
    assert verdicts(items) == [
        ("PASS", []),
        ("FAIL", ["print.lot: equals code.lot"]),
        ("NO_READ", ["print.expiry: equals code.expiry"]),
    ]
    (differs,) = [reason for reason in items[1]["reasons"] if reason["verdict"] == "FAIL"]
    assert (differs["expected"], differs["seen"]) == ("L2345B", "L2345C")


def test_battery_looks_at_the_type_plate(pipeline: Pipeline, tmp_path: Path) -> None:
    line = Line("battery", pipeline, tmp_path / "evidence")
    with line.opened:
        for label in (pack(), pack(days=-60), pack(smeared=2)):
            line.show(label)
        found = verdicts(line.items())
    assert found == [
        ("PASS", []),
        ("FAIL", ["mfg >= today - 30d"]),
        ("NO_READ", ["serial: pattern AA9-999999-A"]),
    ]


def test_kept_item_is_found_by_its_id_and_reads_the_same_again(pipeline: Pipeline, tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    line = Line("bakery", pipeline, folder)
    with line.opened:
        line.show(loaf(days=1))
        (item,) = line.items()
    settings = patched(line.config, {"evidence": {"directory": str(folder)}})
    problems: list[str] = []
    (past,) = find_past(item["evidence_id"], settings, problems)
    again = replay(past, pipeline)
    assert (again.verdict_then, again.verdict_now, again.differences, problems) == ("FAIL", "FAIL", (), [])
    rules = [{"date": "expiry >= today"}]
    changed = patched(settings, {"cameras": {"packing": {"expected": rules}}})
    (past,) = find_past(str(folder), changed, problems)
    other = replay(past, pipeline)
    assert other.verdict_now == "PASS"
    assert other.differences[0].startswith("verdict FAIL -> PASS")
    assert find_evidence(folder, "0" * 24) is None
