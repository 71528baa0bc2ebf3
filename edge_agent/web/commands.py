"""Commands: the same table as over MQTT, by the same way: each id once, busy, at most so many a minute."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from edge_agent.messages import CommandState
from edge_agent.web.endpoint import Call, Endpoint, Said, answered
from edge_agent.web.site import Refused


class CommandCall(BaseModel):
    """With what a command is to be carried out: docs/mqtt.md has the arguments of each."""

    model_config = ConfigDict(extra="forbid", strict=True)

    args: dict[str, Any] = {}


class Reply(Said):
    """What became of a command: the reply of docs/mqtt.md."""

    id: str
    state: CommandState
    """accepted: it is under way, or on its way."""
    result: Any = None
    """Of one that is done."""
    reason: str | None = None
    """Of one that failed or was busy."""


async def send(call: Call) -> Response:
    """Sends a command."""
    command_id = await call.door.aside(call.site.submit_command, call.path["name"], call.body.args)
    return answered({"id": command_id, "state": "accepted"}, 202)


async def look(call: Call) -> Response:
    """What became of it."""
    reply = call.site.command(call.path["id"])
    if reply is None:
        raise Refused(404, "no_command", "no command of this id was sent here lately")
    return answered(reply)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/commands/{name}",
        send,
        "Send a command; what becomes of it is asked for by its id",
        {202: Reply},
        body=CommandCall,
        refusals=(404, 409, 429),
    ),
    Endpoint("GET", "/v1/commands/{id}", look, "What became of a command", {200: Reply}, refusals=(404,)),
)
