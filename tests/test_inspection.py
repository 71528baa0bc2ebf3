from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from edge_agent.clock import DeviceClock
from edge_agent.config import Config, patched
from edge_agent.evidence import EvidenceStore, list_evidence, read_evidence
from edge_agent.expectations import Expectations
from edge_agent.inspection import Inspection
from edge_agent.no_text import NoTextLimit
from edge_agent.records import Correction, Field, Frame, Message, Reading, TextLine
from edge_agent.results import Results
from edge_agent.transports.base import Inbound
from tests.broker import wait_until
from tests.contract import check
from tests.items.sightings import IMAGE, SIZE, label, lot

LOT = [{"field": "lot", "text": "L2345B"}]
TEXTS = ("ACME OATS", "LOT L2345B")


class Site:
    """Results with an inspection, whose clock stands until it is moved."""

    def __init__(
        self,
        folder: Path,
        settings: dict[str, Any] | None = None,
        camera: dict[str, Any] | None = None,
        file: Path | None = None,
    ) -> None:
        values = {"cameras": {"line1": {"kind": "folder", "source": "x", "expected": LOT, **(camera or {})}}}
        self.config = patched(patched(Config(), values), settings or {})
        self.now, self.seq = 100.0, 0
        self.messages: list[Message] = []
        clock = DeviceClock(folder, lambda: self.now, lambda: 1_800_000_000.0 + self.now, lambda: False)
        self.evidence = EvidenceStore(folder, self.config.evidence, lambda kind, text: None)
        expectations = Expectations(self.config, self.messages.append, file)
        self.inspection = Inspection(self.config, self.messages.append, clock, expectations, self.evidence)
        self.results = Results(self.messages.append, clock, NoTextLimit(10.0), inspection=self.inspection)

    def show(self, value: str | None = "L2345B", **flags: Any) -> None:
        """The next frame: a label with that lot, None: nothing."""
        if value is None:
            self.read([], [])
        else:
            self.read(label("ACME OATS", f"LOT {value}"), [lot(1, value, **flags)])

    def belt(self, *values: str, frames: int, x: float = 400) -> None:
        """Frames of labels with these lots, 300 px apart, which come in at `x` and move to the left."""
        for n in range(frames):
            lines: list[TextLine] = []
            fields: list[Field] = []
            for k, value in enumerate(values):
                found = label("ACME OATS", f"LOT {value}", x=x - 12 * n - 300 * k)
                if len(found) == 2:
                    fields.append(lot(len(lines) + 1, value, flags=found[1].flags))
                lines += found
            self.read(lines, fields)

    def read(self, lines: Sequence[TextLine], fields: Sequence[Field]) -> None:
        """The next frame, which says this."""
        self.now, self.seq = self.now + 0.1, self.seq + 1
        frame = Frame("line1", self.seq, 1_800_000_000.0 + self.now, self.now, IMAGE)
        reason = None if lines else "no_text"
        reading = Reading("line1", self.seq, frame.captured_at, *SIZE, tuple(lines), tuple(fields), reason=reason)
        self.results.take(frame, reading)

    def job(self, wish: dict[str, Any] | bytes) -> None:
        """What the plant says between two frames."""
        payload = wish if isinstance(wish, bytes) else json.dumps(wish).encode()
        self.results.hear(Inbound("line1/expected", payload, False, self.now))
        self.results.attend()

    def trigger(self) -> None:
        """The plant says that an item comes."""
        self.results.hear(Inbound("line1/trigger", b"", False, self.now))
        self.results.attend()

    def said(self, kind: str) -> list[dict[str, Any]]:
        found = [message for message in self.messages if message.topic == f"line1/{kind}"]
        for message in found:
            check(message.topic, message.payload)
        return [json.loads(message.payload) for message in found]


@contextmanager
def site(
    folder: Path, settings: dict[str, Any] | None = None, file: Path | None = None, **camera: Any
) -> Iterator[Site]:
    made = Site(folder, settings, camera, file)
    with made.evidence, made.inspection:
        yield made


