"""PlanStore: the plans of a device on disk, each with what it belongs to.

plans/<model>-<fingerprint>.plan    the bytes TensorRT made
plans/<model>-<fingerprint>.json    its manifest: made from what, for which device, how long, how many bytes, sha256
plans/<model>-<fingerprint>.tries   how often a build was begun and not finished (absent: never)
plans/timing-<device>.cache         what TensorRT measured on this device; makes the next build quicker
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
from dataclasses import dataclass
from pathlib import Path

from edge_agent.backends.plan import Environment, Manifest, PlanKey
from edge_agent.errors import ModelError
from edge_agent.files import PARTIAL, service_state_dir, write_atomically

MAX_TRIES = 3  # begun and unfinished builds of one plan before we stop trying by ourselves (field case ENG-7)
PLANS_KEPT = 2  # per model: the one in use and the one before it
ONNX_SECOND_FIELDS = (b"\x12", b"\x3a", b"\x42")  # what follows an ONNX file's version: producer, graph or opset


class PlanUnusable(ModelError):
    """There is no plan to load: never built, built for something else, or damaged; the message says which."""


class PlansBusy(PlanUnusable):
    """Another process builds plans in the folder now."""


def find_plans_dir(models_dir: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Where plans lie: `plans` in the service's state directory, else beside the models."""
    return (service_state_dir(environ) or models_dir) / "plans"


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


def _glob_safe(model: str) -> str:
    return re.sub(r"([\[\]*?])", r"[\1]", model)
