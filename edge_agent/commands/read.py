"""`edge-agent read`: images and videos read once, shown as a table, as JSON, or drawn."""

from __future__ import annotations

import argparse
import os
import re
import stat
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from edge_agent import config as config_file
from edge_agent.commands.options import READ_WITH, add_settings_options
from edge_agent.commands.output import leave_quietly
from edge_agent.config import Config
from edge_agent.errors import CameraError, ConfigError, FrameError
from edge_agent.plain_text import printable
from edge_agent.records import Field, Frame, Reading, json_bytes, reason_to_json
from edge_agent.settings.cameras import MAX_PIXELS, CameraConfig

if TYPE_CHECKING:
    from edge_agent.pipeline import Pipeline
    from edge_agent.verify.expectation import Expectation
    from edge_agent.verify.judge import Judgement

DRAWN_ENDINGS = (".jpg", ".jpeg", ".png", ".webp")
JPEG_QUALITY = 92
TEXT_WIDTH = 48  # columns of the terminal that a line's text gets at most

DESCRIPTION = """\
Reads images, the images of a folder, or videos, each frame once, and shows what they say."""
EPILOG = """\
examples:
  edge-agent read label.jpg
  edge-agent read photos/ --draw drawn/        write pictures with what was read
  edge-agent read line1.mp4 --json | jq .fields
  edge-agent read loaf.jpg --config bakery.yaml --camera packing    PASS, FAIL or NO_READ, and why

The exit code is 0 also where there is no text to read, and 1 when a file could not be read."""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb."""
    parser = verbs.add_parser(
        "read",
        help="read images or videos once and show what they say",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", type=_path, help="an image, a folder of images, or a video")
    parser.add_argument("--json", action="store_true", help="one reading a line, as published over MQTT, with `source`")
    parser.add_argument(
        "--draw", metavar="OUT", type=Path, help="write annotated pictures into the folder OUT (or to OUT.jpg for one)"
    )
    parser.add_argument(
        "--max-pixels",
        metavar="N",
        type=_pixels,
        default=MAX_PIXELS,
        help="largest picture read (default: %(default)s)",
    )
    parser.add_argument(
        "--camera", metavar="NAME", help="read in this camera's regions, and give verdicts by what it expects"
    )
    add_settings_options(parser, READ_WITH)
    parser.set_defaults(func=run)


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("a PATH is empty; an unset variable?")
    return Path(text)


def _pixels(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} given; expected a number of pixels, such as {MAX_PIXELS}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Reads everything named, in that order; 1 when something could not be read, else 0."""
    settings = config_file.load(args.config) if args.config else config_file.without_file()
    drawer = Drawer.at(args.draw, args.paths) if args.draw else None
    show = show_json if args.json else show_table
    judge = Judge.of(settings, args.camera)
    with open_pipeline(settings, args.models_dir) as pipeline:
        pipeline.expected = judge.of_camera
        report = Report()
        try:
            for picture in pictures(args.paths, args.max_pixels, report):
                reading = attempt(pipeline.read, judge.seen_by_camera(picture), report)
                if reading is not None:
                    show(picture, reading, sys.stdout, judge.verdict(reading))
                    if drawer:
                        drawer.draw(picture, reading, report)
        except BrokenPipeError:
            leave_quietly()
    return 1 if report.problems else 0


def open_pipeline(settings: Config, models_dir: Path | None) -> Pipeline:
    """The pipeline; loaded here, because its libraries take a second to import and `--help` should not."""
    from edge_agent.models.spec import find_models_dir
    from edge_agent.pipeline import load_pipeline

    return load_pipeline(settings, find_models_dir(models_dir or settings.models_dir))


@dataclass(frozen=True, eq=False)
class Picture:
    """One frame to read: `source` is the path it came from, `index` its number in a video, None for an image."""

    source: Path
    index: int | None
    frame: Frame

    @property
    def name(self) -> str:
        return str(self.source) if self.index is None else f"{self.source} frame {self.index}"


@dataclass(frozen=True)
class Verdict:
    """What became of a reading: the judgement, by the expectation of that id."""

    expectation_id: str
    judgement: Judgement


