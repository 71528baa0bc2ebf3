"""Allowed: which keys a wish from afar may change, and to what; each that it may not is named with the reason."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
from pydantic import SecretStr

from edge_agent.config import Config, plain, rebuilt
from edge_agent.errors import ConfigError, ModelError
from edge_agent.models.spec import ModelSpec, available, require_files
from edge_agent.remote.addresses import address_refusal, host_of
from edge_agent.remote.desired import ORIGIN, Desired, DesiredRefused, Refusal
from edge_agent.secrets import masked
from edge_agent.settings.cameras import CameraConfig
from edge_agent.settings.keys import covers, flat, kinds_of, merge_patched, merged, model_at, tree_of, value_at, without
from edge_agent.settings.problems import MAX_PROBLEMS, KeyPath, dotted
from edge_agent.settings.remote import LOCAL_ONLY, RemoteConfig
from edge_agent.settings.sources import STORED_KINDS, has_password, is_address
from edge_agent.stages.catalogue import read_products

MODEL_TASKS = {
    "detector": "text_detection",
    "recogniser": "text_recognition",
    "encoder": "text_embedding",
    "tagger": "token_classification",
}
ABSENT = object()

_DEVICE = re.compile(r"/dev/(?:video\d{1,3}|v4l/by-(?:id|path)/[A-Za-z0-9_][A-Za-z0-9_.:+-]*)|\d{1,3}")
_STORED = re.compile(r"(?:/[\w .+-]+)+")  # no %, *, ?, |, : of patterns and pseudo-protocols


def own_addresses() -> frozenset[str]:
    """The IP addresses of this device."""
    return frozenset(address.address.partition("%")[0] for each in psutil.net_if_addrs().values() for address in each)


def wished_config(
    desired: Desired, local: Config, models_dir: Path, own: Callable[[], Collection[str]] = own_addresses
) -> Config:
    """What would be in force: `local`, the device's own settings, changed as wished for.

    Raises DesiredRefused with every reason: keys that may not be changed, values that no file could have either,
    sources, hosts and models that may not come from afar. Nothing is taken in part.
    """
    changes = desired.content if desired.kind == "patch" else changes_in(desired.content, local)
    refusals = list(_key_refusals(changes, local.remote))
    if not refusals:
        try:
            config = rebuilt(local, _values(desired, changes, local), ORIGIN)
        except ConfigError as exc:
            refusals = [Refusal("", line.removeprefix(f"{ORIGIN}: ")) for line in str(exc).splitlines()]
        else:
            refusals = [
                *_source_refusals(local, config, own),
                *_model_refusals(local, config, models_dir),
                *_catalogue_refusals(config),
            ]
            if not refusals:
                return config
    more = len(refusals) - MAX_PROBLEMS
    if more > 0:
        refusals[MAX_PROBLEMS:] = [Refusal("", f"and {more} more")]
    raise DesiredRefused(refusals, desired.version, desired.token)


def changes_in(whole: Mapping[str, Any], local: Config) -> dict[str, Any]:
    """What of a whole configuration differs from the local settings; a local value that holds a password may be written
    as it is shown, with ***."""
    here = plain(local)
    changes: dict[str, Any] = {}
    for path, value in flat(whole):
        known = value_at(here, path, ABSENT)
        shown = masked(known) if isinstance(known, str) else known
        if value not in (known, shown) or isinstance(value, bool) != isinstance(known, bool):
            changes = merged(changes, tree_of(path, value))
    return changes


def _values(desired: Desired, changes: Mapping[str, Any], local: Config) -> dict[str, Any]:
    """All settings as plain values. Of a whole configuration, keys that may be changed and are not named get their
    defaults, and cameras that are not named go, where cameras may go."""
    here = plain(local)
    if desired.kind == "patch":
        return dict(merge_patched(here, changes))
    unnamed = [path for path, _ in flat(here) if value_at(desired.content, path, ABSENT) is ABSENT]
    named = desired.content.get("cameras")
    kept = named if isinstance(named, Mapping) else {}
    cameras = [("cameras", name) for name in here["cameras"] if name not in kept]
    for path in [*cameras, *unnamed]:
        if may_change(path, local.remote):
            here = without(here, path)
    return merged(here, changes)


def may_change(path: KeyPath, settings: RemoteConfig) -> bool:
    """Whether the key at `path` may be changed from afar."""
    return _key_refusal(path, settings) is None


def _key_refusals(patch: Mapping[str, Any], settings: RemoteConfig) -> Iterator[Refusal]:
    for path, _ in flat(patch):
        why = _key_refusal(path, settings)
        if why is not None:
            yield Refusal(dotted(path), why)


def _key_refusal(path: KeyPath, settings: RemoteConfig) -> str | None:
    if path[0] in LOCAL_ONLY:
        return "is never changed from afar; set it in the device's own file"
    section = model_at(Config, path[:-1])
    field = section.model_fields.get(str(path[-1])) if section is not None else None
    if field is not None and kinds_of(field.annotation) & {Path, SecretStr}:
        return "names a file or holds a password: it is set in the device's own file"
    if not any(covers(pattern, path) for pattern in settings.allowed_keys):
        return "is not among remote.allowed_keys of this device"
    return None


def _source_refusals(local: Config, config: Config, own: Callable[[], Collection[str]]) -> Iterator[Refusal]:
    for name, camera in config.cameras.items():
        before = local.cameras.get(name)
        if before is not None and (before.kind, before.source) == (camera.kind, camera.source):
            continue
        why = source_refusal(camera, before, config.remote, own)
        if why is not None:
            yield Refusal(dotted(("cameras", name, "source")), why)


def source_refusal(
    camera: CameraConfig, before: CameraConfig | None, settings: RemoteConfig, own: Callable[[], Collection[str]]
) -> str | None:
    """Why the source of a camera is not taken from afar; None when it is. Nothing said repeats it, nor tells whether
    a file exists. `before`: the camera of that name in the device's own settings."""
    source = camera.source
    if has_password(source):
        return "holds a password; put it into password_file on the device, it does not travel"
    if camera.kind in STORED_KINDS and not is_address(source):
        return _stored_refusal(source, settings)
    if is_address(source) and camera.kind != "csi":
        schemes = [scheme for scheme in settings.camera_schemes if scheme not in ("csi", "file", "v4l2")]
        why = address_refusal(source, schemes, settings.camera_hosts, own())
        if why is None and camera.password_file is not None and not _same_host(camera, before):
            return "leads to another host, and the camera's password_file may only be shown to the one it had"
        return why
    if camera.kind not in settings.camera_schemes:
        return f"{camera.kind} is not among remote.camera_schemes"
    if camera.kind == "v4l2" and not _DEVICE.fullmatch(source):
        return "is no camera's device; expected /dev/v4l/by-id/..., /dev/video0 or a number"
    return None