def test_reading_on_its_own_carries_verdict_reasons_and_expectation(tmp_path: Path) -> None:
    with site(tmp_path) as line:
        line.show()
        line.show("L9999C")
        line.now += 1.0
        line.show("L2345B", flags=("repaired",))
        line.show(None)
    said = line.said("result")
    assert [each["verdict"] for each in said] == ["PASS", "FAIL", "NO_READ", "NO_READ"]
    assert [each["reasons"][0]["why"] for each in said] == [None, "differs", "uncertain", "absent"]
    assert all(each["expectation_id"].startswith("config-") for each in said)
    kept = [each["evidence_id"] for each in said]
    assert (kept[0], kept[3]) == (None, None)  # what passed, and a picture without text, need no proof
    assert {read_evidence(path).content["id"] for path in list_evidence(tmp_path)} == set(kept[1:3])
    assert not line.said("item")


def test_readings_that_fail_one_after_the_other_leave_evidence_once_a_second(tmp_path: Path) -> None:
    with site(tmp_path) as line:
        for _ in range(25):
            line.show("L9999C")
    kept = [each["evidence_id"] for each in line.said("result") if each["evidence_id"] is not None]
    assert len(kept) == 3
    assert len(list(list_evidence(tmp_path))) == 3


def test_without_an_expectation_nothing_is_judged_or_kept(tmp_path: Path) -> None:
    with site(tmp_path, expected=[]) as line:
        line.show()
    (said,) = line.said("result")
    assert (said["verdict"], said["reasons"], said["expectation_id"]) == (None, [], None)
    assert not list(tmp_path.iterdir())


def test_still_item_is_one_message_in_place_of_many_readings(tmp_path: Path) -> None:
    with site(tmp_path, {"items": {"mode": "still"}}) as line:
        for _ in range(20):
            line.show()
    assert len(line.said("item")) == 1
    assert not line.said("result")
    (item,) = line.said("item")
    assert (item["verdict"], item["n_reads"], item["evidence_id"]) == ("PASS", 2, None)
    assert line.inspection.section()["line1"] == {"items": 1, "pass": 1, "fail": 0, "no_read": 0, "fragments": 0}
    origin = next(message.origin for message in line.messages if message.topic == "line1/item")
    assert origin is not None and (origin.id, origin.camera) == (item["id"], "line1")


def test_readings_beside_items_are_not_judged(tmp_path: Path) -> None:
    with site(tmp_path, {"items": {"mode": "still", "publish_readings": True}}) as line:
        for _ in range(3):
            line.show()
    assert [each["verdict"] for each in line.said("result")] == [None] * 3


def test_item_that_fails_waits_for_its_time_and_leaves_evidence(tmp_path: Path) -> None:
    with site(tmp_path, {"items": {"mode": "conveyor", "decide_within_ms": 500}}) as line:
        line.show("L9999C")
        line.show("L9999C")
        assert line.results.due_in_s() == pytest.approx(0.4)
        line.now += 0.4
        line.results.attend()
        (item,) = line.said("item")
        assert line.results.due_in_s() == float("inf")
    assert (item["verdict"], item["decided_by"], item["reasons"][0]["seen"]) == ("FAIL", "time", "L9999C")
    (path,) = list_evidence(tmp_path)
    content = read_evidence(path).content
    assert content["id"] == item["evidence_id"] == item["id"]
    assert content["item"]["evidence_id"] == item["id"]
    assert [each["text"] for each in content["reading"]["lines"]] == ["ACME OATS", "LOT L9999C"]


def test_items_go_on_where_no_evidence_can_be_kept_and_name_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with site(tmp_path / "file" / "evidence", {"items": {"mode": "conveyor", "decide_within_ms": 100}}) as line:
        for n in range(5):
            line.show("L9999C")
            line.now += 0.5
            line.results.attend()
            line.now += 6.0
            wait_until(lambda n=n: line.evidence.lost > n, "the loss")  # type: ignore[misc]
        assert line.evidence.fault is not None and "Not a directory" in line.evidence.fault
    items = line.said("item")
    assert [each["verdict"] for each in items] == ["FAIL"] * 5
    assert [each["evidence_id"] is None for each in items] == [False] + [True] * 4  # the first is not known to be lost