@dataclass(frozen=True)
class Judge:
    """What a camera's settings expect of what is read; without a camera nothing. Dates are compared with today's."""

    camera: str | None
    expectation: Expectation | None

    @classmethod
    def of(cls, settings: Config, camera: str | None) -> Judge:
        """For `--camera NAME`; ConfigError where the settings have no such camera."""
        from edge_agent.verify.expectation import of_camera

        if camera is None:
            return cls(None, None)
        if camera not in settings.cameras:
            known = ", ".join(settings.cameras) or "none"
            raise ConfigError(f"--camera {camera}: the settings have no such camera; they have: {known}")
        return cls(camera, of_camera(settings.cameras[camera]))

    def of_camera(self, camera: str) -> Expectation | None:
        """What the pipeline reads by: all is read as if this camera had seen it."""
        return self.expectation

    def seen_by_camera(self, picture: Picture) -> Picture:
        """The picture as if the camera had given it, so that its regions are read."""
        if self.camera is None:
            return picture
        return replace(picture, frame=replace(picture.frame, camera=self.camera))

    def verdict(self, reading: Reading) -> Verdict | None:
        """What becomes of a reading; None where nothing is expected."""
        from edge_agent.verify.judge import day_of, judge_reading

        if self.expectation is None:
            return None
        judgement = judge_reading(reading, self.expectation, day_of(time.time()))
        return None if judgement is None else Verdict(self.expectation.id, judgement)


@dataclass
class Report:
    """What could not be read, told on stderr when it happens."""

    problems: list[str] = field(default_factory=list)
    stream: IO[str] | None = None

    def add(self, text: str) -> None:
        self.problems.append(text)
        sys.stdout.flush()  # so that it stands in its place among the readings
        print(f"edge-agent read: {printable(text)}", file=self.stream or sys.stderr, flush=True)


def attempt(read: Callable[[Frame], Reading], picture: Picture, report: Report) -> Reading | None:
    """The reading, or None and a report where this one frame cannot be processed."""
    try:
        return read(picture.frame)
    except FrameError as exc:
        report.add(f"{picture.name}: {exc}")
        return None


def pictures(paths: Iterable[Path], max_pixels: int, report: Report) -> Iterator[Picture]:
    """Every picture that the paths hold, in order; what cannot be read is reported and the next one taken."""
    from edge_agent.cameras.image_file import is_image

    for path in paths:
        obstacle = obstacle_at(path)
        if obstacle:
            report.add(f"{path}: {obstacle}")
        elif path.is_dir():
            yield from _folder(path, max_pixels, report)
        elif is_image(path):
            yield from _image(path, max_pixels, report)
        else:
            yield from _video(path, max_pixels, report)


