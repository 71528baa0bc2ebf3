"""INT8 against FP16 on a GPU, engine by engine and placement by placement: time, text, size, and the layers' own times.

    python benchmarks/gpu_int8.py OUT --int8-dir DIR [--plans-dir DIR] [--frames DIR] [--models-dir DIR] [--jobs 8]

DIR holds <model>/<placement>.onnx, quantised files as `edge-agent calibrate` writes them (model.latin.onnx's for
recognisers). Every engine is built for fixed shapes, detectors for one frame and for a batch of four; what does not
build is told with the builder's words. Times are the GPU's, engines in turn in one run. In OUT: int8.json, int8.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.gpu import PLANS, TACTICS, Backends  # noqa: E402

ROUNDS = 7
LAYERS_KEPT = 25
FLOAT = "float"
PIXEL_THRESHOLD = 77  # 0.3 of 255


@dataclass(frozen=True)
class Trial:
    """One engine: a model's placement (or `float`) at a shape."""

    family: str
    placement: str
    size: str
    model: Any
    feed_shape: tuple[int, ...]

    @property
    def name(self) -> str:
        """For people: model, placement, shape."""
        return f"{self.family} {self.placement} {self.size}"


def main() -> int:
    """0 when all that builds was measured."""
    args = parsed()
    os.environ.setdefault("EDGE_AGENT_GPU_TACTICS", TACTICS)
    for name, value in (("FRAMES", args.frames), ("MODELS", args.models_dir)):
        if value:
            os.environ[f"EDGE_AGENT_GPU_{name}"] = str(value.resolve())
    args.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())}
    keep = Keeper(args.out, found)
    with opened(args) as backends:
        found["environment"] = vars(backends.gpu.environment(version()))
        trials = list(wanted(args))
        built = build(args, backends, trials, keep)
        if not args.build_only:
            measure(backends, built, keep)
            judge(backends, built, keep)
            profile(backends, built, keep)
    print(table(found))
    return 0


class Keeper:
    """Results, on disk after every one of them."""

    def __init__(self, out: Path, found: dict[str, Any]) -> None:
        self.out = out
        self.found = found

    def put(self, trial: Trial, **values: Any) -> None:
        """Adds to what is known of a trial."""
        entry = self.found.setdefault("trials", {}).setdefault(
            trial.name, {"family": trial.family, "placement": trial.placement, "size": trial.size}
        )
        entry.update(values)
        (self.out / "int8.json").write_text(json.dumps(self.found, indent=1))
        (self.out / "int8.md").write_text(table(self.found))
        shown = {name: value for name, value in values.items() if name not in ("layers", "examples")}
        print(f"{trial.name}: {json.dumps(shown)}", flush=True)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the numbers")
    parser.add_argument("--int8-dir", type=Path, required=True, help="folder of quantised files")
    parser.add_argument("--plans-dir", type=Path, default=PLANS, help="kept between calls")
    parser.add_argument("--models-dir", type=Path, help="folder of the float models (default: engines)")
    parser.add_argument("--frames", type=Path, help="folder of JPEG frames, 1280x720")
    parser.add_argument("--jobs", type=int, default=8, help="builds at a time")
    parser.add_argument("--deadline-s", type=float, default=500.0, help="begin no build after this long")
    parser.add_argument("--only", default="", help="families, of those in the folder")
    parser.add_argument("--build-only", action="store_true", help="build, measure nothing")
    return parser.parse_args()


def version() -> str:
    import tensorrt

    return str(tensorrt.__version__)


@contextmanager
def opened(args: argparse.Namespace) -> Iterator[Backends]:
    from edge_agent.backends.gpu import open_gpu

    with open_gpu() as gpu:
        yield Backends(args.plans_dir, gpu)


