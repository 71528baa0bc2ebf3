"""`edge-agent bench`: frames per second of this machine, or one engine by itself."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edge_agent import config as configuration
from edge_agent.commands import bench_outbox, bench_power
from edge_agent.commands.options import READ_WITH, add_settings_options
from edge_agent.config import Config
from edge_agent.errors import ConfigError

if TYPE_CHECKING:
    from edge_agent.backends.base import Backend, Engine, Shape
    from edge_agent.bench import Duration
    from edge_agent.models.spec import ModelSpec, Variant
    from edge_agent.pipeline import Pipeline
    from edge_agent.stages.images import Image

PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff")
MAX_PICTURES = 200
# options that say how one engine is run, and the value each has when it is not given
OF_ONE_ENGINE: Mapping[str, Any] = {"--shape": [], "--batch": None, "--variant": None, "--streams": 1}
EPILOG = """\
examples:
  edge-agent bench                                       the pipeline, on rendered sample labels
  edge-agent bench --frames photos/ --engines            and then each of its engines by itself
  edge-agent bench ppocrv6-small-det --shape image=1x736x1312x3 --seconds 30 --json
  edge-agent bench ppocrv6-small-rec --batch 8 --layers  where the time goes, layer by layer
  edge-agent bench outbox                                readings a second through the outbox and a broker
  sudo edge-agent bench --power-modes                    a Jetson: the pipeline in each of its power modes
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb."""
    parser = verbs.add_parser(
        "bench",
        help="measure how fast this machine reads",
        description="Measures the whole pipeline, or one model's engine: rate, latency, memory, energy.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "model", nargs="?", metavar="MODEL", help="one model's engine instead of the pipeline; outbox: what leaves"
    )
    parser.add_argument("--frames", type=Path, metavar="DIR", help="pictures to read (default: rendered sample labels)")
    parser.add_argument("--engines", action="store_true", help="after the pipeline, each of its engines by itself")
    parser.add_argument("--layers", action="store_true", help="of engines: what each layer takes, types and formats")
    parser.add_argument(
        "--shape", action="append", default=[], metavar="INPUT=AxBxC", help="of an engine's input (default: profile's)"
    )
    parser.add_argument("--batch", type=positive, metavar="N", help="how many items one run has (default: profile's)")
    parser.add_argument("--variant", choices=("full", "latin", "cpu"), help="which of a model's files")
    parser.add_argument(
        "--streams", type=positive, default=1, metavar="N", help="TensorRT: engines of one plan that run in turn"
    )
    parser.add_argument("--threads", type=positive, metavar="N", help="CPU: threads of an engine (default: cores)")
    parser.add_argument("--seconds", type=seconds, default=10.0, help="how long to measure (default: %(default)s)")
    parser.add_argument("--warm-up-s", type=seconds, default=2.0, help="uncounted before that (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_settings_options(parser, READ_WITH)
    parser.add_argument("--power-modes", action="store_true", help="a Jetson: in each power mode, which needs root")
    parser.add_argument("--nvpmodel", default="nvpmodel", metavar="TOOL", help="what sets them (default: %(default)s)")
    bench_outbox.add_options(parser)
    parser.set_defaults(func=run)


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not re.fullmatch(r"[1-9]\d{0,5}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def seconds(text: str) -> float:
    """A length of time, up to a day."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, 0 to 86400")
    return value


def run(args: argparse.Namespace) -> int:
    """Measures and prints."""
    from edge_agent.bench import Duration
    from edge_agent.commands.bench_table import table
    from edge_agent.models.spec import find_models_dir

    require_sense(args)
    config = configuration.load(args.config) if args.config else configuration.without_file()
    if args.model == bench_outbox.NAME:
        outgoing = bench_outbox.measure(config, args.host, args.backlog, args.seconds)
        print(json.dumps(outgoing, indent=2) if args.json else bench_outbox.table(outgoing))
        return 0
    if args.threads:
        config = configuration.patched(config, {"backend": {"threads": args.threads}}, origin="--threads")
    models_dir = find_models_dir(args.models_dir or config.models_dir)
    duration = Duration(args.warm_up_s, args.seconds)
    if args.power_modes:
        root = config.telemetry.system_root
        modes = bench_power.measure(args.nvpmodel, root, lambda: of_pipeline(args, config, models_dir, duration))
        print(json.dumps(modes, indent=2) if args.json else bench_power.table(modes))
        return 0 if bench_power.any_measured(modes["modes"]) else 1
    measure = of_model if args.model else of_pipeline
    figures = measure(args, config, models_dir, duration)
    print(json.dumps(figures, indent=2) if args.json else table(figures))
    return 0


