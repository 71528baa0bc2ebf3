"""`edge-agent read`: images and videos read once, shown as a table, as JSON, or drawn."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from edge_agent import config as config_file
from edge_agent.commands.output import leave_quietly, tolerate_any_text
from edge_agent.config import CameraConfig, Config
from edge_agent.errors import CameraError, ConfigError, FrameError
from edge_agent.records import Field, Frame, Reading, json_bytes

if TYPE_CHECKING:
    from edge_agent.pipeline import Pipeline

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
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path, help="an image, a folder of images, or a video")
    parser.add_argument("--json", action="store_true", help="one reading a line, as published over MQTT, with `source`")
    parser.add_argument(
        "--draw", metavar="OUT", type=Path, help="write annotated pictures into the folder OUT (or to OUT.jpg for one)"
    )
    parser.add_argument("--config", metavar="FILE", type=Path, help="settings to read with (default: built in)")
    parser.add_argument("--models-dir", metavar="DIR", type=Path, help="where the models are (default: as configured)")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Reads everything named, in that order; 1 when something could not be read, else 0."""
    settings = config_file.load(args.config) if args.config else config_file.without_file()
    drawer = Drawer.at(args.draw, args.paths) if args.draw else None
    show = show_json if args.json else show_table
    tolerate_any_text(sys.stdout)
    with open_pipeline(settings, args.models_dir) as pipeline:
        report = Report()
        try:
            for picture in pictures(args.paths, settings, report):
                reading = attempt(pipeline.read, picture, report)
                if reading is not None:
                    show(picture, reading, sys.stdout)
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


def pictures(paths: Iterable[Path], settings: Config, report: Report) -> Iterator[Picture]:
    """Every picture that the paths hold, in order; what cannot be read is reported and the next one taken."""
    limit = CameraConfig(kind="folder", source=".").max_pixels
    for path in paths:
        if path.is_dir():
            yield from _folder(path, limit, report)
        elif not path.exists():
            report.add(f"{path}: there is no such file or folder")
        elif is_image(path):
            yield from _image(path, limit, report)
        else:
            yield from _video(path, report)


def is_image(path: Path) -> bool:
    """Whether the ending says image; without a known ending the first bytes decide."""
    from edge_agent.cameras.image_file import SUFFIXES
    from edge_agent.cameras.image_header import read_header

    if path.suffix.lower() in SUFFIXES:
        return True
    if path.suffix:
        return False
    try:
        with path.open("rb") as file:
            read_header(file.read(65_536))
    except (FrameError, OSError):
        return False
    return True


def _folder(path: Path, limit: int, report: Report) -> Iterator[Picture]:
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
        yield from _image(name, limit, report)


def _is_shown_image(path: Path) -> bool:
    from edge_agent.cameras.image_file import SUFFIXES

    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()


def _image(path: Path, limit: int, report: Report) -> Iterator[Picture]:
    from edge_agent.cameras.image_file import read_image_file

    try:
        image = read_image_file(path, limit)
        yield Picture(path, None, _frame(path, 0, image))
    except FrameError as exc:
        report.add(f"{path}: {exc}")


def _video(path: Path, report: Report) -> Iterator[Picture]:
    from edge_agent.cameras.base import make_camera

    camera = make_camera(camera_name(path), CameraConfig(kind="video", source=str(path), pace="every_frame"))
    index = 0
    try:
        camera.open()
        while True:
            try:
                image = camera.read()
            except FrameError as exc:
                report.add(f"{path} frame {index}: {exc}")
            else:
                if image is None:
                    return
                yield Picture(path, index, _frame(path, index, image))
            index += 1
    except CameraError as exc:
        report.add(f"{path}: {exc}")
    finally:
        camera.close()


def _frame(path: Path, seq: int, image: npt.NDArray[np.uint8]) -> Frame:
    """A frame whose time is the file's own, so that reading it again gives the same reading id."""
    return Frame(camera_name(path), seq, path.stat().st_mtime, time.monotonic(), image)


def camera_name(path: Path) -> str:
    """The file's name as a camera's name: letters, digits, dot, dash, underscore."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.name)[:64] or "file"


def show_json(picture: Picture, reading: Reading, stream: IO[str]) -> None:
    """One line: the reading as in the MQTT result schema, and the path it came from."""
    source = os.fsencode(picture.source).decode("utf-8", "surrogateescape")
    print(json_bytes({**reading.to_json(), "source": source}).decode(), file=stream, flush=True)


def show_table(picture: Picture, reading: Reading, stream: IO[str]) -> None:
    """A heading, then each line's number, confidence, text, and the fields found in it."""
    count = f"{len(reading.lines)} line{'' if len(reading.lines) == 1 else 's'}" if reading.lines else reading.reason
    size = f"{reading.width_px}x{reading.height_px}"
    print(f"{printable(picture.name)}  {size}  {count}  {reading.timings_ms.get('total', 0):.0f} ms", file=stream)
    texts = [printable(line.text) for line in reading.lines]
    width = min(TEXT_WIDTH, max((columns(text) for text in texts), default=0))
    for n, (text, line) in enumerate(zip(texts, reading.lines, strict=True)):
        meanings = ", ".join(f"{f.name} = {meaning_of(f)}" for f in reading.fields if f.lines[:1] == (n,))
        flags = f" [{', '.join(line.flags)}]" if line.flags else ""
        padding = " " * (width - columns(text))
        print(f"  {n + 1:>3}  {line.confidence:.2f}  {text}{padding}  {meanings}{flags}".rstrip(), file=stream)
    stream.flush()


def meaning_of(found: Field) -> str:
    """The field's value; where it has none (a date that does not exist) the text as seen, in doubt."""
    return printable(found.value or f"{found.text} (?)")


def printable(text: str) -> str:
    """Text that does nothing to a terminal: what cannot be printed becomes a space."""
    return "".join(c if c.isprintable() else " " for c in text)


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
        single = out.suffix.lower() in DRAWN_ENDINGS and not out.is_dir()
        if single and (len(paths) > 1 or paths[0].is_dir() or not is_image(paths[0])):
            raise ConfigError(f"--draw {out} names one picture, but there may be many to draw; name a folder")
        folder = out.parent if single else out
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ConfigError(f"--draw {out}: cannot make the folder {folder}: {exc.strerror}") from exc
        return cls(folder, out.name if single else None)

    def draw(self, picture: Picture, reading: Reading, report: Report) -> None:
        """Writes one picture; a failure is reported."""
        import cv2

        from edge_agent.drawing import annotated

        path = self.folder / (self.file or self._free_name(picture))
        drawn = annotated(picture.frame.image, reading, picture.source.name)
        try:
            _, encoded = cv2.imencode(path.suffix.lower(), drawn, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
            path.write_bytes(encoded.tobytes())
        except (OSError, cv2.error) as exc:
            report.add(f"{path}: cannot write the picture: {exc}")

    def _free_name(self, picture: Picture) -> str:
        """The source's own name; the same name from another folder gets a number."""
        stem = picture.source.stem if picture.index is None else f"{picture.source.stem}-{picture.index:06d}"
        name, number = f"{stem}.jpg", 1
        while name in self.taken:
            number += 1
            name = f"{stem}~{number}.jpg"
        self.taken.add(name)
        return name
