"""Config: what an operator may set; `config.yaml` documents each key in place.

Values are frozen; unknown keys are refused. `load(path)` reads a file and the environment, `patched` applies a change
from afar, `cautions` says what is allowed but hardly meant. Each section stands in a file of edge_agent.settings, with
every bound and its unit. The text under a key is its documentation: it is in the schema (`edge-agent config schema`)
and in messages.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, SecretStr

from edge_agent.errors import ConfigError
from edge_agent.secrets import MASK, masked, private_file_caution
from edge_agent.settings.backend import BackendConfig
from edge_agent.settings.calibration import CalibrationConfig
from edge_agent.settings.cameras import CameraConfig, CameraName
from edge_agent.settings.catalogue import CatalogueConfig
from edge_agent.settings.environment import overrides, variable_of
from edge_agent.settings.evidence import EvidenceConfig
from edge_agent.settings.fields import FieldsConfig
from edge_agent.settings.items import ItemsConfig
from edge_agent.settings.keys import filled, flat, leaves, merge_patched, merged, tree_of, value_at
from edge_agent.settings.log import LogConfig
from edge_agent.settings.mqtt import MqttConfig
from edge_agent.settings.outbox import OutboxConfig
from edge_agent.settings.pipeline import PipelineConfig
from edge_agent.settings.problems import KeyPath, Problem, dotted
from edge_agent.settings.remote import RemoteConfig
from edge_agent.settings.scalars import LocalPath, Name
from edge_agent.settings.section import Section
from edge_agent.settings.sources import STORED_KINDS, has_password, is_address, source_caution
from edge_agent.settings.strict_yaml import Document, parse_document
from edge_agent.settings.telemetry import MetricsConfig, TelemetryConfig
from edge_agent.settings.thermal import ThermalConfig
from edge_agent.settings.validation import Origin, validated
from edge_agent.settings.web import WebConfig

MAX_FILE_BYTES = 262_144
MACHINE_ID_FILE = Path("/etc/machine-id")

# what the agent applies without a restart; * stands for a camera's name
LIVE = frozenset(
    {
        "cameras.*.expected",
        "cameras.*.items",
        "cameras.*.max_fps",
        "cameras.*.rois.*",
        "catalogue.names",
        "fields.codes",
        "fields.custom.*",
        "fields.date_order",
        "fields.date_window_years",
        "fields.max_fields",
        "fields.max_line_chars",
        "fields.min_similarity",
        "fields.region",
        "fields.trust_date_order",
        "items.decide_within_ms",
        "items.direction",
        "items.gone_after_ms",
        "items.max_gap_share",
        "items.max_open",
        "items.min_reads",
        "items.mode",
        "items.per",
        "items.publish_readings",
        "items.trust_clock",
        "log.level",
        "pipeline.box_threshold",
        "pipeline.detector_max_windows",
        "pipeline.doubt_margin",
        "pipeline.max_boxes",
        "pipeline.min_confidence",
        "pipeline.no_text_interval_s",
        "pipeline.pixel_threshold",
        "pipeline.unclip_ratio",
        "telemetry.interval_s",
    }
)


class Config(Section):
    """Everything; the top of config.yaml."""

    device_id: Name | None = None
    """This device's name in topics; null: made from the machine's id, the same at every start."""
    transport: Literal["mqtt", "jsonl"] = "mqtt"
    """Where messages go: mqtt, to a broker; jsonl, to standard output, one JSON object a line."""
    models_dir: LocalPath | None = None
    """The folder of the models; null: `engines` in the working folder, beside the source, or where pip put it."""
    cameras: dict[CameraName, CameraConfig] = {}  # noqa: RUF012 - pydantic copies it
    """The cameras by name; the name is a level of their topics."""
    backend: BackendConfig = BackendConfig()
    """What runs the models."""
    pipeline: PipelineConfig = PipelineConfig()
    """How a frame becomes a reading."""
    fields: FieldsConfig = FieldsConfig()
    """What lines mean."""
    catalogue: CatalogueConfig = CatalogueConfig()
    """The products that come by."""
    items: ItemsConfig = ItemsConfig()
    """How readings of one physical item become one result."""
    evidence: EvidenceConfig = EvidenceConfig()
    """What is kept of items that were not passed."""
    calibration: CalibrationConfig = CalibrationConfig()
    """What `edge-agent calibrate` measures with and where its results lie."""
    mqtt: MqttConfig = MqttConfig()
    """The broker and how to reach it."""
    outbox: OutboxConfig = OutboxConfig()
    """What waits for the broker."""
    telemetry: TelemetryConfig = TelemetryConfig()
    """How the device reports on itself."""
    thermal: ThermalConfig = ThermalConfig()
    """From which temperature on fewer frames are read."""
    metrics: MetricsConfig = MetricsConfig()
    """Figures for Prometheus."""
    web: WebConfig = WebConfig()
    """The page on this machine."""
    remote: RemoteConfig = RemoteConfig()
    """What may be changed and asked for from afar."""
    log: LogConfig = LogConfig()
    """What the program writes about itself."""

    def device(self, machine_id_file: Path = MACHINE_ID_FILE) -> str:
        """The device's name: device_id, else one made from the machine's id (hashed), else from the host's name."""
        if self.device_id is not None:
            return self.device_id
        try:
            machine_id = machine_id_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            machine_id = ""
        if re.fullmatch(r"[0-9a-f]{32}", machine_id) and set(machine_id) != {"0"}:
            # machine-id(5): the id is confidential, what leaves the machine is a keyed hash of it
            return "edge-" + hashlib.sha256(b"edge_agent " + machine_id.encode()).hexdigest()[:12]
        host = re.sub(r"[^A-Za-z0-9_-]", "-", socket.gethostname().partition(".")[0])
        return f"edge-{host[:50] or 'unnamed'}"


