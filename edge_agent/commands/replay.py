"""`edge-agent replay`: evidence, or pictures whose readings were kept, read again; what differs is printed."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from edge_agent import config as config_file
from edge_agent.commands.options import READ_WITH, add_settings_options
from edge_agent.commands.read import open_pipeline
from edge_agent.config import Config
from edge_agent.errors import ConfigError, FrameError, in_one_line
from edge_agent.plain_text import printable
from edge_agent.records import Frame, Reading, json_bytes
from edge_agent.settings.cameras import MAX_PIXELS

if TYPE_CHECKING:
    from edge_agent.pipeline import Pipeline
    from edge_agent.verify.expectation import Expectation

READINGS = "readings.jsonl"
SAME_PLACE = 0.3  # intersection over union from which on two boxes are one line
MAX_LINE_BYTES = 16_777_216  # of READINGS, which may be anybody's
MOST_ENGINES = 16  # differences of engines that are told
FAR_PX = 1e6  # no picture has a line there
DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, FrameError)

DESCRIPTION = """\
Reads kept evidence again, with the engines and settings of today, and prints what differs from then. Dates are compared
with the day of then. WHAT is the id of an item (`evidence_id` in its message), a folder of evidence, or a folder of
pictures with the readings of then beside them in readings.jsonl."""
EPILOG = """\
examples:
  edge-agent replay 0c41d8a7e2b94f06a1d35e77 --config config.yaml
  edge-agent replay state/evidence --config changed.yaml      would the change have passed what was refused?
  edge-agent read photos --json > photos/readings.jsonl       then, after an update:
  edge-agent replay photos

