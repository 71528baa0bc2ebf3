"""Subject: one model on its way to INT8: its float file, groups, ranges, and the candidates written from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import onnx
import onnxruntime

from edge_agent import __version__
from edge_agent.artefacts import Binding
from edge_agent.backends.base import Backend, Engine, Feed, Profile
from edge_agent.calibrate import placement
from edge_agent.calibrate.bound_cache import BoundCache
from edge_agent.calibrate.feed_store import FeedStore
from edge_agent.calibrate.groups import Group, groups_of
from edge_agent.calibrate.quantise import Scheme, quantise, tensors_to_measure
from edge_agent.calibrate.ranges import Ranges, measure
from edge_agent.calibrate.recipe import METHODS, Method, Recipe
from edge_agent.calibrate.smoothing import divisors_of, smoothed
from edge_agent.calibrate.trial import BuildFailed
from edge_agent.errors import CalibrationRefused, ModelError
from edge_agent.files import write_atomically
from edge_agent.models.spec import Task
from edge_agent.served_model import ServedModel

WORK_FOLDER = "work"
# Beside the artefacts and not below them: a plan is named after the folder of its model, so that the plan of a
# candidate is found again when the same bytes have become an artefact.
CANDIDATE_FILE = "model.int8.onnx"


@dataclass(frozen=True, eq=False)
class Subject:
    """What is calibrated. `directory`: the model's folder of calibrations; `binding`: what the result will hold for."""

    binding: Binding
    task: Task
    onnx_path: Path
    profiles: tuple[Profile, ...]
    recipe: Recipe
    directory: Path
    feeds: FeedStore
    float_model: onnx.ModelProto
    groups: tuple[Group, ...]

    @classmethod
    def of(cls, served: ServedModel, task: Task, recipe: Recipe, directory: Path, feeds: FeedStore) -> Subject:
        """Reads the float file. ConfigError where the recipe names what the model lacks, CalibrationRefused where
        nothing of the model can be quantised."""
        model = onnx.load(served.onnx_path)
        groups = groups_of(model, task, recipe)
        if all(group.default_float for group in groups):
            raise CalibrationRefused(
                f"{served.binding.model}: every group of its layers stays float; see its recipe.yaml"
            )
        return cls(served.binding, task, served.onnx_path, served.profiles, recipe, directory, feeds, model, groups)

    @property
    def model(self) -> str:
        """Its name."""
        return self.binding.model

    @property
    def scheme(self) -> Scheme:
        """How Q/DQ are placed: as the backend wants it."""
        return cast(Scheme, self.binding.scheme)

    @property
    def methods(self) -> tuple[Method, ...]:
        """The ways to choose ranges that are tried."""
        return METHODS if self.recipe.method == "auto" else (self.recipe.method,)

    @property
    def candidate_path(self) -> Path:
        """Where the file on trial lies."""
        return self.directory / CANDIDATE_FILE

    def nodes(self, names: Iterable[str]) -> tuple[str, ...]:
        """The nodes of these groups."""
        wanted = set(names)
        return tuple(node for group in self.groups if group.name in wanted for node in group.nodes)

    def facts(self) -> dict[str, object]:
        """All that ranges depend on, by name."""
        return {
            "binding": asdict(self.binding),
            "feeds": self.feeds.digest,
            "recorded": self.feeds.binding.key,
            "methods": self.methods,
            "percentile": self.recipe.percentile,
            "smoothing": self.recipe.smoothing,
            "groups": [[group.name, group.nodes, group.default_float] for group in self.groups],
            "versions": {
                "edge_agent": __version__,
                "numpy": np.__version__,
                "onnx": onnx.__version__,
                "onnxruntime": onnxruntime.__version__,
            },
        }

    @property
    def ranges_cache(self) -> BoundCache:
        """Where ranges are kept; its key names all that they depend on."""
        return BoundCache(self.directory / WORK_FOLDER / "ranges.json", self.facts())

    def ranges(self, threads: int, report: Callable[[float], None]) -> Ranges:
        """The ranges of all tensors that a candidate may need; measured before or now."""
        cache = self.ranges_cache
        kept = cache.get()
        if kept is not None:
            report(1.0)
            return Ranges.from_json(kept)
        usable = self.nodes(group.name for group in self.groups if not group.default_float)
        divisors = self.divisors(usable, threads)
        model = smoothed(self.float_model, usable, divisors)
        ranges = measure(
            model,
            tensors_to_measure(model, usable, self.scheme),
            self.feeds.feeds(),
            len(self.feeds),
            self.methods,
            threads,
            report,
            self.recipe.percentile,
        )
        ranges = replace(ranges, divisors=divisors)
        cache.put(ranges.to_json())
        return ranges

    def divisors(self, nodes: Sequence[str], threads: int) -> Mapping[str, tuple[float, ...]]:
        """What channels of activations are divided by, where the recipe wants them evened out."""
        if self.recipe.smoothing is None:
            return {}
        found = divisors_of(self.onnx_path, nodes, self.feeds.feeds(), self.recipe.smoothing, threads)
        return {tensor: tuple(map(float, channels)) for tensor, channels in found.items()}

    def quantised(self, ranges: Ranges, method: Method, names: Sequence[str]) -> bytes:
        """The Q/DQ file with these groups in INT8. CalibrationRefused where it breaks the backend's rules."""
        origin = {
            "model": self.model,
            "variant": self.binding.variant,
            "source_file_sha256": self.binding.source_sha256,
            "method": method,
            "feeds": self.feeds.digest,
            "groups": ",".join(sorted(names)),
            **({"smoothing": str(self.recipe.smoothing)} if ranges.divisors else {}),
        }
        nodes = self.nodes(names)
        source = smoothed(self.float_model, nodes, ranges.divisors)
        model = quantise(source, ranges.by_method[method], nodes, self.scheme, origin)
        faults = placement.faults(model) if self.scheme == "tensorrt" else []
        if faults:
            raise CalibrationRefused(
                f"{self.model}: the quantised file breaks TensorRT's rules: {'; '.join(faults[:3])}"
            )
        return cast(bytes, model.SerializeToString(deterministic=True))

    def write_candidate(self, content: bytes) -> None:
        """Puts a candidate's bytes where `candidate_path` says."""
        write_atomically(self.candidate_path, content)

    @contextmanager
    def loaded(self, content: bytes, backend: Backend) -> Iterator[Engine]:
        """An engine of a candidate's bytes, closed at the end. BuildFailed where the backend cannot make one."""
        self.write_candidate(content)
        try:
            engine = backend.load(self.candidate_path, self.profiles)
        except ModelError as exc:
            raise BuildFailed(str(exc)) from exc
        try:
            yield engine
        finally:
            engine.close()

    def largest_feed(self) -> Feed:
        """The recorded feed that needs most memory."""
        return max(self.feeds.feeds(), key=lambda feed: sum(array.nbytes for array in feed.values()))

    def came_from(self) -> Mapping[str, str]:
        """sha256 of what an artefact is made of, by what it is."""
        return {"float model": self.binding.source_sha256, "recorded inputs": self.feeds.digest}