def load(path: Path, environ: Mapping[str, str] = os.environ, content: bytes | None = None) -> Config:
    """The settings in the file, with EDGE_AGENT_* of `environ` over them; `content`: instead of what the file holds.

    Relative paths in the file start at the file's folder. An empty file means the defaults (`cautions` says so).
    Raises ConfigError with every problem, one a line.
    """
    raw = _read(path) if content is None else content
    return _loaded(parse_document(raw, str(path), MAX_FILE_BYTES), path.parent.absolute(), environ)


def without_file(environ: Mapping[str, str] = os.environ) -> Config:
    """The defaults with EDGE_AGENT_* of `environ` over them; raises ConfigError as `load` does."""
    return _loaded(Document("environment", {}, {}, ()), Path.cwd(), environ)


def patched(config: Config, patch: Mapping[str, Any], folder: Path | None = None, origin: str = "patch") -> Config:
    """`config` changed by a JSON merge patch (RFC 7396), as strict as a file.

    null gives a key its default or removes a camera, lists are replaced whole. `folder` is where relative paths start.
    Raises ConfigError with every problem; `origin` names the patch in it. `config` stays as it is.
    """
    problems = [Problem(0, path, why) for path, why in _passwords_in(patch)]
    values = merge_patched(plain(config), patch)
    if folder is not None:
        values = _anchored(values, folder)
    return rebuilt(config, values, origin, problems)


def rebuilt(config: Config, values: Mapping[str, Any], origin: str, problems: Iterable[Problem] = ()) -> Config:
    """The settings that plain `values` make, such as `plain(config)` with changes, with the password of `config`.

    Raises ConfigError with every problem, `problems` among them; `origin` names the values in it.
    """
    if config.mqtt.password is not None:
        values = merged(values, {"mqtt": {"password": config.mqtt.password.get_secret_value()}})
    return validated(Config, filled(Config, values), Origin(origin), problems)


def plain(config: Config) -> dict[str, Any]:
    """`config` as plain values (text, numbers, lists, mappings), without passwords; `load` takes it back the same."""
    values = _plain(config)
    values["mqtt"].pop("password")
    return dict(values)


def shown(config: Config) -> dict[str, Any]:
    """`plain(config)` for people: passwords, in addresses too, are ***."""
    values = plain(config)
    for camera in values["cameras"].values():
        camera["source"] = masked(camera["source"])
    if config.mqtt.password is not None:
        values["mqtt"]["password"] = MASK
    return values


def changed_keys(old: Config, new: Config) -> set[str]:
    """Dotted keys whose values differ; of a camera that came or went, all its keys."""
    before, after = dict(flat(plain(old))), dict(flat(plain(new)))
    absent = object()
    paths = before.keys() | after.keys()
    changed = {path for path in paths if before.get(path, absent) != after.get(path, absent)}
    if old.mqtt.password != new.mqtt.password:
        changed.add(("mqtt", "password"))
    return {dotted(path) for path in changed}


