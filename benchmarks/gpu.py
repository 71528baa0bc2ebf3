"""Everything that needs a real GPU, in one call: builds plans, runs tests/gpu, measures, writes numbers to a folder.

    python benchmarks/gpu.py OUT [--deadline-s 560] [--plans-dir DIR] [--frames DIR] [--only PART,PART] [--again]

Every part is a process of its own with a log and a time limit; what one finished is kept, so a second call with the
same OUT goes on where the first one's deadline cut it. In OUT: results.json (numbers), logs.txt (what the parts
printed), summary.md (the key figures). Needs TensorRT, pycuda, OpenCV, onnx, pytest, and onnxruntime for parity; for
the comparison with PyTorch also a Python with torch and transformers (--torch-python).
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

PARTS = ("facts", "build", "lines", "tests", "bert", "product", "interim", "bench", "engines", "pipeline", "soak")
# what one part may take at most, s; the deadline of the call may leave it less
LIMITS_S = {
    "facts": 60, "build": 540, "lines": 90, "tests": 420, "bert": 240, "product": 400, "engines": 150, "pipeline": 180,
    "soak": 200, "bench": 90, "interim": 200,
}  # fmt: skip
TACTICS = "EDGE_MASK_CONVOLUTIONS,JIT_CONVOLUTIONS"
SOAK_FRAMES = 5000
PLANS = Path(tempfile.gettempdir()) / "edge-agent-gpu-plans"
BERT_SHAPES = ((1, 64), (1, 128), (8, 64), (8, 128))


class Notes:
    """A part's results, on disk after every change, so that a part cut short leaves what it had."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def put(self, name: str, value: Any) -> None:
        """Keeps one result and prints it."""
        self.values[name] = value
        self.path.write_text(json.dumps(self.values, indent=1))
        print(f"{name}: {json.dumps(value)}", flush=True)


def main() -> int:
    """0 when every part ended well."""
    args = parsed()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the product's command line has it
    os.environ.setdefault("EDGE_AGENT_GPU_TACTICS", args.tactics)
    os.environ["EDGE_AGENT_GPU_PLANS"] = str(args.plans_dir.resolve())
    if args.frames:
        os.environ["EDGE_AGENT_GPU_FRAMES"] = str(args.frames.resolve())
    if args.models_dir:
        os.environ["EDGE_AGENT_GPU_MODELS"] = str(args.models_dir.resolve())
    args.out.mkdir(parents=True, exist_ok=True)
    if args.part:
        PART_FUNCTIONS[args.part](args, Notes(args.out / f".{args.part}.json"))
        return 0
    return run_parts(args)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the numbers")
    parser.add_argument("--deadline-s", type=float, default=1200.0, help="end after this long, whatever is left")
    parser.add_argument("--plans-dir", type=Path, default=PLANS, help="kept between calls")
    parser.add_argument("--models-dir", type=Path, help="folder of the models (default: engines)")
    parser.add_argument("--frames", type=Path, help="folder of JPEG frames, 1280x720")
    parser.add_argument("--only", default="", help=f"parts, of {', '.join(PARTS)}")
    parser.add_argument("--models", default="", help="build and measure these alone; names as in the results")
    parser.add_argument("--tests", default="", help="pytest's -k for the part tests")
    parser.add_argument("--again", action="store_true", help="run parts again that ended well before")
    parser.add_argument("--jobs", type=int, default=5, help="builds at a time")
    parser.add_argument("--tactics", default=TACTICS, help="tactic sources for builds; empty for TensorRT's own choice")
    parser.add_argument("--torch-python", default="python3", help="a Python with torch and transformers")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    return parser.parse_args()


def run_parts(args: argparse.Namespace) -> int:
    """Runs the parts one after the other and merges what they left."""
    end = time.monotonic() + args.deadline_s
    results_path = args.out / "results.json"
    results: dict[str, Any] = json.loads(results_path.read_text()) if results_path.exists() else {}
    wanted = [part for part in PARTS if not args.only or part in args.only.split(",")]
    for part in wanted:
        if results.get(part, {}).get("state") == "well" and not args.again:
            continue
        left_s = end - time.monotonic() - 5
        if left_s < 20:
            print(f"{part}: no time left", flush=True)
            continue
        began = time.monotonic()
        state = run_part(args, part, min(left_s, LIMITS_S[part]))
        notes = args.out / f".{part}.json"
        found = json.loads(notes.read_text()) if notes.exists() else {}
        results[part] = {"state": state, "took_s": round(time.monotonic() - began, 1), **found}
        results_path.write_text(json.dumps(results, indent=1))
        (args.out / "summary.md").write_text(summary(results))
    print(summary(results))
    return 0 if all(results.get(part, {}).get("state") == "well" for part in wanted) else 1


