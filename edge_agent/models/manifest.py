"""Manifest: what `models fetch` made, from what and with which builder; how damage is found later.

manifest.json  {"v": 1, "recipe": sha256, "onnx": version, "sources": {role: sha256},
                "checked": true, "files": {name: {"sha256": ..., "bytes": ...}}}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edge_agent import files
from edge_agent.errors import ModelError
from edge_agent.models.digest import sha256_of
from edge_agent.models.spec import MANIFEST_FILE, ModelSpec

VERSION = 1
# the code that decides what the built files hold: a change in any of them means building afresh
BUILDER_FILES = ("build.py", "surgery.py", "graph.py", "rewrite.py", "charset.py", "bert.py", "encoder.py")
BUILD_KEYS: Any = {
    "name": True,
    "task": True,
    "source": {"wheel": True, "files": True},
    "inputs": True,
    "outputs": True,
    "normalisation": True,
    "recogniser": {"height_px", "charset", "space_appended", "variants"},
}


@dataclass(frozen=True)
class Manifest:
    """What lies beside a model.yaml; `checked` tells whether the result was compared with the original graph."""

    recipe: str
    onnx_version: str
    sources: Mapping[str, str]
    checked: bool
    files: Mapping[str, tuple[str, int]]

    def to_bytes(self) -> bytes:
        """The manifest as JSON."""
        value = {
            "v": VERSION,
            "recipe": self.recipe,
            "onnx": self.onnx_version,
            "sources": dict(self.sources),
            "checked": self.checked,
            "files": {name: {"sha256": sha, "bytes": size} for name, (sha, size) in sorted(self.files.items())},
        }
        return json.dumps(value, indent=2).encode() + b"\n"

    @staticmethod
    def read(directory: Path) -> Manifest | None:
        """The manifest in a model's folder; None where there is none that can be read."""
        try:
            value = json.loads((directory / MANIFEST_FILE).read_bytes())
            if value["v"] != VERSION:
                return None
            return Manifest(
                recipe=str(value["recipe"]),
                onnx_version=str(value["onnx"]),
                sources={str(role): str(sha) for role, sha in value["sources"].items()},
                checked=bool(value["checked"]),
                files={str(n): (str(e["sha256"]), int(e["bytes"])) for n, e in value["files"].items()},
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None


def recipe_hash(spec: ModelSpec) -> str:
    """Names how the files are made: the builder's code and what of model.yaml it reads."""
    digest = hashlib.sha256(spec.model_dump_json(include=BUILD_KEYS).encode())
    for name in BUILDER_FILES:
        path = Path(__file__).with_name(name)
        if path.exists():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def faults(spec: ModelSpec, directory: Path) -> list[str]:
    """What is wrong with a model's files, a line each, by their sha256; empty when all is well."""
    expected = [path.name for variant in spec.variants for path in spec.files(variant).paths]
    expected = list(dict.fromkeys(expected))
    manifest = Manifest.read(directory)
    if manifest is None:
        there = [name for name in expected if (directory / name).exists()]
        return [f"{MANIFEST_FILE} is {'damaged or missing' if there else 'missing: the model was never fetched'}"]
    found = []
    for name in expected:
        path = directory / name
        sha, size = manifest.files.get(name, ("", -1))
        if not path.is_file():
            found.append(f"{name} is missing")
        elif path.stat().st_size != size:
            found.append(f"{name} has {path.stat().st_size} bytes, expected {size}")
        elif sha256_of(path) != sha:
            found.append(f"{name} was changed: its sha256 differs from the manifest's")
    return found


def state(spec: ModelSpec, directory: Path) -> str:
    """`ready`, `missing`, `damaged`, or `outdated` (made by another builder or from another model.yaml)."""
    manifest = Manifest.read(directory)
    names = {path.name for variant in spec.variants for path in spec.files(variant).paths}
    there = {name for name in names if (directory / name).is_file()}
    if not there:
        return "missing"
    if faults(spec, directory):
        return "damaged"
    return "ready" if manifest is not None and manifest.recipe == recipe_hash(spec) else "outdated"


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file so that a crash leaves the old one or the new one; ModelError where the folder refuses it."""
    try:
        files.write_atomically(path, content)
    except OSError as exc:
        raise ModelError(f"{path} cannot be written: {exc.strerror}; check the folder's owner and free space") from exc
