"""`edge-agent demo`: labels being read, here and now."""

from __future__ import annotations

import argparse
from pathlib import Path

from edge_agent.commands.output import leave_quietly
from edge_agent.errors import ConfigError

EPILOG = """\
SOURCE is a camera (/dev/video0, csi://0), a stream (rtsp://user:password@host/path), a video or image file, or a
folder of images. Without it a rendered sample video plays, whose truth is known: the demo then counts what was right.
Everything that is made lies in demo-out/."""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb."""
    parser = verbs.add_parser(
        "demo",
        help="see labels being read: broker, agent and a table of readings",
        description="Starts an MQTT broker and the agent, and shows readings as they arrive.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--source", metavar="SOURCE", help="what to read (default: the sample video)")
    parser.add_argument("--frames", metavar="N", type=_count, default=0, help="end after N readings (default: Ctrl-C)")
    parser.add_argument("--models-dir", metavar="DIR", type=Path, help="where the models are")
    parser.add_argument("--json", action="store_true", help="the messages as they are, one a line")
    parser.add_argument("--keep", action="store_true", help="leave broker and agent running after N readings")
    parser.add_argument("--items", action="store_true", help="loaves pass by and get verdicts; N then counts loaves")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the demo; imported here, so that `--help` needs none of its libraries."""
    from edge_agent import registry
    from edge_agent.transports import TRANSPORTS

    registry.load(TRANSPORTS, "mqtt", "transport")  # says it plainly where paho-mqtt is missing or too old
    from edge_agent.demo.items import run_items_demo
    from edge_agent.demo.run import DemoOptions, run_demo
    from edge_agent.models.spec import find_models_dir

    if args.items and args.source is not None:
        raise ConfigError("--items has loaves of its own; give either it or --source")
    options = DemoOptions(args.source, args.frames, find_models_dir(args.models_dir), args.json, args.keep)
    try:
        return run_items_demo(options) if args.items else run_demo(options)
    except BrokenPipeError:
        leave_quietly()
        return 0


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} given; expected a number of readings, 0 for no end")
    return int(text)
