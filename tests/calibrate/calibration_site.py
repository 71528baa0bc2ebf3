"""A small site to calibrate at: real labels, real models, a recipe that holds on any machine and takes seconds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from edge_agent import config as configuration
from edge_agent.calibrate.run import calibrate
from edge_agent.calibrate.wish import Wish
from edge_agent.config import Config
from edge_agent.models.spec import find_models_dir
from tests.calibrate.made_frames import folder_of
from tests.light import LIGHT

MODEL = "ppocrv6-small-rec"
PIPELINE: dict[str, Any] = {**LIGHT, "recogniser": MODEL}
FRAMES = range(8)
# Two groups of layers, one way to choose ranges, gates that anything sensible holds and no clock decides.
LENIENT = {"max_cer_increase": 0.3, "max_changed_fields": 1.0, "min_speedup": 0.0}
RECIPE: dict[str, Any] = {
    "method": "minmax",
    "float_groups": ["stem", "full.*", "depthwise.*", "pointwise.s4", "pointwise.s48"],
    "most_trials": 8,
    "timing_s": 0.01,
    "gates": LENIENT,
}


class Heard:
    """Events that are kept."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, float, str | None]] = []
        self.notes: list[str] = []
        self.outcomes: list[dict[str, Any]] = []

    def progress(self, step: str, share: float, model: str | None = None) -> None:
        self.steps.append((step, share, model))

    def note(self, message: str) -> None:
        self.notes.append(message)

    def outcome(self, outcome: dict[str, object]) -> None:
        self.outcomes.append(dict(outcome))


class Stopped(Exception):
    """A calibration was ended by who listens to it."""


class Until(Heard):
    """Events that are kept, up to the first of a step: then `do` is done, which may end it."""

    def __init__(self, step: str, do: Callable[[], None]) -> None:
        super().__init__()
        self._step = step
        self._do = do
        self._done = False

    def progress(self, step: str, share: float, model: str | None = None) -> None:
        super().progress(step, share, model)
        if step == self._step and not self._done:
            self._done = True
            self._do()


def stop() -> None:
    raise Stopped


class Site:
    """A folder with frames, settings, recipe and calibrations."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.frames = folder / "frames"
        self.calibration = folder / "calibration"
        self.model = self.calibration / MODEL
        self.config_file = folder / "config.yaml"
        self.models_dir = find_models_dir()

    @classmethod
    def made(cls, folder: Path, frames: Iterable[int] = FRAMES, **recipe: Any) -> Site:
        """A fresh one."""
        site = cls(folder)
        folder_of(site.frames, list(frames))
        site.model.mkdir(parents=True)
        site.write_recipe(**recipe)
        site.write_settings()
        return site

    def copied(self, folder: Path) -> Site:
        """The same elsewhere, with all that was calibrated."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        site = Site(folder)
        site.write_settings()
        return site

    def write_recipe(self, **changes: Any) -> None:
        (self.model / "recipe.yaml").write_text(json.dumps({**RECIPE, **changes}))

    def write_settings(self, **changes: Any) -> None:
        values = {
            "pipeline": PIPELINE,
            "backend": {"threads": 1},
            "calibration": {"directory": str(self.calibration)},
            **changes,
        }
        self.config_file.write_text(json.dumps(values))

    @property
    def settings(self) -> Config:
        return configuration.load(self.config_file, {})

    def wish(self, **changes: Any) -> Wish:
        """To calibrate the model from the frames."""
        wish = Wish((MODEL,), "folder", str(self.frames), settings=configuration.plain(self.settings))
        return replace(wish, models_dir=self.models_dir, **changes)

    def calibrate(self, heard: Heard | None = None, **changes: Any) -> Heard:
        """Does it here and now."""
        heard = heard or Heard()
        calibrate(self.wish(**changes), heard)
        return heard

    def report(self) -> dict[str, Any]:
        return dict(json.loads((self.model / "report.json").read_text()))

    def trials(self) -> dict[str, dict[str, Any]]:
        """What is kept of the search."""
        return dict(json.loads((self.model / "work" / "trials.json").read_text())["value"])
