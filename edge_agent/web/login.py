"""Login: a session for a password."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field
from starlette.responses import Response

from edge_agent import __version__
from edge_agent.web.endpoint import Call, Endpoint, Said, answered
from edge_agent.web.locks import COOKIE, SESSION_S
from edge_agent.web.site import Refused

LANGUAGES = ("en", "de")  # of the page


class Password(BaseModel):
    """Who wants in."""

    model_config = {"extra": "forbid", "hide_input_in_errors": True}

    password: Annotated[str, Field(max_length=1024)]


class Session(Said):
    """Who asks, and what the page needs to begin."""

    authenticated: bool
    """Whether everything may be seen and changed."""
    password_needed: bool
    """Whether one must log in, or send a token."""
    csrf: str
    """What a browser sends as X-CSRF with whatever changes something; another one after each login."""
    device: str | None
    """The device's name; null for who has not logged in."""
    version: str | None
    """Of the program; null for who has not logged in."""
    languages: list[str]
    """Of the page."""


async def log_in(call: Call) -> Response:
    """A session for the password."""
    locks = call.door.locks
    if not locks.has_password:
        raise Refused(403, "no_password", "no password is set (web.password_file)")
    address = call.request.client.host if call.request.client is not None else ""
    right = await locks.fits(address, call.body.password)
    response = answered({"authenticated": True})
    response.set_cookie(
        COOKIE, locks.log_in(address, right), int(SESSION_S), httponly=True, samesite="strict", secure=locks.secure
    )
    return response


async def log_out(call: Call) -> Response:
    """Ends the session."""
    call.door.locks.log_out(call.visitor)
    response = answered({"authenticated": False})
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=call.door.locks.secure)
    return response


async def session(call: Call) -> Session:
    """Who asks."""
    known = call.visitor.known
    return Session(
        authenticated=known,
        password_needed=call.door.locks.password_needed,
        csrf=call.visitor.csrf,
        device=call.site.device if known else None,
        version=__version__ if known else None,
        languages=list(LANGUAGES),
    )


class LoggedIn(Said):
    """Whether one is logged in now."""

    authenticated: bool


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/login",
        log_in,
        "Log in: sets the session's cookie",
        {200: LoggedIn},
        body=Password,
        refusals=(401, 403, 429),
        free=True,
    ),
    Endpoint("POST", "/v1/logout", log_out, "Log out", {200: LoggedIn}),
    Endpoint("GET", "/v1/session", session, "Who asks, and what a page needs to begin", {200: Session}, free=True),
)
