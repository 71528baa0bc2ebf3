"""Home Assistant: the device announces itself there, with its entities, by MQTT discovery.

Home Assistant looks below its discovery prefix for retained messages `<prefix>/device/<object id>/config`, each of
which describes a whole device; an empty one removes it. It says `online` on `<prefix>/status` when it has started.
Source: https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, get_args

from edge_agent import __version__, messages
from edge_agent.config import Config
from edge_agent.files import find_state_dir, write_atomically
from edge_agent.messages import CameraState, PipelineState
from edge_agent.records import Message, Verdict, json_bytes
from edge_agent.transports.base import Outcome, Settle

log = logging.getLogger(__name__)

BORN = b"online"  # what it says on its birth topic
ANNOUNCED_FILE = "home-assistant.txt"
MAX_STATE_CHARS = 255  # longest state that Home Assistant takes

HOTTEST = (
    "{% set known = (value_json.temp_c or {}).values() | reject('none') | list %}{{ known | max if known else none }}"
)
POWER = "{{ (value_json.power_w or {}).get('total') }}"
# names with values; of a frame without fields its lines; a backlog does not overwrite what was read since
READING = (
    "{% if value_json.historical %}{{ this.state }}{% else %}{% set said %}"
    "{% for field in value_json.fields %}{{ field.name }}: {{ field.value }}{{ '; ' if not loop.last }}"
    "{% else %}{{ value_json.reason or value_json.lines | map(attribute='text') | join('; ') }}{% endfor %}"
    f"{{% endset %}}{{{{ said[:{MAX_STATE_CHARS}] }}}}{{% endif %}}"
)

VERDICT = "{{ this.state if value_json.historical or not value_json.verdict else value_json.verdict }}"
ATTRIBUTES = (
    "{{ {'id': value_json.id, 'expectation_id': value_json.expectation_id, 'evidence_id': value_json.evidence_id,"
    " 'n_reads': value_json.n_reads, 'reasons': value_json.reasons} | tojson }}"
)

# key -> what is shown of telemetry: name, template, and how Home Assistant takes it
FIGURES: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "temperature": ("Temperature", HOTTEST, {"device_class": "temperature", "unit_of_measurement": "°C"}),
    "power": ("Power", POWER, {"device_class": "power", "unit_of_measurement": "W"}),
    "cpu": ("Processor", "{{ value_json.cpu_percent }}", {"unit_of_measurement": "%"}),
    "ram_available": (
        "Memory available",
        "{{ value_json.ram_available_bytes }}",
        {"device_class": "data_size", "unit_of_measurement": "B"},
    ),
    "disk_free": (
        "Disk free",
        "{{ value_json.disk_free_bytes }}",
        {"device_class": "data_size", "unit_of_measurement": "B"},
    ),
    "outbox_depth": ("Messages waiting", "{{ value_json.outbox.depth }}", {"unit_of_measurement": "messages"}),
}


def discovery(config: Config, device_id: str) -> dict[str, Any]:
    """The message that describes the device and its entities."""
    prefix = f"{config.mqtt.base_topic}/{device_id}/"
    entities = {**device_entities(prefix), **figure_entities(prefix)}
    for camera, settings in config.cameras.items():
        entities |= camera_entities(prefix, camera)
        if (settings.items or config.items.mode) != "none" or settings.trigger.kind != "none":
            entities |= item_entities(prefix, camera)
    origin = {"name": "edge_agent", "sw_version": __version__}
    ours = object_id(device_id)
    return {
        "device": {"identifiers": [ours], "name": device_id, "model": "edge_agent", "sw_version": __version__},
        "origin": origin,
        "components": {key: {**entity, "unique_id": f"{ours}_{key}"} for key, entity in entities.items()},
        "qos": 1,
    }


def object_id(name: str) -> str:
    """A name of ours as Home Assistant's ids are: letters, digits, - and _; different names stay different."""
    plain = name.replace(".", "_")
    return plain if plain == name else f"{plain}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def device_entities(prefix: str) -> dict[str, dict[str, Any]]:
    """Whether it is there, and how the reading goes."""
    return {
        "status": {
            "platform": "binary_sensor",
            "name": "Status",
            "device_class": "connectivity",
            "entity_category": "diagnostic",
            "state_topic": prefix + messages.STATUS_TOPIC,
            "value_template": "{{ 'ON' if value_json.state == 'online' else 'OFF' }}",
        },
        "health": {
            **sensor(prefix, messages.HEALTH_TOPIC, "Health", "{{ value_json.pipeline }}"),
            "device_class": "enum",
            "options": list(get_args(PipelineState)),
            "json_attributes_topic": prefix + messages.HEALTH_TOPIC,
        },
    }


