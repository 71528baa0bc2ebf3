"""`edge-agent build`: TensorRT plans for the models, made on the device they will run on."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from edge_agent import config as configuration
from edge_agent.backends.base import Profile
from edge_agent.backends.build_job import BuildProgress
from edge_agent.backends.model_file import model_name
from edge_agent.backends.plan import PRECISIONS
from edge_agent.backends.plan_store import PlanUnusable
from edge_agent.backends.trt_settings import TrtSettings
from edge_agent.commands.options import AGENTS, add_settings_options
from edge_agent.config import Config
from edge_agent.errors import EXIT_OK, ConfigError, ModelError
from edge_agent.models.spec import ModelSpec, Variant, find_models_dir, require_files

if TYPE_CHECKING:
    from edge_agent.backends.trt import TrtBackend

EXIT_FAILED = 1
LINE_EVERY_S = 10.0  # progress lines where the output is no terminal

DESCRIPTION = """\
Builds TensorRT plans for the models that the settings use, or for those named. A plan runs on this very device and
TensorRT version only. A build takes minutes and runs in a child process; one killed for lack of memory is tried again
with half the workspace."""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb."""
    parser = verbs.add_parser("build", help="build TensorRT plans for this device", description=DESCRIPTION)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="models (default: those that the settings use)")
    parser.add_argument("--if-stale", action="store_true", help="leave plans alone that fit and are whole")
    parser.add_argument(
        "--suggest-profiles", action="store_true", help="build nothing; show profiles tuned to the shapes seen here"
    )
    parser.add_argument(
        "--layer-details", action="store_true", help="plans tell types and kernels too, for `bench --layers`"
    )
    add_settings_options(parser, AGENTS)
    tuning = parser.add_argument_group(
        "tuning", "The agent loads only plans built with the options that its settings have (backend.tensorrt)."
    )
    tuning.add_argument("--plans-dir", type=Path, metavar="DIR", help="where plans go")
    tuning.add_argument(
        "--precision", choices=PRECISIONS, help="fp16, fp32, or int8: the model.int8.onnx that `calibrate` makes"
    )
    tuning.add_argument("--workspace-mb", type=int, metavar="MB", help="scratch for one layer while building")
    tuning.add_argument("--optimisation-level", type=int, choices=range(6), help="0 builds soonest, 5 runs fastest")
    tuning.add_argument("--dla-core", type=int, metavar="N", help="put layers on this DLA core where they fit")
    tuning.add_argument("--tactic-sources", metavar="A,B", help="where kernels may come from")
    parser.set_defaults(func=run)


@dataclass(frozen=True)
class Target:
    """One plan to build: a model's file and the shapes it is built for."""

    name: str
    onnx_path: Path
    profiles: tuple[Profile, ...]


def run(args: argparse.Namespace) -> int:
    """Builds one after the other; 1 when a build failed, else 0."""
    settings = configuration.load(args.config) if args.config else configuration.without_file()
    models_dir = find_models_dir(args.models_dir or settings.models_dir)
    chosen = trt_settings(args, settings, models_dir)
    wanted = targets(args.models, settings, models_dir, chosen.options.precision)
    if args.suggest_profiles:
        return suggest_profiles(wanted, chosen.plans_dir)
    with closing(open_backend(chosen, Teller(sys.stdout))) as backend:
        failed = [target.name for target in wanted if not build(backend, target, args.if_stale)]
    if failed:
        print(f"edge-agent build: not built: {', '.join(failed)}", file=sys.stderr)
    return EXIT_FAILED if failed else EXIT_OK


def suggest_profiles(wanted: Sequence[Target], plans_dir: Path) -> int:
    """Shows for each model the `profiles` block that suits what its engine ran, or why there is none; 0."""
    from edge_agent.backends.profiles import read_shapes, shapes_path, suggest, to_yaml

    for target in wanted:
        model = model_name(target.onnx_path)
        runs = read_shapes(shapes_path(plans_dir, model))
        if not runs:
            print(f"# {model}: nothing was counted yet; the agent counts shapes while it runs on TensorRT")
            continue
        print(f"# {model}: {sum(runs.values())} runs of {len(runs)} shapes; for its model.yaml")
        print(to_yaml(suggest(target.profiles, runs)))
    return EXIT_OK


