"""Documents: a JSON Schema for each message (draft 2020-12), and one AsyncAPI 3.0 document of all topics.

The same models give both. In AsyncAPI they stand under components/schemas, and use no word of JSON Schema that its own
dialect (draft 07) lacks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from edge_agent.config import Config
from edge_agent.files import write_atomically
from edge_agent.records import SCHEMA_VERSION
from edge_agent.remote.commands import COMMANDS
from edge_agent.schema.channels import Channel, channels
from edge_agent.settings.validation import NAME_PATTERN

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ASYNCAPI_FILE = "asyncapi.json"
MODE: JsonSchemaMode = "validation"
INTRODUCTION = (
    "What the device says and hears over MQTT. Every payload is one JSON object in UTF-8, strict (RFC 8259): never NaN "
    "or Infinity, no member twice; a number that is not known is null. Times are RFC 3339 in UTC with milliseconds, "
    "units stand in names. Members may be added to what the device says within a version of the schema: ignore what "
    "you do not know. In what the device hears, a member that it does not know is refused. Delivery is at least once: "
    "drop a reading whose id you have."
)


class PlainSchema(GenerateJsonSchema):
    """Without titles made of members' names, and without `default: null`: both say nothing."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: Any) -> dict[str, Any]:
        made = super().default_schema(schema)
        if made.get("default", ...) is None:
            del made["default"]
        return made


def message_schema(channel: Channel) -> dict[str, Any]:
    """The JSON Schema of a channel's payloads, by itself."""
    made = channel.adapter.json_schema(schema_generator=PlainSchema, mode=MODE)
    return {"$schema": DIALECT, **made, "title": channel.title}


def file_name(channel: Channel) -> str:
    """Where the schema of a channel lies: `result.schema.json`."""
    return f"{channel.name}.schema.json"


def documents() -> dict[str, Any]:
    """File name -> JSON value, of all there is to publish."""
    schemas = {file_name(channel): message_schema(channel) for channel in channels().values()}
    return {ASYNCAPI_FILE: asyncapi(), **schemas}


def text(document: Mapping[str, Any]) -> str:
    """A document as it is written."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def write(folder: Path) -> list[Path]:
    """Writes all documents into a folder, which is made; the files. Schemas there of messages that are no more are
    removed. Raises OSError."""
    made = {folder / name: document for name, document in documents().items()}
    for path, document in made.items():
        write_atomically(path, text(document).encode())
    for path in set(folder.glob("*.schema.json")) - set(made):
        path.unlink()
    return list(made)


# AsyncAPI


def asyncapi() -> dict[str, Any]:
    """The AsyncAPI 3.0 document; from the device's side: it sends what others subscribe to."""
    of_all = [(channel.name, MODE, channel.adapter) for channel in channels().values()]
    payloads, definitions = TypeAdapter.json_schemas(
        of_all, schema_generator=PlainSchema, ref_template="#/components/schemas/{model}"
    )
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "edge_agent", "version": str(SCHEMA_VERSION), "description": INTRODUCTION},
        "defaultContentType": "application/json",
        "servers": {"broker": server()},
        "channels": {channel.name: asyncapi_channel(channel) for channel in channels().values()},
        "operations": {channel.name: operation(channel) for channel in channels().values()},
        "components": {
            "messages": {
                channel.name: {
                    "name": channel.name,
                    "title": channel.title,
                    "contentType": "application/json",
                    "payload": payloads[channel.name, MODE],
                }
                for channel in channels().values()
            },
            "schemas": definitions.get("$defs", {}),
        },
    }


def server() -> dict[str, Any]:
    """The plant's broker."""
    settings = Config().mqtt
    return {
        "host": "{host}:{port}",
        "protocol": "mqtt",
        "protocolVersion": settings.protocol,
        "description": "The broker of the plant: mqtt.host and mqtt.port in config.yaml.",
        "variables": {"host": {"default": settings.host}, "port": {"default": str(settings.port)}},
    }


def asyncapi_channel(channel: Channel) -> dict[str, Any]:
    """A topic, with what its levels are."""
    parameters = {
        "base": {"description": "mqtt.base_topic in config.yaml.", "default": Config().mqtt.base_topic},
        "device": {"description": "The device's name, device_id in config.yaml."},
        "camera": {"description": f"A camera's name in config.yaml, {NAME_PATTERN}."},
        "command": {"description": f"Any name but those of the commands: {', '.join(COMMANDS)}."},
    }
    address = f"{{base}}/{{device}}/{channel.topic}"
    return {
        "address": address,
        "messages": {channel.name: {"$ref": f"#/components/messages/{channel.name}"}},
        "parameters": {name: parameter for name, parameter in parameters.items() if f"{{{name}}}" in address},
    }


def operation(channel: Channel) -> dict[str, Any]:
    """What the device does on a topic, at which QoS, and where it answers."""
    made: dict[str, Any] = {
        "action": "send" if channel.direction == "says" else "receive",
        "channel": {"$ref": f"#/channels/{channel.name}"},
        "title": channel.title,
        "bindings": {"mqtt": {"qos": channel.qos, "retain": channel.retained, "bindingVersion": "0.2.0"}},
    }
    if channel.replied_by is not None:
        made["reply"] = {"channel": {"$ref": f"#/channels/{channel.replied_by}"}}
    return made
