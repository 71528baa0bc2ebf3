"""Items: a bakery's loaves pass by and get their verdicts, over MQTT, as docs/verify.md tells of them.

What each loaf says is known, so the demo says at the end how many verdicts were right.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import IO, Any

from edge_agent.demo.broker import Broker, open_broker
from edge_agent.demo.child import Child, started
from edge_agent.demo.labels import RenderedLabel
from edge_agent.demo.line_labels import LineLabel, render_line_label
from edge_agent.demo.run import (
    BASE_TOPIC,
    CAMERA,
    DEVICE,
    NO_READING_S,
    DemoOptions,
    Progress,
    kept_up,
    page_address,
    raw_messages,
    say,
    signals_as_interrupt,
    told_of_its_end,
    write_config,
)
from edge_agent.demo.scene import PITCH_PX, STEP_PX, Conveyor, SceneFrame
from edge_agent.demo.subscriber import Subscriber
from edge_agent.demo.table import safe
from edge_agent.demo.video import FPS, require_room, write_frames
from edge_agent.errors import EXIT_OK, ConfigError

RENDERER = 1  # goes up with every change to what is drawn: old files are then rendered afresh
STEPS = 8  # of the belt between two frames: each is read, and a loaf is in full view in three or four
PRODUCT = "Seeded Rye Bread 500 g"
RULES: tuple[dict[str, str], ...] = (
    {"catalogue": PRODUCT},
    {"date": "expiry >= today + 3d"},
    {"date": "expiry <= today + 30d"},
    {"field": "lot", "pattern": "L9999A"},
)
MARKS = {"PASS": "+", "FAIL": "x", "NO_READ": "?"}


@dataclass(frozen=True)
class Loaf:
    """A loaf's label and the verdict that it must get."""

    label: LineLabel
    verdict: str


def loaves(today: date) -> tuple[Loaf, ...]:
    """Good ones, one that is too old to sell, one whose date nobody can read, one with a date far too late."""

    def loaf(days: int, lot: str, verdict: str, smeared: int | None = None) -> Loaf:
        best_before = f"BEST BEFORE {(today + timedelta(days=days)):%d %b %Y}".upper()
        return Loaf(
            LineLabel((PRODUCT.upper().replace(" G", " g"), best_before, f"LOT {lot}"), smeared=smeared), verdict
        )

    return (
        loaf(9, "L2345B", "PASS"),
        loaf(1, "L2344A", "FAIL"),
        loaf(9, "L2345B", "NO_READ", smeared=1),
        loaf(9, "L2345B", "PASS"),
        loaf(309, "L2345B", "FAIL"),
        loaf(10, "L2346C", "PASS"),
    )


class Passing:
    """The belt's pictures, STEPS of its steps apart: an empty carton in the middle, then the loaves."""

    def __init__(self, shown: Sequence[Loaf]) -> None:
        self._conveyor = Conveyor([blank(), *(render_line_label(loaf.label) for loaf in shown)])
        self.frames = (len(shown) + 1) * PITCH_PX // (STEPS * STEP_PX)

    def frame(self, index: int) -> SceneFrame:
        """The picture `index` frames after the empty carton stood in the middle."""
        return self._conveyor.frame(index * STEPS)


def blank() -> RenderedLabel:
    """A label that says nothing."""
    return render_line_label(LineLabel(()))


def items_video(folder: Path, today: date, shown: Sequence[Loaf]) -> Path:
    """The video of the day in `folder`, rendered where it is not there yet. Raises ConfigError where it cannot be."""
    path = folder / f"items-r{RENDERER}-{today.isoformat()}-{len(shown)}.avi"
    if not path.is_file():
        require_room(folder)
        unfinished = path.with_name(f"{path.stem}.part.avi")
        passing = Passing(shown)
        try:
            write_frames(unfinished, passing, passing.frames, Progress("rendering the loaves", sys.stderr), FPS / STEPS)
            unfinished.replace(path)
        except OSError as exc:
            raise ConfigError(f"the video {path} cannot be written: {exc.strerror}") from exc
        finally:
            unfinished.unlink(missing_ok=True)
    return path


def sections(out: Path) -> dict[str, Any]:
    """Settings beside the camera's: every frame is read here, however long that takes, so nothing may be in a hurry."""
    return {
        "items": {"decide_within_ms": 60_000, "trust_clock": True},
        "evidence": {"directory": str((out / "evidence").absolute())},
    }