def run_part(args: argparse.Namespace, part: str, limit_s: float) -> str:
    """`well`, or how it ended otherwise; its output goes to logs.txt and its end to the terminal."""
    print(f"== {part}, at most {limit_s:.0f} s", flush=True)
    command = [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:], "--part", part]
    log = args.out / f".{part}.log"
    with log.open("w") as file:
        child = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            code = child.wait(limit_s)
            state = "well" if code == 0 else f"ended with {code}"
        except subprocess.TimeoutExpired:
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            state = f"cut off after {limit_s:.0f} s"
    text = log.read_text(errors="replace")
    with (args.out / "logs.txt").open("a") as file:
        file.write(f"\n===== {part}: {state}\n{text}")
    print(text[-2500:] if state != "well" else text[-800:], flush=True)
    return state


# ---- the parts; each runs in a process of its own


def facts(args: argparse.Namespace, notes: Notes) -> None:
    """Versions and the device."""
    import numpy
    import pycuda
    import tensorrt

    from edge_agent.backends.gpu import open_gpu

    notes.put("versions", {"tensorrt": tensorrt.__version__, "pycuda": pycuda.VERSION_TEXT, "numpy": numpy.__version__})
    with open_gpu() as gpu:
        notes.put("environment", vars(gpu.environment(str(tensorrt.__version__))))
        notes.put("device", {"integrated": gpu.integrated, "mapped": gpu.mapped, "graphs": gpu.graphs is not None})
        notes.put("free_gpu_mb", gpu.free_bytes() >> 20)
        notes.put("cuda_driver", gpu.drv.get_driver_version())
    notes.put("cores", os.cpu_count())
    notes.put("date", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()))


def models(args: argparse.Namespace) -> list[Any]:
    """All plans of this benchmark, those that build longest first."""
    from dataclasses import replace

    from tests.gpu import support

    made = []
    for name in ("bert-large", "bert-base"):
        path = args.plans_dir / name / "model.onnx"
        model = support.Model(name, path, (support.tokens_profile(8, 128),), level=support.ENCODER_LEVELS["fp16"])
        plain = replace(model, name=f"{name}-fp32", precision="fp32", level=support.ENCODER_LEVELS["fp32"])
        made += [model, half(args, model), plain]
    ocr = support.ocr_models()
    made += ocr
    for model in ocr:
        if model.name.endswith(".latin"):
            made += [half(args, model), replace(model, name=f"{model.name}-fp32", precision="fp32")]
    made += support.encoder_models(args.plans_dir)
    asked = args.models.split(",") if args.models else [model.name for model in made]
    return [model for model in made if model.name in asked]


def half(args: argparse.Namespace, model: Any) -> Any:
    """The same model, converted to float16 before TensorRT sees it."""
    from dataclasses import replace

    from tests.gpu import support

    path = support.linked(model.onnx_path, args.plans_dir / f"{model.onnx_path.parent.name}-half")
    return replace(model, name=f"{model.name}-half", onnx_path=path, explicit_half=True)


def build(args: argparse.Namespace, notes: Notes) -> None:
    """Every plan that is not there yet, some at a time, each in a child."""
    from edge_agent.backends.build_job import BuildJob, BuildRequest
    from edge_agent.errors import ModelError

    if not args.models or "bert" in args.models:
        prepare_bert(args)
    wanted = models(args)
    with opened(args) as backends:
        waiting = []
        for model in wanted:
            backend = backends.of(model)
            key = backend.key(model.onnx_path, model.profiles)
            if backend.store.plan_path(key).exists():
                continue
            request = BuildRequest(model.onnx_path.resolve(), args.plans_dir.resolve(), key, 4 << 30)
            waiting.append((model, request))
        running: list[tuple[Any, BuildJob, float]] = []
        product_build = None if args.models else begin_product_build(args)
        while waiting or running:
            while waiting and len(running) < args.jobs:
                model, request = waiting.pop(0)
                running.append((model, BuildJob(request), time.monotonic()))
            for entry in list(running):
                model, job, began = entry
                try:
                    over = job.poll()
                    said = {"build_s": round(time.monotonic() - began, 1)}
                except ModelError as exc:
                    over, said = True, {"failed": str(exc)}
                if over:
                    job.close()
                    running.remove(entry)
                    plan = backends.of(model).store.plan_path(job.request.key)
                    size = plan.stat().st_size / 1e6 if plan.exists() else None
                    notes.put(model.name, {**said, "precision": model.precision, "plan_mb": size})
            time.sleep(0.2)
        if product_build is not None:
            product_build.wait()
            notes.put("edge_agent build", build_lines(args))
    notes.put("at_a_time", args.jobs)


def prepare_bert(args: argparse.Namespace) -> None:
    """Writes the random encoders that are not there."""
    from tests.gpu import support

    for name, dims in (("bert-base", support.BERT_BASE), ("bert-large", support.BERT_LARGE)):
        support.random_bert(args.plans_dir / name / "model.onnx", dims)


