"""Config: what is set, what can be, and changes of it, which go the way of those from afar: judged, tried, kept or
rolled back, and reported."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from starlette.responses import Response

from edge_agent.config import Config, shown
from edge_agent.records import json_bytes
from edge_agent.schema.payloads import ConfigReported
from edge_agent.web.endpoint import Call, Endpoint, Said, answered
from edge_agent.web.site import Refused, WebSite


class Settings(Said):
    """Every key of config.yaml with the value in force; passwords are ***."""


class Schema(Said):
    """The JSON Schema of config.yaml."""


class Taken(Said):
    """A change is on its way: GET /v1/config/reported tells what becomes of it."""

    version: int


class Trial(Said):
    """A configuration runs on trial."""

    remaining_s: float | None
    """Null: it has not begun to count."""
    trial_s: float


class Reported(ConfigReported):
    """What became of the configuration wished for last: `config/reported` of docs/mqtt.md."""

    trial: Trial | None
    """Null: none runs on trial."""


class Done(Said):
    """It is done, and the agent takes it up within seconds."""

    done: bool = True


async def get(call: Call) -> Response:
    """What is in force."""
    return answered(shown(call.site.config))


async def patch(call: Call) -> Response:
    """Wishes for other settings."""
    version = await call.door.aside(call.site.submit_patch, call.body)
    return answered(Taken(version=version), 202)


async def reported(call: Call) -> Response:
    """What became of the newest wish."""
    said = reported_now(call.site)
    if said is None:
        raise Refused(404, "nothing_reported", "no configuration was wished for since the agent started")
    return answered(said)


def reported_now(site: WebSite) -> Mapping[str, Any] | None:
    """The newest report, with how long the trial goes on."""
    said = site.reported()
    if said is None:
        return None
    on_trial, remaining_s = site.trial()
    trial_s = site.config.remote.trial_s
    trial = {"remaining_s": remaining_s, "trial_s": trial_s} if on_trial else None
    return {**said, "trial": trial}


@cache
def _schema() -> bytes:
    return json_bytes(Config.model_json_schema())


async def schema(call: Call) -> Response:
    """What can be set."""
    return answered(_schema())


async def roll_back(call: Call) -> Response:
    """Takes the newest change back."""
    await call.door.aside(call.site.roll_back)
    return answered(Done(), 202)


ENDPOINTS = (
    Endpoint("GET", "/v1/config", get, "The settings in force, passwords hidden", {200: Settings}),
    Endpoint(
        "PATCH",
        "/v1/config",
        patch,
        "Change settings: a merge patch (RFC 7396) over what is in force, of keys among remote.allowed_keys",
        {202: Taken},
        free_form=True,
        refusals=(409, 429, 503),
    ),
    Endpoint(
        "GET", "/v1/config/reported", reported, "What became of the last change", {200: Reported}, refusals=(404,)
    ),
    Endpoint("GET", "/v1/config/schema", schema, "The JSON Schema of the settings", {200: Schema}),
    Endpoint(
        "POST",
        "/v1/config/rollback",
        roll_back,
        "Take back the configuration on trial, or the last one that was kept",
        {202: Done},
        refusals=(409, 503),
    ),
)
