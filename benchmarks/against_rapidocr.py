"""Against RapidOCR: the same frames, models, detector size and threads, by turns, frame for frame.

    python benchmarks/against_rapidocr.py --frames DIR [--models v6|v4|all] [--set synth|real|all] [--rounds N] [--json]

DIR holds `synth/` and `real/`, each with pictures and `gt.json` ({file: [{text, poly}]}), and `score.py` with
`synth_score(gt, read)` and `real_score(gt, read)` (elsewhere: --score). Every program has a process of its own, pinned
to the same CPUs, and only one computes at a time; the order turns from frame to frame, so that whatever else the
machine does hits all alike, and each frame counts with its fastest round. RapidOCR runs with its default settings but
for the threads, in an environment of its own that this script makes once (--rapidocr-venv), with the onnxruntime,
OpenCV and numpy versions of ours.

Rows besides the two programs, for honesty: RapidOCR without its angle classifier (edge_agent has none), edge_agent
without its search for bar and 2D codes (RapidOCR has none), and both programs as one process per CPU with one thread
each, the frames shared out between them. With --calibration also
edge_agent with the INT8 models that `edge-agent calibrate` promoted there.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from reader import CALIBRATED, EDGE_AGENT, NO_CLASSIFIER, OURS, RAPIDOCR, TEXT_ALONE

ROOT = Path(__file__).resolve().parents[1]
READER = Path(__file__).resolve().parent / "reader.py"
VENV = Path.home() / ".cache" / "edge_agent" / "rapidocr-venv"
# --no-deps keeps their opencv-python out; these are what they need besides
RAPIDOCR_PACKAGES = ("rapidocr==3.10.0", "rapidocr-onnxruntime==1.4.4")
RAPIDOCR_NEEDS = ("pyclipper", "shapely", "pillow", "pyyaml", "six", "tqdm", "omegaconf", "requests", "colorlog")
SHARED_VERSIONS = ("onnxruntime", "numpy", "opencv-python-headless")
SETS = ("synth", "real")
MODELS = ("v4", "v6")
SHARED_OUT = "processes of 1 thread"


@dataclass
class Figures:
    """What one program did on one set of frames."""

    program: str
    frames_per_s: float = 0.0
    seconds: list[float] = field(default_factory=list)  # per turn: one frame, or one frame per process
    cpu_s_per_frame: float = 0.0
    peak_mb: float = 0.0
    cold_start_s: float = 0.0
    score: dict[str, float] = field(default_factory=dict)


class Reader:
    """One reader process. `start` a frame, then `finish` it."""

    def __init__(self, python: Path, program: str, arguments: Sequence[str]) -> None:
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            [str(python), str(READER), program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self._answer()

    def start(self, picture: Path) -> None:
        pipe(self.process.stdin).write(f"{picture}\n")
        pipe(self.process.stdin).flush()

    def finish(self) -> dict[str, Any]:
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = pipe(self.process.stdout).readline()
        if not line:
            raise SystemExit(f"a reader ended with status {self.process.wait()}: {self.process.args}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        pipe(self.process.stdin).close()
        self.process.wait(timeout=30)


def pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


class Program:
    """One row of the table: a program as one process on all CPUs, or as one process per CPU."""

    def __init__(self, name: str, readers: Sequence[Reader], first: Path) -> None:
        self.figures = Figures(name)
        self.readers = readers
        self.read: dict[str, Any] = {}
        self.cpu_seconds: list[float] = []
        self.turn([first] * len(readers))  # shapes met for the first time are part of the cold start
        self.figures.cold_start_s = time.perf_counter() - min(reader.began for reader in readers)
        self.figures.seconds.clear()

    def turn(self, pictures: Sequence[Path]) -> None:
        """Reads one picture per process at the same time."""
        began = time.perf_counter()
        busy = list(zip(self.readers, pictures, strict=False))
        for reader, picture in busy:
            reader.start(picture)
        answers = [(picture, reader.finish()) for reader, picture in busy]
        passed = time.perf_counter() - began
        self.figures.seconds.append(answers[0][1]["seconds"] if len(self.readers) == 1 else passed)
        for picture, answer in answers:
            self.cpu_seconds.append(answer["cpu_seconds"])
            self.read[picture.name] = answer["lines"]
        self.figures.peak_mb = sum(answer["peak_mb"] for _, answer in answers)


@dataclass(frozen=True)
class Setting:
    """How all programs are run."""

    rounds: int
    cpus: Sequence[int]
    venv: Path
    calibration: Path | None


def compare(models: str, frames: Path, setting: Setting, score: Path | None) -> list[Figures]:
    """All rows for one model family on one set of frames."""
    truth = json.loads((frames / "gt.json").read_text(encoding="utf-8"))
    pictures = [frames / name for name in sorted(truth)]
    with ExitStack() as opened:
        names = [EDGE_AGENT, TEXT_ALONE, *([CALIBRATED] if setting.calibration else []), RAPIDOCR, NO_CLASSIFIER]
        single = [opened.enter_context(program(name, models, [setting.cpus], setting, pictures[0])) for name in names]
        by_turns(single, pictures, setting.rounds)
    with ExitStack() as opened:
        each = [[cpu] for cpu in setting.cpus]
        parallel = [
            opened.enter_context(program(name, models, each, setting, pictures[0])) for name in (EDGE_AGENT, RAPIDOCR)
        ]
        by_turns(parallel, pictures, setting.rounds)
    rows = single + parallel
    if score is not None:
        scorer = getattr(load_score(score), f"{frames.name}_score")
        for row in rows:
            row.figures.score = scorer(truth, row.read)
    return [row.figures for row in rows]


@contextmanager
def program(
    name: str, models: str, groups: Sequence[Sequence[int]], setting: Setting, first: Path
) -> Iterator[Program]:
    """A program started as one process per group of CPUs, and ended."""
    ours = name in OURS
    python = Path(sys.executable) if ours else setting.venv / "bin" / "python"
    more = ["--calibration", str(setting.calibration)] if name == CALIBRATED else []
    with ExitStack() as opened:
        readers = []
        for cpus in groups:
            numbers = ",".join(str(cpu) for cpu in cpus)
            options = ["--models", models, "--cpus", numbers, "--threads", str(len(cpus)), *more]
            readers.append(Reader(python, name, options))
            opened.callback(readers[-1].close)
        label = name if len(groups) == 1 else f"{name}, {len(groups)} {SHARED_OUT}"
        yield Program(label, readers, first)


def by_turns(programs: Sequence[Program], pictures: Sequence[Path], rounds: int) -> None:
    """Every program reads every picture `rounds` times, in turns; one more round before does not count."""
    width = len(programs[0].readers)
    turns = [pictures[n : n + width] for n in range(0, len(pictures), width)]
    for number in range(rounds + 1):
        for n, pictures_of_turn in enumerate(turns):
            order = programs if (n + number) % 2 else programs[::-1]
            for row in order:
                row.turn(pictures_of_turn)
        if number == 0:
            for row in programs:
                row.figures.seconds.clear()
                row.cpu_seconds.clear()
        print(f"  round {number} of {rounds}", file=sys.stderr)
    for row in programs:
        row.figures.frames_per_s = len(pictures) / sum(best(row.figures.seconds, rounds))
        row.figures.cpu_s_per_frame = sum(row.cpu_seconds) / len(row.cpu_seconds)


def best(seconds: Sequence[float], rounds: int) -> list[float]:
    """Each turn's fastest round: what it takes when nothing else has the CPUs."""
    turns = len(seconds) // rounds
    return [min(seconds[turn::turns]) for turn in range(turns)]


