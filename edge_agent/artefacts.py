"""Artefact: a quantised model file that earned its place here; Artefacts keeps those of one model and the promoted one.

    <calibration>/<model>/artefacts/<id>/model.int8.onnx    immutable, as its manifest
    <calibration>/<model>/artefacts/<id>/manifest.json      made from what, for which device, how it was judged, sha256
    <calibration>/<model>/promoted.json                     which of them is in use; none: the float model

Whatever ends the process or the power, promoted.json names the former artefact or the new one, and each is whole.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from edge_agent.errors import CalibrationRefused, ConfigError, ModelError
from edge_agent.files import service_state_dir, sync_folder, write_atomically
from edge_agent.models.digest import sha256_of
from edge_agent.models.spec import NAME_PATTERN

VERSION = 1
ARTEFACTS_KEPT = 3
ONNX_FILE = "model.int8.onnx"
MANIFEST_FILE = "manifest.json"
PROMOTED_FILE = "promoted.json"
DIRECTORY = "artefacts"
UNFINISHED = ".unfinished-"
DEFAULT_DIRECTORY = "calibration"
ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{12}")
# how the operator types stand in an ONNX file: field 4 of a node, length, text
NODES = {name: b"\x22" + bytes([len(name)]) + name.encode() for name in ("QuantizeLinear", "DequantizeLinear")}


class ArtefactUnfit(ModelError):
    """The promoted artefact was made for something else than what runs here; the message says what differs."""


class ArtefactUnusable(ModelError):
    """The promoted artefact is missing or damaged, or what says which one it is."""


@dataclass(frozen=True)
class Binding:
    """What an artefact holds for; with anything else its ranges, or the verdict on it, mean nothing.

    `scheme`: the backend it was written for. `source_sha256`: of the float model file. `preprocessing`: what a stage
    makes of a frame or text before the engine. `device`, `versions`: as the backend names them.
    """

    model: str
    variant: str
    scheme: str
    source_sha256: str
    preprocessing: Mapping[str, Any]
    device: Mapping[str, str]
    versions: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Plain values, members of a manifest."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # tuples are lists there
        return plain

    def differences(self, manifest: Mapping[str, Any]) -> list[str]:
        """One line per value in which a manifest differs from this, the running one."""
        made, here = dict(_flat(manifest)), dict(_flat(self.to_json()))
        names = [name for name in {**here, **made} if name.partition(".")[0] in _MEMBERS]
        return [
            f"{name.replace('.', ' ')}: made with {_shown(made.get(name))}, running with {_shown(here.get(name))}"
            for name in names
            if made.get(name) != here.get(name)
        ]


_MEMBERS = tuple(field.name for field in fields(Binding))


@dataclass(frozen=True)
class Artefact:
    """One stored artefact; `manifest` as `Artefacts.store` was given it, with `v`, `id`, `sha256` and `bytes`."""

    id: str
    directory: Path
    onnx: Path
    manifest: Mapping[str, Any]


@dataclass(frozen=True)
class Promotion:
    """Which artefact is in use, None for the float model, and which was before it."""

    active: str | None = None
    previous: str | None = None
    promoted_at: float | None = None


class Artefacts:
    """The artefacts of one model. Writers exclude one another; readers need no lock."""

    def __init__(self, calibration_dir: Path, model: str, clock: Callable[[], float] = time.time) -> None:
        """Touches nothing. ConfigError for what cannot be a model's name."""
        if not NAME_PATTERN.fullmatch(model):
            raise ConfigError(
                f"{model!r} is no model name; expected 1 to 64 letters, digits, dots, dashes, underscores"
            )
        self.model = model
        self.directory = calibration_dir / model
        self._clock = clock

    @property
    def promoted_path(self) -> Path:
        """The file whose replacement is the promotion."""
        return self.directory / PROMOTED_FILE

    def store(self, content: bytes, manifest: Mapping[str, Any]) -> Artefact:
        """Keeps a quantised file; it is in use only once it is promoted.

        `manifest` needs the members of a Binding, `collection` (its digest), `method`, `batches` that its ranges come
        from, and `judgement` with `passed` true. CalibrationRefused where that is not so, or nothing is quantised.
        """
        made_at = float(manifest.get("made_at", self._clock()))
        digest = hashlib.sha256(content).hexdigest()
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(made_at))
        whole = {
            **manifest,
            "v": VERSION,
            "id": f"{stamp}-{digest[:12]}",
            "made_at": made_at,
            "sha256": digest,
            "bytes": len(content),
        }
        lacking = [*_lacking(whole, self.model), *_not_quantised(content)]
        if lacking:
            raise CalibrationRefused(f"{self.model}: this cannot become an artefact: {'; '.join(lacking)}")
        try:
            written = json.dumps(whole, indent=1, sort_keys=True, allow_nan=False).encode()
        except (TypeError, ValueError) as exc:
            raise CalibrationRefused(f"{self.model}: the manifest of an artefact is no strict JSON: {exc}") from exc
        with self._writing():
            self._sweep()
            folder = self._folder(whole["id"])
            if not folder.exists():
                self._write(folder, content, written)
        return self.get(whole["id"])

    def get(self, artefact_id: str) -> Artefact:
        """The artefact of that id, compared with its manifest; ArtefactUnusable says what is wrong with it."""
        if not ID.fullmatch(artefact_id):
            raise ArtefactUnusable(f"{self.model}: {artefact_id[:100]!r} is no artefact's id")
        folder = self._folder(artefact_id)
        manifest = self._manifest(artefact_id)
        try:
            right = sha256_of(folder / ONNX_FILE) == manifest["sha256"]
        except ModelError as exc:
            raise ArtefactUnusable(f"{self.model}: artefact {artefact_id} is not whole: {exc}") from exc
        if not right:
            raise ArtefactUnusable(f"{self.model}: artefact {artefact_id} is damaged: its sha256 is not its manifest's")
        return Artefact(artefact_id, folder, folder / ONNX_FILE, manifest)

    def stored(self) -> list[str]:
        """The ids of all that are kept, oldest first."""
        try:
            return sorted(path.name for path in (self.directory / DIRECTORY).iterdir() if ID.fullmatch(path.name))
        except OSError:
            return []

    def promotion(self) -> Promotion:
        """Which artefact is in use; none where nothing was ever promoted. ArtefactUnusable where that is not known."""
        try:
            value = json.loads(self.promoted_path.read_bytes())
            known = value["v"] == VERSION
            active, previous, promoted_at = value["active"], value["previous"], value["promoted_at"]
        except FileNotFoundError:
            return Promotion()
        except OSError as exc:
            raise ArtefactUnusable(f"{self.promoted_path} cannot be read: {exc.strerror}") from exc
        except (ValueError, KeyError, TypeError) as exc:
            raise ArtefactUnusable(f"{self.promoted_path} is damaged ({type(exc).__name__}: {exc})") from exc
        if not known or not all(each is None or isinstance(each, str) for each in (active, previous)):
            raise ArtefactUnusable(f"{self.promoted_path} is not of version {VERSION}")
        return Promotion(active, previous, promoted_at)

    def active(self, binding: Binding) -> Artefact | None:
        """The promoted artefact, if it holds for `binding`; None where the float model is in use.

        Raises ArtefactUnfit where it was made for something else, ArtefactUnusable where it is damaged or missing.
        """
        active = self.promotion().active
        if active is None:
            return None
        artefact = self.get(active)
        differing = binding.differences(artefact.manifest)
        if differing:
            raise ArtefactUnfit(f"{self.model}: its INT8 artefact {active} does not fit: {'; '.join(differing)}")
        return artefact

    def promote(self, artefact_id: str) -> Promotion:
        """Puts a stored artefact to use and prunes older ones. ArtefactUnusable where it is not whole."""
        self.get(artefact_id)
        with self._writing():
            try:
                former = self.promotion()
            except ArtefactUnusable:
                former = Promotion()
            previous = former.previous if former.active == artefact_id else former.active
            return self._say(Promotion(artefact_id, previous, self._clock()))

    def rollback(self, *, to_float: bool = False) -> Promotion:
        """Puts the artefact before to use, or the float model where there is none that is whole, or with `to_float`.

        Raises CalibrationRefused where the float model is in use already.
        """
        nothing = (
            f"{self.model}: nothing to roll back to: the float model is in use ({self.promoted_path} names no other)"
        )
        if not self.promoted_path.exists():
            raise CalibrationRefused(nothing)
        with self._writing():
            try:
                former = self.promotion()
            except ArtefactUnusable:
                return self._say(Promotion(promoted_at=self._clock()))
            if former.active is None:
                raise CalibrationRefused(nothing)
            back = None if to_float else former.previous
            try:
                back = None if back is None else self.get(back).id
            except ArtefactUnusable:
                back = None
            return self._say(Promotion(back, None, self._clock()))

    def mark(self, artefact_id: str | None) -> tuple[tuple[int, int, int] | None, ...]:
        """Changes when promoted.json or a file of the artefact is replaced, damaged, removed or mended; stats alone."""
        paths = [self.promoted_path]
        if artefact_id is not None and ID.fullmatch(artefact_id):
            paths += [self._folder(artefact_id) / name for name in (ONNX_FILE, MANIFEST_FILE)]
        return tuple(_stat(path) for path in paths)

    def _folder(self, artefact_id: str) -> Path:
        return self.directory / DIRECTORY / artefact_id

    def _manifest(self, artefact_id: str) -> dict[str, Any]:
        try:
            manifest = json.loads((self._folder(artefact_id) / MANIFEST_FILE).read_bytes())
            lacking = _lacking(manifest, self.model)
        except OSError as exc:
            raise ArtefactUnusable(f"{self.model}: artefact {artefact_id} cannot be read: {exc.strerror}") from exc
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise ArtefactUnusable(f"{self.model}: artefact {artefact_id} has a damaged manifest ({exc})") from exc
        if lacking or manifest.get("id") != artefact_id:
            said = "; ".join(lacking) or f"it is that of {str(manifest.get('id'))[:100]}"
            raise ArtefactUnusable(f"{self.model}: artefact {artefact_id} has a manifest that does not do: {said}")
        return dict(manifest)

    def _say(self, promotion: Promotion) -> Promotion:
        write_atomically(self.promoted_path, json.dumps({"v": VERSION, **asdict(promotion)}, indent=1).encode())
        self._prune(promotion)
        return promotion

    def _prune(self, promotion: Promotion) -> None:
        """Removes what is neither in use, nor the one before, nor among the newest ARTEFACTS_KEPT, and leftovers."""
        kept = {promotion.active, promotion.previous} - {None}
        for artefact_id in reversed(self.stored()):
            if len(kept) < ARTEFACTS_KEPT:
                kept.add(artefact_id)
            if artefact_id not in kept:
                self._remove(self._folder(artefact_id))
        self._sweep()

    def _write(self, folder: Path, content: bytes, manifest: bytes) -> None:
        """The folder with both files, under its name only once all of it is on the disk."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder.parent))
        try:
            write_atomically(unfinished / ONNX_FILE, content)
            write_atomically(unfinished / MANIFEST_FILE, manifest)
            unfinished.chmod(0o755)
            unfinished.replace(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        sync_folder(folder.parent)

    def _remove(self, folder: Path) -> None:
        """Out of the way first, so that none is met half-removed."""
        unfinished = folder.with_name(f"{UNFINISHED}{folder.name}")
        shutil.rmtree(unfinished, ignore_errors=True)
        folder.replace(unfinished)
        shutil.rmtree(unfinished, ignore_errors=True)

    def _sweep(self) -> None:
        """Removes what a process that was ended had half written or half removed; for who holds the lock."""
        for leftover in (self.directory / DIRECTORY).glob(f"{UNFINISHED}*"):
            shutil.rmtree(leftover, ignore_errors=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self.directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.directory, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def find_calibration_dir(configured: Path | None, models_dir: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Where calibrations lie: the configured folder; else `calibration` in the service's state directory, else beside
    the folder of the models."""
    if configured is not None:
        return configured
    return (service_state_dir(environ) or models_dir.absolute().parent) / DEFAULT_DIRECTORY


