"""The report as one HTML page that holds all it needs: no script, and nothing is asked for from anywhere.

Its policy (Content-Security-Policy) lets no request out, whatever a frame's name or a text may say; both are escaped
besides. The same findings give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from edge_agent.calibrate import report_grounds, report_result
from edge_agent.calibrate.findings import Findings
from edge_agent.calibrate.markup import Markup, element, joined
from edge_agent.calibrate.report_words import day_and_time

STYLE_FILE = Path(__file__).with_name("report_page.css")
PARTS = (
    ("before-after", "Before and after"),
    ("gates", "Gates"),
    ("changed", "Lines that changed"),
    ("sensitivity", "Sensitivity"),
    ("calibrated-on", "Calibrated on"),
    ("ranges", "Ranges"),
    ("provenance", "Where it comes from"),
)


def page(findings: Findings) -> str:
    """The whole page."""
    style = Markup(STYLE_FILE.read_text(encoding="utf-8"))
    html = element("html", {"lang": "en"}, head(findings, style), element("body", {}, *body(findings)))
    return f"<!doctype html>\n{html}\n"


def head(findings: Findings, style: Markup) -> Markup:
    """Policy, title and style; the style is named by its hash, so that no other can slip in."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return element(
        "head",
        {},
        element("meta", {"charset": "utf-8"}),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "referrer", "content": "no-referrer"}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        element("title", {}, f"{findings.model}: INT8 {findings.verdict}"),
        element("style", {}, style),
    )


def body(findings: Findings) -> list[Markup]:
    """The verdict first, what it rests on after it."""
    made = f" · {day_and_time(findings.made_at)}" if findings.made_at is not None else ""
    of_model = joined("Calibration of ", element("b", {}, findings.model), f" · {findings.machine.device}{made}")
    links = [element("li", {}, element("a", {"href": f"#{key}"}, name)) for key, name in PARTS]
    header = element(
        "header",
        {},
        element("p", {"class": "eyebrow"}, of_model),
        report_result.verdict(findings),
        report_result.tiles(findings),
        element("nav", {"aria-label": "Parts of this report"}, element("ul", {}, *links)),
    )
    main = element(
        "main",
        {},
        report_result.before_after(findings),
        report_result.gates(findings),
        report_result.changed_lines(findings),
        report_grounds.sensitivity(findings),
        report_grounds.calibrated_on(findings),
        report_grounds.ranges(findings),
        report_grounds.provenance(findings),
    )
    compared = "Texts are compared without spaces, in Unicode's form NFKC."
    footer = element("p", {}, f"edge-agent calibrate {findings.machine.product_version}. {compared}")
    return [header, main, element("footer", {"class": "quiet"}, footer)]
