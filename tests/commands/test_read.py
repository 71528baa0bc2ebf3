"""`edge-agent read`: every file in its order, a bad one reported and passed over, output made for its reader."""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge_agent.__main__ import main
from edge_agent.commands import read as verb
from edge_agent.commands.read import (
    Drawer,
    Judge,
    Picture,
    Report,
    camera_name,
    columns,
    pictures,
    show_json,
    show_table,
)
from edge_agent.config import Config, patched
from edge_agent.demo.labels import render_label, sample_labels
from edge_agent.errors import ConfigError, FrameError
from edge_agent.records import Code, Correction, Field, Frame, Quad, Reading, TextBox, TextLine
from tests.broker import DEADLINE_S
from tests.conftest import ROOT

WHITE = np.full((48, 64, 3), 255, np.uint8)


def image(path: Path, value: int = 255) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), np.full((48, 64, 3), value, np.uint8))
    return path


def video(path: Path, frames: int, shade: int | None = None) -> Path:
    """Frames of one grey each: `shade`, or another from frame to frame."""
    writer = cv2.VideoWriter(str(path), cv2.CAP_OPENCV_MJPEG, cv2.VideoWriter.fourcc(*"MJPG"), 20.0, (64, 48))
    for n in range(frames):
        writer.write(np.full((48, 64, 3), 40 * n % 250 if shade is None else shade, np.uint8))
    writer.release()
    return path


def taken(*paths: Path, max_pixels: int = 10_000) -> tuple[list[Picture], list[str]]:
    report = Report(stream=io.StringIO())
    return list(pictures(paths, max_pixels, report)), report.problems


def line(text: str, confidence: float = 0.97) -> TextLine:
    return TextLine(text, confidence, TextBox(Quad(np.array([[4, 4], [40, 4], [40, 12], [4, 12]], np.float32)), 0.9))


def reading(frame: Frame, lines: tuple[TextLine, ...] = (), fields: tuple[Field, ...] = ()) -> Reading:
    reason = None if lines else "no_text"
    size = frame.width_px, frame.height_px
    return Reading(frame.camera, frame.seq, frame.captured_at, *size, lines, fields, {"total": 12.3}, reason=reason)


