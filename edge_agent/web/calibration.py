"""Calibration: how far one is, what is in use of each model, and the reports."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from edge_agent.web.endpoint import Call, Endpoint, Said
from edge_agent.web.site import Refused

HTML = "text/html"
MAX_REPORT_BYTES = 33_554_432
# a report holds all it needs and no script; the page shows it in a frame
REPORT_CSP = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"


class Progress(Said):
    """How far a calibration is."""

    model: str | None
    """Null: for all of them."""
    step: str
    percent: int
    started_at: float
    """Unix s."""


class Model(Said):
    """A model in use."""

    model: str
    active: str | None
    """The calibrated artefact in use; null: the float model."""
    previous: str | None
    """The one before it."""
    report: str | None
    """Where the report of its last calibration is; null where there is none."""


class Calibration(Said):
    """Calibrations."""

    progress: Progress | None
    """Null: none is under way."""
    models: list[Model]


async def calibration(call: Call) -> Any:
    """How far, and what is in use."""
    return dict(await call.door.aside(call.site.calibration))


async def report(call: Call) -> Response:
    """The report of a model."""
    model = call.path["model"]
    path = call.site.report(model)
    if path is None:
        raise Refused(404, "no_report", f"there is no report of a calibration of {model[:64]!r}")
    content = await call.door.aside(path.read_bytes)
    headers = {"Content-Security-Policy": REPORT_CSP, "X-Frame-Options": "SAMEORIGIN"}
    return Response(content[:MAX_REPORT_BYTES], 200, headers, f"{HTML}; charset=utf-8")


ENDPOINTS = (
    Endpoint("GET", "/v1/calibration", calibration, "How far a calibration is, and what is in use", {200: Calibration}),
    Endpoint(
        "GET",
        "/v1/calibration/{model}/report.html",
        report,
        "The report of a model's last calibration",
        {200: HTML},
        refusals=(404,),
    ),
)