def require_sense(args: argparse.Namespace) -> None:
    """ConfigError for options that do not go together."""
    if args.model:
        without_model = (("--frames", args.frames), ("--engines", args.engines), ("--power-modes", args.power_modes))
        given = [name for name, value in without_model if value]
        if given:
            raise ConfigError(f"{given[0]} is for the pipeline; leave it out, or leave out {args.model}")
        return
    if args.power_modes and (args.engines or args.layers):
        raise ConfigError("--power-modes measures the pipeline alone; leave out --engines and --layers")
    given = [name for name, unset in OF_ONE_ENGINE.items() if getattr(args, name.removeprefix("--")) != unset]
    if given:
        raise ConfigError(f"{given[0]} is for one engine; name its model: edge-agent bench MODEL {given[0]} ...")


def require_backend(args: argparse.Namespace, backend: Backend) -> None:
    """ConfigError for options that this backend has no use for: figures under a wrong name are worse than none."""
    if args.streams > 1 and not backend.overlaps:
        raise ConfigError(
            f"--streams is {args.streams}; the {backend.name} backend runs one feed at a time on all its threads: "
            "use --threads, or --batch"
        )
    if args.threads and backend.overlaps:
        raise ConfigError(
            f"--threads is {args.threads}; the {backend.name} backend has none: use --streams, or --batch"
        )


def of_pipeline(args: argparse.Namespace, config: Config, models_dir: Path, duration: Duration) -> dict[str, Any]:
    """The pipeline's figures and how long it took to load; on demand those of its engines after them."""
    from edge_agent.backends.gpu import gpu_bus_id
    from edge_agent.backends.swap import running
    from edge_agent.bench import bench_pipeline, forget_shapes, gpu_memory
    from edge_agent.pipeline import load_pipeline
    from edge_agent.telemetry.energy import measured_energy

    images = pictures(args.frames) if args.frames is not None else sample_frames()
    began = time.perf_counter()
    with load_pipeline(config, models_dir) as pipeline:
        load_s = time.perf_counter() - began
        require_backend(args, pipeline.backend)
        try:
            with measured_energy(config.telemetry.system_root, gpu_bus_id(pipeline.backend)) as energy:
                figures = {"load_s": round(load_s, 3), **bench_pipeline(pipeline, images, duration, energy)}
            figures["gpu_memory"] = gpu_memory(pipeline.backend)
            if args.engines or args.layers:
                figures["by_engine"] = by_engine(args, config, models_dir, pipeline, duration)
        finally:
            forget_shapes(map(running, pipeline.engines.values()))
    return figures


def by_engine(
    args: argparse.Namespace, config: Config, models_dir: Path, pipeline: Pipeline, duration: Duration
) -> dict[str, Any]:
    """By stage, the figures of the pipeline's own engines at the shapes that their first profiles are tuned for."""
    from edge_agent.backends.swap import running
    from edge_agent.models.spec import ModelSpec

    names = {
        "detect": config.pipeline.detector,
        "recognise": config.pipeline.recogniser,
        "encode": config.pipeline.encoder,
    }
    return {
        stage: of_engines(
            args, ModelSpec.load(models_dir, str(names[stage])), pipeline.backend, [running(engine)], duration
        )
        for stage, engine in pipeline.engines.items()
    }


def of_model(args: argparse.Namespace, config: Config, models_dir: Path, duration: Duration) -> dict[str, Any]:
    """One model's figures, with what loading it took."""
    from edge_agent.bench import gpu_memory
    from edge_agent.models.spec import ModelSpec, require_files
    from edge_agent.pipeline import load_backend

    spec = ModelSpec.load(models_dir, args.model)
    with closing(load_backend(config.backend, models_dir)) as backend:
        require_backend(args, backend)
        onnx_path = require_files(spec, models_dir, args.variant or variant_of(config, spec, backend)).onnx
        with loaded(backend, onnx_path, spec, args.streams) as (engines, load_s):
            figures = of_engines(args, spec, backend, engines, duration)
            return {"model": spec.name, "load_s": load_s, **figures, "gpu_memory": gpu_memory(backend)}


