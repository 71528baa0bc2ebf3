"""`edge-agent schema`: what every message over MQTT holds, for programs: AsyncAPI and JSON Schema."""

from __future__ import annotations

import argparse
from pathlib import Path

from edge_agent.errors import EXIT_OK, ConfigError


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb."""
    parser = verbs.add_parser(
        "schema",
        help="JSON Schemas and AsyncAPI of what goes over MQTT",
        description="Prints the AsyncAPI 3.0 document of every topic that the device uses, or writes it into a folder "
        "with a JSON Schema for each message: what docs/mqtt holds. (`edge-agent config schema` is about config.yaml.)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write all files into this folder, which is made")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints or writes."""
    from edge_agent.schema.documents import asyncapi, text, write

    if args.out is None:
        print(text(asyncapi()), end="")
        return EXIT_OK
    try:
        files = write(args.out)
    except OSError as exc:
        raise ConfigError(f"--out {args.out}: cannot be written: {exc.strerror}") from exc
    print(f"{len(files)} files in {args.out}")
    return EXIT_OK
