"""`edge-agent note-exit`: what the service calls after its process has ended (ExecStopPost), so that the next start can
say why it did."""

from __future__ import annotations

import argparse
from pathlib import Path

from edge_agent.errors import EXIT_OK


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb."""
    parser = verbs.add_parser(
        "note-exit",
        help="called by the service: write down how its process ended",
        description="Writes down how the service's process ended, by SERVICE_RESULT, EXIT_CODE and EXIT_STATUS of the "
        "environment, for the next start to tell. Called by systemd (ExecStopPost=).",
    )
    parser.add_argument("--config", type=Path, default=Path("config.yaml"), metavar="FILE", help="the agent's settings")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """0 always: nothing that can be done here would mend anything."""
    from edge_agent.last_words import find_last_words, note_exit

    path = find_last_words(args.config)
    if not note_exit(path):
        print(f"nothing to write down: no words of a run in {path}, or not called by a service manager")
    return EXIT_OK
