"""`edge-agent calibrate`: INT8 engines from this device's own frames, promoted only where they have earned it."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, get_args

from edge_agent import config as configuration
from edge_agent.calibrate.job import CalibrationJob, CalibrationProgress, Said
from edge_agent.calibrate.wish import MethodChoice, Source, Wish
from edge_agent.commands.options import AGENTS, add_settings_options
from edge_agent.errors import EXIT_OK, ConfigError
from edge_agent.models.spec import find_models_dir

EXIT_REFUSED = 1
LINE_EVERY_S = 10.0  # progress lines where the output is no terminal
BAR_CHARS = 24
WAIT_S = 0.5

DESCRIPTION = """\
Quantises models to INT8 with ranges measured on this device's own frames, judges the result on frames that were held
back, and puts it to use only where it reads as well and is faster here; else the float model stays, and the report says
why. The agent reads on meanwhile. Ctrl-C interrupts; the same command goes on where it was."""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb."""
    parser = verbs.add_parser("calibrate", help="earn INT8 engines on this device", description=DESCRIPTION)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="models (default: those that the settings use)")
    source = parser.add_argument_group(
        "where frames come from", "One of these; without any, the frames of the last calibration are used."
    ).add_mutually_exclusive_group()
    source.add_argument("--frames", type=Path, metavar="DIR", help="a folder of images; labels.jsonl in it is used")
    source.add_argument("--camera", metavar="NAME", help="a camera of the settings; the agent must not hold it")
    source.add_argument("--recorded", action="store_true", help="what the agent kept (calibration.record_interval_s)")
    source.add_argument("--import", dest="imported", type=Path, metavar="FILE", help="a collection of a sister device")
    source.add_argument("--export", type=Path, metavar="FILE", help="write the last collection to a file, and end")
    parser.add_argument("--count", type=int, default=60, metavar="N", help="frames to use at most (default: 60)")
    parser.add_argument("--precision", choices=("int8",), default="int8", help="what to calibrate for")
    parser.add_argument(
        "--method", choices=get_args(MethodChoice), default="recipe", help="how ranges are chosen (default: the recipe)"
    )
    parser.add_argument("--dry-run", action="store_true", help="do and report everything, promote nothing")
    add_settings_options(parser, AGENTS)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """0 when every model was promoted (with --dry-run: would have been), 1 when one was refused."""
    if args.export is not None:
        return export(args)
    wish = wish_of(args)
    with CalibrationJob(wish) as job:
        watch(job, Screen(job.said, sys.stdout))
    refused = [outcome for outcome in job.said.outcomes if outcome["verdict"] == "refused"]
    return EXIT_REFUSED if refused else EXIT_OK


def watch(job: CalibrationJob, screen: Screen) -> None:
    """Until the child has ended; raises what CalibrationJob.poll raises. Whatever was said is on the screen then."""
    try:
        while not job.poll(screen.bar, WAIT_S):
            screen.catch_up()
    except KeyboardInterrupt:
        screen.catch_up()
        print("interrupted; what is finished is kept: say the same again to go on", file=sys.stderr)
        raise
    finally:
        screen.catch_up()
        screen.bar.end()


def export(args: argparse.Namespace) -> int:
    """Writes the last collection to one file; 0."""
    from edge_agent.calibrate import archive, collection
    from edge_agent.calibrate.run import calibration_directory, settings_of

    settings, models_dir = settings_of(wish_of(args))
    kept = collection.load(calibration_directory(settings, models_dir) / "collection")
    if kept is None:
        raise ConfigError("there is no collection yet: calibrate first, with --frames, --camera or --recorded")
    archive.export(kept, args.export)
    print(f"{args.export}: {len(kept.frames)} frames, {args.export.stat().st_size / 1e6:.1f} MB")
    return EXIT_OK


def wish_of(args: argparse.Namespace) -> Wish:
    """The command line as a wish; ConfigError for settings that cannot be, a folder or a file that is not there."""
    source, name = source_of(args)
    if args.count < 1:
        raise ConfigError(f"--count is {args.count}; expected at least 1")
    return Wish(
        models=tuple(args.models),
        source=source,
        name=name,
        count=args.count,
        method=args.method,
        dry_run=args.dry_run,
        settings=None if args.config is None else in_force(args.config, args.models_dir),
        models_dir=None if args.models_dir is None else args.models_dir.absolute(),
    )


def in_force(config: Path, models_dir: Path | None) -> dict[str, Any]:
    """What the agent of these settings runs, changes from afar among it, as plain values without secrets."""
    from edge_agent.remote.in_force import find_config_store, look

    local = configuration.load(config)
    there = look(local, find_config_store(local, config), find_models_dir(models_dir or local.models_dir))
    if there.problem is not None:
        print(f"edge-agent: {there.problem}", file=sys.stderr)
    return configuration.plain(there.config)


def source_of(args: argparse.Namespace) -> tuple[Source, str | None]:
    """Where frames come from, by kind and name."""
    if args.frames is not None:
        if not args.frames.is_dir():
            raise ConfigError(f"--frames {args.frames} is not a folder; expected one with images")
        return "folder", str(args.frames.absolute())
    if args.imported is not None:
        if not args.imported.is_file():
            raise ConfigError(f"--import {args.imported} is not a file; expected one that --export wrote")
        return "archive", str(args.imported.absolute())
    if args.camera is not None:
        return "camera", args.camera
    return ("recorded", None) if args.recorded else ("collection", None)


def told(outcome: dict[str, Any]) -> str:
    """One model's outcome for people: the verdict, the figures, each reason on a line of its own."""
    lines = [f"{outcome['model']}: {outcome['verdict']}: {outcome['summary']}"]
    lines += [f"  {reason}" for reason in outcome["reasons"]]
    lines += [f"  report: {outcome['report']}"] if outcome.get("report") else []
    return "\n".join(lines)


class Screen:
    """Puts what the child says where people read it: notes and outcomes as they come, above the bar."""

    def __init__(self, said: Said, stream: IO[str]) -> None:
        self.bar = Bar(stream)
        self._said = said
        self._stream = stream
        self._notes = self._outcomes = 0

    def catch_up(self) -> None:
        """Prints what has come since the last call."""
        notes, outcomes = self._said.notes[self._notes :], self._said.outcomes[self._outcomes :]
        if not notes and not outcomes:
            return
        self._notes, self._outcomes = self._notes + len(notes), self._outcomes + len(outcomes)
        self.bar.end()
        for text in [*notes, *map(told, outcomes)]:
            print(text, file=self._stream, flush=True)


class Bar:
    """Shows progress: a bar that changes on a terminal, a line every LINE_EVERY_S elsewhere."""

    def __init__(self, stream: IO[str], clock: Callable[[], float] = time.monotonic) -> None:
        self.stream = stream
        self._clock = clock
        self._told_at: float | None = None
        self._shown = False

    def __call__(self, progress: CalibrationProgress) -> None:
        if self.stream.isatty():
            full = round(progress.share * BAR_CHARS)
            room = max(10, shutil.get_terminal_size().columns - BAR_CHARS - 3)
            self.stream.write(f"\r\x1b[K[{'#' * full}{'.' * (BAR_CHARS - full)}] {str(progress)[:room]}")
            self.stream.flush()
            self._shown = True
            return
        now = self._clock()
        if self._told_at is None or now - self._told_at >= LINE_EVERY_S:
            self._told_at = now
            print(progress, file=self.stream, flush=True)

    def end(self) -> None:
        """Takes the bar off the terminal."""
        if self._shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
            self._shown = False