def obstacle_at(path: Path) -> str | None:
    """Why there is nothing to read at the path; None where there is a folder or a file."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "there is no such file or folder"
    except OSError as exc:
        return f"cannot be looked at: {exc.strerror}"
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    if stat.S_ISCHR(mode):
        return "is a device; `edge-agent demo --source` shows a camera, `edge-agent run` reads it"
    return "is a pipe, socket or disk; expected a file or folder"  # opening a pipe would wait for its writer


def _folder(path: Path, max_pixels: int, report: Report) -> Iterator[Picture]:
    from edge_agent.cameras.folder import natural_key
    from edge_agent.cameras.image_file import SUFFIXES

    try:
        names = sorted((p for p in path.iterdir() if _is_shown_image(p)), key=natural_key)
    except OSError as exc:
        report.add(f"{path}: {exc.strerror}")
        return
    if not names:
        report.add(f"{path}: no image in this folder; known endings: {', '.join(sorted(SUFFIXES))}")
    for name in names:
        yield from _image(name, max_pixels, report)


def _is_shown_image(path: Path) -> bool:
    from edge_agent.cameras.image_file import SUFFIXES

    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()


def _image(path: Path, max_pixels: int, report: Report) -> Iterator[Picture]:
    from edge_agent.cameras.image_file import read_image_file

    try:
        written_at = path.stat().st_mtime
        image = read_image_file(path, max_pixels)
    except FrameError as exc:
        report.add(told(path, str(exc)))
    except OSError as exc:
        report.add(f"{path}: cannot be read: {exc.strerror}")
    else:
        yield Picture(path, None, _frame(path, 0, written_at, image))


def _video(path: Path, max_pixels: int, report: Report) -> Iterator[Picture]:
    from edge_agent.cameras.base import make_camera

    settings = CameraConfig(kind="video", source=str(path), pace="every_frame", max_pixels=max_pixels)
    camera = make_camera(camera_name(path), settings)
    index = 0
    try:
        written_at = path.stat().st_mtime
        camera.open()
        while True:
            try:
                image = camera.read()
            except FrameError as exc:
                report.add(f"{path} frame {index}: {exc}")
            else:
                if image is None:
                    return
                yield Picture(path, index, _frame(path, index, written_at, image))
            index += 1
    except CameraError as exc:
        report.add(told(path, str(exc)))
    except OSError as exc:
        report.add(f"{path}: cannot be read: {exc.strerror}")
    finally:
        camera.close()


def told(path: Path, message: str) -> str:
    """The message with the file named once, as the user names it."""
    for name in (str(path.absolute()), repr(path.name)):
        if message.startswith(name):
            return f"{path}{message.removeprefix(name)}"
    return f"{path}: {message}"


def _frame(path: Path, seq: int, written_at: float, image: npt.NDArray[np.uint8]) -> Frame:
    """A frame whose time is the file's own, so that reading it again gives the same reading id."""
    return Frame(camera_name(path), seq, written_at, time.monotonic(), image)


def camera_name(path: Path) -> str:
    """The file's name as a camera's name: letters, digits, dot, dash, underscore."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.name)[:64] or "file"


def show_json(picture: Picture, reading: Reading, stream: IO[str], verdict: Verdict | None = None) -> None:
    """One line: the reading as in the MQTT result schema, and the path it came from; its verdict where it has one."""
    source = os.fsencode(picture.source).decode("utf-8", "surrogateescape")
    said: dict[str, object] = {**reading.to_json(), "source": source}
    if verdict is not None:
        said["verdict"] = verdict.judgement.verdict
        said["reasons"] = [reason_to_json(reason) for reason in verdict.judgement.reasons]
        said["expectation_id"] = verdict.expectation_id
    print(json_bytes(said).decode(), file=stream, flush=True)


def show_table(picture: Picture, reading: Reading, stream: IO[str], verdict: Verdict | None = None) -> None:
    """A heading, then each line's number, confidence, text, and the fields found in it; then each code's, and the
    verdict with each rule's."""
    count = f"{len(reading.lines)} line{'' if len(reading.lines) == 1 else 's'}" if reading.lines else reading.reason
    size = f"{reading.width_px}x{reading.height_px}"
    print(f"{printable(picture.name)}  {size}  {count}  {reading.timings_ms.get('total', 0):.0f} ms", file=stream)
    texts = [printable(line.text) for line in reading.lines]
    width = min(TEXT_WIDTH, max((columns(text) for text in texts), default=0))
    for n, (text, line) in enumerate(zip(texts, reading.lines, strict=True)):
        meanings = ", ".join(meaning_of(f, line.flags) for f in reading.fields if f.lines[:1] == (n,))
        flags = f" [{', '.join(line.flags)}]" if line.flags else ""
        padding = " " * (width - columns(text))
        print(f"  {n + 1:>3}  {line.confidence:.2f}  {text}{padding}  {meanings}{flags}".rstrip(), file=stream)
    for n, code in enumerate(reading.codes):
        meanings = ", ".join(meaning_of(f, ()) for f in reading.fields if f.codes[:1] == (n,))
        print(f"       {code.symbology}  {printable(code.text)}  {meanings}".rstrip(), file=stream)
    if verdict is not None:
        show_verdict(verdict, stream)
    stream.flush()