def open_backend(settings: TrtSettings, report: Callable[[BuildProgress], None]) -> TrtBackend:
    """TensorRT on this machine; ConfigError names what is missing."""
    from edge_agent.backends.choose import look

    findings = look()
    if findings.problems:
        raise ConfigError(f"plans are built where TensorRT runs, and here it cannot: {findings.why_not}")
    from edge_agent.backends.trt import TrtBackend

    return TrtBackend(settings, report)


def trt_settings(args: argparse.Namespace, settings: Config, models_dir: Path) -> TrtSettings:
    """What the agent with these settings would use, changed by the options given."""
    from edge_agent.pipeline import tensorrt_settings

    agents = tensorrt_settings(settings.backend.tensorrt, models_dir)
    sources = tuple(name for name in (args.tactic_sources or "").split(",") if name)
    options: dict[str, Any] = {
        "precision": args.precision,
        "optimisation_level": args.optimisation_level,
        "dla_core": args.dla_core,
        "tactic_sources": sources or None,
    }
    return replace(
        agents,
        plans_dir=args.plans_dir or agents.plans_dir,
        options=replace(agents.options, **{name: value for name, value in options.items() if value is not None}),
        workspace_bytes=agents.workspace_bytes if args.workspace_mb is None else args.workspace_mb << 20,
        detailed=args.layer_details,
    )


def targets(names: Sequence[str], settings: Config, models_dir: Path, precision: str) -> list[Target]:
    """What to build: every variant of the models named, else what the pipeline of the settings loads.

    ModelError where a file is missing; for int8 that is the quantised one.
    """
    chosen = [(name, None) for name in names] if names else list(pipeline_models(settings, models_dir))
    made = []
    for name, variant in chosen:
        spec = ModelSpec.load(models_dir, name)
        profiles = tuple(Profile(shapes.min, shapes.opt, shapes.max) for shapes in spec.profiles)
        for one in (variant,) if variant else spec.heads:
            path = require_files(spec, models_dir, one).onnx
            if precision == "int8":
                path = quantised_file(path)
            made.append(Target(name if one == "full" else f"{name} ({one})", path, profiles))
    return made


def pipeline_models(settings: Config, models_dir: Path) -> Iterator[tuple[str, Variant]]:
    """The models and variants that a pipeline with these settings loads."""
    from edge_agent.pipeline import head_for

    pipeline = settings.pipeline
    yield pipeline.detector, "full"
    yield pipeline.recogniser, head_for(pipeline, ModelSpec.load(models_dir, pipeline.recogniser))
    if pipeline.encoder is not None:
        yield pipeline.encoder, "full"


def quantised_file(onnx_path: Path) -> Path:
    """model.int8.onnx beside model.onnx."""
    path = onnx_path.with_name(f"{onnx_path.stem}.int8.onnx")
    if not path.is_file():
        raise ModelError(f"there is no {path}: int8 needs a quantised model; make one with: edge-agent calibrate")
    return path


def build(backend: TrtBackend, target: Target, if_stale: bool) -> bool:
    """Builds one plan and says how it went; whether it did."""
    if if_stale:
        try:
            backend.store.load(backend.key(target.onnx_path, target.profiles))
        except PlanUnusable as exc:
            print(f"{target.name}: {exc}", flush=True)
        else:
            print(f"{target.name}: fits and is whole", flush=True)
            return True
    try:
        manifest = backend.build(target.onnx_path, target.profiles)
    except ModelError as exc:
        print(f"edge-agent build: {exc}", file=sys.stderr, flush=True)
        return False
    path = backend.store.plan_path(manifest.key)
    print(f"{target.name}: built in {manifest.build_s:.0f} s, {manifest.plan_bytes / 1e6:.1f} MB: {path}", flush=True)
    return True


class Teller:
    """Shows progress: one line that changes on a terminal, a line every LINE_EVERY_S elsewhere."""

    def __init__(self, stream: IO[str], clock: Callable[[], float] = time.monotonic) -> None:
        self.stream = stream
        self._clock = clock
        self._told_at: float | None = None

    def __call__(self, progress: BuildProgress) -> None:
        if self.stream.isatty():
            self.stream.write(f"\r\x1b[K{progress}")
            self.stream.write("\r\x1b[K" if progress.total and progress.done >= progress.total else "")
            self.stream.flush()
            return
        now = self._clock()
        if self._told_at is None or now - self._told_at >= LINE_EVERY_S:
            self._told_at = now
            print(progress, file=self.stream, flush=True)
