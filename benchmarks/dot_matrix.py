"""How well print of dots is read, as it is and with the dots joined (`dot_matrix: true` of a region).

    python benchmarks/dot_matrix.py [--models v6|v4|all] [--lines N]

Lines as ink-jet printers set them (date, time, lot), drawn here with several pitches and dot sizes, noise and a little
skew; the same ones at every run. Prints for each setting the share of lines read exactly and the character error rate.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.reader import OUR_MODELS  # noqa: E402
from edge_agent.calibrate.text_error import edits  # noqa: E402
from edge_agent.config import Config  # noqa: E402
from edge_agent.models.spec import find_models_dir  # noqa: E402
from edge_agent.pipeline import Pipeline, load_pipeline  # noqa: E402
from edge_agent.records import Frame  # noqa: E402
from edge_agent.settings.cameras import CameraConfig  # noqa: E402
from edge_agent.settings.pipeline import PipelineConfig  # noqa: E402
from edge_agent.settings.roi import RoiConfig  # noqa: E402
from tests.prints import dotted, turned  # noqa: E402

DOTS = ((6, 2), (8, 3), (8, 2), (12, 4))  # px: pitch, radius


def made_line(random: np.random.Generator) -> str:
    """Such as `12/08/26 14:31 L4711`."""
    day, month, year = random.integers(1, 29), random.integers(1, 13), random.integers(26, 30)
    hour, minute, lot = random.integers(0, 24), random.integers(0, 60), random.integers(0, 10_000)
    return f"{day:02}/{month:02}/{year} {hour:02}:{minute:02} L{lot:04}"


def made_picture(text: str, pitch: int, radius: int, random: np.random.Generator) -> npt.NDArray[np.uint8]:
    """The line in dots, skewed by up to 3 degrees, with noise and a soft focus."""
    picture = turned(dotted(text, pitch, radius, width_px=160 * pitch), random.uniform(-3, 3), 1.05)
    soft = cv2.GaussianBlur(picture, (0, 0), 0.8) + random.normal(0, 6, picture.shape)
    return np.asarray(np.clip(soft, 0, 255), np.uint8)


def read(pipeline: Pipeline, camera: str, picture: npt.NDArray[np.uint8]) -> str:
    """What a picture says, without spaces."""
    lines = pipeline.read(Frame(camera, 0, 0.0, 0.0, picture.copy())).lines
    return "".join(line.text for line in lines).replace(" ", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", choices=(*OUR_MODELS, "all"), default="all")
    parser.add_argument("--lines", type=int, default=6, help="lines for each of the dot sizes")
    given = parser.parse_args()
    camera = CameraConfig(kind="folder", source="frames")
    cameras = {"plain": camera, "joined": with_joined_dots(camera)}
    print(f"{'models':8}{'dots':>14}{'as it is: exact %':>20}{'CER %':>8}{'joined: exact %':>18}{'CER %':>8}")
    for models in OUR_MODELS if given.models == "all" else (given.models,):
        detector, recogniser = OUR_MODELS[models]
        settings = PipelineConfig(detector=detector, recogniser=recogniser, encoder=None)
        with load_pipeline(Config(cameras=cameras, pipeline=settings), find_models_dir(), float_only=True) as pipeline:
            for pitch, radius in DOTS:
                random = np.random.default_rng(pitch * 10 + radius)
                texts = [made_line(random) for _ in range(given.lines)]
                pictures = [made_picture(text, pitch, radius, random) for text in texts]
                row = f"{models:8}{f'{pitch} px, r {radius}':>14}"
                for name, width in (("plain", 20), ("joined", 18)):
                    pairs = [
                        (t.replace(" ", ""), read(pipeline, name, p)) for t, p in zip(texts, pictures, strict=True)
                    ]
                    exact = 100 * sum(a == b for a, b in pairs) / len(pairs)
                    wrong = sum(edits(a, b) for a, b in pairs)
                    row += f"{exact:{width}.1f}{100 * wrong / sum(len(a) for a, _ in pairs):8.2f}"
                print(row, flush=True)


def with_joined_dots(camera: CameraConfig) -> CameraConfig:
    """The camera with one region, the whole picture, whose dots are joined."""
    return camera.model_copy(update={"rois": {"print": RoiConfig(dot_matrix=True)}})


if __name__ == "__main__":
    main()
