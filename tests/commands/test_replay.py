"""`edge-agent replay`: what it compares, and what it says; the real models are in tests/test_examples.py."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections import deque
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from edge_agent.__main__ import main
from edge_agent.commands import replay as verb
from edge_agent.commands.replay import field_differences, line_differences, overlap
from edge_agent.records import Field, Frame, Quad, Reading, TextBox, TextLine
from tests.items.sightings import quad


def reading(*texts: str, fields: tuple[Field, ...] = (), camera: str = "line1") -> Reading:
    lines = tuple(TextLine(text, 0.9, TextBox(quad(20, 20 + 40 * n, 200), 0.9)) for n, text in enumerate(texts))
    return Reading(camera, 0, 5.0, 320, 240, lines, fields)


def lot(value: str, **more: Any) -> Field:
    return Field(**{"name": "lot", "value": value, "text": value, "confidence": 0.9, "lines": (0,), **more})


class Reads:
    """A pipeline that reads the same in every frame."""

    def __init__(self, says: Reading) -> None:
        self.says = says
        self.frames: list[Frame] = []

    def read(self, frame: Frame) -> Reading:
        self.frames.append(frame)
        return self.says


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A folder with a picture and what was read in it then."""
    cv2.imwrite(str(tmp_path / "a.png"), np.full((240, 320, 3), 255, np.uint8))
    then = {**reading("LOT A1", "EXP 2027", fields=(lot("A1"),)).to_json(), "source": "elsewhere/a.png"}
    (tmp_path / "readings.jsonl").write_text(json.dumps(then) + "\n")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, says: Reading, *arguments: str) -> tuple[int, Reads]:
    pipeline = Reads(says)

    @contextmanager
    def opened(*_: object) -> Any:
        yield pipeline

    monkeypatch.setattr(verb, "open_pipeline", opened)
    return main(["replay", *arguments]), pipeline


def test_lines_are_compared_where_they_stand() -> None:
    then = reading("LOT A1", "EXP 2027", "ACME").to_json()
    now = reading("LOT A1", "EXP 2O27")
    far = TextLine("NEW", 0.9, TextBox(quad(20, 200, 60), 0.9))
    now = Reading("line1", 0, 5.0, 320, 240, (*now.lines, far))
    assert list(line_differences(then, now)) == [
        "line 'EXP 2027' -> 'EXP 2O27'",
        "line no more read: 'ACME'",
        "new line: 'NEW'",
    ]
    assert list(line_differences(then, reading("LOT A1", "EXP 2027", "ACME"))) == []


def test_fields_are_compared_by_side_value_and_doubt() -> None:
    then = reading("LOT A1", fields=(lot("A1"), lot("A1", source="barcode"))).to_json()
    now = reading("LOT A1", fields=(lot("A1", flags=("repaired",)), lot("A1", source="barcode")))
    assert list(field_differences(then, now)) == ["print.lot: A1 -> A1 (repaired)"]
    gone = reading("LOT A1", fields=(lot("A1"),))
    assert list(field_differences(then, gone)) == ["code.lot: A1 -> none"]


def test_boxes_overlap_as_a_share_of_both() -> None:
    def box(x: float) -> list[list[float]]:
        return [[float(a), float(b)] for a, b in Quad(quad(x, 0, 10, 10).points).points]

    assert overlap(box(0), box(0)) == 1
    assert overlap(box(0), box(5)) == pytest.approx(1 / 3)
    assert overlap(box(0), box(20)) == 0