def tests(args: argparse.Namespace, notes: Notes) -> None:
    """tests/gpu."""
    junit = args.out / ".junit.xml"
    command = [sys.executable, "-m", "pytest", "tests/gpu", "-q", "-ra", "--durations=8", f"--junitxml={junit}"]
    chosen = ["-k", args.tests] if args.tests else []
    code = subprocess.run([*command, *chosen, "-s", "-p", "no:cacheprovider"], cwd=ROOT, check=False).returncode
    if junit.exists():
        from xml.etree import ElementTree

        cases = list(ElementTree.parse(junit).getroot().iter("testcase"))
        ends = {
            kind: [case.get("name") for case in cases if case.find(kind) is not None]
            for kind in ("failure", "error", "skipped")
        }
        notes.put("tests", {"run": len(cases), **ends})
    assert code == 0, f"pytest ended with {code}"


def lines(args: argparse.Namespace, notes: Notes) -> None:
    """Lines of all frames as TensorRT reads them against ONNX Runtime, by every plan of a recogniser."""
    from edge_agent.backends.ort import OrtBackend
    from tests.gpu import line_parity, support

    frames, ort = support.frames(), OrtBackend()
    boxes = line_parity.found_boxes(frames, ort)
    with opened(args) as backends:
        for model in built(args, backends):
            if ".latin" in model.name:
                engine = backends.of(model).load(model.onnx_path, model.profiles)
                parity = line_parity.compare(frames, boxes, engine, ort.load(model.onnx_path), model)
                notes.put(model.name, {"frames": len(frames), **parity.to_json()})
                engine.close()


def engines(args: argparse.Namespace, notes: Notes) -> None:
    """Load time, memory, latency and GPU time per engine and shape, by graph and without."""
    from tests.gpu import support

    with opened(args) as backends:
        for model in built(args, backends):
            for graphs in (True, False):
                backend = backends.of(model, graphs)
                free = backend.gpu.free_bytes()
                began = time.perf_counter()
                engine = backend.load(model.onnx_path, model.profiles)
                said: dict[str, Any] = {
                    "load_s": round(time.perf_counter() - began, 3),
                    "gpu_mb": (free - backend.gpu.free_bytes()) >> 20,
                }
                for feed in feeds(model, support):
                    shape = next(iter(feed.values())).shape
                    gpu_ms = engine.time_gpu_ms(feed)
                    said["x".join(map(str, shape))] = {**latency(partial(engine.infer, feed)), "gpu_ms": gpu_ms}
                said["counters"] = engine.counters.to_json()
                engine.close()
                notes.put(f"{model.name} {'graph' if graphs else 'plain'}", said)


def feeds(model: Any, support: Any) -> Iterator[dict[str, Any]]:
    """What each kind of model is measured with."""
    import numpy as np

    random = np.random.default_rng(0)
    if model.name.endswith("-det"):
        shapes = [(1, 736, 1312, 3)]
    elif ".latin" in model.name:
        shapes = [(1, 48, 224, 3), (4, 48, 416, 3), (8, 48, 416, 3), (8, 48, 960, 3)]
    else:
        sizes = [(1, 16), (8, 32), (16, 64)] if model.name.startswith("minilm") else BERT_SHAPES
        yield from (support.tokens(*size) for size in sizes)
        return
    yield from ({"image": random.integers(0, 255, shape, np.uint8)} for shape in shapes)


