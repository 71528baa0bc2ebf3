"""Examination: every check, one after the other; what comes out, as a table for people or JSON for programs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from edge_agent import registry
from edge_agent.config import load
from edge_agent.doctor import CHECKS
from edge_agent.doctor.base import Check, Patient, Row
from edge_agent.errors import ConfigError, EdgeAgentError, in_one_line
from edge_agent.installation import CONFIG, STATE_DIR
from edge_agent.journal import secrets_of
from edge_agent.models.spec import find_models_dir
from edge_agent.secrets import Secrets, url_secrets


def admit(config_file: Path, models_dir: Path | None = None, root: Path = Path("/")) -> Patient:
    """The machine with the settings in the file, right or wrong. The service's own file goes with its folders."""
    environ = dict(os.environ)
    if config_file.absolute() == root / CONFIG:
        environ.setdefault("STATE_DIRECTORY", str(root / STATE_DIR))
    try:
        config = load(config_file)
    except ConfigError as exc:
        return Patient(config_file, None, str(exc), _models_dir(models_dir), root, environ)
    try:
        secrets = secrets_of(config)
    except ConfigError:  # a file of secrets that cannot be read; the check of those says so
        secrets = Secrets(secret for camera in config.cameras.values() for secret in url_secrets(camera.source))
        secrets.register(config.mqtt.password.get_secret_value() if config.mqtt.password is not None else "")
    return Patient(config_file, config, None, _models_dir(models_dir or config.models_dir), root, environ, secrets)


def _models_dir(configured: Path | None) -> Path | None:
    try:
        return find_models_dir(configured)
    except EdgeAgentError:
        return None


def examine(patient: Patient, checks: Mapping[str, str] = CHECKS) -> Iterator[Row]:
    """Every row, as it is found. A check that fails itself is a row that failed, and the others go on."""
    for name in checks:
        try:
            check: Check = registry.load(checks, name, "check")
            for row in check(patient):
                yield scrubbed(row, patient.secrets)
        except (EdgeAgentError, OSError, ValueError, RuntimeError, ImportError) as exc:
            row = Row(name, "fail", f"cannot be looked at: {in_one_line(exc)}", "see the text")
            yield scrubbed(row, patient.secrets)


def scrubbed(row: Row, secrets: Secrets) -> Row:
    """The row without any secret that the settings hold."""
    return replace(row, text=secrets.scrub(row.text), cure=None if row.cure is None else secrets.scrub(row.cure))


def table_line(row: Row) -> str:
    """`warn  clock         not synchronised`, and the cure below it."""
    line = f"{row.verdict:<4}  {row.name:<14}  {row.text}"
    return line if row.cure is None or row.verdict == "ok" else f"{line}\n{'':<22}-> {row.cure}"


def to_json(rows: list[Row]) -> dict[str, Any]:
    """All rows, and how many of each verdict."""
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in ("ok", "warn", "fail")}
    return {"v": 1, "counts": counts, "rows": [asdict(row) for row in rows]}