class TestPictures:
    def test_arguments_keep_their_order_and_folders_their_natural_one(self, tmp_path: Path) -> None:
        last, first = image(tmp_path / "b.png"), image(tmp_path / "a.png")
        for name in ("img10.png", "img2.PNG", "img1.png", ".hidden.png"):
            image(tmp_path / "folder" / name.lower()).rename(tmp_path / "folder" / name)
        (tmp_path / "folder" / "notes.txt").write_text("not an image")
        got, problems = taken(last, tmp_path / "folder", first)
        assert [p.source.name for p in got] == ["b.png", "img1.png", "img2.PNG", "img10.png", "a.png"]
        assert problems == []

    def test_every_frame_of_a_video_comes_once(self, tmp_path: Path) -> None:
        got, problems = taken(video(tmp_path / "clip.avi", 5))
        assert [(p.index, p.frame.seq) for p in got] == [(n, n) for n in range(5)]
        assert [round(float(p.frame.image.mean()) / 40) for p in got] == [0, 1, 2, 3, 4]
        assert problems == []

    def test_an_image_without_an_ending_is_known_by_its_first_bytes(self, tmp_path: Path) -> None:
        path = image(tmp_path / "a.png").rename(tmp_path / "upload")
        (got,), problems = taken(path)
        assert got.index is None
        assert problems == []

    def test_odd_pixel_types_are_read_as_the_cameras_read_them(self, tmp_path: Path) -> None:
        assert cv2.imwrite(str(tmp_path / "grey16.png"), np.full((48, 64), 65_535, np.uint16))
        (got,), _ = taken(tmp_path / "grey16.png")
        assert got.frame.image.dtype == np.uint8
        assert got.frame.image.shape == (48, 64, 3)
        assert got.frame.image.min() == 255

    def test_what_cannot_be_read_is_named_and_passed_over(self, tmp_path: Path) -> None:
        good = image(tmp_path / "good.png")
        (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff")
        (tmp_path / "broken.mp4").write_bytes(b"no video at all")
        (tmp_path / "empty").mkdir()
        (tmp_path / "empty.png").touch()
        names = ["missing.png", "broken.jpg", "broken.mp4", "empty", "empty.png"]
        got, problems = taken(*(tmp_path / name for name in names), good)
        assert [p.source for p in got] == [good]
        assert len(problems) == len(names)
        for name, problem in zip(names, problems, strict=True):
            assert problem.startswith(str(tmp_path / name)), problem

    def test_what_is_no_file_is_not_opened(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.png")
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        paths = [tmp_path / "pipe.png", Path("/dev/zero"), tmp_path / "loop", Path("x" * 300)]
        got, (pipe, device, loop, long) = taken(*paths)
        assert got == []
        assert "is a pipe" in pipe
        assert "is a device" in device
        assert "edge-agent demo --source" in device
        assert "symbolic links" in loop
        assert "too long" in long

    def test_a_problem_names_its_file_once_as_the_user_did(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        for name in ("broken.jpg", "broken.mp4", "notes.txt"):
            (tmp_path / name).write_text("no picture at all")
        _, problems = taken(Path("broken.jpg"), Path("broken.mp4"), Path("notes.txt"))
        for name, problem in zip(("broken.jpg", "broken.mp4", "notes.txt"), problems, strict=True):
            assert problem.count(name) == 1
            assert problem.startswith(name)
            assert str(tmp_path) not in problem

    def test_a_strange_ending_leaves_it_to_the_first_bytes(self, tmp_path: Path) -> None:
        path = image(tmp_path / "a.png").rename(tmp_path / "a.upload")
        (got,), problems = taken(path)
        assert got.index is None
        assert problems == []

    def test_the_largest_picture_read_is_a_setting(self, tmp_path: Path) -> None:
        path, clip = image(tmp_path / "a.png"), video(tmp_path / "a.avi", 2)
        got, problems = taken(path, clip, max_pixels=48 * 64 - 1)
        assert got == []
        assert len(problems) == 3
        assert all("raise max_pixels" in problem for problem in problems)

    def test_the_same_file_gives_the_same_reading_id(self, tmp_path: Path) -> None:
        path = image(tmp_path / "a.png")
        ids = {reading(taken(path)[0][0].frame).id for _ in range(2)}
        assert len(ids) == 1

    def test_a_file_name_becomes_a_camera_name(self) -> None:
        assert camera_name(Path("/x/line 1 (äö).jpg")) == "line-1-.jpg"
        assert len(camera_name(Path("x" * 300))) == 64


class TestOutput:
    def shown(self, show: Callable[..., None], source: str, *args: object) -> str:
        out = io.StringIO()
        frame = Frame("a.png", 0, 0.0, 0.0, WHITE.copy())
        show(Picture(Path(source), None, frame), reading(frame, *args), out)  # type: ignore[arg-type]
        return out.getvalue()

    def test_json_is_one_line_in_the_schema_with_the_source(self) -> None:
        lines = (line("LOT \u2028A7\n漢"),)
        out = self.shown(show_json, "dir/a b.png", lines, (Field("lot", "A7", "A7", 0.9, (0,)),))
        assert out.count("\n") == 1
        body = json.loads(out)
        assert body["source"] == "dir/a b.png"
        assert body["lines"][0]["text"] == "LOT \u2028A7\n漢"
        assert body["lines"][0]["quad"] == [[4.0, 4.0], [40.0, 4.0], [40.0, 12.0], [4.0, 12.0]]
        assert body["fields"][0]["value"] == "A7"

    def test_a_path_that_is_no_utf8_still_gives_json(self) -> None:
        out = self.shown(show_json, os.fsdecode(b"caf\xe9.png"))
        json.loads(out)["source"].encode("utf-16", "surrogatepass")
        out.encode("ascii")

    def test_the_table_shows_texts_confidences_and_fields_in_columns(self) -> None:
        lines = (line("LOT A7", 0.987), line("Größe 漢字", 0.5), line("EXP 31/02/2027"))
        fields = (Field("lot", "A7", "A7", 0.9, (0,)), Field("expiry_date", "", "31/02/2027", 0.9, (2, 0)))
        heading, first, second, third = self.shown(show_table, "a.png", lines, fields).splitlines()
        assert heading == "a.png  64x48  3 lines  12 ms"
        assert first.split() == ["1", "0.99", "LOT", "A7", "lot", "=", "A7"]
        assert third.endswith("expiry_date = 31/02/2027 (?)")
        assert columns(first[: first.index("lot =")]) == columns(third[: third.index("expiry")])
        assert second.rstrip() == "    2  0.50  Größe 漢字"

    def test_the_table_shows_what_is_doubtful_about_a_field(self) -> None:
        cut = replace(line("EXP 03/04/27"), flags=("cut",))
        doubted = Field(
            "expiry_date", "2027-04-03", "03/04/27", 0.9, (0,), ("ambiguous", "cut"), alternatives=("2027-03-04",)
        )
        invalid = Field("expiry_date", "", "31/02/2027", 0.9, (1,), ("invalid",))
        out = self.shown(show_table, "a.png", (cut, line("EXP 31/02/2027")), (doubted, invalid))
        _, first, second = out.splitlines()
        assert first.endswith("expiry_date = 2027-04-03 (ambiguous, or 2027-03-04) [cut]")
        assert second.endswith("expiry_date = 31/02/2027 (?, invalid)")

    def test_codes_stand_below_the_lines_with_what_they_say(self) -> None:
        code = Code("DataMatrix", "10A\x1d21B", line("x").box.quad)
        lot = Field("lot", "A", code.text, 1.0, (), ("from_gs1",), "barcode", codes=(0,))
        frame, out = Frame("a.png", 0, 0.0, 0.0, WHITE.copy()), io.StringIO()
        show_table(Picture(Path("a.png"), None, frame), replace(reading(frame, (), (lot,)), codes=(code,)), out)
        assert out.getvalue().splitlines()[1].split() == ["DataMatrix", "10A", "21B", "lot", "=", "A", "(from_gs1)"]

    def test_what_a_mask_corrected_is_shown_with_what_was_read(self) -> None:
        lot = Field("lot", "L4711A", "L47I1A", 0.9, (0,), corrections=(Correction(3, "I", "1"),))
        out = self.shown(show_table, "a.png", (line("LOT L47I1A"),), (lot,))
        assert out.rstrip().endswith("lot = L4711A (read as L47I1A)")

    def test_no_text_is_said_in_the_table(self) -> None:
        assert self.shown(show_table, "a.png") == "a.png  64x48  no_text  12 ms\n"

    def test_text_cannot_command_the_terminal(self) -> None:
        out = self.shown(show_table, "a\x1b[2J.png", (line("\x1b[31m\u202eX\r\ud83d"),))
        assert not set("\x1b\u202e\r\ud83d") & set(out)


class TestDrawing:
    def draw(self, drawer: Drawer, *sources: Path) -> list[str]:
        report = Report(stream=io.StringIO())
        for source in sources:
            frame = Frame("a", 0, 0.0, 0.0, WHITE.copy())
            drawer.draw(Picture(source, None, frame), reading(frame, (line("LOT A7"),)), report)
        return report.problems

    def test_pictures_go_into_the_folder_under_their_own_names(self, tmp_path: Path) -> None:
        out = tmp_path / "new" / "drawn"
        drawer = Drawer.at(out, [tmp_path / "a.png", tmp_path / "b"])
        assert self.draw(drawer, Path("x/a.png"), Path("y/a.jpg"), Path("b.png")) == []
        assert sorted(p.name for p in out.iterdir()) == ["a.jpg", "a~2.jpg", "b.jpg"]
        assert cv2.imread(str(out / "a~2.jpg")).shape[1] > 64

    def test_one_image_can_go_to_one_file(self, tmp_path: Path) -> None:
        source = image(tmp_path / "a.png")
        drawer = Drawer.at(tmp_path / "result.png", [source])
        assert self.draw(drawer, source) == []
        assert cv2.imread(str(tmp_path / "result.png")) is not None

    def test_one_file_for_many_pictures_is_refused(self, tmp_path: Path) -> None:
        one, two = image(tmp_path / "a.png"), image(tmp_path / "b.png")
        for paths in ([one, two], [tmp_path], [video(tmp_path / "a.avi", 2)]):
            with pytest.raises(ConfigError, match="name a folder"):
                Drawer.at(tmp_path / "out.jpg", paths)

    def test_a_folder_that_cannot_be_made_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(ConfigError, match="cannot make the folder"):
            Drawer.at(tmp_path / "file" / "out", [])

    def test_a_picture_that_cannot_be_written_is_reported(self, tmp_path: Path) -> None:
        drawer = Drawer.at(tmp_path / "out", [tmp_path])
        (tmp_path / "out" / "a.jpg").mkdir()
        (problem,) = self.draw(drawer, Path("a.png"))
        assert "cannot write the picture" in problem
        assert [p.name for p in (tmp_path / "out").iterdir()] == ["a.jpg"], "nothing half-written stays"

    def test_what_is_read_is_never_written_over(self, tmp_path: Path) -> None:
        source = image(tmp_path / "in" / "a.jpg")
        before = source.read_bytes()
        (tmp_path / "link").symlink_to(tmp_path / "in")
        for out, path in (
            (tmp_path / "in", source),
            (tmp_path / "in", tmp_path / "in"),
            (tmp_path / "link", tmp_path / "in"),
            (source, source),
            (tmp_path / "link" / "a.jpg", source),
        ):
            with pytest.raises(ConfigError, match="would write over"):
                Drawer.at(out, [path])
        assert self.draw(Drawer.at(tmp_path / "in" / "b.jpg", [source]), source) == []
        assert source.read_bytes() == before

    def test_a_picture_too_large_for_its_format_is_reported(self, tmp_path: Path) -> None:
        wide = Frame("a", 0, 0.0, 0.0, np.zeros((8, 65_300, 3), np.uint8))
        report = Report(stream=io.StringIO())
        drawer = Drawer.at(tmp_path / "out", [tmp_path])
        drawer.draw(Picture(Path("wide.png"), None, wide), reading(wide), report)
        assert ["cannot be written as .jpg" in problem for problem in report.problems] == [True]
        assert list((tmp_path / "out").iterdir()) == []


class Reader:
    """Reads white pictures as one line and black ones as none; grey ones it cannot process."""

    def read(self, frame: Frame) -> Reading:
        shade = frame.image.mean()
        if 100 < shade < 150:
            raise FrameError("the picture is grey")
        return reading(frame, (line("LOT A7"),) if shade > 200 else ())

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *error: object) -> None:
        return None


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The verb with its own command line and a reader in place of the models."""
    monkeypatch.setattr(verb, "open_pipeline", lambda settings, models_dir: Reader())
    parser = argparse.ArgumentParser()
    verb.add_parser(parser.add_subparsers())

    def call(*argv: object) -> int:
        args = parser.parse_args(["read", *map(str, argv)])
        return int(args.func(args))

    return call


def test_all_read_is_0_also_without_text(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(image(tmp_path / "a.png"), image(tmp_path / "b.png", 0)) == 0
    out, err = capsys.readouterr()
    assert "LOT A7" in out
    assert "b.png  64x48  no_text" in out
    assert err == ""


def test_one_unread_is_1_and_the_others_are_read(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run("missing.png", image(tmp_path / "grey.png", 128), image(tmp_path / "a.png"), "--json")
    out, err = capsys.readouterr()
    assert code == 1
    assert [json.loads(text)["source"] for text in out.splitlines()] == [str(tmp_path / "a.png")]
    assert "missing.png: there is no such file" in err
    assert "grey.png: the picture is grey" in err


def test_draw_writes_beside_the_table(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clip = video(tmp_path / "clip.avi", 2)
    assert run(image(tmp_path / "a.png"), clip, "--draw", tmp_path / "drawn") == 0
    assert sorted(p.name for p in (tmp_path / "drawn").iterdir()) == ["a.jpg", "clip-000000.jpg", "clip-000001.jpg"]


def test_a_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    clip = video(tmp_path / "clip.avi", 300, shade=255)
    code = (
        "import sys, argparse; sys.path.insert(0, sys.argv.pop(1))\n"
        "from tests.commands.test_read import Reader, verb\n"
        "verb.open_pipeline = lambda settings, models_dir: Reader()\n"
        "parser = argparse.ArgumentParser(); verb.add_parser(parser.add_subparsers())\n"
        "args = parser.parse_args(); sys.exit(args.func(args))"
    )
    command = [sys.executable, "-c", code, str(ROOT), "read", str(clip), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reading_process:
        assert reading_process.stdout is not None
        assert reading_process.stderr is not None
        assert json.loads(reading_process.stdout.readline())["seq"] == 0
        reading_process.stdout.close()
        assert reading_process.stderr.read() == b""
        assert reading_process.wait(DEADLINE_S) == 0


def test_an_ascii_terminal_gets_escapes_not_an_error(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from edge_agent.commands.output import tolerate_any_text\n"
        "tolerate_any_text(sys.stdout); print('Größe')"
    )
    environ = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code, str(ROOT)], env=environ, capture_output=True, check=True)
    assert done.stdout == b"Gr\\xf6\\xdfe\n"


@pytest.mark.skipif(
    not (ROOT / "engines" / "ppocrv6-small-det" / "model.onnx").is_file(),
    reason="models are missing: edge-agent models fetch",
)
def test_a_sample_label_is_read_with_the_real_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    label = sample_labels(2026)[1]
    path = tmp_path / "label.png"
    assert cv2.imwrite(str(path), render_label(label, 900).image)
    assert main(["read", str(path), "--json", "--draw", str(tmp_path / "drawn.png")]) == 0
    body = json.loads(capsys.readouterr().out)
    values = {found["name"]: found["value"] for found in body["fields"]}
    assert body["source"] == str(path)
    assert (values["lot"], values["expiry_date"], values["serial_number"]) == ("L24-1187", "2027-05-17", "CB-558204")
    assert values["barcode_digits"] == label.gtin
    drawn = cv2.imread(str(tmp_path / "drawn.png"))
    assert drawn.shape[1] > 900


class TestVerdict:
    EXPECTED = patched(
        Config(),
        {"cameras": {"line1": {"kind": "folder", "source": "x", "expected": [{"field": "lot", "text": "A1"}]}}},
    )

    def shown(self, value: str, show: Callable[..., None] = show_table) -> str:
        judge = Judge.of(self.EXPECTED, "line1")
        picture = judge.seen_by_camera(Picture(Path("a.png"), None, Frame("a.png", 0, 0.0, 0.0, WHITE.copy())))
        lot = Field("lot", value, value, 0.9, (0,))
        found = reading(picture.frame, (line(f"LOT {value}"),), (lot,))
        assert found.camera == "line1"
        stream = io.StringIO()
        show(picture, found, stream, judge.verdict(found))
        return stream.getvalue()

    def test_verdict_and_each_rule_stand_below_the_lines(self) -> None:
        passed, failed = self.shown("A1"), self.shown("B2")
        assert "\n  PASS  by config-" in passed and "\n    PASS     lot: text A1\n" in passed
        assert "\n    FAIL     lot: text A1: differs; expected A1; seen B2\n" in failed

    def test_verdict_is_in_the_json_as_in_a_result(self) -> None:
        said = json.loads(self.shown("B2", show_json))
        assert (said["verdict"], said["reasons"][0]["why"]) == ("FAIL", "differs")
        assert said["expectation_id"].startswith("config-")

    def test_without_a_camera_nothing_is_expected(self) -> None:
        judge = Judge.of(self.EXPECTED, None)
        picture = Picture(Path("a.png"), None, Frame("a.png", 0, 0.0, 0.0, WHITE.copy()))
        assert judge.seen_by_camera(picture) is picture
        assert judge.verdict(reading(picture.frame)) is None

    def test_unknown_camera_is_refused_with_those_that_there_are(self) -> None:
        with pytest.raises(ConfigError, match=r"--camera line9: .* they have: line1"):
            Judge.of(self.EXPECTED, "line9")
