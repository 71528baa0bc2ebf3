"""`edge-agent models list|fetch|verify|add`: the models that lie here, where they come from, whether they are whole."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from edge_agent import config as configuration
from edge_agent.errors import EXIT_OK, ModelError
from edge_agent.models.spec import ModelSpec, Task, available, find_models_dir, model_directory

EXIT_FAULTS = 1
COLUMNS = ("name", "task", "licence", "size", "state")


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers `models` and its own verbs."""
    parser = verbs.add_parser("models", help="list, fetch, verify and add models", description=__doc__)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    folder = argparse.ArgumentParser(add_help=False)
    folder.add_argument("--config", type=Path, metavar="FILE", help="settings to take models_dir from")
    folder.add_argument(
        "--models-dir",
        type=Path,
        metavar="DIR",
        help="folder with <model>/model.yaml (default: the settings', else ./engines, else the one installed)",
    )
    listing = actions.add_parser("list", parents=[folder], help="what there is and in what state")
    listing.set_defaults(func=list_models)
    fetch = actions.add_parser(
        "fetch",
        parents=[folder],
        help="download with pip, build, compare with the original",
        description="Makes the models' files: downloads the wheels that model.yaml pins with pip's own download (so "
        "pip.conf and a mirror count), takes the files out without installing, builds, compares with the originals. "
        "Ready models are skipped; damaged ones are mended.",
    )
    fetch.add_argument("names", nargs="*", metavar="NAME", help="models (default: all)")
    fetch.add_argument("--from", dest="wheels_from", type=Path, metavar="DIR", help="take wheels from DIR; no network")
    fetch.add_argument("--force", action="store_true", help="build ready models again too")
    fetch.set_defaults(func=fetch_models)
    verify = actions.add_parser("verify", parents=[folder], help="compare every file with its sha256; exit 1 on damage")
    verify.add_argument("names", nargs="*", metavar="NAME", help="models (default: all)")
    verify.set_defaults(func=verify_models)
    _add_add_parser(actions, folder)


def _add_add_parser(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], folder: argparse.ArgumentParser
) -> None:
    add = actions.add_parser(
        "add",
        parents=[folder],
        help="take in a model of your own",
        description="Registers an ONNX file, or for text_embedding a folder with model.safetensors, config.json and "
        "tokenizer.json: copies it, writes its model.yaml, builds and checks it.",
    )
    add.add_argument("path", type=Path, metavar="PATH", help="the ONNX file, or the folder with model.safetensors")
    add.add_argument("--name", required=True, help="how config.yaml will call it")
    add.add_argument("--task", required=True, choices=get_args(Task))
    add.add_argument("--licence", default="unknown", help="shown by `models list`")
    add.add_argument(
        "--mean", nargs=3, type=float, default=[0.5] * 3, metavar="M", help="of pixels / 255 (default 0.5)"
    )
    add.add_argument("--std", nargs=3, type=float, default=[0.5] * 3, metavar="S", help="of pixels / 255 (default 0.5)")
    add.add_argument("--colour-order", choices=("BGR", "RGB"), default="BGR", help="that the model was trained with")
    add.add_argument("--charset", type=Path, metavar="FILE", help="a recogniser's characters, UTF-8, one a line")
    add.add_argument("--tokenizer", type=Path, metavar="FILE", help="an encoder's or tagger's tokenizer.json")
    add.add_argument("--labels", type=Path, metavar="FILE", help="a tagger's config.json with id2label, or one a line")
    add.add_argument("--prefix", default="", help='goes before every text, such as "query: " for E5')
    add.set_defaults(func=add_model)


def list_models(args: argparse.Namespace) -> int:
    """A table of the models; 0."""
    from edge_agent.models.manifest import state

    models_dir = models_dir_of(args)
    rows = []
    for name in available(models_dir):
        try:
            spec = ModelSpec.load(models_dir, name)
        except ModelError as exc:
            print(exc)
            continue
        directory = model_directory(models_dir, name)
        paths = {directory / path for variant in spec.variants for path in spec.files(variant).paths}
        size = sum(path.stat().st_size for path in paths if path.is_file())
        rows.append((name, spec.task, spec.licence, f"{size / 1e6:.1f} MB", state(spec, directory)))
    print(table(COLUMNS, rows))
    if any(row[-1] != "ready" for row in rows):
        print("\nnot all are ready: edge-agent models fetch")
    return EXIT_OK


def fetch_models(args: argparse.Namespace) -> int:
    """Makes what is missing; 0, or ModelError."""
    from edge_agent.models.fetch import fetch

    models_dir = models_dir_of(args)
    names = args.names or available(models_dir)
    say(f"models in {models_dir}")
    fetch(models_dir, names, say, wheels_from=args.wheels_from, force=args.force)
    return EXIT_OK


def verify_models(args: argparse.Namespace) -> int:
    """Lists every fault of every model; 0 when there is none, else 1. ModelError for a name that is no model's."""
    models_dir = models_dir_of(args)
    damaged = 0
    for name in args.names or available(models_dir):
        directory = model_directory(models_dir, name)
        try:
            spec = ModelSpec.load(models_dir, name)
            found, notes = faults_and_notes(spec, directory)
        except ModelError as exc:
            print(exc)
            damaged += 1
            continue
        for fault in found:
            print(f"{name}: {fault}")
        if not found:
            print(f"{name}: whole{notes}")
        damaged += bool(found)
    if damaged:
        print(f"\n{damaged} not whole: edge-agent models fetch")
    return EXIT_FAULTS if damaged else EXIT_OK


def faults_and_notes(spec: ModelSpec, directory: Path) -> tuple[list[str], str]:
    """What is wrong with a model's files, and what to say of one that is whole."""
    from edge_agent.models.manifest import Manifest, faults, state

    notes = "" if state(spec, directory) == "ready" else ", but made by another version: fetch makes it anew"
    manifest = Manifest.read(directory)
    notes += "" if manifest is not None and manifest.checked else ", never compared with the original"
    return faults(spec, directory), notes


def add_model(args: argparse.Namespace) -> int:
    """Takes a model in; 0, or ModelError."""
    from edge_agent.models.register import Wish, add

    models_dir = models_dir_of(args)
    wish = Wish(
        name=args.name,
        task=args.task,
        licence=args.licence,
        mean=tuple(args.mean),
        std=tuple(args.std),
        colour_order=args.colour_order,
        charset=args.charset,
        tokenizer=args.tokenizer,
        prefix=args.prefix,
        labels=args.labels,
    )
    add(models_dir, args.path, wish, say)
    key = {
        "text_detection": "detector",
        "text_recognition": "recogniser",
        "text_embedding": "encoder",
        "token_classification": "tagger",
    }[args.task]
    print(f"use it in config.yaml: pipeline.{key}: {args.name}")
    return EXIT_OK


def models_dir_of(args: argparse.Namespace) -> Path:
    """The folder of the models: the option, else the settings' (environment included), else where it is looked for."""
    if args.models_dir is not None:
        return find_models_dir(args.models_dir)
    settings = configuration.load(args.config) if args.config is not None else configuration.without_file()
    return find_models_dir(settings.models_dir)


def say(line: str) -> None:
    """Progress, at once even through a pipe."""
    print(line, flush=True)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows below their columns' names, in columns as wide as their longest cell."""
    widths = [max(len(row[place]) for row in (columns, *rows)) for place in range(len(columns))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (columns, *rows)]
    return "\n".join(line.rstrip() for line in lines)