def show_verdict(verdict: Verdict, stream: IO[str]) -> None:
    """The verdict, then each rule's, with what was expected and seen where it is not PASS."""
    print(f"  {verdict.judgement.verdict}  by {verdict.expectation_id}", file=stream)
    for reason in verdict.judgement.reasons:
        why = f": {reason.why}; expected {reason.expected}; seen {reason.seen or '-'}"
        told = reason.rule if reason.verdict == "PASS" else reason.rule + why
        print(f"    {reason.verdict:<8} {printable(told)}", file=stream)


def meaning_of(found: Field, of_line: Sequence[str]) -> str:
    """`name = value (its flags)`, without the flags of its line, which the row shows once; where there is no value
    (a date that does not exist) the text as seen, in doubt."""
    doubt = () if found.value else ("?",)
    others = (f"or {value}" for value in found.alternatives)
    corrected = (f"read as {found.text}",) if found.corrections else ()
    flags = ", ".join([*doubt, *(flag for flag in found.flags if flag not in of_line), *others, *corrected])
    return printable(f"{found.name} = {found.value or found.text}" + (f" ({flags})" if flags else ""))


def columns(text: str) -> int:
    """How many columns of a terminal the text takes: East Asian characters take two, accents none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


@dataclass
class Drawer:
    """Writes annotated pictures: to `file`, or into `folder` under the source's name."""

    folder: Path
    file: str | None = None
    taken: set[str] = field(default_factory=set)

    @classmethod
    def at(cls, out: Path, paths: Sequence[Path]) -> Drawer:
        """For `--draw OUT`. Raises ConfigError when OUT cannot take what is asked."""
        from edge_agent.cameras.image_file import is_image

        single = out.suffix.lower() in DRAWN_ENDINGS and not out.is_dir()
        if single and (len(paths) > 1 or paths[0].is_dir() or not is_image(paths[0])):
            raise ConfigError(f"--draw {out} names one picture, but there may be many to draw; name a folder")
        folder = out.parent if single else out
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ConfigError(f"--draw {out}: cannot make the folder {folder}: {exc.strerror}") from exc
        cls._spare_the_sources(out, single, paths)
        return cls(folder, out.name if single else None)

    @staticmethod
    def _spare_the_sources(out: Path, single: bool, paths: Sequence[Path]) -> None:
        """Raises ConfigError where drawn pictures could take the place of those that are read."""
        for path in paths:
            source = path if single or path.is_dir() else path.parent
            if out.exists() and source.exists() and out.samefile(source):
                raise ConfigError(f"--draw {out} would write over what is read from {path}; name another place")

    def draw(self, picture: Picture, reading: Reading, report: Report) -> None:
        """Writes one picture, whole or not at all; a failure is reported."""
        from edge_agent.drawing import annotated

        path = self.folder / (self.file or self._free_name(picture))
        unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
        drawn = annotated(picture.frame.image, reading, picture.source.name)
        encoded = _encoded(drawn, path.suffix.lower())
        if encoded is None:
            size = f"{drawn.shape[1]}x{drawn.shape[0]}"
            report.add(f"{path}: a picture of {size} pixels cannot be written as {path.suffix}; --draw OUT.png may do")
            return
        try:
            unfinished.write_bytes(encoded)
            unfinished.replace(path)
        except OSError as exc:
            report.add(f"{path}: cannot write the picture: {exc.strerror}")
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)

    def _free_name(self, picture: Picture) -> str:
        """The source's own name; the same name from another folder gets a number."""
        stem = picture.source.stem if picture.index is None else f"{picture.source.stem}-{picture.index:06d}"
        name, number = f"{stem}.jpg", 1
        while name in self.taken:
            number += 1
            name = f"{stem}~{number}.jpg"
        self.taken.add(name)
        return name


def _encoded(image: npt.NDArray[np.uint8], suffix: str) -> bytes | None:
    """The image's file; None where that format takes no image of this size. Some versions of OpenCV raise then."""
    import cv2

    try:
        good, encoded = cv2.imencode(suffix, image, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    except cv2.error:
        return None
    return bytes(encoded) if good else None