def wanted(args: argparse.Namespace) -> Iterator[Trial]:
    """Every float model and placement at each of its sizes."""
    from tests.gpu import support

    floats = {model.name.removesuffix(".latin"): model for model in support.ocr_models()}
    floats["minilm-l6-v2"] = support.encoder_models(args.plans_dir)[0]
    for family in sorted(path.name for path in args.int8_dir.iterdir() if path.is_dir()):
        if args.only and family not in args.only.split(","):
            continue
        placements = {FLOAT: floats[family].onnx_path.resolve()}
        placements |= {path.stem: path.resolve() for path in sorted((args.int8_dir / family).glob("*.onnx"))}
        for size, profile, shape in sizes(family):
            for placement, onnx_path in placements.items():
                link = linked(onnx_path, args.plans_dir / f"{family}-{placement}-{size}")
                model = replace(floats[family], name=link.parent.name, onnx_path=link, profiles=(profile,))
                yield Trial(family, placement, size, model, shape)


def linked(onnx_path: Path, folder: Path) -> Path:
    """The file under a name of its own, which its plan will carry."""
    link = folder / "model.onnx"
    if not link.exists():
        folder.mkdir(parents=True, exist_ok=True)
        link.symlink_to(onnx_path)
    return link


def sizes(family: str) -> list[tuple[str, Any, tuple[int, ...]]]:
    """(name, profile, shape to time) of a family."""
    from edge_agent.backends.base import Profile
    from tests.gpu import support

    def fixed(shape: tuple[int, ...]) -> Profile:
        return Profile({"image": shape}, {"image": shape}, {"image": shape})

    if family.endswith("-det"):
        return [(f"b{n}", fixed((n, 736, 1312, 3)), (n, 736, 1312, 3)) for n in (1, 4)]
    if family.endswith("-rec"):
        return [("b8", support.RECOGNISER_PROFILE, (8, 48, 416, 3))]
    return [("b8", support.tokens_profile(16, 64), (8, 32))]


def build(args: argparse.Namespace, backends: Backends, trials: Sequence[Trial], keep: Keeper) -> list[Trial]:
    """Those whose plan is there in the end."""
    from edge_agent.backends.build_job import BuildJob, BuildRequest
    from edge_agent.errors import ModelError

    waiting, running, built = [], [], []
    for trial in trials:
        backend = backends.of(trial.model)
        key = backend.key(trial.model.onnx_path, trial.model.profiles)
        if backend.store.plan_path(key).exists():
            built.append(trial)
            continue
        detailed = trial.family.endswith("-det")
        waiting.append(
            (trial, BuildRequest(trial.model.onnx_path, args.plans_dir.resolve(), key, 4 << 30, detailed=detailed))
        )
    began_all = time.monotonic()
    while waiting or running:
        while waiting and len(running) < args.jobs and time.monotonic() - began_all < args.deadline_s:
            trial, request = waiting.pop(0)
            running.append((trial, BuildJob(request), time.monotonic()))
        if not running:
            break
        for entry in list(running):
            trial, job, began = entry
            try:
                over, failed = job.poll(), None
            except ModelError as exc:
                over, failed = True, str(exc)
            if over:
                job.close()
                running.remove(entry)
                plan = backends.of(trial.model).store.plan_path(job.request.key)
                size = round(plan.stat().st_size / 1e6, 1) if plan.exists() else None
                keep.put(trial, build_s=round(time.monotonic() - began, 1), failed=failed, plan_mb=size)
                built += [trial] if failed is None else []
        time.sleep(0.2)
    return [trial for trial in trials if trial in built]


def measure(backends: Backends, trials: Sequence[Trial], keep: Keeper) -> None:
    """GPU time per run by graph launch; engines of one family and size in turn, there and back."""
    for family, size in dict.fromkeys((trial.family, trial.size) for trial in trials):
        group = [trial for trial in trials if (trial.family, trial.size) == (family, size)]
        engines = [backends.of(trial.model).load(trial.model.onnx_path, trial.model.profiles) for trial in group]
        times: list[list[float]] = [[] for _ in group]
        feed = made_feed(group[0])
        order = list(range(len(group)))
        for turn in range(ROUNDS):
            for n in order if turn % 2 else order[::-1]:
                times[n].append(engines[n].time_gpu_ms(feed, runs=60))
        of_float = next((statistics.median(times[n]) for n in order if group[n].placement == FLOAT), None)
        for n in order:
            ms = statistics.median(times[n])
            ratio = None if of_float is None else round(of_float / ms, 3)
            keep.put(
                group[n], gpu_ms=round(ms, 4), spread=[round(min(times[n]), 4), round(max(times[n]), 4)], gain=ratio
            )
        for engine in engines:
            engine.close()


