"""Fetch: gets what models are made from, makes their files and checks them against the originals.

Files are written last, each whole or not at all, and the manifest after them: a fetch that was cut short is found
and done again. Nothing is downloaded at any other time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import onnx

from edge_agent.models import charset, check
from edge_agent.models.build import Built, build, free_tokenizer
from edge_agent.models.manifest import Manifest, recipe_hash, state, write_atomically
from edge_agent.models.spec import MANIFEST_FILE, ModelSpec, Role, Variant, model_directory
from edge_agent.models.wheels import Say, SourceFiles


def fetch(
    models_dir: Path, names: Iterable[str], say: Say, *, wheels_from: Path | None = None, force: bool = False
) -> list[str]:
    """Makes the files of the named models and returns the names of those that were made; ready ones are skipped.

    `wheels_from` is a folder with wheels or extracted files, and then the network is not used. Raises ModelError at
    the first model that cannot be made; those before it are in place.
    """
    specs = [ModelSpec.load(models_dir, name) for name in names]
    made = []
    with SourceFiles(wheels_from, say) as sources:
        for spec in specs:
            directory = model_directory(models_dir, spec.name)
            if not force and state(spec, directory) == "ready":
                say(f"{spec.name}: ready, nothing to do")
                continue
            fetch_one(spec, directory, sources, say)
            made.append(spec.name)
    return made


def fetch_one(spec: ModelSpec, directory: Path, sources: SourceFiles, say: Say) -> None:
    """Makes one model's files in its folder."""
    contents = sources.read(spec.source, directory)
    say(f"{spec.name}: building")
    built = build(spec, contents)
    files = files_of(spec, built, contents)
    say(f"{spec.name}: comparing with the original")
    checked = check.verify_built(spec, contents, built, directory, say)
    for name, content in files.items():
        write_atomically(directory / name, content)
    manifest = Manifest(
        recipe=recipe_hash(spec),
        onnx_version=str(onnx.__version__),
        sources={role: hashlib.sha256(content).hexdigest() for role, content in contents.items()},
        checked=checked,
        files={name: (hashlib.sha256(content).hexdigest(), len(content)) for name, content in files.items()},
    )
    write_atomically(directory / MANIFEST_FILE, manifest.to_bytes())
    total = sum(map(len, files.values()))
    say(f"{spec.name}: ready, {len(files)} files, {total / 1e6:.1f} MB")


def files_of(spec: ModelSpec, built: Mapping[Variant, Built], sources: Mapping[Role, bytes]) -> dict[str, bytes]:
    """File name -> content for all variants of a model."""
    files: dict[str, bytes] = {}
    for variant, result in built.items():
        names = spec.files(variant)
        files[names.onnx.name] = result.model.SerializeToString(deterministic=True)
        if names.charset is not None:
            files[names.charset.name] = charset.write(result.charset)
        if names.tokenizer is not None:
            files[names.tokenizer.name] = free_tokenizer(sources["tokenizer"], spec.name)
    return files
