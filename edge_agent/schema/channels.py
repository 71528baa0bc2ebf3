"""Channels: every topic with what travels on it. A new topic is a row of CHANNELS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter, create_model

from edge_agent import messages
from edge_agent.expectations import Expected
from edge_agent.remote.commands import COMMANDS
from edge_agent.schema import payloads
from edge_agent.schema.payloads import RESULTS, Accepted, Command, Done, Duplicate, NotDone
from edge_agent.settings.cameras import RESERVED_CAMERA_NAMES
from edge_agent.settings.remote import CommandName
from edge_agent.settings.validation import NAME_PATTERN


@dataclass(frozen=True)
class Channel:
    """One topic. `topic` is below the device's own prefix, with {camera} for a camera's name; `name` is that of the
    schema's file; `content` a model or a union of models."""

    name: str
    topic: str
    title: str
    direction: Literal["says", "hears"]
    content: Any
    qos: Literal[0, 1] = 1
    retained: bool = False
    replied_by: str | None = None  # the name of the channel that answers

    @property
    def adapter(self) -> TypeAdapter[Any]:
        """What validates and describes its payloads."""
        return TypeAdapter(self.content)

    def carries(self, topic: str) -> bool:
        """Whether a topic, below the device's own prefix, is this one."""
        camera, command = NAME_PATTERN.strip("^$"), "[a-z][a-z0-9-]{0,31}"
        pattern = self.topic.replace("{camera}", f"(?P<camera>{camera})").replace("{command}", command)
        match = re.fullmatch(pattern, topic)
        return match is not None and match.groupdict().get("camera") not in RESERVED_CAMERA_NAMES


STATES = (
    Channel("status", messages.STATUS_TOPIC, "Status of the device", "says", payloads.Status, retained=True),
    Channel("health", messages.HEALTH_TOPIC, "Health of the pipeline", "says", payloads.Health, retained=True),
    Channel("camera-status", "{camera}/status", "Status of a camera", "says", payloads.CameraStatus, retained=True),
    Channel("result", "{camera}/result", "Reading", "says", payloads.Result),
    Channel("item", "{camera}/item", "Item", "says", payloads.Item),
    Channel(
        "expected-reported",
        f"{{camera}}/{messages.EXPECTED}/reported",
        "What a camera's items must say",
        "says",
        payloads.ExpectedReported,
        retained=True,
    ),
    Channel(
        "expected",
        f"{{camera}}/{messages.EXPECTED}",
        "What a camera's items are to say",
        "hears",
        Expected,
        retained=True,
        replied_by="expected-reported",
    ),
    Channel("trigger", f"{{camera}}/{messages.TRIGGER}", "An item is there", "hears", payloads.Trigger),
    Channel("telemetry", messages.TELEMETRY_TOPIC, "Figures", "says", payloads.Telemetry, qos=0),
    Channel("event", messages.EVENT_TOPIC, "Event", "says", payloads.Event),
    Channel(
        "config-reported",
        messages.REPORTED_CONFIG_TOPIC,
        "What became of a configuration",
        "says",
        payloads.ConfigReported,
        retained=True,
    ),
    Channel(
        "config-desired",
        messages.DESIRED_CONFIG_TOPIC,
        "Configuration wished for",
        "hears",
        payloads.DesiredPatch | payloads.DesiredConfig,
        retained=True,
        replied_by="config-reported",
    ),
)


def command(name: CommandName) -> tuple[Channel, Channel]:
    """The command and its answer, typed by its arguments (COMMANDS) and result (RESULTS)."""
    title = "".join(word.capitalize() for word in name.split("-"))
    row = COMMANDS[name]
    any_required = any(field.is_required() for field in row.args.model_fields.values())
    args: Any = (row.args, ...) if any_required else (row.args | None, None)
    call = create_model(f"{title}Command", __base__=Command, __doc__=row.run.__doc__, args=args)
    done = create_model(f"{title}Done", __base__=Done, __doc__=Done.__doc__, result=(RESULTS[name], ...))
    topic = f"command/{name}"
    asked = Channel(f"command-{name}", topic, f"Command {name}", "hears", call, replied_by=f"command-{name}-reply")
    answer: Any = Accepted | done | NotDone | Duplicate
    return asked, Channel(f"command-{name}-reply", f"{topic}/reply", f"Answer to {name}", "says", answer)


UNKNOWN = Channel(
    "command-unknown-reply", "command/{command}/reply", "Answer to an unknown command", "says", payloads.NotDone
)


@cache
def channels() -> Mapping[str, Channel]:
    """Every channel by its name; a topic is the first that carries it."""
    commands = (each for name in COMMANDS for each in command(name))
    return {channel.name: channel for channel in (*STATES, *commands, UNKNOWN)}


def channel_of(topic: str) -> Channel | None:
    """The channel of a topic below the device's own prefix; None where the contract has none."""
    return next((channel for channel in channels().values() if channel.carries(topic)), None)