def run_items_demo(
    options: DemoOptions,
    agent: Sequence[str] = (sys.executable, "-m", "edge_agent", "run"),
    more: Mapping[str, Any] | None = None,
) -> int:
    """Shows items and their verdicts until all have passed by; 0, also after Ctrl-C, or the agent's exit code where it
    died. `more` are further settings. Raises ConfigError where the demo cannot start."""
    with signals_as_interrupt():
        try:
            return _run(options, agent, more or {})
        except KeyboardInterrupt:
            say("stopped")
            return EXIT_OK


def _run(options: DemoOptions, agent: Sequence[str], more: Mapping[str, Any]) -> int:
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise ConfigError(f"cannot make the folder {options.out.absolute()}: {exc.strerror}") from exc
    shown = loaves(date.today())[: options.frames or None]
    video = items_video(options.out, date.today(), shown)
    camera = {
        "kind": "video",
        "source": str(video.absolute()),
        "pace": "every_frame",
        "items": "conveyor",
        "expected": [dict(rule) for rule in RULES],
        "loop": options.keep,
    }
    command = agent if options.keep else [*agent, "--until-end"]
    with open_broker(options.out) as running:
        say(f"broker: {running.name} on {running.host}:{running.port}")
        config = write_config(options, running, camera, {**sections(options.out), **more})
        with (
            Subscriber(running.host, running.port, f"{BASE_TOPIC}/{DEVICE}") as subscriber,
            started("agent", [*command, "--config", str(config)], options.out / "agent.log") as child,
        ):
            say(f"starting the agent: loading models ... (log: {child.log})")
            say(f"the page: {page_address(config)}")
            say(f"raw messages: {raw_messages(running)}")
            code = follow(subscriber, child, running, shown, options)
            return kept_up(child) if code == EXIT_OK and options.keep else code


def follow(subscriber: Subscriber, agent: Child, broker: Broker, shown: Sequence[Loaf], options: DemoOptions) -> int:
    """Shows each item as it comes, until the agent has ended, with --keep until each loaf has passed once; the exit
    code."""
    items: list[Mapping[str, Any]] = []
    last_mono = time.monotonic()
    while not (options.keep and len(items) >= len(shown)):
        arrival = subscriber.take(0.5)
        if arrival is not None and arrival.topic.endswith(f"/{CAMERA}/item"):
            last_mono = arrival.arrived_mono
            items.append(json.loads(arrival.payload))
            show(len(items), items[-1], sys.stdout, as_json=options.json)
        elif arrival is None and agent.exit_code() is not None:
            break
        elif arrival is None and broker.child.exit_code() is not None:
            return told_of_its_end(broker.child)
        elif time.monotonic() - last_mono > NO_READING_S:
            say(f"no item for {NO_READING_S:.0f} s")
            return told_of_its_end(agent)
    if agent.exit_code() not in (EXIT_OK, None) or not items:
        return told_of_its_end(agent)
    for line in summary(items, shown, options.out):
        say(line, sys.stderr if options.json else sys.stdout)
    return EXIT_OK


def show(number: int, item: Mapping[str, Any], stream: IO[str], *, as_json: bool) -> None:
    """One item: a line for its verdict, and one for each rule that it did not pass."""
    if as_json:
        print(json.dumps(item), file=stream, flush=True)
        return
    verdict = str(item["verdict"])
    fields = ", ".join(f"{safe(each['name'])} {safe(each['value'] or each['text'])}" for each in item["fields"])
    print(f"{MARKS[verdict]} {number:>2}  {verdict:<8} {item['n_reads']:>2} reads  {fields}", file=stream, flush=True)
    for reason in item["reasons"]:
        if reason["verdict"] != "PASS":
            seen = safe(reason["seen"]) or "nothing"
            print(
                f"       {safe(reason['rule'])}: expected {safe(reason['expected'])}, seen {seen}",
                file=stream,
                flush=True,
            )


def summary(items: Sequence[Mapping[str, Any]], shown: Sequence[Loaf], out: Path) -> list[str]:
    """What was seen, how right, and where to go from here."""
    in_order = sorted(items, key=lambda item: int(item["first_seq"]))  # one that passes is told of sooner than others
    verdicts, meant = [item["verdict"] for item in in_order], [loaf.verdict for loaf in shown]
    counts = ", ".join(f"{verdict} {verdicts.count(verdict)}" for verdict in MARKS)
    right = "all as they are" if verdicts == meant else f"they are: {', '.join(meant)}"
    return [
        "",
        f"{len(items)} items: {counts}; {right}",
        "",
        "where next",
        f"  {out}/config.yaml     what the agent ran with",
        f"  edge-agent replay {out}/evidence --config {out}/config.yaml     what was refused, read again",
        "  docs/verify.md            rules, triggers, evidence, and three whole lines",
    ]
