"""`edge-agent config validate|show|diff|history|rollback|schema`: is a file of settings right, what is in force, what
came from afar, what can be set."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edge_agent.config import Config, cautions, changed_keys, load, shown
from edge_agent.errors import EXIT_OK, ConfigError
from edge_agent.models.spec import find_models_dir
from edge_agent.records import rfc3339
from edge_agent.remote.config_store import Past, Wished
from edge_agent.remote.in_force import InForce, find_config_store, look
from edge_agent.settings.keys import flat
from edge_agent.settings.problems import dotted, said
from edge_agent.settings.strict_yaml import dump

DEFAULT_FILE = Path("config.yaml")
EXIT_NOTHING = 1


@dataclass(frozen=True)
class Action:
    """One of the verbs below `config`: what it looks at, and its help."""

    run: Callable[[argparse.Namespace], int]
    on: Literal["nothing", "file", "store"]
    help: str
    description: str


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers `config` and its own verbs."""
    parser = verbs.add_parser("config", help="check, show and describe settings", description=__doc__)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    file = argparse.ArgumentParser(add_help=False)
    file.add_argument("file", nargs="?", type=Path, default=DEFAULT_FILE, metavar="FILE", help="default: config.yaml")
    store = argparse.ArgumentParser(add_help=False, parents=[file])
    store.add_argument(
        "--state-dir",
        type=Path,
        metavar="DIR",
        help="the agent's state directory, /var/lib/edge-agent of a service (default: STATE_DIRECTORY, else state "
        "beside FILE)",
    )
    parents = {"nothing": [], "file": [file], "store": [store]}
    for name, action in ACTIONS.items():
        verb = actions.add_parser(name, parents=parents[action.on], help=action.help, description=action.description)
        verb.set_defaults(func=action.run)
        if name == "show":
            verb.add_argument("--local", action="store_true", help="without what came from afar")
        elif name == "history":
            verb.add_argument("--text", metavar="NAME", help="print this text, by its name or the beginning of it")
        elif name == "rollback":
            verb.add_argument("--to-file", action="store_true", help="take everything back: the file alone is in force")


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
    local = load(args.file)
    there = InForce(local, local) if args.local else in_force(local, args)
    print(f"# in force with {args.file}, environment and defaults; passwords are ***")
    if there.wished is not None:
        print(f"# and {named(there.wished)} from afar over them")
    if there.problem is not None:
        print(f"# {' '.join(there.problem.split())}")
    print(f"# this device is {local.device()} in topics")
    print(dump(shown(there.config)), end="")
    return EXIT_OK


def show_difference(args: argparse.Namespace) -> int:
    """Prints each key that came from afar with another value."""
    local = load(args.file)
    there = in_force(local, args)
    if there.problem is not None:
        print(there.problem, file=sys.stderr)
    if there.wished is None:
        print("nothing from afar is in force")
        return EXIT_OK
    print(f"# {named(there.wished)} from afar, over {args.file}")
    here, now = keys_of(local), keys_of(there.config)
    for key in sorted(changed_keys(local, there.config)):
        print(f"{key}: {here.get(key, '(none)')} -> {now.get(key, '(none)')}")
    return EXIT_OK


def show_history(args: argparse.Namespace) -> int:
    """Prints what ended, the newest last; or one text."""
    store = find_config_store(load(args.file), args.file, args.state_dir)
    past = store.state().past
    if args.text is not None:
        print(store.shown_text(text_named(args.text, past)))
        return EXIT_OK
    for each in past:
        version = "unreadable" if each.version is None else f"version {each.version}"
        print(f"{rfc3339(each.at)}  {version}  {each.outcome}  {(each.text or '(too large to keep)')[:12]}")
        for line in each.reason.splitlines():
            print(f"  {line}")
    if not past:
        print("nothing was refused, rolled back or replaced yet")
    return EXIT_OK


def roll_back(args: argparse.Namespace) -> int:
    """Takes back what came last; 1 where nothing is to be taken back."""
    store = find_config_store(load(args.file), args.file, args.state_dir)
    running = store.state().running
    if running is None:
        print(f"nothing from afar is in force: {args.file} alone is", file=sys.stderr)
        return EXIT_NOTHING
    try:
        now = store.go_back("by hand: edge-agent config rollback", to_file=args.to_file).running
    except OSError as exc:
        raise ConfigError(
            f"{store.folder} cannot be written: {exc.strerror}; run this as the user of the service"
        ) from exc
    print(f"{named(running)} is taken back; now in force: {args.file if now is None else named(now)}")
    return EXIT_OK


def in_force(local: Config, args: argparse.Namespace) -> InForce:
    """What runs with the file: what came from afar over it, on trial or for good."""
    store = find_config_store(local, args.file, args.state_dir)
    return look(local, store, find_models_dir(local.models_dir), on_trial=True)


def named(wished: Wished) -> str:
    """A configuration from afar, for people."""
    return f"version {wished.version} of {rfc3339(wished.at)}"


def keys_of(config: Config) -> dict[str, str]:
    """Dotted keys and their values as JSON, passwords hidden."""
    return {dotted(path): json.dumps(value) for path, value in flat(shown(config))}


def text_named(beginning: str, past: tuple[Past, ...]) -> str:
    """The one text in the history whose name begins so; ConfigError for none or several."""
    found = sorted({each.text for each in past if each.text is not None and each.text.startswith(beginning)})
    if len(found) != 1:
        raise ConfigError(f"{len(found)} texts in the history begin with {beginning!r}; see: edge-agent config history")
    return found[0]


def print_schema(args: argparse.Namespace) -> int:
    """Prints the JSON Schema of config.yaml."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}
    print(json.dumps(schema, indent=2))
    return EXIT_OK


ACTIONS: Mapping[str, Action] = {
    "validate": Action(
        validate_file,
        "file",
        "is the file right? every mistake with its line; exit 78 when not",
        "Checks a file together with EDGE_AGENT_* of the environment. Prints every mistake with its line and exits "
        "with 78, or says that the file is right and what in it is hardly meant.",
    ),
    "show": Action(
        show_file,
        "store",
        "what is in force: file, environment, defaults, what came from afar; passwords hidden",
        "Prints all settings in force as YAML: the file, EDGE_AGENT_* over it, defaults for the rest, and over them "
        "what came from afar. Passwords are ***.",
    ),
    "diff": Action(
        show_difference,
        "store",
        "what came from afar changes in the file, key by key",
        "Prints each key whose value from afar differs from the file's, with both. Passwords are ***.",
    ),
    "history": Action(
        show_history,
        "store",
        "what came from afar and was refused, rolled back or replaced",
        "Prints what came from afar, the newest last: when, which version, how it ended, why, and its text's name.",
    ),
    "rollback": Action(
        roll_back,
        "store",
        "take back what came from afar last",
        "Takes back the configuration from afar that is on trial or in force, in favour of the one before it, else of "
        "the file. A running agent notices within seconds and starts afresh.",
    ),
    "schema": Action(
        print_schema,
        "nothing",
        "JSON Schema of the file, for editors",
        "Prints the JSON Schema of the file: editors complete and check with it. YAML editors take it by a first line "
        "`# yaml-language-server: $schema=edge-agent.schema.json`.",
    ),
}