def made_feed(trial: Trial) -> dict[str, Any]:
    """A feed of the trial's shape: frames for detectors, else noise."""
    import numpy as np

    from edge_agent.stages.text_detector import DetectorSettings, preprocess
    from tests.gpu import support

    if len(trial.feed_shape) == 2:
        return support.tokens(*trial.feed_shape)
    if trial.family.endswith("-det"):
        pictures = [preprocess(frame, DetectorSettings())[0] for frame in support.frames(8)]
        fitting = [picture for picture in pictures if picture.shape == trial.feed_shape[1:]]
        return {"image": np.stack([fitting[n % len(fitting)] for n in range(trial.feed_shape[0])])}
    return {"image": np.random.default_rng(0).integers(0, 255, trial.feed_shape, np.uint8)}


def judge(backends: Backends, trials: Sequence[Trial], keep: Keeper) -> None:
    """What every engine of the smallest size says beside float32 on ONNX Runtime."""
    from edge_agent.backends.ort import OrtBackend
    from tests.gpu import support

    ort, frames = OrtBackend(), support.frames()
    smallest = {trial.family: trial.size for trial in reversed(list(trials))}
    for trial in trials:
        if trial.size != smallest[trial.family]:
            continue
        engine = backends.of(trial.model).load(trial.model.onnx_path, trial.model.profiles)
        if trial.family.endswith("-det"):
            keep.put(trial, **detector_text(trial, engine, ort, frames))
        elif trial.family.endswith("-rec"):
            keep.put(trial, **recogniser_text(trial, engine, ort, frames))
        else:
            keep.put(trial, **vectors(trial, engine, ort))
        engine.close()


def reference(trial: Trial) -> Path:
    """The float model's file."""
    from tests.gpu import support

    name = "model.latin.onnx" if trial.family.endswith("-rec") else "model.onnx"
    return Path(support.ENGINES) / trial.family / name


def detector_text(trial: Trial, engine: Any, ort: Any, frames: Sequence[Any]) -> dict[str, Any]:
    """Mask IoU, boxes found again, and the texts that one recogniser reads in the boxes of either."""
    from edge_agent.models import charset
    from edge_agent.stages.text_detector import DetectorSettings, TextDetector
    from edge_agent.stages.text_recogniser import RecogniserSettings, TextRecogniser
    from tests.gpu import support

    folder = Path(support.ENGINES) / trial.family.replace("-det", "-rec")
    recogniser_engine = ort.load(folder / "model.latin.onnx")
    settings = RecogniserSettings(widths_px=support.RECOGNISER_WIDTHS_PX)
    recogniser = TextRecogniser(recogniser_engine, charset.read(folder / "charset.latin.json"), settings)
    float_engine = ort.load(reference(trial))
    detectors = [TextDetector(one, DetectorSettings()) for one in (engine, float_engine)]
    both = either = found = ours = theirs = edits = letters = changed = 0
    for frame in frames:
        maps = [detector.probability(frame) for detector in detectors]
        masks = [found_map > PIXEL_THRESHOLD for found_map in maps]
        both, either = both + int((masks[0] & masks[1]).sum()), either + int((masks[0] | masks[1]).sum())
        boxes = [detector.boxes(one, frame) for detector, one in zip(detectors, maps, strict=True)]
        found += matched(*boxes)
        ours, theirs = ours + len(boxes[0]), theirs + len(boxes[1])
        texts = [sorted(line.text for line in recogniser.recognise(frame, one)) for one in boxes]
        changed += texts[0] != texts[1]
        edits += distance(*texts)
        letters += sum(map(len, texts[1]))
    recogniser_engine.close()
    float_engine.close()
    return {
        "mask_iou": round(both / max(either, 1), 4),
        "box_recall": round(found / max(theirs, 1), 4),
        "box_precision": round(found / max(ours, 1), 4),
        "cer_to_float": round(edits / max(letters, 1), 4),
        "frames_changed": f"{changed} of {len(frames)}",
    }