def test_open_item_is_published_when_the_agent_ends(tmp_path: Path) -> None:
    with site(tmp_path, {"items": {"mode": "conveyor"}}) as line:
        line.show("L9999C")
        assert not line.said("item")
    assert [each["decided_by"] for each in line.said("item")] == ["stop"]


def test_single_reading_does_not_pass(tmp_path: Path) -> None:
    with site(tmp_path, {"items": {"mode": "conveyor"}}) as line:
        line.show()
    (item,) = line.said("item")
    assert (item["verdict"], item["reasons"][-1]["why"]) == ("NO_READ", "few_reads")


def test_message_from_the_plant_triggers_an_item_and_one_that_is_retained_does_not(tmp_path: Path) -> None:
    settings = {"items": {"decide_within_ms": 500}}
    with site(tmp_path, settings, trigger={"kind": "mqtt", "delay_ms": 100}) as line:
        line.show()
        line.results.hear(Inbound("line1/trigger", b"", True, line.now))
        line.show()
        line.results.hear(Inbound("line1/trigger", b"", False, line.now))
        line.results.attend()
        for _ in range(3):
            line.show(None)
        line.now += 1.0
        line.results.attend()
    (item,) = line.said("item")
    assert (item["verdict"], item["n_reads"], item["decided_by"]) == ("NO_READ", 0, "time")
    assert not line.said("result")
    (path,) = list_evidence(tmp_path)
    assert read_evidence(path).picture.shape == IMAGE.shape  # nothing was read: the whole picture is kept


def test_trigger_from_before_a_long_pause_tells_of_nothing(tmp_path: Path) -> None:
    with site(tmp_path, trigger={"kind": "mqtt"}) as line:
        line.results.hear(Inbound("line1/trigger", b"", False, line.now))
        line.now += 100.0
        line.results.attend()
    assert not line.said("item")


def test_job_change_reaches_the_next_item_and_the_decoder(tmp_path: Path) -> None:
    with site(tmp_path, {"items": {"mode": "still"}}) as line:
        line.show()
        line.show()
        job = {"id": "job-8", "expected": [{"field": "lot", "pattern": "M9999A"}]}
        line.results.hear(Inbound("line1/expected", json.dumps(job).encode(), True))
        line.results.attend()
        expected = line.inspection.expectations.of("line1")
        assert expected is not None and set(expected.masks(None)) == {"lot"}
        for _ in range(3):
            line.show("M2345B")
        line.show("M2345B")
    items = line.said("item")
    assert [(each["verdict"], each["expectation_id"]) for each in items][1:] == [("PASS", "job-8")]
    (reported,) = line.said("expected/reported")
    assert (reported["id"], reported["code"]) == ("job-8", 200)


def test_changed_mode_decides_what_is_open_and_goes_on_in_the_new_way(tmp_path: Path) -> None:
    with site(tmp_path, {"items": {"mode": "conveyor"}}) as line:
        line.show("L9999C")
        line.results.tune(patched(line.config, {"items": {"mode": "none"}}))
        assert [each["decided_by"] for each in line.said("item")] == ["stop"]
        line.show()
        assert [each["verdict"] for each in line.said("result")] == ["PASS"]


def test_regions_have_items_of_their_own_where_they_are_lanes(tmp_path: Path) -> None:
    rois = {"left": {"width": 0.5, "expected": LOT}, "right": {"x": 0.5, "width": 0.5}}
    settings = {"items": {"mode": "still", "per": "region"}}
    with site(tmp_path, settings, rois=rois, expected=[]) as line:
        line.now += 0.1
        for seq in (1, 2, 3):
            line.now += 0.1
            frame = Frame("line1", seq, 1_800_000_000.0 + line.now, line.now, IMAGE)
            lines = (*label("LOT L2345B", region="left"), *label("LOT C3", x=400, region="right"))
            reading = Reading("line1", seq, frame.captured_at, *SIZE, lines, (lot(0, "L2345B"), lot(1, "C3")))
            line.results.take(frame, reading)
    assert {(each["region"], each["verdict"]) for each in line.said("item")} == {("left", "PASS"), ("right", None)}


