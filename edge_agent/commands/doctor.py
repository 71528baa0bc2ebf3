"""`edge-agent doctor` and `edge-agent support-bundle`: what is wrong here, and what helpers far away need."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from edge_agent.errors import EXIT_OK

EXIT_FAILED = 1


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers `doctor`."""
    parser = verbs.add_parser(
        "doctor",
        help="what is wrong with this machine and its settings, and the cure",
        description="Looks at everything that the agent needs and says what is wrong, with the cure. Changes nothing, "
        "tells no secret. Exit code 1 where something fails.",
    )
    add_places(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(func=run)


def add_bundle_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers `support-bundle`."""
    parser = verbs.add_parser(
        "support-bundle",
        help="what somebody far away needs to see, in one file without secrets",
        description="Writes doctor's findings, the settings without passwords, the last telemetry, events and words, "
        "and the end of the log, where they can be read, into one tar file.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the file to write, such as support.tar.gz")
    add_places(parser)
    parser.set_defaults(func=write_bundle)


def add_places(parser: argparse.ArgumentParser) -> None:
    """Where settings and models are."""
    parser.add_argument("--config", type=Path, default=Path("config.yaml"), metavar="FILE", help="default: %(default)s")
    parser.add_argument("--models-dir", type=Path, metavar="DIR", help="where the models are, over models_dir")


def run(args: argparse.Namespace) -> int:
    """0 when nothing fails; warnings are no failure."""

    from edge_agent.doctor.examination import admit, examine, table_line, to_json

    rows = []
    for row in examine(admit(args.config, args.models_dir)):
        rows.append(row)
        if not args.json:
            print(table_line(row), flush=True)
    if args.json:
        print(json.dumps(to_json(rows), indent=1))
    return EXIT_FAILED if any(row.verdict == "fail" for row in rows) else EXIT_OK


def write_bundle(args: argparse.Namespace) -> int:
    """0 when it is written, whatever doctor found."""
    from edge_agent.doctor.bundle import write
    from edge_agent.doctor.examination import admit

    names = write(args.file, admit(args.config, args.models_dir))
    print(f"{args.file}: {', '.join(names)}")
    return EXIT_OK