def matched(ours: Sequence[Any], theirs: Sequence[Any]) -> int:
    """Pairs of boxes with IoU >= 0.5, greedy."""
    import cv2

    free = list(ours)
    pairs = 0
    for box in theirs:
        for other in free:
            overlap, _ = cv2.intersectConvexConvex(box.quad.points, other.quad.points)
            areas = [cv2.contourArea(one.quad.points) for one in (box, other)]
            if overlap / max(sum(areas) - overlap, 1e-6) >= 0.5:
                free.remove(other)
                pairs += 1
                break
    return pairs


def distance(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """Edits between two frames' lines, each line to the nearest that is left."""
    from rapidfuzz.distance import Levenshtein

    free, edits = list(ours), 0
    for text in theirs:
        nearest = min(free, key=lambda other: Levenshtein.distance(text, other), default=None)
        if nearest is None or Levenshtein.distance(text, nearest) >= len(text):
            edits += len(text)
            continue
        edits += Levenshtein.distance(text, nearest)
        free.remove(nearest)
    return edits + sum(map(len, free))


def recogniser_text(trial: Trial, engine: Any, ort: Any, frames: Sequence[Any]) -> dict[str, Any]:
    """Lines read alike in the same boxes."""
    from tests.gpu import line_parity

    float_engine = ort.load(reference(trial))
    boxes = line_parity.found_boxes(frames, ort)
    parity = line_parity.compare(frames, boxes, engine, float_engine, replace(trial.model, onnx_path=reference(trial)))
    float_engine.close()
    return {
        "lines_same": f"{parity.published_same} of {parity.published}",
        "decided_same": f"{parity.decided_same} of {parity.decided}",
        "crops_same": f"{parity.crops_same} of {parity.crops}",
        "examples": parity.differing[:12],
    }


def vectors(trial: Trial, engine: Any, ort: Any) -> dict[str, Any]:
    """Cosines to the float model's vectors."""
    import numpy as np

    from tests.gpu import support

    float_engine = ort.load(reference(trial))
    cosines: list[float] = []
    for n, (batch, length) in enumerate([(1, 8), (4, 16), (16, 64), (7, 32)]):
        feed = support.tokens(batch, length, seed=n)
        a, b = (one.infer(feed)["sentence_embedding"] for one in (engine, float_engine))
        cosines += list((a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1))
    float_engine.close()
    return {"cosine_mean": round(float(np.mean(cosines)), 4), "cosine_least": round(float(min(cosines)), 4)}


def profile(backends: Backends, trials: Sequence[Trial], keep: Keeper) -> None:
    """The slowest layers of detectors, and how much of the time goes into changing formats."""
    for trial in trials:
        if not trial.family.endswith("-det"):
            continue
        engine = backends.of(trial.model).load(trial.model.onnx_path, trial.model.profiles)
        layers = sorted(engine.layers(made_feed(trial), 20), key=lambda layer: -layer.ms)
        reformat_ms = sum(layer.ms for layer in layers if "reformat" in f"{layer.name} {layer.kind}".lower())
        keep.put(
            trial,
            layer_count=len(layers),
            layers_ms=round(sum(layer.ms for layer in layers), 4),
            reformat_ms=round(reformat_ms, 4),
            layers=[told(layer) for layer in layers[:LAYERS_KEPT]],
        )
        engine.close()


def told(layer: Any) -> dict[str, Any]:
    """A layer, cut to what a table can hold."""
    shown = {"kernel": layer.kernel[:80], "tensors": layer.tensors[:200]}
    return {"name": layer.name[:160], "ms": round(layer.ms, 4), **shown}


def table(found: dict[str, Any]) -> str:
    """Markdown: one row a trial."""
    columns = (
        "gpu_ms", "gain", "plan_mb", "build_s", "mask_iou", "box_recall", "box_precision", "cer_to_float",
        "frames_changed", "lines_same", "decided_same", "cosine_mean", "cosine_least", "layer_count", "reformat_ms",
    )  # fmt: skip
    lines = [f"| engine | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, entry in found.get("trials", {}).items():
        values = ["" if entry.get(column) is None else str(entry[column]) for column in columns]
        lines.append(f"| {name} | {' | '.join(values)} |")
        if entry.get("failed"):
            lines.append(f"| | {entry['failed'][:300].replace('|', '/')} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
