"""The report of one model's calibration: report.json for programs, report.html for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edge_agent.calibrate.findings import Findings
from edge_agent.calibrate.report_page import page
from edge_agent.errors import CalibrationRefused
from edge_agent.files import write_atomically

JSON_FILE = "report.json"
HTML_FILE = "report.html"
MAX_BYTES = 32 << 20


def write_report(findings: Findings, directory: Path) -> tuple[Path, Path]:
    """Writes both files, each whole or not at all; the same findings give the same bytes. Raises OSError."""
    json_path, html_path = directory / JSON_FILE, directory / HTML_FILE
    write_atomically(html_path, page(findings).encode("utf-8"))
    write_atomically(json_path, json_bytes(findings))
    return json_path, html_path


def json_bytes(findings: Findings) -> bytes:
    """report.json: sorted keys, numbers rounded, UTF-8."""
    written = json.dumps(findings.to_json(), sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return written.encode("utf-8") + b"\n"


def read_report(directory: Path) -> Findings | None:
    """The findings of the last report, pictures without their bytes; None where there is none.

    Raises CalibrationRefused for a file that cannot be read or is no report.
    """
    path = directory / JSON_FILE
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise CalibrationRefused(f"{path} cannot be read: {exc.strerror}; check its owner and mode") from exc
    if len(content) > MAX_BYTES:
        raise CalibrationRefused(f"{path} has more than {MAX_BYTES} bytes: it is no report of this program")
    return Findings.from_json(parsed(content, path))


def parsed(content: bytes, path: Path) -> Mapping[str, Any]:
    """A JSON object; CalibrationRefused for anything else."""
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as exc:
        raise CalibrationRefused(f"{path} is damaged: {exc}; calibrate again") from exc
    if not isinstance(values, dict):
        raise CalibrationRefused(f"{path} is damaged: it is no JSON object; calibrate again")
    return values
