"""`edge-agent replay`: what it compares, and what it says; the real models are in tests/test_examples.py."""

from __future__ import annotations

import json
from contextlib import contextmanager
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