def test_folder_of_pictures_is_held_against_the_readings_beside_them(
    pictures: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    same = reading("LOT A1", "EXP 2027", fields=(lot("A1"),))
    code, pipeline = run(monkeypatch, same, str(pictures))
    assert (code, len(pipeline.frames)) == (0, 1)
    assert capsys.readouterr().out == "a.png  -  as before\n"
    other = reading("LOT A7", "EXP 2027", fields=(lot("A7"),))
    code, _ = run(monkeypatch, other, str(pictures), "--json")
    shown = capsys.readouterr()
    assert code == 1
    assert json.loads(shown.out)["differences"] == ["line 'LOT A1' -> 'LOT A7'", "print.lot: A1 -> A7"]
    assert "1 read again, 1 differ" in shown.err


def test_picture_that_is_gone_is_told_and_the_rest_read(
    pictures: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with (pictures / "readings.jsonl").open("a") as file:
        file.write('{"source": "gone.png", "camera": "line1"}\nno json\n')
    code, _ = run(monkeypatch, reading("LOT A1", "EXP 2027", fields=(lot("A1"),)), str(pictures))
    err = capsys.readouterr().err
    assert code == 1
    assert "readings.jsonl:2:" in err and "readings.jsonl:3:" in err and "1 read again, 0 differ" in err


@pytest.mark.parametrize(
    "damage",
    [
        {"lines": [{}]},
        {"lines": None},
        {"lines": [{"text": 5, "quad": [[0, 0], [9, 0], [9, 9], [0, 9]]}]},
        {"lines": [{"text": "a", "quad": []}]},
        {"lines": [{"text": "a", "quad": [["a", "b"]] * 4}]},
        {"fields": [{"name": "lot"}]},
        {"fields": {"a": 1}},
        {"verdict": ["x"]},
        {"camera": None, "source": None},
    ],
    ids=str,
)
def test_reading_of_then_that_is_damaged_is_told_and_the_rest_read(
    pictures: Path, damage: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = pictures / "readings.jsonl"
    sound = path.read_text()
    path.write_text(json.dumps({**json.loads(sound), **damage}) + "\n" + sound)
    code, _ = run(monkeypatch, reading("LOT A1", "EXP 2027", fields=(lot("A1"),)), str(pictures))
    err = capsys.readouterr().err
    assert code == 1
    assert "readings.jsonl:1:" in err and "1 read again, 0 differ" in err


def test_what_names_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for what, said in (
        (str(tmp_path), "neither evidence in this folder nor a readings.jsonl"),
        ("0" * 24, "no evidence is kept under this id"),
    ):
        code, _ = run(monkeypatch, reading(), what)
        assert code == 78
        assert said in capsys.readouterr().err


# --- evidence ---

RULES = {"id": "job", "expected": [{"field": "lot", "text": "A1"}], "rois": {}}


class Folder:
    """A folder of evidence, each piece of which is a changed copy of a sound one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def piece(self, jpeg: bytes | None = None, text: bytes | None = None, **changes: Any) -> Path:
        """One more, whose id is its number."""
        then = reading("LOT A1", "EXP 2027", fields=(lot("A1"),)).to_json()
        self.count += 1
        content = {
            "id": f"{self.count:024x}",
            "item": {"camera": "line1", "verdict": "PASS", "region": None},
            "reading": then,
            "crop": {"x": 10, "y": 10, "width": 200, "height": 100},
            "expectation": RULES,
            "today": "2026-11-30",
            "clock_trusted": True,
        }
        path = self.folder / f"{1_800_000_000_000 + self.count}-{self.count:024x}.json"
        path.write_bytes(json.dumps({**content, **changes}).encode() if text is None else text)
        path.with_suffix(".jpg").write_bytes(SOUND_JPEG if jpeg is None else jpeg)
        return path


SOUND_JPEG = cv2.imencode(".jpg", np.full((100, 200, 3), 200, np.uint8))[1].tobytes()
SAME = reading("LOT A1", "EXP 2027", fields=(lot("A1"),))
THEN = SAME.to_json()
FAR = [[10**400, 0], [9, 0], [9, 9], [0, 9]]


@pytest.mark.parametrize(
    "damage",
    [
        {"text": b""},
        {"text": b"[" * 100_000},
        {"text": b"[]"},
        {"text": b'"text"'},
        {"text": b"\xff\xfe"},
        {"jpeg": b""},
        {"jpeg": SOUND_JPEG[:300]},
        {"jpeg": b"\x89PNG\r\n\x1a\n" + b"\0" * 50},
        {"item": []},
        {"item": "line1"},
        {"item": {"camera": "line1", "verdict": "MAYBE"}},
        {"reading": {"frame": THEN["frame"]}},
        {"reading": {**THEN, "frame": {"width_px": 1e300, "height_px": float("inf")}}},
        {"reading": {**THEN, "lines": [{**THEN["lines"][0], "quad": FAR}]}},
        {"reading": {**THEN, "lines": [{**THEN["lines"][0], "quad": [[float("nan"), 0]] * 4}]}},
        {"reading": {**THEN, "lines": ["LOT"]}},
        {"reading": {**THEN, "fields": [{**THEN["fields"][0], "name": 5}]}},
        {"reading": {**THEN, "fields": [{**THEN["fields"][0], "name": ["lot"]}]}},
        {"reading": {**THEN, "fields": [{**THEN["fields"][0], "certain": False, "flags": [5]}]}},
        {"crop": {"x": 10.5, "y": "10", "width": 200, "height": 100}},
        {"crop": {"x": -1, "y": 10, "width": 200, "height": 100}},
        {"crop": [10, 10, 200, 100]},
        {"expectation": "job"},
        {"expectation": {"id": "job", "expected": {"field": "lot"}, "rois": {}}},
        {"expectation": {"id": "job", "expected": [{"pattern": "/(/", "field": "lot"}], "rois": {}}},
        {"expectation": {"id": "job", "expected": [], "rois": {"top": 5}}},
        {"today": 5},
        {"today": "yesterday"},
    ],
    ids=lambda damage: str(damage)[:60],
)
def test_damaged_evidence_is_told_and_the_rest_read(
    tmp_path: Path, damage: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Folder(tmp_path)
    damaged = folder.piece(**damage)
    folder.piece()
    code, pipeline = run(monkeypatch, SAME, str(tmp_path))
    shown = capsys.readouterr()
    assert (code, len(pipeline.frames)) == (1, 1)
    assert shown.out == f"{2:024x}  PASS  as before\n"
    told, summary = shown.err.splitlines()
    assert damaged.stem in told
    assert summary == "1 read again, 0 differ, 1 could not be read"


def test_what_is_no_evidence_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Folder(tmp_path)
    folder.piece()
    alone = folder.piece()
    alone.unlink()  # a picture whose text was not written any more
    (tmp_path / f".{alone.name}-ab.partial").write_bytes(b"{")
    (tmp_path / "notes.json").write_text("{}")
    os.mkfifo(tmp_path / f"1800000009999-{9:024x}.json")  # would be waited for
    (tmp_path / f"1800000009998-{8:024x}.json").mkdir()
    code, pipeline = run(monkeypatch, SAME, str(tmp_path))
    assert (code, len(pipeline.frames)) == (1, 1)
    assert capsys.readouterr().err.endswith("1 read again, 0 differ, 2 could not be read\n")


def test_pictures_of_a_folder_are_files_beside_its_readings_whatever_those_say(
    pictures: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = pictures / "readings.jsonl"
    sound = path.read_text()
    os.mkfifo(pictures / "pipe.png")
    for source in ("../..", "..", "/dev/zero", "pipe.png", "\ud800", "a\0b"):
        path.write_text(sound.replace("elsewhere/a.png", json.dumps(source)[1:-1]) + sound)
        code, _ = run(monkeypatch, SAME, str(pictures))
        assert code == 1
        assert "1 read again, 0 differ, 1 could not be read" in capsys.readouterr().err
    monkeypatch.setattr(verb, "MAX_LINE_BYTES", len(sound))
    path.write_text("x" * 5 * len(sound) + "\n" + sound)
    assert run(monkeypatch, SAME, str(pictures))[0] == 1
    assert "1 read again, 0 differ, 1 could not be read" in capsys.readouterr().err


def settings_file(folder: Path, rois: dict[str, Any]) -> Path:
    path = folder / "config.yaml"
    camera = {"kind": "folder", "source": "x", "rois": rois, "expected": [{"text": "LOT"}]}
    path.write_text(json.dumps({"cameras": {"line1": camera}}))
    return path


def test_item_of_one_region_is_judged_by_the_rules_of_that_region(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = replace(SAME.lines[0], region="left")
    now = replace(SAME, lines=(line, SAME.lines[1]))
    expectation = {"id": "job", "expected": [], "rois": {"left": [{"text": "LOT"}], "right": [{"text": "BOX"}]}}
    item = {"camera": "line1", "verdict": "PASS", "region": "left"}
    Folder(tmp_path).piece(reading=now.to_json(), expectation=expectation, item=item)
    config = settings_file(tmp_path, {"left": {"width": 0.5}, "right": {"x": 0.5, "width": 0.5}})
    assert run(monkeypatch, now, str(tmp_path), "--config", str(config))[0] == 0
    assert capsys.readouterr().out.endswith("PASS  as before\n")


def test_region_and_engines_that_are_no_more_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Folder(tmp_path)
    then = replace(
        SAME,
        lines=(replace(SAME.lines[0], region="plate"), SAME.lines[1]),
        engines={"recognise": "onnxruntime-1.20:0a1b:fp32"},
    )
    for _ in range(2):
        folder.piece(reading=then.to_json(), expectation={**RULES, "rois": {"lid": [{"text": "TOP"}]}})
    config = settings_file(tmp_path, {"other": {}})
    now = replace(SAME, engines={"recognise": "onnxruntime-1.22:77ff:int8"})
    code, _ = run(monkeypatch, now, str(tmp_path), "--config", str(config))
    shown = capsys.readouterr()
    assert code == 1
    assert shown.out.splitlines()[:4] == [
        f"{1:024x}  PASS -> NO_READ  differs",
        "  verdict PASS -> NO_READ: text TOP (absent)",
        "  region lid is not in the settings of today",
        "  region plate is not in the settings of today",
    ]
    assert shown.err.splitlines() == [
        "recognise: by onnxruntime-1.20:0a1b:fp32 then, by onnxruntime-1.22:77ff:int8 now",
        "2 read again, 2 differ",
    ]


def test_model_that_is_no_more_ends_it_with_78(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Folder(tmp_path).piece()
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps({"pipeline": {"recogniser": "gone-rec"}}))
    assert main(["replay", str(tmp_path), "--config", str(path)]) == 78
    assert "there is no model 'gone-rec'" in capsys.readouterr().err


def test_thousands_of_pieces_are_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Memory for one at a time; 10,000 take it no more than these do."""
    folder = Folder(tmp_path)
    folder.piece()
    run(monkeypatch, SAME, str(tmp_path))  # what is imported at the first is no matter here
    for _ in range(149):
        folder.piece(**({"text": b"no json" * 10} if folder.count % 3 == 0 else {}))
    pipeline = Reads(SAME)
    monkeypatch.setattr(pipeline, "frames", deque(maxlen=1))

    @contextmanager
    def opened(*_: object) -> Any:
        yield pipeline

    monkeypatch.setattr(verb, "open_pipeline", opened)
    tracemalloc.start()
    code = main(["replay", str(tmp_path)])
    most_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert code == 1
    assert "101 read again, 0 differ, 49 could not be read" in capsys.readouterr().err
    assert most_bytes < 5 * 320 * 240 * 3