The exit code is 0 where nothing differs, 1 where something does or could not be read, and 78 where WHAT names nothing,
or the settings name a model that is not there."""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb."""
    parser = verbs.add_parser(
        "replay",
        help="read kept evidence again and say what differs",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", metavar="WHAT", help="an evidence id, or a folder")
    parser.add_argument("--json", action="store_true", help="one object a line")
    add_settings_options(parser, READ_WITH)
    parser.set_defaults(func=run)


@dataclass(frozen=True, eq=False)
class Past:
    """One picture with what was made of it: `reading` and `verdict` of then, as messages write them; `regions` of then
    are not in the settings of today."""

    name: str
    frame: Frame
    reading: Mapping[str, Any]
    verdict: str | None
    expectation: Expectation | None
    today: date
    clock_trusted: bool
    regions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replayed:
    """What came of it now, and each difference in words; `engines` are the stages with another engine than then, each
    with both."""

    name: str
    verdict_then: str | None
    verdict_now: str | None
    differences: tuple[str, ...]
    engines: tuple[tuple[str, str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "name": self.name,
            "verdict_then": self.verdict_then,
            "verdict_now": self.verdict_now,
            "differences": list(self.differences),
        }


def run(args: argparse.Namespace) -> int:
    """Replays everything that WHAT names; 1 when something differs or could not be read, else 0."""
    settings = config_file.load(args.config) if args.config else config_file.without_file()
    problems: list[str] = []
    past = find_past(args.what, settings, problems)
    count = different = unread = 0
    engines: dict[tuple[str, str, str], None] = {}
    with open_pipeline(settings, args.models_dir) as pipeline:
        for each in past:
            try:
                replayed = replay(each, pipeline)
            except FrameError as exc:
                problems.append(f"{each.name}: {exc}")
            else:
                count, different = count + 1, different + bool(replayed.differences)
                engines |= dict.fromkeys(replayed.engines)
                show(replayed, sys.stdout, as_json=args.json)
            unread += tell(problems)
    unread += tell(problems)
    for stage, then, now in list(engines)[:MOST_ENGINES]:
        print(f"{printable(stage)}: by {printable(then)} then, by {printable(now)} now", file=sys.stderr)
    print(f"{count} read again, {different} differ" + (f", {unread} could not be read" * bool(unread)), file=sys.stderr)
    return 1 if different or unread else 0


def tell(problems: list[str]) -> int:
    """Says what could not be read as soon as it is known; how many that were."""
    told = len(problems)
    for problem in problems:
        print(f"edge-agent replay: {printable(problem)}", file=sys.stderr)
    problems.clear()
    return told


def show(replayed: Replayed, stream: IO[str], *, as_json: bool) -> None:
    """One picture's outcome."""
    if as_json:
        print(json_bytes(replayed.to_json()).decode(), file=stream, flush=True)
        return
    verdicts = [replayed.verdict_then or "-", replayed.verdict_now or "-"]
    verdict = verdicts[0] if verdicts[0] == verdicts[1] else " -> ".join(verdicts)
    print(f"{printable(replayed.name)}  {verdict}  {'differs' if replayed.differences else 'as before'}", file=stream)
    for difference in replayed.differences:
        print(f"  {printable(difference)}", file=stream)


def find_past(what: str, settings: Config, problems: list[str]) -> Iterator[Past]:
    """What is to be replayed; ConfigError where WHAT names nothing. What cannot be read goes to `problems`."""
    from edge_agent.evidence import find_evidence, find_evidence_dir, list_evidence

    folder = Path(what)
    if folder.is_dir():
        kept = list(list_evidence(folder))
        if not kept and not (folder / READINGS).is_file():
            raise ConfigError(f"{what}: there is neither evidence in this folder nor a {READINGS} beside pictures")
        return _evidence(kept, settings, problems) if kept else _pictures(folder, settings, problems)
    directory = find_evidence_dir(settings)
    path = None if directory is None else find_evidence(directory, what)
    if path is None:
        where = "no folder of evidence is configured" if directory is None else f"{directory.absolute()} holds none"
        raise ConfigError(f"{what} is no folder, and no evidence is kept under this id: {where}; name it in --config")
    return _evidence([path], settings, problems)


def _evidence(paths: Iterable[Path], settings: Config, problems: list[str]) -> Iterator[Past]:
    from edge_agent.evidence import read_evidence

    for path in paths:
        try:
            kept = read_evidence(path)
            content, item = kept.content, kept.content["item"]
            camera, region = str(item["camera"]), item.get("region")
            reading = _compared(content["reading"])
            expectation = _expectation(content["expectation"], camera, settings)
            if region is not None and expectation is not None:  # an item that one region showed
                expectation = expectation.of_region(str(region))
            past = Past(
                name=str(content["id"]),
                frame=Frame(camera, 0, time.time(), time.monotonic(), kept.canvas),
                reading=reading,
                verdict=_verdict(item),
                expectation=expectation,
                today=date.fromisoformat(content["today"]),
                clock_trusted=bool(content["clock_trusted"]),
                regions=_lost_regions(reading, expectation, camera, settings),
            )
        except DAMAGE as exc:
            problems.append(f"{path}: {in_one_line(exc)}")
        else:
            yield past


def _lost_regions(
    reading: Mapping[str, Any], expectation: Expectation | None, camera: str, settings: Config
) -> tuple[str, ...]:
    """Regions in which something was read, or of which something is expected, that the camera no longer has."""
    named = {str(line["region"]) for line in reading["lines"] if line.get("region") is not None}
    if expectation is not None:
        named |= {region for region, rules in expectation.rois.items() if rules}
    known: Collection[str] = settings.cameras[camera].rois if camera in settings.cameras else ()
    return tuple(sorted(named.difference(known)))


def _compared(reading: Mapping[str, Any]) -> Mapping[str, Any]:
    """A reading of then, if it has all that is compared. Raises KeyError, TypeError or ValueError."""
    for line in reading["lines"]:
        if not isinstance(line["text"], str):
            raise TypeError(f"a line's text is {line['text']!r}")
        if not all(abs(value) < FAR_PX for point in line["quad"] for value in point):
            raise ValueError(f"a line stands at {line['quad']!r}")
        overlap(line["quad"], line["quad"])
    if not all(isinstance(each["name"], str) for each in reading["fields"]):
        raise TypeError("a field's name is no text")
    _fields(reading["fields"])
    return reading


def _verdict(said: Mapping[str, Any]) -> str | None:
    verdict = said.get("verdict")
    if verdict not in ("PASS", "FAIL", "NO_READ", None):
        raise ValueError(f"{verdict!r} is no verdict")
    return verdict


def _expectation(kept: Mapping[str, Any] | None, camera: str, settings: Config) -> Expectation | None:
    """What is expected today: by the settings, where they know the camera and expected it then; else what was then."""
    from edge_agent.expectations import CONFIG_ID
    from edge_agent.settings.expected import Rule
    from edge_agent.verify.expectation import Expectation, of_camera

    if camera in settings.cameras and (kept is None or str(kept["id"]).startswith(CONFIG_ID)):
        return of_camera(settings.cameras[camera])
    if kept is None:
        return None

    def rules(listed: Sequence[Any]) -> tuple[Rule, ...]:
        return tuple(Rule.model_validate_json(json.dumps(each)) for each in listed)

    return Expectation(
        kept["id"], rules(kept["expected"]), {name: rules(each) for name, each in dict(kept["rois"]).items()}
    )


def _pictures(folder: Path, settings: Config, problems: list[str]) -> Iterator[Past]:
    from edge_agent.cameras.image_file import read_image_file

    for number, line in enumerate(_lines(folder / READINGS), 1):
        try:
            reading = json.loads(line)
            path = folder / Path(str(reading["source"])).name
            if not path.is_file():  # a pipe of that name would be waited for
                raise FrameError(f"{path.name!r} is no picture beside it")
            camera = str(reading["camera"])
            frame = Frame(camera, 0, time.time(), time.monotonic(), read_image_file(path, MAX_PIXELS))
            then, compared = _verdict(reading), _compared(reading)
            expectation = _expectation(None, camera, settings)
            lost = _lost_regions(compared, expectation, camera, settings)
            past = Past(path.name, frame, compared, then, expectation, date.today(), clock_trusted=True, regions=lost)
        except DAMAGE as exc:
            problems.append(f"{folder / READINGS}:{number}: {in_one_line(exc)}")
        else:
            yield past


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file; of one that is too long the beginning, which is no reading."""
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE_BYTES):
            yield line
            while not line.endswith(b"\n") and (line := file.readline(MAX_LINE_BYTES)):
                pass


def replay(past: Past, pipeline: Pipeline) -> Replayed:
    """One picture read again and judged again. Raises FrameError where it cannot be read."""
    from edge_agent.verify.judge import judge_reading

    expectation = past.expectation
    pipeline.expected = lambda camera: expectation
    reading = pipeline.read(past.frame)
    judgement = None
    if expectation is not None:
        judgement = judge_reading(reading, expectation, past.today, past.clock_trusted)
    verdict = None if judgement is None else judgement.verdict
    differences = [*line_differences(past.reading, reading), *field_differences(past.reading, reading)]
    if verdict != past.verdict:
        why = [] if judgement is None else [f"{each.rule} ({each.why})" for each in judgement.reasons if each.why]
        because = f": {'; '.join(why)}" if why else ""
        differences.insert(0, f"verdict {past.verdict or '-'} -> {verdict or '-'}{because}")
    differences += [f"region {region} is not in the settings of today" for region in past.regions]
    return Replayed(past.name, past.verdict, verdict, tuple(differences), other_engines(past.reading, reading))


def other_engines(before: Mapping[str, Any], reading: Reading) -> tuple[tuple[str, str, str], ...]:
    """The stages that had another engine than now: stage, engine then, engine now."""
    then = before.get("engines")
    known = then if isinstance(then, dict) else {}
    stages = [(stage, str(known.get(stage, now)), now) for stage, now in reading.engines.items()]
    return tuple(each for each in stages if each[1] != each[2])


def line_differences(before: Mapping[str, Any], reading: Reading) -> Iterator[str]:
    """Lines that were there and read otherwise, that are no more, and that are new, by where they stand."""
    now = reading.to_json()["lines"]
    free = list(range(len(now)))
    for line in before["lines"]:
        at = max(free, key=lambda n: overlap(line["quad"], now[n]["quad"]), default=None)
        if at is None or overlap(line["quad"], now[at]["quad"]) < SAME_PLACE:
            yield f"line no more read: {line['text']!r}"
            continue
        free.remove(at)
        if now[at]["text"] != line["text"]:
            yield f"line {line['text']!r} -> {now[at]['text']!r}"
    yield from (f"new line: {now[n]['text']!r}" for n in free)


def field_differences(before: Mapping[str, Any], reading: Reading) -> Iterator[str]:
    """Fields with another value, or believed no more or anew."""
    then, now = (_fields(each) for each in (before["fields"], reading.to_json()["fields"]))
    for key in sorted(then.keys() | now.keys()):
        if then.get(key) != now.get(key):
            name = ".".join(key)
            yield f"{name}: {' and '.join(then.get(key, ())) or 'none'} -> {' and '.join(now.get(key, ())) or 'none'}"


def _fields(fields: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], list[str]]:
    """By side and name, the values that fields have."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in fields:
        side = "code" if each["source"] == "barcode" else "print"
        doubt = "" if each["certain"] else f" ({', '.join(each['flags']) or 'uncertain'})"
        found.setdefault((side, each["name"]), []).append(f"{each['value'] or each['text']}{doubt}")
    return {key: sorted(values) for key, values in found.items()}


def overlap(one: Sequence[Sequence[float]], two: Sequence[Sequence[float]]) -> float:
    """Intersection over union, 0..1, of the upright boxes around two quads of a message."""
    boxes = [(min(xs), min(ys), max(xs), max(ys)) for xs, ys in (zip(*quad, strict=True) for quad in (one, two))]
    width = min(box[2] for box in boxes) - max(box[0] for box in boxes)
    height = min(box[3] for box in boxes) - max(box[1] for box in boxes)
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in boxes]
    return float(width * height / (sum(areas) - width * height))
