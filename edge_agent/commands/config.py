"""`edge-agent config validate|show|schema`: is a file of settings right, what is in force, what can be set."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from edge_agent.config import Config, cautions, load, shown
from edge_agent.errors import EXIT_OK
from edge_agent.settings.problems import said
from edge_agent.settings.strict_yaml import dump

DEFAULT_FILE = Path("config.yaml")


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers `config` and its own verbs."""
    parser = verbs.add_parser("config", help="check, show and describe settings", description=__doc__)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    file = argparse.ArgumentParser(add_help=False)
    file.add_argument("file", nargs="?", type=Path, default=DEFAULT_FILE, metavar="FILE", help="default: config.yaml")
    validate = actions.add_parser(
        "validate",
        parents=[file],
        help="is the file right? every mistake with its line; exit 78 when not",
        description="Checks a file together with EDGE_AGENT_* of the environment. Prints every mistake with its line "
        "and exits with 78, or says that the file is right and what in it is hardly meant.",
    )
    validate.set_defaults(func=validate_file)
    show = actions.add_parser(
        "show",
        parents=[file],
        help="what is in force: file, environment, defaults; passwords hidden",
        description="Prints all settings in force as YAML: the file, EDGE_AGENT_* over it, defaults for the rest. "
        "Passwords are ***.",
    )
    show.set_defaults(func=show_file)
    schema = actions.add_parser(
        "schema",
        help="JSON Schema of the file, for editors",
        description="Prints the JSON Schema of the file: editors complete and check with it. YAML editors take it by "
        "a first line `# yaml-language-server: $schema=edge-agent.schema.json`.",
    )
    schema.set_defaults(func=print_schema)


def validate_file(args: argparse.Namespace) -> int:
    """Prints `config.yaml: ok (2 cameras)`, cautions to stderr; ConfigError lists what is wrong."""
    config = load(args.file)
    for caution in cautions(config, args.file):
        print(f"{args.file}: warning: {said(caution)}", file=sys.stderr)
    count = len(config.cameras)
    print(f"{args.file}: ok ({count} camera{'' if count == 1 else 's'})")
    return EXIT_OK


def show_file(args: argparse.Namespace) -> int:
    """Prints the settings in force as YAML."""
    config = load(args.file)
    print(f"# in force with {args.file}, environment and defaults; passwords are ***")
    print(f"# this device is {config.device()} in topics")
    print(dump(shown(config)), end="")
    return EXIT_OK


def print_schema(args: argparse.Namespace) -> int:
    """Prints the JSON Schema of config.yaml."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}
    print(json.dumps(schema, indent=2))
    return EXIT_OK