def test_untrusted_clock_passes_no_date_unless_the_operator_vouches_for_it(tmp_path: Path) -> None:
    rules = [{"date": "expiry >= today"}]
    for trusted, verdict in ((False, "NO_READ"), (True, "PASS")):
        with site(tmp_path, {"items": {"trust_clock": trusted}}, expected=rules) as line:
            line.show("2099-01-01", name="expiry_date")
        assert [each["verdict"] for each in line.said("result")] == [verdict]


# --- another expectation while items are open ---

OLD = {"id": "old", "expected": [{"field": "lot", "pattern": "L9999A"}]}
NEW = {"id": "new", "expected": [{"field": "lot", "pattern": "M9999A"}]}
CONVEYOR = {"items": {"mode": "conveyor", "min_reads": 3, "decide_within_ms": 60_000}}


def verdicts(line: Site) -> list[tuple[str, str, str, int]]:
    return [
        (each["expectation_id"], each["verdict"], each["decided_by"], each["n_reads"]) for each in line.said("item")
    ]


def test_items_open_at_a_job_change_are_judged_by_the_old_one_and_later_ones_by_the_new(tmp_path: Path) -> None:
    with site(tmp_path, CONVEYOR) as line:
        line.job(OLD)
        line.belt("L1111A", "L2222A", frames=2)
        line.job(NEW)
        assert verdicts(line) == [("old", "NO_READ", "expected", 2)] * 2
        assert [each["reasons"][-1]["why"] for each in line.said("item")] == ["few_reads"] * 2
        line.belt("L1111A", "L2222A", frames=10)  # the same two, still in the picture
        line.belt(frames=10)
        assert len(line.said("item")) == 2
        line.belt("M3333A", frames=10)
        assert verdicts(line)[2:] == [("new", "PASS", "settled", 3)]


def test_no_item_passes_by_readings_of_the_one_and_rules_of_the_other(tmp_path: Path) -> None:
    """Readings that the old mask made look right would pass by the new rules, were they counted."""
    loose = {"id": "loose", "expected": [{"field": "lot"}]}
    for mode in ("still", "conveyor"):
        with site(tmp_path / mode, {"items": {"mode": mode, "min_reads": 3}}) as line:
            line.job(OLD)
            line.show("L2345B", corrections=(Correction(1, "Z", "2"),))
            line.show("L2345B")
            line.job(loose)
            for _ in range(10):
                line.show("L2345B")
        assert [each[:3] for each in verdicts(line)] == [("old", "NO_READ", "expected")]


def test_item_whose_other_text_is_not_believed_yet_is_of_one_expectation(tmp_path: Path) -> None:
    with site(tmp_path, {"items": {"mode": "still", "min_reads": 2}}) as line:
        line.job(OLD)
        line.show("L1111A")
        line.show("L1111A")
        line.show("M2222A")
        line.show("M2222A")  # once more, and it is another item: it must not count these two
        line.job(NEW)
        for _ in range(2):
            line.show("M2222A")
        assert len(line.said("item")) == 1
        line.show("M2222A")
    assert verdicts(line) == [("old", "PASS", "settled", 2), ("new", "PASS", "settled", 3)]


def test_piece_at_the_edge_at_a_job_change_is_an_item_of_the_new_one(tmp_path: Path) -> None:
    with site(tmp_path, CONVEYOR) as line:
        line.job(OLD)
        line.belt("M1111A", frames=1, x=600)
        line.job(NEW)
        assert not line.said("item")
        line.belt("M1111A", frames=10, x=500)
    assert verdicts(line) == [("new", "PASS", "settled", 3)]
    assert line.inspection.section()["line1"]["fragments"] == 0


