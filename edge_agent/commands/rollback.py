"""`edge-agent rollback MODEL`: back from a calibrated artefact to the one before it, or to the float model."""

from __future__ import annotations

import argparse
import sys

from edge_agent import config as configuration
from edge_agent.artefacts import Artefacts, ArtefactUnusable, find_calibration_dir
from edge_agent.calibrate.progress import PROGRESS_FILE, ProgressWatch
from edge_agent.commands.options import AGENTS, add_settings_options
from edge_agent.errors import EXIT_OK, CalibrationRefused
from edge_agent.models.spec import find_models_dir

FLOAT = "float"
DESCRIPTION = """\
Puts what was in use before the last promotion of a model to use again: the artefact before it, else the float model.
A running agent takes it up within seconds and loses no frame. Saying it again goes on back, to the float model at last;
what was rolled back from is kept for a while, and --to with its id returns to it. A calibration that is under way goes
on, and may promote anew; this says so."""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb."""
    parser = verbs.add_parser(
        "rollback", help="go back to a model as it was before calibrating", description=DESCRIPTION
    )
    parser.add_argument("model", metavar="MODEL", help="the model, such as ppocrv6-small-det")
    parser.add_argument("--to", metavar="WHAT", help="float, or the id of an artefact that is kept")
    add_settings_options(parser, AGENTS)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Says what is in use now; CalibrationRefused, exit code 1, where there is nothing to go back to."""
    settings = configuration.without_file() if args.config is None else configuration.load(args.config)
    directory = settings.calibration.directory
    if directory is None:
        directory = find_calibration_dir(None, find_models_dir(args.models_dir or settings.models_dir))
    artefacts = Artefacts(directory, args.model)
    try:
        print(rolled_back(artefacts, args.to))
    except OSError as exc:
        raise CalibrationRefused(
            f"{exc.filename or artefacts.promoted_path} cannot be written: {exc.strerror}; run this as the user that "
            "the agent runs as"
        ) from exc
    under_way = ProgressWatch(directory / PROGRESS_FILE).look()
    if under_way is not None:
        print(
            f"edge-agent: a calibration is under way ({under_way}); what it promotes will be in use then. End it, or "
            "say this again after it",
            file=sys.stderr,
        )
    return EXIT_OK


def rolled_back(artefacts: Artefacts, to: str | None) -> str:
    """Does it; the sentence that says what is in use now, and what was."""
    former = former_of(artefacts)
    if to is None or to == FLOAT:
        promotion = artefacts.rollback(to_float=to == FLOAT)
    else:
        try:
            promotion = artefacts.promote(to)
        except ArtefactUnusable as exc:
            raise CalibrationRefused(f"{exc}; kept are: {', '.join(artefacts.stored()) or 'none'}") from exc
    return f"{artefacts.model}: now in use: {named(promotion.active)}; before: {former}"


def former_of(artefacts: Artefacts) -> str:
    """What was in use, as far as can be told."""
    try:
        return named(artefacts.promotion().active)
    except ArtefactUnusable as exc:
        return f"not known ({exc})"


def named(artefact_id: str | None) -> str:
    """What is in use, in words."""
    return "the float model" if artefact_id is None else f"artefact {artefact_id}"