def _lacking(manifest: Mapping[str, Any], model: str) -> list[str]:
    """What a manifest does not have and must."""
    faults = [f"{name} is missing" for name in _MEMBERS if not manifest.get(name)]
    if manifest.get("v") != VERSION:
        faults.append(f"its version is {manifest.get('v')!r}, expected {VERSION}")
    if manifest.get("model") != model:
        faults.append(f"it is for model {manifest.get('model')!r}, expected {model}")
    faults += [f"{name} is missing" for name in ("collection", "method", "sha256") if not _is_text(manifest.get(name))]
    batches = manifest.get("batches")
    if not isinstance(batches, int) or isinstance(batches, bool) or batches < 1:
        faults.append(f"its ranges come from {batches!r} batches, expected at least 1")
    judgement = manifest.get("judgement")
    if not isinstance(judgement, Mapping) or judgement.get("passed") is not True:
        faults.append("no judgement passed it")
    return faults


def _not_quantised(content: bytes) -> list[str]:
    return [f"the model has no {name} node" for name, node in NODES.items() if node not in content]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _shown(value: Any) -> str:
    text = "nothing" if value is None else value if isinstance(value, str) else json.dumps(value)
    if re.fullmatch(r"[0-9a-f]{64}", text):
        return f"{text[:12]}..."
    return text if len(text) <= 200 else f"{text[:200]}..."


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
