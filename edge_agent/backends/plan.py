"""Plan: a serialised TensorRT engine on disk that knows where it belongs; PlanStore keeps them.

    plans/<model>-<fingerprint>.plan    the bytes TensorRT made
    plans/<model>-<fingerprint>.json    its manifest: made from what, for which device, how long, how many bytes, sha256
    plans/<model>-<fingerprint>.tries   how often a build was begun and not finished (absent: never)
    plans/timing-<device>.cache         what TensorRT measured on this device; makes the next build quicker

Nothing here needs TensorRT: a plan is judged from its manifest and its sha256 before TensorRT sees a byte of it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast

from edge_agent.backends.base import Profile, Shape
from edge_agent.errors import ModelError
from edge_agent.files import PARTIAL, service_state_dir, write_atomically

Precision = Literal["fp16", "fp32", "int8"]
PRECISIONS: tuple[Precision, ...] = ("fp16", "fp32", "int8")

MANIFEST_VERSION = 1
MAX_TRIES = 3  # begun and unfinished builds of one plan before we stop trying by ourselves (field case ENG-7)
PLANS_KEPT = 2  # per model: the one in use and the one before it
TEGRA_RELEASE = Path("/etc/nv_tegra_release")
CHUNK_BYTES = 1 << 20
ONNX_SECOND_FIELDS = (b"\x12", b"\x3a", b"\x42")  # what follows an ONNX file's version: producer, graph or opset
QUANTISED = b"QuantizeLinear"  # how an ONNX file spells the operator


class PlanUnusable(ModelError):
    """There is no plan to load: never built, built for something else, or damaged; the message says which."""


class PlansBusy(PlanUnusable):
    """Another process builds plans in the folder now."""


@dataclass(frozen=True)
class Environment:
    """What a plan is bound to besides its model: TensorRT to the build number, the GPU, the board's release."""

    tensorrt: str
    compute_capability: str
    gpu: str
    sm_count: int
    l4t: str | None = None

    @property
    def fingerprint(self) -> str:
        """Names the device for its timing cache. The L4T release is no part of it: it moves no tactic."""
        return _digest([self.tensorrt, self.compute_capability, self.gpu, self.sm_count])


@dataclass(frozen=True)
class BuildOptions:
    """How to build. `tactic_sources`: names of trt.TacticSource, None for TensorRT's own choice.

    `explicit_half`: fp16 by converting the graph itself, where TensorRT could also choose a precision per layer.
    """

    precision: Precision = "fp16"
    optimisation_level: int = 3
    dla_core: int | None = None
    hardware_compatible: bool = False
    tactic_sources: tuple[str, ...] | None = None
    explicit_half: bool = False


@dataclass(frozen=True)
class PlanKey:
    """All that decides whether a plan may be used; `fingerprint` puts it in a file name."""

    model: str
    model_sha256: str
    profiles: tuple[Profile, ...]
    options: BuildOptions
    environment: Environment

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits; equal keys have equal ones."""
        return _digest(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Plain values, the manifest's first half."""
        return {
            "model": self.model,
            "model_sha256": self.model_sha256,
            **asdict(self.environment),
            **{name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self.options).items()},
            "profiles": [profile_to_json(profile) for profile in self.profiles],
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> PlanKey:
        """The inverse of `to_json`; KeyError, TypeError or ValueError for anything else."""
        precision, sources = value["precision"], value["tactic_sources"]
        if precision not in PRECISIONS:
            raise ValueError(f"precision {precision!r}")
        return PlanKey(
            model=str(value["model"]),
            model_sha256=str(value["model_sha256"]),
            profiles=tuple(profile_from_json(profile) for profile in value["profiles"]),
            options=BuildOptions(
                precision=cast(Precision, precision),
                optimisation_level=int(value["optimisation_level"]),
                dla_core=None if value["dla_core"] is None else int(value["dla_core"]),
                hardware_compatible=bool(value["hardware_compatible"]),
                tactic_sources=None if sources is None else tuple(str(source) for source in sources),
                explicit_half=bool(value.get("explicit_half", False)),
            ),
            environment=Environment(
                tensorrt=str(value["tensorrt"]),
                compute_capability=str(value["compute_capability"]),
                gpu=str(value["gpu"]),
                sm_count=int(value["sm_count"]),
                l4t=None if value["l4t"] is None else str(value["l4t"]),
            ),
        )

    def differences(self, built: PlanKey) -> list[str]:
        """One line per value in which `built` differs from this key, the running one."""
        running, other = self.to_json(), built.to_json()
        return [
            f"{name}: built with {_short(other[name])}, running with {_short(running[name])}"
            for name in running
            if other[name] != running[name]
        ]


