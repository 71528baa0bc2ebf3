"""Read: a picture that a program hands in, read by the same pipeline as the cameras' frames."""

from __future__ import annotations

import asyncio
import re
from email.message import Message as MimeMessage

from starlette.responses import Response

from edge_agent import messages
from edge_agent.schema.payloads import Result
from edge_agent.web.endpoint import Call, Endpoint, Query, answered
from edge_agent.web.site import Refused

FORM = "multipart/form-data"
MAX_HEAD_BYTES = 8192  # of one part
MAX_PARTS = 20
MAX_BOUNDARY_CHARS = 70  # RFC 2046, section 5.1.1

_NAMED = re.compile(rb'\bname="?([^";\r\n]*)"?', re.IGNORECASE)


async def read(call: Call) -> Response:
    """What the picture says."""
    camera = call.query["camera"]
    if camera is not None:
        call.known_camera(camera)
    content = picture_in(call.request.headers.get("content-type", ""), call.body)
    reading = await asyncio.wrap_future(await call.door.aside(call.site.read, content, camera))
    return answered(messages.result(reading).payload)


def picture_in(content_type: str, body: bytes) -> bytes:
    """The image file's bytes: the body itself, or a form's part `image` or `file`, or its first with a file name.
    Refused: 415 for another type, 422 where there is none."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind != FORM:
        if not kind.startswith("image/") and kind != "application/octet-stream":
            text = f"the body is {kind[:80] or 'of no type'}; expected image/..., application/octet-stream or {FORM}"
            raise Refused(415, "no_image", text)
        if not body:
            raise Refused(422, "empty", "the body is empty; expected an image file")
        return body
    found = [content for _, content in form_files(boundary_of(content_type), body)]
    if not found:
        raise Refused(422, "no_part", "the form has no part `image` with a file")
    return found[0]


def boundary_of(content_type: str) -> bytes:
    """What stands between the parts of a form; Refused with 422 where it is not said."""
    head = MimeMessage()
    head["Content-Type"] = content_type
    boundary = head.get_param("boundary")
    if not isinstance(boundary, str) or not 0 < len(boundary) <= MAX_BOUNDARY_CHARS or not boundary.isascii():
        raise Refused(422, "no_boundary", "the form does not say its boundary")
    return boundary.encode("ascii")


def form_files(boundary: bytes, body: bytes) -> list[tuple[str, bytes]]:
    """Name and content of the parts of a form (RFC 7578) that are files, the one called `image` or `file` first.
    Refused with 422 where it is not whole."""
    pieces = (b"\r\n" + body).split(b"\r\n--" + boundary, MAX_PARTS + 1)
    if len(pieces) < 3 or not pieces[-1].startswith(b"--"):
        raise Refused(422, "no_form", f"the form is not whole, or has more than {MAX_PARTS} parts")
    found: list[tuple[str, bytes]] = []
    for piece in pieces[1:-1]:
        end = piece.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES)
        head = piece[: max(end, 0)].decode("latin-1")
        named = _NAMED.search(head.encode("latin-1"))
        if (
            end >= 0
            and named is not None
            and ("filename" in head.lower() or "\r\ncontent-type: image/" in head.lower())
        ):
            found.append((named[1].decode("latin-1"), piece[end + 4 :]))
    return sorted(found, key=lambda part: part[0] not in ("image", "file"))


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/read",
        read,
        "Read a picture: an image file's bytes, or a form with a part `image`",
        {200: Result},
        query=(Query("camera", "string", "Read it as a frame of this camera: in its regions, by its masks."),),
        pictures=True,
        refusals=(404, 429, 503),
    ),
)
