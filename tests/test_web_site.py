"""AgentWebSite: what the page sees, overheard from what the agent says anyway."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edge_agent import messages
from edge_agent.board import Board
from edge_agent.clock import DeviceClock
from edge_agent.config import Config
from edge_agent.evidence import Crop, Evidence, EvidenceStore
from edge_agent.last_words import Ending
from edge_agent.outbox.memory import MemoryOutbox
from edge_agent.records import Frame, Item, Message, Quad, Reading, Sample, TextBox, TextLine
from edge_agent.web.site import CameraNow, Refused
from edge_agent.web_site import ITEMS_KEPT, AgentWebSite
from tests.broker import wait_until
from tests.conftest import ROOT

ITEM_ID = "0123456789abcdef01234567"


def made_config(folder: Path) -> Config:
    camera = {"kind": "folder", "source": str(folder)}
    values = {"cameras": {"left": camera}, "outbox": {"path": str(folder / "outbox.db")}}
    return Config.model_validate_json(json.dumps(values))


@pytest.fixture
def site(tmp_path: Path) -> AgentWebSite:
    board = Board(MemoryOutbox(made_config(tmp_path).outbox, DeviceClock()))
    return AgentWebSite(made_config(tmp_path), board, ROOT / "engines", before=Ending("killed", "out of memory"))


def frame_with_text(seq: int) -> tuple[Frame, Reading]:
    frame = Frame("left", seq, 1000.0 + seq, 1.0 + seq, np.full((100, 200, 3), 90, np.uint8))
    quad = Quad(np.array([[20, 20], [120, 20], [120, 40], [20, 40]], np.float32))
    line = TextLine("LOT A7", 0.9, TextBox(quad, 0.9))
    return frame, Reading("left", seq, frame.captured_at, 200, 100, lines=(line,))


def item_message(item_id: str = ITEM_ID, first_seq: int = 3, last_seq: int = 5) -> Message:
    item = Item(
        id=item_id,
        camera="left",
        first_seen_at=1003.0,
        last_seen_at=1005.0,
        first_seq=first_seq,
        last_seq=last_seq,
        width_px=200,
        height_px=100,
        n_reads=3,
        agreement=1.0,
        decided_by="gone",
        decided_after_ms=500.0,
    )
    return Message("left/item", json.dumps(item.to_json()).encode())


def test_before_the_agent_runs_it_is_seen_how_far_start_up_is(site: AgentWebSite) -> None:
    assert site.health() == {}
    assert site.cameras() == [CameraNow("left", "starting")]
    assert site.newest("left") is None
    assert site.run()["last_exit"] == {"kind": "killed", "cause": "out of memory"}
    assert (site.trial(), site.telemetry(), site.reported()) == ((False, None), None, None)
    for ask in (lambda: site.read(b"", None), lambda: site.submit_patch({}), lambda: site.command("x")):
        with pytest.raises(Refused) as refused:
            ask()
        assert (refused.value.status, refused.value.code) == (503, "starting")


def test_what_is_said_is_put_out_first_and_heard_then(site: AgentWebSite) -> None:
    put: list[Message] = []
    rung: list[bool] = []
    site.watch(lambda: rung.append(True))
    say = site.overhearing(put.append)
    report = messages.telemetry([Sample("temp_c.cpu", 50.0, "C", 1.0)], {}, {}, at=1_796_000_000.0)
    for message in (report, messages.event("broker_lost", "gone", at=1.0), item_message()):
        say(message)
    assert put == [report, messages.event("broker_lost", "gone", at=1.0), item_message()]
    assert site.telemetry() == report.payload
    assert site.charts.over(900, 10, 1_796_000_000.0)["series"] == {"temp_c.cpu": [50.0]}
    assert [json.loads(entry.payload)["kind"] for entry in site.events.before(None)[0]] == ["broker_lost"]
    assert [entry.camera for entry in site.items.before(None)[0]] == ["left"]
    assert len(rung) == 2


def test_readings_are_seen_though_items_are_published_in_their_place(site: AgentWebSite) -> None:
    for seq in range(3):
        site.see(*frame_with_text(seq), None)
    frame, reading = frame_with_text(3)
    empty = Reading("left", 3, reading.captured_at, 200, 100, reason="no_text")
    site.see(frame, empty, None)
    site.see(frame, empty, None)  # of frames without text the first alone
    said = [json.loads(entry.payload) for entry in site.readings.before(None)[0]]
    assert [each["seq"] for each in said] == [3, 2, 1, 0]


def test_item_is_shown_by_its_newest_frame_until_it_is_forgotten(site: AgentWebSite) -> None:
    with site.kept_frames as kept:
        for seq in (3, 4):
            site.see(*frame_with_text(seq), None)
            wait_until(lambda seq=seq: kept.crop("left", seq, seq) is not None, "the crop")  # type: ignore[misc]
        site.hear(item_message())
        assert site.evidence(ITEM_ID) == kept.crop("left", 4, 4)
        assert site.evidence("f" * 24) is None
        assert site.evidence("../../etc/passwd") is None
        for n in range(ITEMS_KEPT):
            site.hear(item_message(f"{n:024x}", 100, 101))
        assert site.evidence(ITEM_ID) is None


def test_evidence_on_disk_is_shown_before_a_small_picture(site: AgentWebSite, tmp_path: Path) -> None:
    frame, reading = frame_with_text(3)
    said: dict[str, Any] = {"id": ITEM_ID}
    evidence = Evidence(ITEM_ID, frame, Crop(0, 0, 200, 100), said, reading.to_json(), None, "2026-11-30", True)
    with EvidenceStore(tmp_path / "evidence", Config().evidence, lambda kind, text: None) as store:
        store.offer(evidence)
    picture = site.evidence(ITEM_ID)
    assert picture is not None
    assert picture[:2] == b"\xff\xd8"
    assert picture == next((tmp_path / "evidence").glob(f"*-{ITEM_ID}.jpg")).read_bytes()


def test_reports_on_disk_are_given_line_by_line(site: AgentWebSite, tmp_path: Path) -> None:
    folder = tmp_path / "telemetry"
    folder.mkdir()
    (folder / "00000001.jsonl").write_bytes(b'{"a":1}\n{"a":2}\n')
    assert list(site.reports(0.0)) == [b'{"a":1}\n', b'{"a":2}\n']
    assert list(site.reports(4e9)) == []


def test_report_of_a_calibration_lies_in_its_folder_alone(tmp_path: Path) -> None:
    values = {"calibration": {"directory": str(tmp_path)}}
    config = Config.model_validate_json(json.dumps(values))
    site = AgentWebSite(config, Board(MemoryOutbox(config.outbox, DeviceClock())), ROOT / "engines")
    (tmp_path / "m").mkdir()
    for path in (tmp_path / "m" / "report.html", tmp_path / "report.html"):
        path.write_text("x")
    assert site.report("m") == tmp_path / "m" / "report.html"
    for name in ("..", ".", "", "m/../m", "none", "\0"):
        assert site.report(name) is None
    assert [model["active"] for model in site.calibration()["models"]] == [None, None, None]
