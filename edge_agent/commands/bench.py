"""`edge-agent bench`: frames per second of this machine, or one engine by itself."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edge_agent import config as configuration
from edge_agent.config import Config
from edge_agent.errors import ConfigError

if TYPE_CHECKING:
    from edge_agent.backends.base import Shape
    from edge_agent.bench import Duration
    from edge_agent.stages.images import Image

PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff")
MAX_PICTURES = 200
EPILOG = """\
examples:
  edge-agent bench                                       the pipeline, on rendered sample labels
  edge-agent bench --frames photos/ --seconds 30 --json
  edge-agent bench ppocrv6-small-det --shape image=1x736x1312x3
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb."""
    parser = verbs.add_parser(
        "bench",
        help="measure how fast this machine reads",
        description="Measures the whole pipeline, or one model's engine: rate, latency, memory.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", nargs="?", metavar="MODEL", help="one model's engine instead of the pipeline")
    parser.add_argument("--frames", type=Path, metavar="DIR", help="pictures to read (default: rendered sample labels)")
    parser.add_argument(
        "--shape", action="append", default=[], metavar="INPUT=AxBxC", help="of an engine's input (default: profile's)"
    )
    parser.add_argument("--variant", choices=("full", "latin"), help="which head of a recogniser")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long to measure (default: %(default)s)")
    parser.add_argument("--warm-up-s", type=float, default=2.0, help="uncounted before that (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings to read with (default: built in)")
    parser.add_argument("--models-dir", type=Path, metavar="DIR", help="where the models are (default: as configured)")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Measures and prints."""
    from edge_agent.bench import Duration
    from edge_agent.models.spec import find_models_dir

    config = configuration.load(args.config) if args.config else configuration.without_file()
    models_dir = find_models_dir(args.models_dir or config.models_dir)
    duration = Duration(args.warm_up_s, args.seconds)
    if args.model:
        figures = of_engine(args, config, models_dir, duration)
    else:
        figures = of_pipeline(args.frames, config, models_dir, duration)
    print(json.dumps(figures, indent=2) if args.json else table(figures))
    return 0


def of_pipeline(frames: Path | None, config: Config, models_dir: Path, duration: Duration) -> dict[str, Any]:
    """The pipeline's figures, with how long it took to load."""
    from edge_agent.bench import bench_pipeline
    from edge_agent.pipeline import load_pipeline

    images = pictures(frames) if frames is not None else sample_frames()
    began = time.perf_counter()
    with load_pipeline(config, models_dir) as pipeline:
        load_s = time.perf_counter() - began
        return {"load_s": round(load_s, 2), **bench_pipeline(pipeline, images, duration)}


def of_engine(args: argparse.Namespace, config: Config, models_dir: Path, duration: Duration) -> dict[str, Any]:
    """One engine's figures; shapes not given are those that the model's first profile is tuned for."""
    from contextlib import closing

    from edge_agent.backends.base import Profile
    from edge_agent.bench import bench_engine
    from edge_agent.models.spec import ModelSpec, require_files
    from edge_agent.pipeline import head_for, load_backend

    spec = ModelSpec.load(models_dir, args.model)
    variant = args.variant or (head_for(config.pipeline, spec) if spec.task == "text_recognition" else "full")
    profiles = tuple(Profile(shapes.min, shapes.opt, shapes.max) for shapes in spec.profiles)
    shapes = {**(spec.profiles[0].opt if spec.profiles else {}), **dict(shape(text) for text in args.shape)}
    with closing(load_backend(config.backend, models_dir)) as backend:
        began = time.perf_counter()
        with closing(backend.load(require_files(spec, models_dir, variant).onnx, profiles)) as engine:
            load_s = time.perf_counter() - began
            return {"load_s": round(load_s, 2), **bench_engine(engine, shapes, duration)}


def shape(text: str) -> tuple[str, Shape]:
    """`image=1x48x320x3` as (name, sizes)."""
    match = re.fullmatch(r"(\w+)=(\d+(?:x\d+)*)", text)
    if match is None:
        raise ConfigError(f"--shape is {text!r}; expected INPUT=AxBxC, such as image=1x736x1312x3")
    return match[1], tuple(int(size) for size in match[2].split("x"))


def pictures(folder: Path) -> list[Image]:
    """The folder's first MAX_PICTURES pictures, read as a folder camera reads them."""
    from edge_agent.cameras.image_file import read_image_file
    from edge_agent.config import CameraConfig

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


def table(figures: Mapping[str, Any]) -> str:
    """The figures as lines of text."""
    lines = [f"{key:<16} {value}" for key, value in figures.items() if not isinstance(value, dict)]
    for key in ("engines", "shapes", "outputs"):
        lines += [f"{key[:-1] + ' ' + name:<16} {value}" for name, value in figures.get(key, {}).items()]
    latencies = (
        dict(figures["latency"]) if "fps" in figures else {"run": figures["latency"], "enqueue": figures["enqueue"]}
    )
    lines += ["", f"{'ms':<12}{'mean':>9}{'p50':>9}{'p95':>9}{'p99':>9}{'runs':>8}"]
    for name, row in latencies.items():
        cells = "".join(f"{row[column]:>9.2f}" for column in ("mean_ms", "p50_ms", "p95_ms", "p99_ms"))
        lines.append(f"{name:<12}{cells}{row['count']:>8}")
    return "\n".join(lines)