def variant_of(config: Config, spec: ModelSpec, backend: Backend) -> Variant:
    """The file of a model that the pipeline would load."""
    from edge_agent.pipeline import head_for

    if spec.task == "text_recognition":
        return head_for(config.pipeline, spec)
    return "cpu" if spec.task == "text_detection" and backend.any_shape else "full"


@contextmanager
def loaded(backend: Backend, onnx_path: Path, spec: ModelSpec, count: int) -> Iterator[tuple[list[Engine], float]]:
    """That many engines of a model, and the seconds that loading the first took, its build left out."""
    from edge_agent.backends.base import Profile
    from edge_agent.bench import FromPlan, forget_shapes

    profiles = tuple(Profile(shapes.min, shapes.opt, shapes.max) for shapes in spec.profiles)
    began_at, began = time.time(), time.perf_counter()
    engines = [backend.load(onnx_path, profiles)]
    if isinstance(engines[0], FromPlan) and engines[0].manifest.built_at >= began_at:
        engines.pop().close()
        began = time.perf_counter()
        engines = [backend.load(onnx_path, profiles)]
    load_s = round(time.perf_counter() - began, 3)
    try:
        engines += [backend.load(onnx_path, profiles) for _ in range(count - 1)]
        yield engines, load_s
    finally:
        forget_shapes(engines)
        for engine in engines:
            engine.close()


def of_engines(
    args: argparse.Namespace, spec: ModelSpec, backend: Backend, engines: list[Engine], duration: Duration
) -> dict[str, Any]:
    """The figures of engines of one model, at the profile's shapes where the options name no others."""
    from edge_agent.backends.gpu import gpu_bus_id
    from edge_agent.bench import bench_engine, layers, made_feed
    from edge_agent.telemetry.energy import measured_energy

    shapes = dict(spec.profiles[0].opt if spec.profiles else {})
    if args.batch:
        shapes = {name: (args.batch, *sizes[1:]) for name, sizes in shapes.items()}
    feed = made_feed(engines[0].inputs, {**shapes, **dict(shape(text) for text in args.shape)})
    with measured_energy(gpu_bus_id=gpu_bus_id(backend)) as energy:
        figures = {"backend": backend.name, **bench_engine(engines, feed, duration, energy)}
    run_ms = float(figures["latency"]["mean_ms"])
    return {**figures, "layers": layers(engines[0], feed, args.seconds, run_ms)} if args.layers else figures


def shape(text: str) -> tuple[str, Shape]:
    """`image=1x48x320x3` as (name, sizes)."""
    match = re.fullmatch(r"([^=]+)=(\d+(?:x\d+)*)", text)
    if match is None:
        raise ConfigError(f"--shape is {text!r}; expected INPUT=AxBxC, such as image=1x736x1312x3")
    return match[1], tuple(int(size) for size in match[2].split("x"))


def pictures(folder: Path) -> list[Image]:
    """The folder's first MAX_PICTURES pictures, read as a folder camera reads them."""
    from edge_agent.cameras.image_file import read_image_file
    from edge_agent.settings.cameras import CameraConfig

    if not folder.is_dir():
        raise ConfigError(f"--frames {folder} is not a folder; expected one with pictures")
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in PICTURES)[:MAX_PICTURES]
    max_pixels = CameraConfig(kind="folder", source=str(folder)).max_pixels
    return [read_image_file(path, max_pixels) for path in paths]


def sample_frames(count: int = 12) -> list[Image]:
    """Frames of the demo's conveyor, 1280x720."""
    try:
        from edge_agent.demo.labels import sample_labels
        from edge_agent.demo.scene import Conveyor
    except ModuleNotFoundError as exc:
        raise ConfigError(f"rendered labels need the Python package {exc.name}; name pictures with --frames") from exc
    conveyor = Conveyor(sample_labels(time.gmtime().tm_year + 1))
    return [conveyor.frame(n * conveyor.frames // count).image for n in range(count)]