@dataclass(frozen=True)
class Manifest:
    """What lies beside a plan. `workspace_bytes` and the times say how it was built and bind it to nothing."""

    key: PlanKey
    plan_bytes: int
    plan_sha256: str
    built_at: float
    build_s: float
    workspace_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Plain values, as they are stored."""
        return {
            "v": MANIFEST_VERSION,
            **self.key.to_json(),
            "plan_bytes": self.plan_bytes,
            "plan_sha256": self.plan_sha256,
            "built_at": self.built_at,
            "build_s": self.build_s,
            "workspace_bytes": self.workspace_bytes,
        }

    @staticmethod
    def from_json(value: Any) -> Manifest:
        """The inverse of `to_json`; KeyError, TypeError or ValueError for anything else."""
        if not isinstance(value, dict) or value.get("v") != MANIFEST_VERSION:
            raise ValueError(f"not a plan manifest of version {MANIFEST_VERSION}")
        return Manifest(
            key=PlanKey.from_json(value),
            plan_bytes=int(value["plan_bytes"]),
            plan_sha256=str(value["plan_sha256"]),
            built_at=float(value["built_at"]),
            build_s=float(value["build_s"]),
            workspace_bytes=int(value["workspace_bytes"]),
        )


@dataclass(frozen=True)
class StoredPlan:
    """Bytes that were just compared with their manifest."""

    manifest: Manifest
    content: bytes


class PlanStore:
    """A folder of plans. Writes are atomic; what is damaged is moved to `<name>.bad` (one per name) and said."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self.directory = directory
        self.clock = clock

    def plan_path(self, key: PlanKey) -> Path:
        """Where the plan of `key` lies or would lie."""
        return self.directory / f"{key.model}-{key.fingerprint}.plan"

    def load(self, key: PlanKey) -> StoredPlan:
        """The plan made for exactly this key, checked. PlanUnusable says why there is none; damage is moved aside."""
        path = self.plan_path(key)
        if not path.exists():
            raise PlanUnusable(self._why_absent(key))
        return self._checked(path, key)

    def last_good(self, key: PlanKey) -> StoredPlan | None:
        """The newest other plan of the same model file for the same environment: built with other options or shapes."""
        for manifest in self.manifests(key.model):
            same = manifest.key.model_sha256 == key.model_sha256 and manifest.key.environment == key.environment
            if same and manifest.key != key:
                try:
                    return self.load(manifest.key)
                except PlanUnusable:
                    continue
        return None

    def manifests(self, model: str) -> list[Manifest]:
        """The readable manifests of a model's plans, newest first."""
        found = []
        for path in self.directory.glob(f"{_glob_safe(model)}-*.json"):
            try:
                manifest = _read_manifest(path)
            except PlanUnusable:
                continue
            if manifest.key.model == model:
                found.append(manifest)
        return sorted(found, key=lambda manifest: manifest.built_at, reverse=True)

    def save(self, key: PlanKey, content: bytes, build_s: float, workspace_bytes: int) -> Manifest:
        """Stores a plan that was just built, forgets its tries and prunes older ones. The manifest is written last."""
        digest = hashlib.sha256(content).hexdigest()
        manifest = Manifest(key, len(content), digest, self.clock(), round(build_s, 3), workspace_bytes)
        path = self.plan_path(key)
        write_atomically(path, content)
        write_atomically(path.with_suffix(".json"), json.dumps(manifest.to_json(), indent=1).encode())
        self.forget_tries(key)
        self._prune(key)
        return manifest

    def set_aside(self, path: Path, reason: str) -> str:
        """Moves a plan and its manifest to `.bad` and returns the sentence that tells of it."""
        for part in (path, path.with_suffix(".json")):
            if part.exists():
                part.replace(part.with_name(part.name + ".bad"))
        return f"{path.name} {reason}; moved to {path.name}.bad, it will be built again"

    def tries(self, key: PlanKey) -> int:
        """How many builds of this plan were begun since the last one that ended well."""
        try:
            return int(self._tries_path(key).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0

    def begin_try(self, key: PlanKey) -> None:
        """Counts a build before it begins, so that one that kills the whole board counts too.

        PlanUnusable once MAX_TRIES builds did not end well: a restart must not begin the same build for ever.
        """
        tries = self.tries(key)
        if tries >= MAX_TRIES:
            raise PlanUnusable(
                f"{key.model}: {tries} builds of this plan failed or were killed; not trying again by itself. "
                f"Free memory or lower the workspace, then run: edge-agent build {key.model}"
            )
        self.put_tries(key, tries + 1)

    def put_tries(self, key: PlanKey, tries: int) -> None:
        """Sets the count, where one knows better than `begin_try` did: a build that was broken off is no failure."""
        if tries == 0:
            self.forget_tries(key)
        else:
            write_atomically(self._tries_path(key), str(tries).encode("ascii"))

    def sweep(self, key: PlanKey) -> None:
        """Removes what a builder of this plan that was ended had half written; for who holds `building`."""
        stems = (self.plan_path(key).stem, self.timing_cache_path(key.environment).stem)
        for stem in stems:
            for leftover in self.directory.glob(f".{_glob_safe(stem)}*{PARTIAL}"):
                leftover.unlink(missing_ok=True)

    def forget_tries(self, key: PlanKey) -> None:
        """Starts counting anew: a build ended well, or a person asked for one."""
        self._tries_path(key).unlink(missing_ok=True)

    def timing_cache_path(self, environment: Environment) -> Path:
        """Where this device's timing cache lies."""
        return self.directory / f"timing-{environment.fingerprint}.cache"

    def set_timing_cache_aside(self, environment: Environment) -> bool:
        """Moves this device's timing cache to `.bad`, so that the next build measures anew; whether there was one."""
        path = self.timing_cache_path(environment)
        if not path.exists():
            return False
        path.replace(path.with_name(path.name + ".bad"))
        return True

    @contextmanager
    def building(self) -> Iterator[None]:
        """Holds the folder's one build permit. PlansBusy while another process builds into the same folder."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / "build.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise PlansBusy(f"another process is building plans in {self.directory}; wait for it") from exc
            yield

    def _checked(self, path: Path, key: PlanKey) -> StoredPlan:
        try:
            manifest = _read_manifest(path.with_suffix(".json"))
        except PlanUnusable as exc:
            raise PlanUnusable(self.set_aside(path, str(exc))) from exc
        if manifest.key != key:
            raise PlanUnusable(self.set_aside(path, "belongs elsewhere: " + "; ".join(key.differences(manifest.key))))
        content = path.read_bytes()
        fault = _fault(content, manifest)
        if fault:
            raise PlanUnusable(self.set_aside(path, fault))
        return StoredPlan(manifest, content)

    def _why_absent(self, key: PlanKey) -> str:
        others = self.manifests(key.model)
        if not others:
            return f"{key.model}: no plan was built yet"
        return f"{key.model}: its newest plan does not fit: " + "; ".join(key.differences(others[0].key))

    def _tries_path(self, key: PlanKey) -> Path:
        return self.plan_path(key).with_suffix(".tries")

    def _prune(self, key: PlanKey) -> None:
        """Keeps the newest plans of a model, the given one among them, and removes the others and old temporaries."""
        kept = {key.fingerprint}
        for manifest in self.manifests(key.model):
            if len(kept) < PLANS_KEPT:
                kept.add(manifest.key.fingerprint)
            if manifest.key.fingerprint not in kept:
                path = self.plan_path(manifest.key)
                for part in (path.with_suffix(".json"), path, path.with_suffix(".tries")):
                    part.unlink(missing_ok=True)
        for leftover in self.directory.glob(f".{_glob_safe(key.model)}-*{PARTIAL}"):
            leftover.unlink(missing_ok=True)


def file_sha256(onnx_path: Path) -> str:
    """sha256 of a model file, and of the weights file beside it where there is one. ModelError if it cannot be read."""
    digest = hashlib.sha256()
    beside = [onnx_path.with_name(onnx_path.name + suffix) for suffix in (".data", "_data")]
    try:
        for path in [onnx_path, *(path for path in beside if path.is_file())]:
            with path.open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    digest.update(chunk)
    except OSError as exc:
        raise ModelError(
            f"model file {onnx_path} cannot be read: {exc.strerror}; run: edge-agent models fetch"
        ) from exc
    return digest.hexdigest()


def is_quantised(onnx_path: Path) -> bool:
    """Whether the model file has QuantizeLinear nodes; False for a file that cannot be read."""
    try:
        return QUANTISED in onnx_path.read_bytes()
    except OSError:
        return False


def has_convolutions(onnx_path: Path) -> bool:
    """Whether the model file has Conv or ConvTranspose nodes; encoders have none. True for one that cannot be read."""
    try:
        content = onnx_path.read_bytes()
    except OSError:
        return True
    return any(_operator(name) in content for name in (b"Conv", b"ConvTranspose"))


def _operator(name: bytes) -> bytes:
    """How a node's op_type stands in an ONNX file: field 4, length, text."""
    return b"\x22" + bytes([len(name)]) + name


def model_name(onnx_path: Path) -> str:
    """engines/<model>/model.onnx -> <model>; model.latin.onnx there -> <model>.latin; any other file its own stem.

    calibration/<model>/artefacts/<id>/model.int8.onnx -> <model>.int8, whichever artefact it is.
    """
    head, _, variant = onnx_path.stem.partition(".")
    folder = onnx_path.absolute().parent
    if folder.parent.name == "artefacts":
        folder = folder.parent.parent
    if head != "model" or not folder.name:
        return onnx_path.stem
    return ".".join(filter(None, (folder.name, variant)))


def l4t_release(path: Path = TEGRA_RELEASE) -> str | None:
    """The Jetson's L4T release, `36.4.3`, from the first line of /etc/nv_tegra_release; None where there is none."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.match(r"#\s*R(\d+).*?REVISION:\s*([0-9.]+)", text)
    return f"{match[1]}.{match[2]}" if match else None


def find_plans_dir(models_dir: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Where plans lie: `plans` in the service's state directory, else beside the models."""
    return (service_state_dir(environ) or models_dir) / "plans"


def profile_to_json(profile: Profile) -> dict[str, Any]:
    """min, opt and max as lists, inputs in alphabetical order."""
    return {
        part: {name: list(shape) for name, shape in sorted(getattr(profile, part).items())}
        for part in ("min", "opt", "max")
    }


def profile_from_json(value: Mapping[str, Any]) -> Profile:
    """The inverse of `profile_to_json`."""

    def shapes(part: str) -> dict[str, Shape]:
        return {str(name): tuple(int(d) for d in shape) for name, shape in value[part].items()}

    return Profile(shapes("min"), shapes("opt"), shapes("max"))


def _read_manifest(path: Path) -> Manifest:
    try:
        return Manifest.from_json(json.loads(path.read_bytes()))
    except FileNotFoundError as exc:
        raise PlanUnusable("has no manifest beside it: half-written, or copied here without it") from exc
    except OSError as exc:
        raise PlanUnusable(f"has a manifest that cannot be read: {exc.strerror}") from exc
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise PlanUnusable(f"has a damaged manifest ({type(exc).__name__}: {exc})") from exc


def _fault(content: bytes, manifest: Manifest) -> str | None:
    """What is wrong with a plan's bytes, in words that point to the cause."""
    if not content:
        return "is empty (0 bytes)"
    if hashlib.sha256(content).hexdigest() == manifest.plan_sha256 and len(content) == manifest.plan_bytes:
        return None
    if content.startswith(b"version https://git-lfs"):
        return "is a Git LFS pointer, not a plan: run git lfs pull, or keep plans out of Git"
    if content[:1] == b"\x08" and content[2:3] in ONNX_SECOND_FIELDS:
        return "is an ONNX file under a plan's name"
    if len(content) != manifest.plan_bytes:
        how = "is truncated" if len(content) < manifest.plan_bytes else "is too long"
        return f"{how}: {len(content)} bytes, expected {manifest.plan_bytes}"
    return f"is damaged: its sha256 is not the {manifest.plan_sha256[:12]}... that was stored"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _short(value: Any) -> str:
    text = json.dumps(value) if isinstance(value, (list, dict)) else str(value)
    return text if len(text) <= 400 else text[:397] + "..."


def _glob_safe(model: str) -> str:
    return re.sub(r"([\[\]*?])", r"[\1]", model)
