"""Endpoint: one thing that can be asked of the door: how it is called, what it takes, what it answers.

Each noun's file lists its own in ENDPOINTS; `app` routes by them, and `openapi` describes them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from edge_agent.records import json_bytes
from edge_agent.settings.web import WebConfig
from edge_agent.web.bell import Bell
from edge_agent.web.history import Charts
from edge_agent.web.locks import Locks, Visitor
from edge_agent.web.pictures import Pictures
from edge_agent.web.site import Refused, WebSite

if TYPE_CHECKING:
    from edge_agent.web.doctor import Examinations

JSON = "application/json"
MAX_BODY_BYTES = 131_072  # of JSON; pictures have a bound of their own
THROWN_AWAY_BYTES = 4_194_304
BODY_TIMEOUT_S = 20.0  # from one piece of a body to the next, and for the whole of one that comes slower than
MIN_BYTES_PER_S = 4096
MAX_PROBLEMS = 20


@dataclass
class Door:
    """What answers are made from. `slow` runs what would hold up the event loop."""

    site: WebSite
    settings: WebConfig
    locks: Locks
    bell: Bell
    pictures: Pictures
    charts: Charts
    slow: Executor
    examinations: Examinations
    rehearsing: asyncio.Lock
    crowded: Callable[[], bool] = lambda: False  # whether there are more connections than web.max_clients
    live: int = 0  # answers under way that have no end
    pictures_coming: int = 0  # bodies that are taken in, or wait to be read

    async def aside(self, work: Callable[..., Any], *args: Any) -> Any:
        """What `work` gives, done beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self.slow, work, *args)


@dataclass(frozen=True)
class Query:
    """A parameter behind the `?`; a number lies between `least` and `most`, a text has that many characters at most."""

    name: str
    kind: Literal["integer", "string"]
    about: str
    default: int | str | None = None
    least: int = 0
    most: int = 64


@dataclass(frozen=True)
class Call:
    """One question: with its parameters, and the body where one is described."""

    door: Door
    request: Request
    visitor: Visitor
    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any = None

    @property
    def site(self) -> WebSite:
        """The agent."""
        return self.door.site

    def camera(self) -> str:
        """The camera that the path names, which there is; Refused with 404."""
        return self.known_camera(self.path["camera"])

    def known_camera(self, name: str) -> str:
        """A camera's name, which there is; Refused with 404."""
        if name not in {camera.name for camera in self.site.cameras()}:
            raise Refused(404, "no_camera", f"there is no camera {name[:64]!r} on this device")
        return name


class Said(BaseModel):
    """Base of what is answered: members may be added, so unknown ones are allowed."""

    model_config = ConfigDict(use_attribute_docstrings=True)


Answer = type[BaseModel] | str | None  # a JSON object, another media type, or nothing


@dataclass(frozen=True)
class Endpoint:
    """`path` as OpenAPI writes it. `answers`: by status, what comes back when all is well. `refusals`: statuses that
    say why not, beside those that any endpoint has. `free`: asked without having logged in. `pictures`: the body is an
    image file. `text`: what stands for the model in the document, where the answer is no JSON alone."""

    method: Literal["GET", "POST", "PATCH"]
    path: str
    call: Callable[[Call], Awaitable[Any]]
    about: str
    answers: Mapping[int, Answer]
    query: tuple[Query, ...] = ()
    body: type[BaseModel] | None = None
    free_form: bool = False
    pictures: bool = False
    refusals: tuple[int, ...] = ()
    free: bool = False
    also: str | None = None  # another media type, where the Accept header asks for it


