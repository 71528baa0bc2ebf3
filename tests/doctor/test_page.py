"""The doctor's look at the page: with real files and certificates."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from edge_agent.config import Config
from edge_agent.doctor import page
from edge_agent.doctor.base import Patient, Row
from edge_agent.web.passwords import add_token, write_password
from tests.certificates import make_authority, make_certificate


def rows(tmp_path: Path, **web: Any) -> list[Row]:
    config = Config.model_validate({"web": {"enabled": True, **web}})
    return list(page.check(Patient(tmp_path / "config.yaml", config)))


def test_page_that_is_off_needs_nothing(tmp_path: Path) -> None:
    assert [row.verdict for row in rows(tmp_path, enabled=False, cert_file=Path("c"), key_file=Path("k"))] == ["ok"]


def test_package_that_is_missing_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "version_of", lambda name: None if name == "uvicorn" else "1")
    (row,) = rows(tmp_path)
    assert (row.verdict, row.text, row.cure) == (
        "fail",
        "packages are missing: uvicorn",
        "pip install 'edge-agent[web]'",
    )


def test_files_of_hashes_are_those_that_the_agent_would_take(tmp_path: Path) -> None:
    password, tokens = tmp_path / "p", tmp_path / "t"
    write_password(password, "correct horse")
    add_token(tokens, "mes")
    files = {"password_file": password, "token_file": tokens}
    assert [row.verdict for row in rows(tmp_path, **files)] == ["ok", "ok"]
    password.chmod(0o644)
    (ill,) = rows(tmp_path, **files)
    assert (ill.verdict, "chmod 600" in ill.text) == ("fail", True)


@pytest.mark.parametrize(
    ("from_days", "to_days", "verdict", "says"),
    [
        (-10, 90, "ok", "valid for 89 days more"),
        (-10, 5, "warn", "valid for 4 days more"),
        (-10, -1, "fail", "certificate has expired"),
        (1, 90, "fail", "certificate is not yet valid"),
    ],
)
def test_certificate_is_told_by_its_time(tmp_path: Path, from_days: int, to_days: int, verdict: str, says: str) -> None:
    now = datetime.fromtimestamp(time.time(), timezone.utc)
    start, end = (f"{now + timedelta(days=days):%Y%m%d%H%M%S}Z" for days in (from_days, to_days))
    pair = make_certificate(tmp_path, "press7", make_authority(tmp_path), "IP:127.0.0.1", start, end)
    (row,) = rows(tmp_path, cert_file=pair.cert, key_file=pair.key)
    assert (row.verdict, says in row.text, row.cure is None) == (verdict, True, verdict == "ok")


def test_certificate_of_another_key_or_none_at_all_is_told(tmp_path: Path) -> None:
    authority = make_authority(tmp_path)
    other = make_certificate(tmp_path, "press7", authority, "IP:127.0.0.1")
    (row,) = rows(tmp_path, cert_file=authority.cert, key_file=other.key)
    assert (row.verdict, "KEY_VALUES_MISMATCH" in row.text) == ("fail", True)
    (row,) = rows(tmp_path, cert_file=tmp_path / "none", key_file=other.key)
    assert (row.verdict, "No such file" in row.text) == ("fail", True)