def _same_host(camera: CameraConfig, before: CameraConfig | None) -> bool:
    return before is not None and host_of(camera.source) == host_of(before.source) is not None


def _stored_refusal(source: str, settings: RemoteConfig) -> str | None:
    """The same words for a path outside the folders, one that is not there, and a link that leads out."""
    if "file" not in settings.camera_schemes:
        return "is a path, and file is not among remote.camera_schemes"
    inside = _STORED.fullmatch(source) is not None and any(
        Path(os.path.realpath(source)).is_relative_to(os.path.realpath(folder)) for folder in settings.camera_folders
    )
    return None if inside else "does not lie in remote.camera_folders, or is no plain path"


def _model_refusals(local: Config, config: Config, models_dir: Path) -> Iterator[Refusal]:
    for key, task in MODEL_TASKS.items():
        name = getattr(config.pipeline, key)
        if name is None or name == getattr(local.pipeline, key):
            continue
        try:
            spec = ModelSpec.load(models_dir, name)
            if spec.task != task:
                yield Refusal(f"pipeline.{key}", f"{name} is for {spec.task}; expected a model for {task}")
            else:
                require_files(spec, models_dir)
        except ModelError as exc:
            known = name in available(models_dir)
            yield Refusal(f"pipeline.{key}", str(exc) if known else f"there is no model {name!r} on this device")


def _catalogue_refusals(config: Config) -> Iterator[Refusal]:
    """The file is the device's own; it may be damaged meanwhile, or hold too much for the names that are to come."""
    if config.catalogue.file is None:
        return
    try:
        read_products(config.catalogue.names, config.catalogue.file)
    except ConfigError as exc:
        yield Refusal("catalogue", str(exc))
