"""Doctor, support bundle and calibration over HTTP."""

from __future__ import annotations

import asyncio
import io
import tarfile
from types import SimpleNamespace
from typing import Any

import pytest

from edge_agent.web import doctor
from edge_agent.web.site import Refused
from tests.web.doors import Door


def test_doctor_tells_what_is_wrong_with_the_cure(locked: Door) -> None:
    said = locked.get("/v1/doctor")
    assert {row["verdict"] for row in said["rows"]} <= {"ok", "warn", "fail"}
    assert sum(said["counts"].values()) == len(said["rows"])
    assert all(row["cure"] for row in said["rows"] if row["verdict"] == "fail")
    assert "S3cret" not in str(said)
    assert locked.get("/v1/doctor") == said  # not run twice within ten seconds


def test_support_bundle_holds_settings_and_figures_without_secrets(locked: Door) -> None:
    answer = locked.http.get("/v1/support-bundle", timeout=60)
    assert answer.headers["content-disposition"] == 'attachment; filename="support-press7.tar.gz"'
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        files = {name.split("/")[-1]: tar.extractfile(name) for name in tar.getnames()}
        texts = {name: file.read().decode() for name, file in files.items() if file is not None}
    assert "rtsp://admin:***@127.0.0.1:1/live" in texts["config.yaml"]
    for text in texts.values():
        assert "S3cret" not in text
        assert "S3cr#t" not in text
        assert "scrypt$" not in text


def test_child_that_fails_or_hangs_is_told_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused) as failed:
        asyncio.run(doctor.output_of(["config", "validate", "/nowhere/at/all.yaml"]))
    assert failed.value.status == 503
    monkeypatch.setattr(doctor, "TIMEOUT_S", 0.01)
    with pytest.raises(Refused, match="more than"):
        asyncio.run(doctor.output_of(["doctor"]))


def test_findings_are_asked_for_once_however_many_look(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    async def output_of(words: list[str], well: tuple[int, ...]) -> bytes:
        asked.append(words)
        await asyncio.sleep(0.01)
        return b'{"v": 1}'

    monkeypatch.setattr(doctor, "output_of", output_of)
    door: Any = SimpleNamespace(site=SimpleNamespace(config_file="c.yaml", models_dir="engines"))

    async def look() -> list[bytes]:
        examinations = doctor.Examinations()
        return await asyncio.gather(*(examinations.findings(door) for _ in range(5)))

    assert asyncio.run(look()) == [b'{"v":1}'] * 5
    assert len(asked) == 1


def test_models_in_use_are_told_with_their_reports(door: Door) -> None:
    said = door.get("/v1/calibration")
    assert said["progress"] is None
    assert [model["model"] for model in said["models"]] == ["ppocrv4-mobile-det", "ppocrv4-mobile-rec"]
    for model in said["models"]:
        if model["report"] is not None:
            assert door.http.get(model["report"]).headers["content-type"] == "text/html; charset=utf-8"
    for name in ("nothing", "..%2f..%2fetc", "%2e%2e"):
        assert door.http.get(f"/v1/calibration/{name}/report.html").status_code == 404


def test_report_may_be_framed_by_the_page_and_runs_nothing(tmp_path: Any) -> None:
    from edge_agent.web.calibration import report

    path = tmp_path / "report.html"
    path.write_text("<!doctype html><p>42</p>")

    async def aside(work: Any, *args: Any) -> Any:
        return work(*args)

    call: Any = SimpleNamespace(
        path={"model": "m"}, site=SimpleNamespace(report=lambda model: path), door=SimpleNamespace(aside=aside)
    )
    answer = asyncio.run(report(call))
    assert answer.body == path.read_bytes()
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'self'" in policy
    assert "script" not in policy