def answered(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer; a model, plain values, or bytes that are JSON already."""
    if isinstance(value, BaseModel):
        content = value.model_dump_json(by_alias=True).encode()
    else:
        content = value if isinstance(value, bytes) else json_bytes(value)
    return Response(content, status, dict(headers or {}), JSON)


def refusal(refused: Refused) -> Response:
    """What a refusal looks like: {"error": {"code", "text"}}."""
    return answered({"error": {"code": refused.code, "text": refused.text}}, refused.status, refused.headers)


def parsed_query(request: Request, queries: tuple[Query, ...]) -> dict[str, Any]:
    """The parameters by name, each as described or its default; Refused with 400."""
    return {query.name: _parsed(query, request.query_params.get(query.name)) for query in queries}


def _parsed(query: Query, text: str | None) -> Any:
    if text is None:
        return query.default
    if query.kind == "string":
        if len(text) > query.most or not text.isprintable():
            raise Refused(400, "bad_query", f"{query.name}: expected at most {query.most} printable characters")
        return text
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 16 and query.least <= int(text) <= query.most):
        raise Refused(400, "bad_query", f"{query.name}: expected a whole number, {query.least} to {query.most}")
    return int(text)


async def content_of(request: Request, max_bytes: int) -> bytes:
    """The body; Refused with 413 where it is too long, as soon as that is known, with 408 where it does not come.

    Some of a body that is too long is taken and thrown away: who is still sending does not hear an answer.
    """
    too_long = Refused(413, "too_large", f"the body has more than {max_bytes} bytes", {"Connection": "close"})
    declared = request.headers.get("content-length", "")
    known_bytes = int(declared) if declared.isdigit() and len(declared) < 19 else None
    if known_bytes is not None and known_bytes > max_bytes + THROWN_AWAY_BYTES:
        raise too_long
    pieces: list[bytes] = []
    size_bytes = 0
    async for piece in in_time(request.stream()):
        size_bytes += len(piece)
        if size_bytes <= max_bytes:
            pieces.append(piece)
        elif size_bytes > max_bytes + THROWN_AWAY_BYTES:
            break
    if size_bytes > max_bytes:
        raise too_long
    return b"".join(pieces)


async def picture_of(door: Door, request: Request) -> bytes:
    """The body of a picture; Refused as `content_of` does, and with 429 where as many are held as may wait: what came
    then is thrown away."""
    if door.pictures_coming <= door.settings.max_waiting_reads:
        return await content_of(request, door.settings.max_upload_bytes)
    left_bytes = door.settings.max_upload_bytes
    async for piece in in_time(request.stream()):
        left_bytes -= len(piece)
        if left_bytes < 0:
            break
    text = f"{door.settings.max_waiting_reads} pictures wait already (web.max_waiting_reads)"
    raise Refused(429, "too_many", text, {"Retry-After": "1", "Connection": "close"})


async def in_time(stream: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """The pieces of a body; Refused with 408 where the next one does not come, or all come drop by drop, with 400 where
    the connection ended."""
    clock = asyncio.get_running_loop().time
    due_s = clock() + BODY_TIMEOUT_S
    while True:
        try:
            piece = await asyncio.wait_for(anext(stream), min(BODY_TIMEOUT_S, due_s - clock()))
            due_s += len(piece) / MIN_BYTES_PER_S
            yield piece
        except StopAsyncIteration:
            return
        except (TimeoutError, asyncio.TimeoutError):
            text = f"the body did not come in time; {MIN_BYTES_PER_S} bytes a second are the least"
            raise Refused(408, "too_slow", text) from None
        except ClientDisconnect:
            raise Refused(400, "gone", "the connection ended within the body") from None


async def json_body(request: Request, model: type[BaseModel] | None) -> Any:
    """The body as `model`, or where that is None as a JSON object; Refused with 413, 415 or 422."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (JSON, "application/merge-patch+json"):
        raise Refused(415, "not_json", f"the body is {kind[:80] or 'of no type'}; expected application/json")
    content = await content_of(request, MAX_BODY_BYTES)
    try:
        if model is not None:
            return model.model_validate_json(content)
        value = json.loads(content)
    except ValidationError as exc:
        problems = exc.errors(include_url=False, include_input=False, include_context=False)[:MAX_PROBLEMS]
        texts = [f"{'.'.join(map(str, each['loc'])) or 'the body'}: {each['msg']}" for each in problems]
        raise Refused(422, "bad_body", "; ".join(texts)) from None
    except (ValueError, RecursionError):
        raise Refused(422, "bad_body", "the body is no JSON") from None
    if not isinstance(value, dict):
        raise Refused(422, "bad_body", "the body is no JSON object; expected {...}")
    return value
