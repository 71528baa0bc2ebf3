"""`edge-agent run`: the long-running agent, as the service starts it."""

from __future__ import annotations

import argparse
import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edge_agent.last_words import LastWords

log = logging.getLogger(__name__)

DEFAULT_CONFIG = Path("config.yaml")


def add_parser(verbs: Any) -> None:
    """Adds the verb."""
    parser = verbs.add_parser(
        "run",
        help="read the cameras and publish until stopped",
        description="Reads every camera of the configuration and publishes readings, states and telemetry until "
        "SIGTERM or Ctrl-C.",
    )
    parser.add_argument("--config", type=Path, default=DEFAULT_CONFIG, metavar="FILE", help="default: %(default)s")
    parser.add_argument("--models-dir", type=Path, metavar="DIR", help="where the models are, over models_dir")
    parser.add_argument("--until-end", action="store_true", help="stop once every camera has come to its end")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs until stopped; 0 after a wished stop."""
    from edge_agent.service import stop_on_signals

    stop = threading.Event()
    with stop_on_signals(stop):  # before the imports, which take a second on a small board
        from edge_agent.clock import read_boot_id
        from edge_agent.last_words import LastWords, find_last_words
        from edge_agent.service import start_afresh

        with LastWords(find_last_words(args.config), read_boot_id()) as words:
            why = run_as_configured(args, stop, words)
            if why is not None:
                words.restarting(why)
                start_afresh(stop)
    return 0


def run_as_configured(args: argparse.Namespace, stop: threading.Event, words: LastWords) -> str | None:
    """Runs until stopped; why the process is to start afresh, None where it is to end."""
    from edge_agent import config as configuration
    from edge_agent.agent import run_agent
    from edge_agent.errors import EdgeAgentError, in_one_line
    from edge_agent.files import find_state_dir
    from edge_agent.journal import log_uncaught, secrets_of, start_logging
    from edge_agent.models.spec import find_models_dir
    from edge_agent.remote import in_force
    from edge_agent.remote.control import RemoteAccess
    from edge_agent.remote.last_good import load_or_last_good
    from edge_agent.settings.problems import said

    local, missing = load_or_last_good(args.config, find_state_dir(args.config.absolute().parent))
    start_logging(local.log, secrets_of(local))
    log_uncaught()
    if missing is not None:
        log.error("%s", missing)
    for caution in configuration.cautions(local, args.config):
        log.warning("%s: %s", args.config, said(caution))
    models_dir = find_models_dir(args.models_dir or local.models_dir)
    store = in_force.find_config_store(local, args.config)
    begun = in_force.begin(local, store, models_dir)
    access = RemoteAccess(begun, store, models_dir, args.config.absolute())
    try:
        start_logging(begun.config.log, secrets_of(begun.config))
        afresh = run_agent(begun.config, models_dir, stop, until_end=args.until_end, access=access, words=words)
    except EdgeAgentError as exc:
        if not in_force.failed(begun, store, exc):
            raise
        return f"what came from afar is taken back: {in_one_line(exc)}"
    in_force.ended(begun, store)
    return afresh