def is_live(key: str) -> bool:
    """Whether the agent applies a change of this dotted key without a restart."""
    return any(fnmatch.fnmatchcase(key, pattern) for pattern in LIVE)


def cautions(config: Config, file: Path | None = None) -> list[Problem]:
    """What is allowed but hardly meant, in `config` and the `file` it was loaded from; `path` leads to the key, () for
    the file as a whole. Nothing in it is secret."""
    found = [] if file is None else [Problem(0, (), why) for why in _file_cautions(file)]
    if not config.cameras:
        found.append(Problem(0, ("cameras",), "none is configured; nothing will be read"))
    by_source: dict[str, str] = {}
    for name, camera in config.cameras.items():
        path: KeyPath = ("cameras", name, "source")
        caution = source_caution(camera.kind, camera.source)
        if caution is not None:
            found.append(Problem(0, path, caution))
        if camera.enabled:
            first = by_source.setdefault(camera.source, name)
            if first != name:
                found.append(Problem(0, path, f"is that of camera {first} as well; most cameras serve one reader"))
            found += _private_file("cameras", name, "password_file", file=camera.password_file)
    if config.web.enabled:
        found += _private_file("web", "key_file", file=config.web.key_file)
    if config.transport == "mqtt":
        found += _private_file("mqtt", "password_file", file=config.mqtt.password_file)
        found += _private_file("mqtt", "key_file", file=config.mqtt.key_file)
        found += [Problem(0, ("mqtt", key), why) for key, why in _mqtt_cautions(config.mqtt)]
    return found


def _file_cautions(path: Path) -> Iterator[str]:
    if not path.is_file():
        return  # a pipe, which was read to its end: opening it again would wait for ever
    values = parse_document(_read(path), str(path), MAX_FILE_BYTES).values
    if not values:
        yield "is empty: every setting has its default"
    cameras = values.get("cameras")
    sources = [value_at(cameras, (name, "source")) for name in cameras] if isinstance(cameras, Mapping) else []
    if any(isinstance(source, str) and has_password(source) for source in sources):
        caution = private_file_caution(path)
        if caution is not None:
            yield f"holds a password: {caution}"


def _private_file(*key: str, file: Path | None) -> list[Problem]:
    caution = None if file is None else private_file_caution(file)
    return [] if caution is None else [Problem(0, key, caution)]


def _mqtt_cautions(mqtt: MqttConfig) -> Iterator[tuple[str, str]]:
    if mqtt.tls and mqtt.ca_file is None:
        yield "tls", "without ca_file the broker's certificate is checked against those that the system trusts"
    if mqtt.tls and mqtt.port == 1883:
        yield "port", "1883 is usually without tls; 8883 is usual with it"
    if not mqtt.tls and mqtt.port == 8883:
        yield "port", "8883 is usually with tls; write tls: true as well"
    local = mqtt.host == "localhost" or mqtt.host.startswith("127.") or mqtt.host == "::1"
    if not mqtt.tls and mqtt.username is not None and not local:
        yield "tls", "without it the password crosses the network readable"


def _loaded(document: Document, folder: Path, environ: Mapping[str, str]) -> Config:
    values = _anchored(filled(Config, document.values), folder)
    over = overrides(Config, values, environ)
    origin = Origin(document.origin, document.lines, over.variables)
    problems = [*document.problems, *over.problems]
    problems += [origin.problem(path, why) for path, why in _passwords_in(document.values)]
    return validated(Config, merged(values, over.values), origin, problems)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file; name yours, or begin with a copy of config.yaml") from None
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}") from exc


def _anchored(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """`values` with relative paths, those of stored sources too, started at `folder`."""
    result = dict(values)
    for leaf in leaves(Config, values):
        text = value_at(values, leaf.path)
        stored = leaf.path[-1] == "source" and value_at(values, (*leaf.path[:-1], "kind")) in STORED_KINDS
        if not isinstance(text, str) or not (stored or Path in leaf.kinds):
            continue
        if text and not text.startswith("~") and not is_address(text):
            result = merged(result, tree_of(leaf.path, str(folder / text)))
    return result


def _passwords_in(values: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Keys that hold a password itself: only the environment may set them."""
    for leaf in leaves(Config, values):
        if SecretStr in leaf.kinds and value_at(values, leaf.path) is not None:
            yield leaf.path, f"does not belong here; use {leaf.path[-1]}_file, or the variable {variable_of(leaf.path)}"


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
