"""`edge-agent outbox backup|restore`: what waits for the broker, as one file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from edge_agent.commands.ledger import DEFAULT_CONFIG, configured
from edge_agent.errors import EXIT_OK


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb and its own verbs."""
    parser = verbs.add_parser("outbox", help="back up what waits for the broker, and put it back", description=__doc__)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    which = argparse.ArgumentParser(add_help=False)
    which.add_argument(
        "--config", type=Path, metavar="FILE", help=f"whose outbox (default: {DEFAULT_CONFIG}, if there is one)"
    )
    which.add_argument("--database", type=Path, metavar="FILE", help="the outbox's file itself")
    backup = actions.add_parser(
        "backup",
        parents=[which],
        help="copy the outbox, of a running agent too, into one file",
        description="Copies the outbox whole into one file, while the agent runs or not.",
    )
    backup.add_argument("to", type=Path, metavar="TO", help="the file to write")
    backup.set_defaults(func=back_up_outbox)
    restore = actions.add_parser(
        "restore",
        parents=[which],
        help="put a backup in the outbox's place; the agent must not run",
        description="Puts a backup in the place of the outbox, whose file is moved aside together with its logs (-wal, "
        "-shm), which do not belong to the backup. What was delivered since the backup is sent again, under its id. "
        "The agent must not run.",
    )
    restore.add_argument("backup", type=Path, metavar="FROM", help="the file that `backup` wrote")
    restore.set_defaults(func=restore_outbox)


def back_up_outbox(args: argparse.Namespace) -> int:
    """Prints how many readings wait in the copy."""
    from edge_agent.outbox.backup import back_up

    waiting = back_up(args.database or configured(args.config), args.to)
    print(f"{args.to}: {waiting} readings wait in it")
    return EXIT_OK


def restore_outbox(args: argparse.Namespace) -> int:
    """Prints how many readings wait now; to stderr what became of the file before."""
    from edge_agent.outbox.backup import restore

    path = args.database or configured(args.config)
    waiting, aside = restore(args.backup, path)
    if aside is not None:
        print(aside, file=sys.stderr)
    print(f"{path}: {waiting} readings wait in it")
    return EXIT_OK