def load_score(path: Path) -> Any:
    """The module with the scores."""
    spec = importlib.util.spec_from_file_location("score", path)
    if spec is None or spec.loader is None or not path.exists():
        raise SystemExit(f"{path} is not there; give --score PATH, or --no-score for speed alone")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_venv(venv: Path) -> None:
    """RapidOCR's environment, made once; its onnxruntime, OpenCV and numpy are those of this one."""
    wanted = [*RAPIDOCR_PACKAGES, *(f"{name}=={importlib.metadata.version(name)}" for name in SHARED_VERSIONS)]
    stamp = venv / "installed.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == "\n".join(wanted):
        return
    print(f"making RapidOCR's environment in {venv} (about 400 MB)", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", *RAPIDOCR_PACKAGES], check=True)
    subprocess.run([*pip, *wanted[len(RAPIDOCR_PACKAGES) :], *RAPIDOCR_NEEDS], check=True)
    stamp.write_text("\n".join(wanted), encoding="utf-8")


def table(title: str, rows: Sequence[Figures]) -> str:
    """The rows as text; ratios are edge_agent's gain over the row in the same block."""
    lines = [title, f"{'':42}{'fps':>7}{'ratio':>7}{'CPU s':>7}{'peak MB':>9}{'ratio':>7}{'cold s':>8}   text"]
    blocks = {split: next(row for row in rows if (SHARED_OUT in row.program) is split) for split in (False, True)}
    for row in rows:
        ours = blocks[SHARED_OUT in row.program]
        gain = "" if row is ours else f"{ours.frames_per_s / row.frames_per_s:.2f}"
        memory = "" if row is ours else f"{ours.peak_mb / row.peak_mb:.2f}"
        text = "  ".join(f"{name} {value:.2f}" for name, value in shown(row.score).items())
        figures = f"{row.frames_per_s:7.2f}{gain:>7}{row.cpu_s_per_frame:7.2f}{row.peak_mb:9.0f}{memory:>7}"
        lines.append(f"{row.program:42}{figures}{row.cold_start_s:8.2f}   {text}")
    return "\n".join(lines)


def shown(score: Mapping[str, float]) -> dict[str, float]:
    names = {"cer": "CER %", "cer_sp": "with spaces", "exact": "exact lines %", "word_recall": "word recall %"}
    return {label: score[name] for name, label in names.items() if name in score}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=Path, required=True, metavar="DIR")
    parser.add_argument("--models", choices=(*MODELS, "all"), default="all")
    parser.add_argument("--set", choices=(*SETS, "all"), default="all", dest="sets")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="CPUs to use, the first that this process may")
    parser.add_argument("--score", type=Path, metavar="PATH", help="default: DIR/score.py")
    parser.add_argument("--no-score", action="store_true", help="speed and memory alone")
    parser.add_argument("--rapidocr-venv", type=Path, default=VENV, metavar="DIR")
    parser.add_argument("--calibration", type=Path, metavar="DIR", help="also with the INT8 models promoted there")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))[: given.threads]
    if len(cpus) < given.threads:
        raise SystemExit(f"this process may use {len(cpus)} CPUs; --threads {given.threads} needs as many")
    score = None if given.no_score else (given.score or given.frames / "score.py").resolve()
    make_venv(given.rapidocr_venv)
    calibration = None if given.calibration is None else given.calibration.resolve()
    setting = Setting(given.rounds, cpus, given.rapidocr_venv, calibration)
    report = []
    for models in MODELS if given.models == "all" else (given.models,):
        for name in SETS if given.sets == "all" else (given.sets,):
            print(f"{models} on {name}", file=sys.stderr)
            rows = compare(models, (given.frames / name).resolve(), setting, score)
            if given.json:
                report.append({"models": models, "set": name, "rows": [asdict(row) for row in rows]})
            else:
                print(
                    table(f"PP-OCR{models} on {name}, {given.threads} threads, {given.rounds} rounds", rows), flush=True
                )
    if given.json:
        print(json.dumps(report))


if __name__ == "__main__":
    main()