def test_triggered_item_is_of_the_expectation_that_holds_when_it_is_first_read(tmp_path: Path) -> None:
    settings = {"items": {"decide_within_ms": 2000}}
    with site(tmp_path, settings, trigger={"kind": "mqtt", "delay_ms": 450}) as line:
        line.job(OLD)
        line.trigger()
        line.job(NEW)  # the item is on its way
        for _ in range(7):
            line.show("M1111A")
        line.trigger()
        line.job(OLD)
        line.job(NEW)
        for _ in range(5):
            line.show("M2222A")  # one reading, and
        line.job(OLD)
        for _ in range(5):
            line.show("M2222A")
        line.now += 3.0
        line.results.attend()
    assert verdicts(line) == [("new", "PASS", "settled", 2), ("new", "NO_READ", "expected", 1)]


@pytest.mark.parametrize("wish", [b"no json", b'{"id": "new", "more": 1}', json.dumps(OLD).encode()])
def test_wish_that_changes_nothing_decides_nothing(tmp_path: Path, wish: bytes) -> None:
    with site(tmp_path, CONVEYOR) as line:
        line.job(OLD)
        line.belt("L1111A", frames=2)
        line.job(wish)
        assert not line.said("item")
        line.belt("L1111A", frames=1)
        assert verdicts(line) == [("old", "PASS", "settled", 3)]


def test_what_is_taken_back_decides_what_is_open_and_the_settings_hold_again(tmp_path: Path) -> None:
    with site(tmp_path, CONVEYOR) as line:
        line.job(OLD)
        line.belt("L1111A", frames=2)
        line.job(b"")
        assert verdicts(line) == [("old", "NO_READ", "expected", 2)]
        line.belt(frames=10)
        line.belt("L2345B", frames=3)
        (last,) = line.said("item")[1:]
    assert (last["verdict"], last["expectation_id"][:7]) == ("PASS", "config-")


def test_settings_that_expect_something_else_decide_what_is_open_by_what_held(tmp_path: Path) -> None:
    with site(tmp_path, CONVEYOR) as line:
        line.belt("L2345B", frames=2)
        before = line.inspection.expectations.of("line1")
        loose = {"cameras": {"line1": {"expected": [{"text": "ACME"}]}}, "items": {"min_reads": 1}}
        line.results.tune(patched(line.config, loose))
        assert before is not None
        assert verdicts(line) == [(before.id, "NO_READ", "stop", 2)]


def test_regions_items_are_decided_too(tmp_path: Path) -> None:
    settings = {"items": {"mode": "conveyor", "per": "region", "min_reads": 5}}
    rois = {"left": {"width": 0.5}, "right": {"x": 0.5, "width": 0.5}}
    with site(tmp_path, settings, rois=rois) as line:
        line.job({**OLD, "rois": {"left": [{"text": "LOT"}]}})
        for _ in range(2):
            line.read(
                [*label("LOT L1111A", region="left"), *label("LOT L2222A", x=400, region="right")],
                [lot(0, "L1111A"), lot(1, "L2222A")],
            )
        line.job(NEW)
    found = {(each["region"], each["expectation_id"], len(each["reasons"])) for each in line.said("item")}
    assert found == {("left", "old", 3), ("right", "old", 2)}


def test_change_between_a_kill_and_the_start_after_it_is_not_lost(tmp_path: Path) -> None:
    killed = Site(tmp_path, CONVEYOR, file=tmp_path / "expected.json")
    killed.job(OLD)
    killed.belt("L1111A", frames=2)
    killed.job(NEW)  # and then the power goes: nothing is closed
    with site(tmp_path, CONVEYOR, file=tmp_path / "expected.json") as line:
        (reported,) = line.said("expected/reported")
        assert (reported["id"], reported["detail"]) == ("new", "in force since before this start")
        line.belt("L1111A", frames=3)
        line.now += 60.0
        line.results.attend()
    assert verdicts(line) == [("new", "FAIL", "time", 3)]
