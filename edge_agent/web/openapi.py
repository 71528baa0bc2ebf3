"""OpenAPI: what the door answers, for programs: made from the rows of ENDPOINTS, saved as docs/openapi.json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.responses import Response

from edge_agent.schema.documents import PlainSchema
from edge_agent.web.endpoint import JSON, Answer, Call, Endpoint, Query, Said, answered

Mode = Literal["serialization", "validation"]
SAID: Mode = "serialization"
HEARD: Mode = "validation"
PATH_PARAMETER = re.compile(r"\{(\w+)\}")
REFUSALS = {
    400: "A parameter is wrong",
    401: "Not logged in",
    403: "Not for this visitor: the header X-CSRF is missing, or another site asks",
    404: "There is none",
    405: "Not for this path",
    408: "The body did not come",
    409: "Not in this state",
    413: "Too large",
    415: "Not of a type that is taken",
    421: "The Host is no name of this device",
    422: "The body cannot be used",
    429: "Too many: Retry-After says when",
    503: "Not now",
}
INTRODUCTION = (
    "What the device answers over HTTP. Log in for a session's cookie, or send `Authorization: Bearer TOKEN`; where no "
    "password is set, this device alone can ask. What changes something needs, where a browser asks, the header X-CSRF "
    "of GET /v1/session. Members may be added to answers: ignore what you do not know."
)


class Fault(BaseModel):
    """Why not."""

    code: str
    text: str


class Error(BaseModel):
    """Every refusal."""

    error: Fault


class Document(Said):
    """This document."""

    openapi: str


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    rows = list(endpoints)
    said: set[type[BaseModel]] = {Error}
    for row in rows:
        said.update(answer for answer in row.answers.values() if isinstance(answer, type))
    models = [(model, SAID) for model in said] + [(row.body, HEARD) for row in rows if row.body is not None]
    _, definitions = models_json_schema(
        sorted(models, key=lambda each: each[0].__name__),
        ref_template="#/components/schemas/{model}",
        schema_generator=PlainSchema,
    )
    paths: dict[str, Any] = {}
    for row in rows:
        paths.setdefault(row.path, {})[row.method.lower()] = _operation(row)
    return {
        "openapi": "3.1.0",
        "info": {"title": "edge_agent", "version": "1", "description": INTRODUCTION},
        "security": [{"session": []}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(definitions["$defs"].items())),
            "securitySchemes": {
                "session": {"type": "apiKey", "in": "cookie", "name": "edge_agent_session"},
                "token": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def text(made: Mapping[str, Any]) -> str:
    """The document as it is written."""
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _operation(row: Endpoint) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": f"{row.method.lower()}{re.sub(r'[^A-Za-z0-9]+', '_', row.path).rstrip('_')}",
        "summary": row.about,
        "parameters": [*map(_path_parameter, PATH_PARAMETER.findall(row.path)), *map(_query_parameter, row.query)],
        "responses": {str(status): response for status, response in sorted(_responses(row).items())},
    }
    if row.free:
        made["security"] = []
    if row.body is not None or row.free_form or row.pictures:
        made["requestBody"] = {"required": True, "content": _body(row)}
    return made


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1, "maxLength": 64}}


def _query_parameter(query: Query) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": query.kind}
    schema |= {"maxLength": query.most} if query.kind == "string" else {"minimum": query.least, "maximum": query.most}
    schema |= {} if query.default is None else {"default": query.default}
    return {"name": query.name, "in": "query", "description": query.about, "schema": schema}


def _body(row: Endpoint) -> dict[str, Any]:
    if row.pictures:
        picture = {"schema": {"type": "string", "format": "binary"}}
        form = {
            "type": "object",
            "properties": {"image": {"type": "string", "format": "binary"}},
            "required": ["image"],
        }
        return {"image/*": picture, "application/octet-stream": picture, "multipart/form-data": {"schema": form}}
    return {JSON: {"schema": {"type": "object"} if row.body is None else _reference(row.body)}}


def _responses(row: Endpoint) -> dict[int, Any]:
    made = {status: _said(answer, row.also if status == 200 else None) for status, answer in row.answers.items()}
    refusals = {421, 403, *row.refusals}
    refusals |= {400} if row.query else set()
    refusals |= set() if row.free else {401}
    refusals |= {400, 408, 413, 415, 422} if row.body or row.free_form or row.pictures else set()
    error = {JSON: {"schema": _reference(Error)}}
    return {status: {"description": REFUSALS[status], "content": error} for status in refusals} | made


def _said(answer: Answer, also: str | None) -> dict[str, Any]:
    if answer is None:
        return {"description": "Done"}
    content = (
        {answer: {"schema": {"type": "string"}}} if isinstance(answer, str) else {JSON: {"schema": _reference(answer)}}
    )
    if also is not None:
        content[also] = {"schema": {"type": "string"}}
    return {"description": "Done", "content": content}


def _reference(model: type[BaseModel]) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


@cache
def _served() -> bytes:
    from edge_agent.web.app import ENDPOINTS as every

    return text(document(every)).encode()


async def openapi(call: Call) -> Response:
    """This document."""
    return answered(_served())


ENDPOINTS = (Endpoint("GET", "/v1/openapi.json", openapi, "This document", {200: Document}),)
