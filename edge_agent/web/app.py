"""App: the ASGI application: routes, headers that every answer has, and refusals as JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edge_agent.web import (
    calibration,
    commands,
    config,
    doctor,
    live,
    login,
    openapi,
    read,
    readings,
    rehearsal,
    status,
    streams,
)
from edge_agent.web.endpoint import Call, Door, Endpoint, answered, json_body, parsed_query, picture_of, refusal
from edge_agent.web.locks import Visitor
from edge_agent.web.site import Refused

PAGE = Path(__file__).parent / "page"
INDEX = "index.html"
CODES = {404: "not_found", 405: "wrong_method", 500: "internal"}

ENDPOINTS: tuple[Endpoint, ...] = (
    *login.ENDPOINTS,
    *status.ENDPOINTS,
    *streams.ENDPOINTS,
    *readings.ENDPOINTS,
    *live.ENDPOINTS,
    *config.ENDPOINTS,
    *commands.ENDPOINTS,
    *read.ENDPOINTS,
    *rehearsal.ENDPOINTS,
    *calibration.ENDPOINTS,
    *doctor.ENDPOINTS,
    *openapi.ENDPOINTS,
)

# everything comes from here and nowhere else; blob: is a picture that the page's own script has fetched
CSP = (
    "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
CROWDED = Refused(
    503,
    "too_many_clients",
    "too many are connected (web.max_clients)",
    {"Retry-After": "5", "Connection": "close"},
)


def make_app(door: Door, endpoints: Sequence[Endpoint] = ENDPOINTS, page: Path = PAGE) -> ASGIApp:
    """The application; every request passes the locks first."""
    app = Starlette(
        routes=list(routes(door, endpoints, page)),
        exception_handlers={
            HTTPException: said_by_starlette,  # type: ignore[dict-item]
            Refused: said_by_us,  # type: ignore[dict-item]
            Exception: said_of_a_bug,
        },
    )
    return Gate(app, door)


def routes(door: Door, endpoints: Sequence[Endpoint], page: Path) -> Iterator[BaseRoute]:
    """One a row, and the page."""
    by_path: dict[str, list[Endpoint]] = {}
    for endpoint in endpoints:
        by_path.setdefault(endpoint.path, []).append(endpoint)
    for path, rows in by_path.items():
        yield Route(
            path, by_method({row.method: answerer(door, row) for row in rows}), methods=[row.method for row in rows]
        )

    async def index(request: Request) -> Response:
        return FileResponse(page / INDEX, headers={"Cache-Control": "no-cache"})

    if (page / INDEX).is_file():
        yield Route("/", index)
        yield Mount("/page", StaticFiles(directory=page))


Answering = Callable[[Request], Awaitable[Any]]


def by_method(answers: Mapping[str, Answering]) -> Answering:
    """One for a path, whatever the method."""

    async def answer(request: Request) -> Any:
        return await answers["GET" if request.method == "HEAD" else request.method](request)

    return answer


def answerer(door: Door, endpoint: Endpoint) -> Answering:
    """What Starlette calls for an endpoint."""

    async def answer(request: Request) -> Any:
        visitor: Visitor = request.scope["visitor"]
        if not visitor.known and not endpoint.free:
            raise Refused(401, "login_needed", "log in first, or send a token", {"WWW-Authenticate": "Bearer"})
        query = parsed_query(request, endpoint.query)
        door.pictures_coming += endpoint.pictures
        try:
            body: Any = None
            if endpoint.pictures:
                body = await picture_of(door, request)
            elif endpoint.body is not None or endpoint.free_form:
                body = await json_body(request, endpoint.body)
            given = await endpoint.call(Call(door, request, visitor, request.path_params, query, body))
        finally:
            door.pictures_coming -= endpoint.pictures
        return answered(given) if isinstance(given, (BaseModel, dict)) else given

    return answer


class Gate:
    """Before anything else: who asks? And on everything that is answered, the headers that protect whoever looks."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door
        headers = dict(HEADERS)
        if door.locks.secure:
            headers["Strict-Transport-Security"] = "max-age=31536000"
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store" if scope["path"].startswith("/v1") else "no-cache")
            await send(message)

        request_headers = Headers(scope=scope)
        if self._door.crowded():
            await refusal(CROWDED)(scope, receive, protected)
            return
        try:
            scope["visitor"] = self._door.locks.visitor(scope["method"], request_headers, cookies_of(request_headers))
        except Refused as exc:
            await refusal(exc)(scope, receive, protected)
            return
        await self._app(scope, receive, protected)


def cookies_of(headers: Headers) -> dict[str, str]:
    """The cookies by name; none where they cannot be read."""
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}


async def said_by_starlette(request: Request, error: HTTPException) -> Response:
    """A path or method that there is not."""
    code = CODES.get(error.status_code, "refused")
    text = {404: f"there is no {request.url.path[:200]}", 405: f"{request.method} is not for this path"}
    refused = Refused(error.status_code, code, text.get(error.status_code, str(error.detail)), error.headers)
    return refusal(refused)


async def said_by_us(request: Request, error: Refused) -> Response:
    """What an endpoint does not do."""
    return refusal(error)


async def said_of_a_bug(request: Request, error: Exception) -> Response:
    """What nobody foresaw; the log has the traceback, the answer has not."""
    return refusal(Refused(500, "internal", "this should not happen; the log of the agent tells more"))