def figure_entities(prefix: str) -> dict[str, dict[str, Any]]:
    """What telemetry tells of the device."""
    return {
        key: {
            **sensor(prefix, messages.TELEMETRY_TOPIC, name, template),
            "state_class": "measurement",
            "entity_category": "diagnostic",
            **more,
        }
        for key, (name, template, more) in FIGURES.items()
    }


def camera_entities(prefix: str, camera: str) -> dict[str, dict[str, Any]]:
    """Whether a camera gives frames, what was read last, and how fast."""
    key = object_id(camera)
    fps = f"{{{{ (value_json.fps or {{}}).get('{camera}', {{}}).get('processed') }}}}"
    return {
        f"{key}_status": {
            **sensor(prefix, f"{camera}/status", f"{camera} camera", "{{ value_json.state }}"),
            "device_class": "enum",
            "options": list(get_args(CameraState)),
            "entity_category": "diagnostic",
        },
        f"{key}_reading": sensor(prefix, f"{camera}/result", f"{camera} reading", READING),
        f"{key}_fps": {
            **sensor(prefix, messages.TELEMETRY_TOPIC, f"{camera} frames per second", fps),
            "state_class": "measurement",
            "unit_of_measurement": "frames/s",
        },
    }


def item_entities(prefix: str, camera: str) -> dict[str, dict[str, Any]]:
    """The verdict of the last item of a camera whose readings are joined, with all that the item says beside it."""
    return {
        f"{object_id(camera)}_verdict": {
            **sensor(prefix, f"{camera}/item", f"{camera} verdict", VERDICT),
            "device_class": "enum",
            "options": list(get_args(Verdict)),
            "json_attributes_topic": f"{prefix}{camera}/item",
            "json_attributes_template": ATTRIBUTES,
        }
    }


def sensor(prefix: str, topic: str, name: str, template: str) -> dict[str, Any]:
    """What each sensor has: it is available while the device's status is online."""
    there = {
        "topic": prefix + messages.STATUS_TOPIC,
        "value_template": "{{ 'online' if value_json.state == 'online' else 'offline' }}",
    }
    return {
        "platform": "sensor",
        "name": name,
        "state_topic": prefix + topic,
        "value_template": template,
        "availability": [there],
    }


def find_announced(environ: Mapping[str, str] = os.environ) -> Path:
    """The file that notes what was announced: in the service's state directory, else in `state`."""
    return find_state_dir(Path(), environ) / ANNOUNCED_FILE


class HomeAssistant:
    """What is to be said there after each connect: the announcement where it is switched on, and that an earlier one
    holds no more.

    `announced_file` notes topics on which an announcement may lie: without it nobody would know, after it was switched
    off, what to remove. Topics are whole here, not below the device's prefix.
    """

    def __init__(self, config: Config, device_id: str, announced_file: Path) -> None:
        prefix = config.mqtt.home_assistant
        self.birth_topic = None if prefix is None else f"{prefix}/status"
        self._topic = None if prefix is None else f"{prefix}/device/{object_id(device_id)}/config"
        self._payload = json_bytes(discovery(config, device_id))
        self._file = announced_file
        self._noted = self._read()
        if self._topic is not None and self._topic not in self._noted:
            self._note([*self._noted, self._topic], durable=True)

    def announcements(self) -> list[tuple[Message, Settle]]:
        """The messages, each with what is to be told how it ended."""
        ours = [] if self._topic is None else [Message(self._topic, self._payload, retain=True)]
        gone = [Message(topic, b"", retain=True) for topic in self._noted if topic != self._topic]
        return [(each, partial(self._settled, each)) for each in (*gone, *ours)]

    def _settled(self, message: Message, outcome: Outcome, reason: str) -> None:
        if outcome is Outcome.REFUSED:
            log.warning("Home Assistant cannot be told on %s: %s", message.topic, reason)
        elif outcome is Outcome.DELIVERED and not message.payload and message.topic in self._noted:
            self._note([topic for topic in self._noted if topic != message.topic], durable=False)

    def _read(self) -> list[str]:
        try:
            return [line for line in self._file.read_text(encoding="utf-8").splitlines() if line]
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as exc:
            log.warning("%s cannot be read, so an announcement to Home Assistant may stay: %s", self._file, exc)
            return []

    def _note(self, topics: list[str], *, durable: bool) -> None:
        self._noted = topics
        try:
            if topics:
                write_atomically(self._file, "".join(f"{topic}\n" for topic in topics).encode(), durable=durable)
            else:
                self._file.unlink(missing_ok=True)
        except OSError as exc:
            why = exc.strerror or exc
            log.warning("%s cannot be written, so an announcement to Home Assistant may stay: %s", self._file, why)