def latency(call: Callable[[], Any], limit_s: float = 2.0, most: int = 400) -> dict[str, float]:
    """Wall time of one call after another, ms."""
    for _ in range(5):
        call()
    times: list[float] = []
    end = time.perf_counter() + limit_s
    while len(times) < most and (len(times) < 20 or time.perf_counter() < end):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1e3)
    times.sort()
    at = {f"p{share}_ms": round(times[min(len(times) - 1, len(times) * share // 100)], 4) for share in (50, 95, 99)}
    return {"mean_ms": round(statistics.fmean(times), 4), **at, "runs": len(times)}


def pipeline(args: argparse.Namespace, notes: Notes) -> None:
    """Frames through detector, recogniser and encoder: wall and GPU time, by graph and without, the next one ahead."""
    from tests.gpu import support

    frames = support.frames(30)
    with opened(args) as backends:
        for graphs in (True, False):
            with loaded_stages(args, backends, graphs) as stages:
                name = "graphs" if graphs else "plain"
                for frame in frames * 2:
                    stages.read(frame)
                notes.put(f"{name}: frame", latency(cycle(stages.read, frames), limit_s=15, most=600))
                notes.put(f"{name}: frame, next detection ahead", ahead(stages, frames))
                notes.put(f"{name}: gpu", gpu_time(stages, frames))
                notes.put(f"{name}: scratch", stages.scratch())
                notes.put(f"{name}: lanes", {k: engine.counters.to_json() for k, engine in stages.engines.items()})
                pool = stages.gpu.pool.counters()
                notes.put(f"{name}: pool", {kind: counters.to_json() for kind, counters in pool.items()})
                if graphs:
                    notes.put("an allocation instead of the pool", allocation_cost(stages.gpu))


class Stages:
    """Detector, recogniser and encoder on one backend."""

    def __init__(self, args: argparse.Namespace, backends: Backends, graphs: bool = True) -> None:
        from edge_agent.models import charset
        from edge_agent.stages.text_detector import DetectorSettings, TextDetector
        from edge_agent.stages.text_recogniser import RecogniserSettings, TextRecogniser
        from tests.gpu import support

        self.support = support
        self.gpu = backends.gpu
        by_name = {model.name: model for model in models(args)}
        chosen = {
            "detect": next(model for name, model in by_name.items() if name.endswith("-det")),
            "recognise": next(model for name, model in by_name.items() if name.endswith(".latin")),
            "encode": by_name["minilm"],
        }
        self.engines = {
            kind: backends.of(model, graphs).load(model.onnx_path, model.profiles) for kind, model in chosen.items()
        }
        folder = chosen["recognise"].onnx_path.parent
        settings = RecogniserSettings(widths_px=support.RECOGNISER_WIDTHS_PX)
        self.detector = TextDetector(self.engines["detect"], DetectorSettings())
        self.recogniser = TextRecogniser(
            self.engines["recognise"], charset.read(folder / "charset.latin.json"), settings
        )

    def read(self, image: Any) -> int:
        """Lines read in one frame; their number stands for the tokens that the encoder gets."""
        return self.finish(image, self.detector.detect(image))

    def finish(self, image: Any, boxes: Any) -> int:
        """All behind the detector."""
        lines = self.recogniser.recognise(image, boxes)
        for start in range(0, len(lines), 16):
            self.engines["encode"].infer(self.support.tokens(len(lines[start : start + 16]), 16))
        return len(lines)

    def scratch(self) -> dict[str, int]:
        """Bytes that each engine needs and what they share."""
        from edge_agent.backends import trt_api

        need = {
            kind: max(trt_api.scratch_bytes(engine._engine, n) for n in range(len(engine.profiles)))
            for kind, engine in self.engines.items()
        }
        return {**need, "apart": sum(need.values()), "shared": self.gpu.scratch.size_bytes}


@contextmanager
def loaded_stages(args: argparse.Namespace, backends: Backends, graphs: bool = True) -> Iterator[Stages]:
    stages = Stages(args, backends, graphs)
    try:
        yield stages
    finally:
        for engine in stages.engines.values():
            engine.close()


def cycle(call: Callable[[Any], Any], items: list[Any]) -> Callable[[], Any]:
    """Calls with the next item each time, round and round."""
    state = {"next": 0}

    def following() -> Any:
        state["next"] += 1
        return call(items[state["next"] % len(items)])

    return following


def ahead(stages: Stages, frames: list[Any]) -> dict[str, float]:
    """Wall time per frame when the next frame's detection is enqueued before this frame's other work."""
    from edge_agent.stages.text_detector import postprocess, preprocess

    settings, engine = stages.detector.settings, stages.engines["detect"]
    engine.enqueue({"image": preprocess(frames[0], settings)})
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < 12:
        image = frames[count % len(frames)]
        probability = engine.collect()["probability"][0]
        count += 1
        engine.enqueue({"image": preprocess(frames[count % len(frames)], settings)})
        stages.finish(image, postprocess(probability, image.shape[1], image.shape[0], settings))
    took_s = time.perf_counter() - began
    engine.collect()
    return {"mean_ms": round(took_s / count * 1e3, 3), "runs": count}


def gpu_time(stages: Stages, frames: list[Any]) -> dict[str, float]:
    """GPU time per frame between events around every launch, and the sum of the same launches back to back."""
    import numpy as np

    drv = stages.gpu.drv
    launches: list[tuple[str, Any, Any, Any]] = []
    whole = {kind: engine._launch for kind, engine in stages.engines.items()}

    def timed(kind: str) -> Callable[[Any], None]:
        stream = stages.engines[kind].stream

        def launch(lane: Any) -> None:
            start, end = drv.Event(), drv.Event()
            start.record(stream)
            whole[kind](lane)
            end.record(stream)
            launches.append((kind, lane.inputs, start, end))

        return launch

    for kind, engine in stages.engines.items():
        engine._launch = timed(kind)
    for frame in frames:
        stages.read(frame)
    for kind, engine in stages.engines.items():
        engine._launch = whole[kind]
    stages.gpu.synchronize()
    in_pipeline = sum(start.time_till(end) for _, _, start, end in launches) / len(frames)
    random = np.random.default_rng(0)
    own: dict[Any, float] = {}
    for kind, inputs, _, _ in launches:
        if (kind, inputs) not in own:
            dtypes = {spec.name: spec.dtype for spec in stages.engines[kind].inputs}
            high = 2 if kind == "encode" else 255
            feed = {name: random.integers(0, high, shape).astype(dtypes[name]) for name, shape in inputs}
            own[(kind, inputs)] = stages.engines[kind].time_gpu_ms(feed, runs=20)
    alone = sum(own[(kind, inputs)] for kind, inputs, _, _ in launches) / len(frames)
    return {
        "frame_gpu_ms": round(in_pipeline, 4),
        "engines_alone_ms": round(alone, 4),
        "ratio": round(in_pipeline / alone, 4),
        "launches_per_frame": len(launches) / len(frames),
    }


def allocation_cost(gpu: Any) -> dict[str, float]:
    """What one detector input costs when it is allocated anew each frame: ms."""
    size = 736 * 1312 * 3

    def device() -> None:
        gpu.drv.mem_alloc(size).free()

    def page_locked() -> None:
        gpu.drv.pagelocked_empty((size,), "uint8")

    return {
        "device_ms": latency(device, 1.0, 100)["mean_ms"],
        "page_locked_ms": latency(page_locked, 1.0, 100)["mean_ms"],
        "pool_ms": latency(lambda: gpu.pool.device(size, "test"), 1.0, 100)["mean_ms"],
    }


PRODUCT_CONFIG = """\
outbox: {{kind: memory}}
transport: jsonl
models_dir: {models_dir}
cameras:
  folder: {{kind: folder, source: {frames}, loop: true, pace: {pace}}}
telemetry: {{interval_s: 2}}
backend:
  kind: {kind}
  tensorrt: {{optimisation_level: 0, half_encoders: true, tactic_sources: [{tactics}]}}
"""
AGENT_RUNS_S = 20


def product_config(args: argparse.Namespace, kind: str = "tensorrt", pace: str = "every_frame") -> Path:
    """Settings of an installation whose models are a copy of those here."""
    from tests.gpu import support

    folder = args.plans_dir / "product"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "engines").exists():
        shutil.copytree(support.ENGINES, folder / "engines", ignore=shutil.ignore_patterns("plans"))
        for path in (folder / "engines").rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        (folder / "engines").chmod(0o755)
    path = folder / f"{kind}-{pace}.yaml"
    names = {"models_dir": folder / "engines", "frames": frames_dir(args), "kind": kind, "pace": pace}
    path.write_text(PRODUCT_CONFIG.format(**names, tactics=args.tactics))
    return path


def frames_dir(args: argparse.Namespace) -> Path:
    """The folder of frames given, or one of the frames that the tests use."""
    import cv2

    from tests.gpu import support

    if args.frames:
        return Path(args.frames).resolve()
    folder: Path = args.plans_dir / "product" / "frames"
    folder.mkdir(parents=True, exist_ok=True)
    for n, image in enumerate(support.frames()):
        cv2.imwrite(str(folder / f"{n:03d}.png"), image)
    return folder


def begin_product_build(args: argparse.Namespace) -> subprocess.Popen[bytes]:
    """`edge-agent build` with the shipped profiles, as a user runs it; its lines go to a file, each with its time."""
    command = [sys.executable, "-m", "edge_agent", "build", "--if-stale", "--config", str(product_config(args))]
    with (args.out / ".product-build.log").open("a") as log:
        return subprocess.Popen(command, cwd=args.out, env=users_environment(), stdout=log, stderr=subprocess.STDOUT)


def users_environment() -> dict[str, str]:
    """Without what steers the GPU tests: the product refuses EDGE_AGENT_* that set none of its keys."""
    return {name: value for name, value in os.environ.items() if not name.startswith("EDGE_AGENT_")}


def build_lines(args: argparse.Namespace) -> list[str]:
    """What `edge-agent build` said about plans, its progress left out."""
    said = (args.out / ".product-build.log").read_text(errors="replace").splitlines()
    return [line for line in said if ": built in" in line or "edge-agent build" in line or "fits" in line]


def product(args: argparse.Namespace, notes: Notes) -> None:
    """The user's own path: `build`, `read` on TensorRT against ONNX Runtime, `run` until SIGTERM, frames a second."""
    began = time.monotonic()
    code = begin_product_build(args).wait()
    notes.put("build", {"code": code, "took_s": round(time.monotonic() - began, 1), "said": build_lines(args)})
    assert code == 0, (args.out / ".product-build.log").read_text()[-3000:]
    ours = read_by(args, notes, "tensorrt")
    theirs = read_by(args, notes, "onnxruntime")
    notes.put("readings", readings_compared(ours, theirs))
    notes.put("run", agent_run(args))
    notes.put("pipeline", pipeline_fps(args))


def bench(args: argparse.Namespace, notes: Notes) -> None:
    """`edge-agent bench` of the product's models, layer by layer, and of its pipeline, on the plans of `product`."""
    for model in ("ppocrv6-small-det", "ppocrv6-small-rec", "minilm-l6-v2"):
        found = bench_figures(args, model, "--layers", "--seconds", "3")
        layers = sorted(found.pop("layers"), key=lambda layer: -float(layer["ms"]))
        notes.put(model, {**found, "layers": len(layers), "layers_ms": sum(layer["ms"] for layer in layers)})
        notes.put(f"{model}: slowest layers", layers[:8])
        assert found["backend"] == "tensorrt"
        assert found["gpu"]["compute"]["p50_ms"] > 0
    notes.put("detector, 2 streams", bench_figures(args, "ppocrv6-small-det", "--streams", "2", "--seconds", "2"))
    notes.put("pipeline", bench_figures(args, "--frames", str(frames_dir(args)), "--engines", "--seconds", "4"))


def bench_figures(args: argparse.Namespace, *options: str) -> dict[str, Any]:
    """What `edge-agent bench` measured; whole in a file of its own."""
    command = [sys.executable, "-m", "edge_agent", "bench", *options, "--warm-up-s", "0.5", "--json"]
    done = subprocess.run(
        [*command, "--config", str(product_config(args))],
        cwd=args.out,
        env=users_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stderr[-2000:], flush=True)
    assert done.returncode == 0, done.stderr[-2000:]
    name = "-".join(option.strip("-") for option in options if "/" not in option)
    (args.out / f"bench-{name}.json").write_text(done.stdout)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def read_by(args: argparse.Namespace, notes: Notes, kind: str) -> list[dict[str, Any]]:
    """What `edge-agent read --json` says of every frame."""
    command = [sys.executable, "-m", "edge_agent", "read", str(frames_dir(args)), "--json"]
    began = time.monotonic()
    done = subprocess.run(
        [*command, "--config", str(product_config(args, kind))],
        cwd=args.out,
        env=users_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    readings = [json.loads(line) for line in done.stdout.splitlines()]
    (args.out / f"readings-{kind}.jsonl").write_text(done.stdout)
    said = {"code": done.returncode, "took_s": round(time.monotonic() - began, 1), "readings": len(readings)}
    notes.put(f"read by {kind}", {**said, "stderr": done.stderr[-1500:]})
    assert done.returncode == 0, done.stderr[-3000:]
    assert {reading["backend"] for reading in readings} == {kind}
    return readings


def readings_compared(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> dict[str, Any]:
    """How far two runs over the same frames agree: lines in their order, and fields by name and value."""
    lines = same = fields = same_fields = 0
    differing: list[Any] = []
    for a, b in zip(ours, theirs, strict=True):
        texts = [[line["text"] for line in reading["lines"]] for reading in (a, b)]
        matcher = difflib.SequenceMatcher(None, texts[0], texts[1], autojunk=False)
        lines += max(map(len, texts))
        same += sum(block.size for block in matcher.get_matching_blocks())
        changes = [(texts[0][i:j], texts[1][k:m]) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]
        found = [{field["name"]: (field["value"], field["text"]) for field in one["fields"]} for one in (a, b)]
        names = found[0].keys() | found[1].keys()
        fields += len(names)
        equal = [name for name in names if found[0].get(name) == found[1].get(name)]
        same_fields += len(equal)
        unequal = {name: [one.get(name) for one in found] for name in names.difference(equal)}
        if changes or unequal:
            differing.append({"source": a.get("source"), "lines": changes, "fields": unequal})
    share = round(same / max(lines, 1), 4)
    counts = {"lines": lines, "same": same, "share": share, "fields": fields, "same_fields": same_fields}
    return {"frames": len(ours), **counts, "differing": differing}


def agent_run(args: argparse.Namespace) -> dict[str, Any]:
    """`edge-agent run` on a folder camera, stopped by SIGTERM: exit code, what it logged, its last telemetry."""
    config = product_config(args, pace="every_frame")
    out, err = args.out / ".run.out", args.out / ".run.err"
    with out.open("w") as stdout, err.open("w") as stderr:
        command = [sys.executable, "-m", "edge_agent", "run", "--config", str(config)]
        child = subprocess.Popen(command, cwd=args.out, env=users_environment(), stdout=stdout, stderr=stderr)
        time.sleep(AGENT_RUNS_S)
        child.terminate()
        began = time.monotonic()
        try:
            code = child.wait(30)
        finally:
            child.kill()
    messages = [json.loads(line) for line in out.read_text().splitlines()]
    telemetry = [m["payload"] for m in messages if m["topic"].endswith("/telemetry")]
    errors = err.read_text().splitlines()
    said = {
        "code": code,
        "stopped_in_s": round(time.monotonic() - began, 2),
        "messages": len(messages),
        "results": sum(m["topic"].endswith("/result") for m in messages),
        "stderr": errors[-20:],
        "stderr_lines": len(errors),
        "last_telemetry": telemetry[-1] if telemetry else None,
    }
    print(json.dumps(said)[:4000])
    assert code == 0, errors
    assert telemetry[-1]["backend"] == "tensorrt"
    assert telemetry[-1]["backend_counters"]["engines"], "counters are missing"
    return said


def interim(args: argparse.Namespace, notes: Notes) -> None:
    """`edge-agent run` with one plan missing: frames are read meanwhile, then with the plan, and none is left out."""
    config, plans = product_config(args), args.plans_dir / "interim-plans"
    shutil.rmtree(plans, ignore_errors=True)
    shutil.copytree(args.plans_dir / "product" / "engines" / "plans", plans)
    for path in plans.glob("minilm*"):
        path.unlink()
    text = config.read_text().replace("  tensorrt: {", f"  tensorrt: {{plans_dir: {plans}, ")
    path = config.with_name("interim.yaml")
    path.write_text(text)
    out = args.out / ".interim.out"
    with out.open("w") as stdout, (args.out / ".interim.err").open("w") as stderr:
        command = [sys.executable, "-m", "edge_agent", "run", "--config", str(path)]
        child = subprocess.Popen(command, cwd=args.out, env=users_environment(), stdout=stdout, stderr=stderr)
        began = time.monotonic()
        while time.monotonic() - began < LIMITS_S["interim"] - 30 and child.poll() is None:
            time.sleep(1)
            if len({engine_in_use(message, "encode") for message in said_so_far(out)} - {None}) > 1:
                break
        time.sleep(3)
        child.terminate()
        code = child.wait(30)
    messages = said_so_far(out)
    health = [m["payload"] for m in messages if m["topic"].endswith("/health")]
    seqs = [m["payload"]["seq"] for m in messages if m["topic"].endswith("/result")]
    used = [engine for m in messages if (engine := engine_in_use(m, "encode"))]
    notes.put("health", list(dict.fromkeys(f"{one['pipeline']}: {one.get('backend')}" for one in health)))
    notes.put("encoder in readings", {engine: used.count(engine) for engine in dict.fromkeys(used)})
    notes.put("left out", sum(b - a - 1 for a, b in pairwise(seqs)))
    notes.put("code", code)
    assert code == 0
    assert len(set(used)) == 2, "the plan did not come into use"


def said_so_far(out: Path) -> list[dict[str, Any]]:
    """The whole lines that an agent has written to a file."""
    return [json.loads(line) for line in out.read_text().splitlines(keepends=True) if line.endswith("\n")]


def engine_in_use(message: dict[str, Any], stage: str) -> str | None:
    """The fingerprint of a stage's engine in a reading; None in other messages."""
    return message["payload"].get("engines", {}).get(stage) if message["topic"].endswith("/result") else None


def pipeline_fps(args: argparse.Namespace) -> dict[str, Any]:
    """Frames a second of Pipeline.read over decoded frames, camera left out, one by one and the next one ahead."""
    from edge_agent import config as configuration
    from edge_agent.pipeline import load_pipeline
    from edge_agent.records import Frame
    from tests.gpu import support

    images = support.frames()
    config_path = product_config(args)
    for name in os.environ.keys() - users_environment().keys():
        del os.environ[name]
    config = configuration.load(config_path)
    assert config.models_dir is not None
    found: dict[str, Any] = {"camera": "not included", "frames": len(images)}
    with load_pipeline(config, config.models_dir) as made:
        made.warm_up()
        frames = [Frame("bench", n, time.time(), time.monotonic(), image) for n, image in enumerate(images)]
        for frame in frames * 2:
            made.read(frame)
        for name, following in (("one by one", False), ("next ahead", True)):
            count, stages, began = (
                0,
                dict.fromkeys(("detect", "recognise", "extract", "total"), 0.0),
                time.perf_counter(),
            )
            while time.perf_counter() - began < 10:
                ahead_of = frames[(count + 1) % len(frames)]
                reading = made.read(frames[count % len(frames)], partial(next, iter([ahead_of if following else None])))
                count += 1
                for stage in stages:
                    stages[stage] += reading.timings_ms[stage]
            took_s = time.perf_counter() - began
            means = {stage: round(total / count, 3) for stage, total in stages.items()}
            found[name] = {"fps": round(count / took_s, 1), "mean_ms": means, "runs": count}
        found["counters"] = dict(made.backend.counters())
    return found


def soak(args: argparse.Namespace, notes: Notes) -> None:
    """GPU and host memory over many frames."""
    import psutil

    from tests.gpu import support

    frames = support.frames(30)
    with opened(args) as backends:
        before_mb = backends.gpu.free_bytes() >> 20
        with loaded_stages(args, backends) as stages:
            gpu = stages.gpu
            for frame in frames * 2:
                stages.read(frame)
            warm = {kind: counters.to_json() for kind, counters in gpu.pool.counters().items()}
            samples, began = [], time.monotonic()
            for count in range(SOAK_FRAMES):
                stages.read(frames[count % len(frames)])
                if count % 250 == 0 or count == SOAK_FRAMES - 1:
                    rss_mb = psutil.Process().memory_info().rss >> 20
                    used_mb = before_mb - (gpu.free_bytes() >> 20)
                    samples.append({"frame": count, "gpu_mb_since_start": used_mb, "rss_mb": rss_mb})
                    notes.put("samples", samples)
                if time.monotonic() - began > LIMITS_S["soak"] - 60:
                    break
            after = {kind: counters.to_json() for kind, counters in gpu.pool.counters().items()}
            notes.put("frames", count + 1)
            notes.put("pool_before_and_after", [warm, after])
            notes.put("pool_allocated_nothing", all(warm[kind]["misses"] == after[kind]["misses"] for kind in warm))
            used = [sample["gpu_mb_since_start"] for sample in samples]
            notes.put("gpu_mb_first_last_most", [used[0], used[-1], max(used)])


def bert(args: argparse.Namespace, notes: Notes) -> None:
    """BERT encoders against eager PyTorch on the same GPU."""
    from tests.gpu import support

    ours: dict[str, Any] = {}
    with opened(args) as backends:
        for model in built(args, backends):
            if not model.name.startswith("bert"):
                continue
            engine = backends.of(model).load(model.onnx_path, model.profiles)
            for size in BERT_SHAPES:
                feed = support.tokens(*size)
                gpu_ms = engine.time_gpu_ms(feed)
                name = f"{model.name} {size[0]}x{size[1]}"
                ours[name] = {**latency(partial(engine.infer, feed)), "back_to_back_ms": gpu_ms}
                notes.put(f"tensorrt {name}", ours[name])
            engine.close()
    theirs = torch_times(args)
    for name, value in theirs.items():
        notes.put(f"pytorch {name}", value)
    for name, mine in ours.items():
        other = theirs.get(name.replace("-fp32", "").replace("-half", ""))
        if other:
            ratios = {
                "latency": round(other["p50_ms"] / mine["p50_ms"], 2),
                "throughput": round(other["back_to_back_ms"] / mine["back_to_back_ms"], 2),
            }
            notes.put(f"ratio {name}", ratios)


def torch_times(args: argparse.Namespace) -> dict[str, Any]:
    """{"bert-base 1x64": {"p50_ms", "back_to_back_ms"}, ...} measured by another Python, which has torch."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    # what this Python brought along would get in the way of that one; the driver's folder must stay
    folders = [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder]
    kept = [f for f in folders if not any(f.glob("libnvinfer*")) and not any(f.glob("libpython3*"))]
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, kept))
    command = [args.torch_python, str(ROOT / "benchmarks" / "torch_bert.py"), json.dumps(BERT_SHAPES)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        print(f"PyTorch could not be measured: {exc}")
        return {}
    print(done.stderr[-2000:])
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return {name: value for line in lines for name, value in json.loads(line).items()}


# ---- shared by the parts


class Backends:
    """Backends on one GPU, one for each way of building and launching."""

    def __init__(self, plans_dir: Path, gpu: Any) -> None:
        self.plans_dir = plans_dir
        self.gpu = gpu
        self.made: dict[Any, Any] = {}

    def of(self, model: Any, graphs: bool = True) -> Any:
        """The one that builds and runs `model`."""
        from edge_agent.backends.trt import TrtBackend
        from tests.gpu import support

        way = (model.precision, model.level, model.explicit_half)
        if (way, graphs) not in self.made:
            self.made[(way, graphs)] = TrtBackend(support.settings(self.plans_dir, *way, graphs=graphs), gpu=self.gpu)
        return self.made[(way, graphs)]


@contextmanager
def opened(args: argparse.Namespace) -> Iterator[Backends]:
    """The GPU, for one part."""
    from edge_agent.backends.gpu import open_gpu

    with open_gpu() as gpu:
        yield Backends(args.plans_dir, gpu)


def built(args: argparse.Namespace, backends: Backends) -> Iterator[Any]:
    """The models whose plan is there."""
    for model in models(args):
        backend = backends.of(model)
        if not model.onnx_path.exists():
            continue
        if backend.store.plan_path(backend.key(model.onnx_path, model.profiles)).exists():
            yield model
        else:
            print(f"{model.name} was not built", flush=True)


def summary(results: dict[str, Any]) -> str:
    """The key figures as Markdown."""
    lines = ["| part | state | s |", "|---|---|---|"]
    lines += [f"| {part} | {value['state']} | {value['took_s']} |" for part, value in results.items()]
    for part, value in results.items():
        lines += ["", f"## {part}"]
        lines += [
            f"- {name}: {json.dumps(item)[:600]}" for name, item in value.items() if name not in ("state", "took_s")
        ]
    return "\n".join(lines) + "\n"


PART_FUNCTIONS: dict[str, Callable[[argparse.Namespace, Notes], None]] = {
    "facts": facts,
    "build": build,
    "lines": lines,
    "tests": tests,
    "product": product,
    "interim": interim,
    "bench": bench,
    "engines": engines,
    "pipeline": pipeline,
    "bert": bert,
    "soak": soak,
}

if __name__ == "__main__":
    sys.exit(main())
