from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edge_agent.calibrate.findings import MOST_CHANGED, MOST_THUMBNAILS, ChangedText, Findings
from edge_agent.calibrate.judgement import GateResult
from edge_agent.calibrate.pictures import as_jpeg
from edge_agent.calibrate.report import JSON_FILE, json_bytes, read_report, write_report
from edge_agent.errors import CalibrationRefused
from tests.calibrate.made_findings import promoted, refused

TYPICAL_BYTES = 1_500_000


@pytest.mark.parametrize("findings", [promoted(), refused()], ids=lambda findings: findings.verdict)
def test_what_was_written_is_read_again(findings: Findings, tmp_path: Path) -> None:
    written = write_report(findings, tmp_path / "new folder")
    assert [path.name for path in written] == ["report.json", "report.html"]
    assert read_report(tmp_path / "new folder") == findings


def test_same_findings_give_same_bytes_whatever_the_order_of_their_mappings(tmp_path: Path) -> None:
    findings = promoted()
    turned = replace(
        findings,
        ranges=dict(reversed(findings.ranges.items())),
        came_from=dict(reversed(findings.came_from.items())),
        machine=replace(findings.machine, libraries=dict(reversed(findings.machine.libraries.items()))),
        calibrated_on=replace(
            findings.calibrated_on,
            shapes=dict(reversed(findings.calibrated_on.shapes.items())),
            parts=dict(reversed(findings.calibrated_on.parts.items())),
        ),
    )
    first, second = (
        [path.read_bytes() for path in write_report(each, tmp_path / name)]
        for name, each in (("first", findings), ("second", turned))
    )
    assert first == second


def test_json_names_pictures_but_holds_none() -> None:
    values = json.loads(json_bytes(promoted()))
    thumbnail = values["calibrated_on"]["thumbnails"][0]
    assert set(thumbnail) == {"name", "width_px", "height_px", "sha256"}
    assert "jpeg" not in json_bytes(promoted()).decode().replace("img_", "")
    assert len(json_bytes(promoted())) < 40_000


def test_json_has_sorted_keys_rounded_numbers_and_null_for_no_number() -> None:
    findings = replace(
        promoted(),
        ranges={"b": (-1 / 3, 2e9 / 3), "a": (0.0, math.inf)},
        gates=(GateResult("cer_increase", math.nan, 0.005, "share", False),),
    )
    values = json.loads(json_bytes(findings), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert list(values) == sorted(values)
    assert values["ranges"] == {"a": [0.0, None], "b": [-0.333333, 666666666.667]}
    assert values["gates"][0]["value"] is None
    assert values["made_at"] == promoted().made_at


def test_a_file_name_that_is_no_unicode_is_written_out(tmp_path: Path) -> None:
    findings = replace(promoted(), changed=(ChangedText("img_\udcff.jpg", "a", "b"),))
    write_report(findings, tmp_path)
    read = read_report(tmp_path)
    assert read is not None
    assert read.changed[0].frame == r"img_\udcff.jpg"


def test_no_report_is_none(tmp_path: Path) -> None:
    assert read_report(tmp_path) is None


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "damaged"),
        (b"[]", "no JSON object"),
        (b'{"v": 7}', "version 7"),
        (json_bytes(promoted()).replace(b'"promoted"\n', b'"praised"\n'), "verdict"),
        (json_bytes(promoted()).replace(b'"model":', b'"modell":'), "model"),
    ],
)
def test_a_damaged_report_is_refused_with_what_is_wrong(content: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / JSON_FILE).write_bytes(content)
    with pytest.raises(CalibrationRefused, match=told):
        read_report(tmp_path)


def test_a_full_report_stays_small(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    noise = tuple(as_jpeg(f"frame {n}", rng.integers(0, 256, (135, 240, 3), np.uint8)) for n in range(MOST_THUMBNAILS))
    lines = tuple(
        ChangedText("frame", "text", "texts", crop=as_jpeg("line", rng.integers(0, 256, (48, 400, 3), np.uint8)))
        for _ in range(MOST_CHANGED)
    )
    findings = promoted()
    findings = replace(findings, changed=lines, calibrated_on=replace(findings.calibrated_on, thumbnails=noise))
    _, html = write_report(findings, tmp_path)
    assert html.stat().st_size < TYPICAL_BYTES
