"""Run: real calibrations of a small slice with real models: promoted, refused, and what is used again."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest

from edge_agent.__main__ import main
from edge_agent.artefacts import Artefacts, ArtefactUnfit
from edge_agent.backends.cpu import processor
from edge_agent.calibrate import archive, collection
from edge_agent.calibrate.progress import ProgressFile
from edge_agent.calibrate.report import read_report
from edge_agent.calibrate.run import LOCK_FILE, Run, calibrate, models_by_stage, with_models
from edge_agent.config import Config
from edge_agent.errors import CalibrationRefused, ConfigError
from edge_agent.models.digest import sha256_of
from edge_agent.models.spec import find_models_dir
from edge_agent.pipeline import load_pipeline
from tests.calibrate.calibration_site import LENIENT, MODEL, PIPELINE, Heard, Site, Stopped, Until, stop
from tests.calibrate.made_frames import label_frame, label_jpeg

Promoted = tuple[Site, Heard]


@pytest.fixture(autouse=True)
def _no_nice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "nice", lambda more: more)  # for the rest of the suite it would be


@pytest.fixture
def site(promoted: Promoted, tmp_path: Path) -> Site:
    """The calibrated site, to change."""
    return promoted[0].copied(tmp_path)


def written(site: Site) -> dict[str, tuple[int, int]]:
    """What the calibration computed and keeps; an entry changes when its file is written anew."""
    paths = [*(site.model / "work").iterdir(), *(site.model / "feeds").rglob("manifest.json")]
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}


# ---- promoted -------------------------------------------------------------------------------------------------------


def test_int8_that_earned_it_is_promoted_and_holds_for_this_pipeline(promoted: Promoted) -> None:
    site, heard = promoted
    (outcome,) = heard.outcomes
    assert (outcome["model"], outcome["verdict"], outcome["reasons"]) == (MODEL, "promoted", [])
    artefacts = Artefacts(site.calibration, MODEL)
    assert artefacts.promotion().active == outcome["artefact"]
    with load_pipeline(site.settings, find_models_dir()) as pipeline:
        assert pipeline.fingerprints["recognise"].endswith(":int8")
    manifest = artefacts.get(outcome["artefact"]).manifest
    assert manifest["groups"] == ["pointwise.s16", "pointwise.s8"]
    assert manifest["judgement"]["passed"] is True
    assert manifest["batches"] > 0


def test_what_was_done_is_told_in_order_and_in_part(promoted: Promoted) -> None:
    _, heard = promoted
    assert heard.notes[0].startswith("8 frames of 8 from folder")
    assert "4 to calibrate on, 1 to search with, 3 held out" in heard.notes[0]
    shares = [share for _, share, _ in heard.steps]
    assert shares == sorted(shares)
    assert 0 == shares[0] < shares[-1] <= 1
    assert list(dict.fromkeys(step for step, _, _ in heard.steps)) == [
        "collecting frames",
        "recording inputs",
        "ranges",
        "searching",
        "judging",
        "reading",
        "measuring each group",
    ]


def test_nothing_is_left_lying_about(promoted: Promoted) -> None:
    site, _ = promoted
    assert {path.name for path in site.calibration.iterdir()} == {LOCK_FILE, "collection", MODEL}
    assert {path.name for path in site.model.iterdir()} == {
        "artefacts", "feeds", "promoted.json", "recipe.yaml", "report.html", "report.json", "work",
    }  # fmt: skip
    assert {path.name for path in (site.model / "work").iterdir()} == {"pace.json", "ranges.json", "trials.json"}


class Links(HTMLParser):
    """What a page asks for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.asked: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.asked += [value or "" for name, value in attrs if name in {"src", "href"}]


def test_report_tells_of_each_group_and_asks_for_nothing(promoted: Promoted) -> None:
    site, _ = promoted
    findings = read_report(site.model)
    assert findings is not None
    assert (findings.verdict, findings.float_precision, findings.scheme) == ("promoted", "FP32", "onnxruntime")
    alone = {group.name: group.damage for group in findings.groups if group.quantised}
    assert set(alone) == {"pointwise.s16", "pointwise.s8"}
    assert None not in alone.values()
    assert findings.calibrated_on.feeds == sum(findings.calibrated_on.shapes.values())
    assert {gate.name for gate in findings.gates} == {"cer_increase", "speedup", "changed_fields"}
    assert findings.after is not None
    assert findings.before.file_bytes is not None
    assert findings.after.file_bytes is not None
    assert findings.after.file_bytes < findings.before.file_bytes
    for size in (findings.before, findings.after):
        assert size.memory_bytes is not None
        assert 5e6 < size.memory_bytes < 500e6
    page = Links((site.model / "report.html").read_text())
    assert {"html", "title", "table", "svg"} <= page.tags
    assert all(link.startswith(("data:", "#")) for link in page.asked)


# ---- what is used again ---------------------------------------------------------------------------------------------


def test_same_again_computes_nothing_again_and_a_dry_run_promotes_nothing(site: Site) -> None:
    artefacts = Artefacts(site.calibration, MODEL)
    stored = artefacts.stored()
    artefacts.rollback(to_float=True)
    before, first = written(site), site.report()
    assert set(before) == {"manifest.json", "pace.json", "ranges.json", "trials.json"}
    (outcome,) = site.calibrate(dry_run=True).outcomes
    assert written(site) == before
    assert (outcome["verdict"], outcome["artefact"]) == ("passed", None)
    assert artefacts.promotion().active is None
    assert artefacts.stored() == stored
    again = site.report()
    assert again["verdict"] == "passed"
    for name in ("ranges", "groups", "figures", "changed", "came_from"):
        assert again[name] == first[name], name


def other_percentile(site: Site, patch: pytest.MonkeyPatch) -> None:
    site.write_recipe(percentile=99.9)


def other_method(site: Site, patch: pytest.MonkeyPatch) -> None:
    site.write_recipe(method="percentile")


def other_smoothing(site: Site, patch: pytest.MonkeyPatch) -> None:
    site.write_recipe(smoothing=0.5)


def other_frames(site: Site, patch: pytest.MonkeyPatch) -> None:
    (site.frames / "another.jpg").write_bytes(label_jpeg(11))


def other_version(site: Site, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(onnxruntime, "__version__", "9.9.9")


def other_settings(site: Site, patch: pytest.MonkeyPatch) -> None:
    site.write_settings(pipeline={**json.loads(site.config_file.read_text())["pipeline"], "unclip_ratio": 1.7})


def other_groups(site: Site, patch: pytest.MonkeyPatch) -> None:
    site.write_recipe(float_groups=["stem", "full.*", "depthwise.*", "pointwise.s4", "pointwise.s16", "pointwise.s48"])


def other_device(site: Site, patch: pytest.MonkeyPatch) -> None:
    """All that was computed comes from a machine like this one, with another processor."""
    here = processor()["cpu"]
    for path in [site.model / "work" / "ranges.json", *(site.model / "feeds").rglob("manifest.json")]:
        content = path.read_text()
        assert here in content, path
        path.write_text(content.replace(here, "Cortex-A78AE"))


def other_model_bytes(site: Site, patch: pytest.MonkeyPatch) -> None:
    """The model was made anew: it computes the same, and its file is another."""
    models = site.folder / "engines"
    for name in (PIPELINE["detector"], MODEL):
        shutil.copytree(find_models_dir() / name, models / name)
    path, manifest_path = models / MODEL / "model.latin.onnx", models / MODEL / "manifest.json"
    model = onnx.load(path)
    model.metadata_props.add(key="made", value="again")
    onnx.save(model, path)
    manifest = json.loads(manifest_path.read_text())
    manifest["files"][path.name] = {"sha256": sha256_of(path), "bytes": path.stat().st_size}
    manifest_path.write_text(json.dumps(manifest))
    site.models_dir = models


@pytest.mark.parametrize(
    ("change", "differ", "recorded"),
    [
        (other_percentile, "percentile", False),
        (other_method, "methods", False),
        (other_smoothing, "smoothing", False),
        (other_groups, "groups", False),
        (other_frames, "feeds, recorded", True),
        (other_settings, "recorded", True),
        (other_version, "binding, recorded, versions", True),
        (other_device, "binding", True),
        (other_model_bytes, "binding, recorded", True),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_depends_on_what_changed_is_computed_afresh_and_it_is_said_why(
    change: Any,
    differ: str,
    recorded: bool,
    promoted: Promoted,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    change(site, monkeypatch)
    before = written(site)
    heard = Until("ranges", stop)
    with caplog.at_level(logging.INFO), pytest.raises(Stopped):
        site.calibrate(heard)
    assert heard.steps[-1][1] < max(share for step, share, _ in promoted[1].steps if step == "ranges"), "not from disk"
    assert (written(site)["manifest.json"] != before["manifest.json"]) == recorded
    (said,) = [record.getMessage() for record in caplog.records if "ranges.json" in record.getMessage()]
    assert said.startswith("ranges.json is computed afresh: ")
    assert set(differ.split(", ")) <= set(said.removesuffix(" differ").rpartition(": ")[2].split(", "))


def test_trials_with_other_ranges_are_made_afresh(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.write_recipe(percentile=99.9)
    before = written(site)
    with caplog.at_level(logging.INFO), pytest.raises(Stopped):
        site.calibrate(Until("searching", stop))
    after = written(site)
    assert {name for name in before if after[name] != before[name]} == {"pace.json", "ranges.json", "trials.json"}
    (said,) = [record.getMessage() for record in caplog.records if "trials.json" in record.getMessage()]
    assert said == "trials.json is computed afresh: ranges differ"


def test_artefact_of_another_version_does_not_serve(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "__version__", "9.9.9")
    with load_pipeline(site.settings, find_models_dir()) as pipeline:
        served = pipeline.models["recognise"]
        assert served.artefact is None
        assert served.note is not None
        assert "9.9.9" in served.note
        with pytest.raises(ArtefactUnfit):
            Artefacts(site.calibration, MODEL).active(served.binding)


# ---- refused --------------------------------------------------------------------------------------------------------


def test_what_runs_slower_is_refused_with_reasons_and_what_ran_stays(site: Site) -> None:
    site.write_recipe(gates={**LENIENT, "min_speedup": 100})
    active = Artefacts(site.calibration, MODEL).promotion().active
    (outcome,) = site.calibrate().outcomes
    assert (outcome["verdict"], outcome["artefact"]) == ("refused", None)
    assert any("100.00 is wanted" in reason for reason in outcome["reasons"])
    assert Artefacts(site.calibration, MODEL).promotion().active == active
    findings = read_report(site.model)
    assert findings is not None
    assert [gate.name for gate in findings.failed] == ["speedup"]
    assert "svg" in Links((site.model / "report.html").read_text()).tags


def test_what_ruins_the_text_is_refused_with_the_least_bad_set_and_what_ran_stays(site: Site) -> None:
    site.write_recipe(method="percentile", percentile=60.0, most_trials=3, gates={**LENIENT, "max_cer_increase": 0.01})
    active = Artefacts(site.calibration, MODEL).promotion().active
    (outcome,) = site.calibrate().outcomes
    assert outcome["verdict"] == "refused"
    assert "no set of groups holds the gates; the least bad (" in outcome["summary"]
    assert "output `index` is 0 everywhere" in outcome["summary"] or "cer_increase at" in outcome["summary"]
    assert Artefacts(site.calibration, MODEL).promotion().active == active
    findings = read_report(site.model)
    assert findings is not None
    assert (findings.gates, findings.after) == ((), None)
    assert all(not tried.passed for tried in findings.tried)


def test_rollback_while_it_runs_holds_at_once_and_what_is_promoted_later_can_be_rolled_back_too(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    artefacts = Artefacts(site.calibration, MODEL)
    first = artefacts.promotion().active
    command = ["rollback", MODEL, "--config", str(site.config_file)]

    def roll_back() -> None:
        assert main(command) == 0
        assert artefacts.promotion().active is None
        said = capsys.readouterr()
        assert said.out == f"{MODEL}: now in use: the float model; before: artefact {first}\n"
        assert f"a calibration is under way ({MODEL}: " in said.err

    (outcome,) = site.calibrate(Until("judging", roll_back)).outcomes
    assert outcome["verdict"] == "promoted"
    promotion = artefacts.promotion()
    assert (promotion.active, promotion.previous) == (outcome["artefact"], None)
    assert artefacts.get(outcome["artefact"]).id == outcome["artefact"], "whole"
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    assert artefacts.promotion().active is None


def test_second_calibration_at_the_same_time_is_refused(tmp_path: Path) -> None:
    site = Site.made(tmp_path)
    with (site.calibration / LOCK_FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CalibrationRefused, match="another calibration is under way"):
            site.calibrate()
        assert not (site.calibration / "collection").exists()


def test_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    site = Site.made(tmp_path)
    site.write_settings(calibration={"directory": str(site.config_file / "calibration")})
    with pytest.raises(CalibrationRefused, match="cannot be written"):
        site.calibrate()


def empty_files(folder: Path) -> None:
    for number in range(5):
        (folder / f"{number}.jpg").touch()


def one_black_frame_forty_times(folder: Path) -> None:
    import cv2

    ok, content = cv2.imencode(".jpg", label_frame(0) * 0)
    assert ok
    for number in range(40):
        (folder / f"{number}.jpg").write_bytes(content.tobytes())


@pytest.mark.parametrize(
    ("fill", "says"),
    [
        (lambda folder: None, "0 usable frames, at least 6 different ones are needed: offered 0"),
        (empty_files, "0 usable frames, at least 6 different ones are needed: offered 5.*skipped 5"),
        (one_black_frame_forty_times, "offered 40, near duplicates 39, without any texture 1, skipped 0"),
    ],
)
def test_frames_that_do_not_do_are_refused_with_counts(fill: Any, says: str, site: Site) -> None:
    active = Artefacts(site.calibration, MODEL).promotion().active
    for path in site.frames.iterdir():
        path.unlink()
    fill(site.frames)
    with pytest.raises(CalibrationRefused, match=says):
        site.calibrate()
    assert Artefacts(site.calibration, MODEL).promotion().active == active
    kept = collection.load(site.calibration / "collection")
    assert kept is not None
    assert len(kept.frames) == 8


def test_bad_files_among_good_ones_are_listed(tmp_path: Path) -> None:
    site = Site.made(tmp_path)
    (site.frames / "Thumbs.db").write_bytes(b"\xd0\xcf\x11\xe0")
    (site.frames / "cut.jpg").write_bytes(label_jpeg(3)[:2000])
    (site.frames / "img0.jpg").rename(site.frames / "IMG_0 \u00fc'\"$ \x1b[31m.JPG")
    notes = collected(site)
    assert notes[0].startswith("8 frames of ")
    assert any(note.startswith("skipped cut.jpg: ") for note in notes)


def collected(site: Site, **changes: Any) -> list[str]:
    """What is said when frames are collected, and nothing else is done."""
    heard = Heard()
    progress = ProgressFile(site.calibration / "progress.json")
    Run(site.wish(**changes), site.settings, find_models_dir(), site.calibration, heard, progress).collect()
    progress.close()
    return heard.notes


def test_ranges_that_cannot_be_kept_end_it_and_what_ran_stays(site: Site) -> None:
    active = Artefacts(site.calibration, MODEL).promotion().active
    path = site.model / "work" / "ranges.json"
    path.unlink()
    (path / "in the way").mkdir(parents=True)
    with pytest.raises(CalibrationRefused, match=r"ranges.json cannot be written: .*; free space or check the owner"):
        site.calibrate()
    assert Artefacts(site.calibration, MODEL).promotion().active == active


# ---- what is asked for ----------------------------------------------------------------------------------------------


def test_two_models_of_one_task_are_refused() -> None:
    with pytest.raises(ConfigError, match="ppocrv6-small-rec and ppocrv4-mobile-rec are both a recogniser"):
        with_models(Config(), (MODEL, "ppocrv4-mobile-rec"), find_models_dir())


def test_named_model_takes_the_place_of_its_task() -> None:
    settings = with_models(Config(), ("ppocrv4-mobile-rec",), find_models_dir())
    assert models_by_stage(settings, ("ppocrv4-mobile-rec",)) == {"recognise": "ppocrv4-mobile-rec"}
    assert settings.pipeline.detector == Config().pipeline.detector


def test_without_frames_it_is_said_how_to_give_them(tmp_path: Path) -> None:
    site = Site.made(tmp_path)
    with pytest.raises(CalibrationRefused, match="there are no frames yet: give them with --frames"):
        calibrate(site.wish(source="collection", name=None), Heard())


@pytest.mark.parametrize("recipe", [{"float_groups": ["nonsense"]}, {"percentil": 99}, {"gates": {"min_speedup": -1}}])
def test_recipe_that_cannot_be_is_named(recipe: dict[str, Any], site: Site) -> None:
    site.write_recipe(**recipe)
    with pytest.raises(ConfigError, match="nonsense|percentil|min_speedup"):
        site.calibrate()


def test_folder_camera_gives_frames(tmp_path: Path) -> None:
    site = Site.made(tmp_path)
    camera = {"kind": "folder", "source": str(site.frames), "pace": "every_frame", "loop": True}
    site.write_settings(cameras={"line1": camera})
    assert collected(site, source="camera", name="line1", count=6)[0].startswith("6 frames of ")


def test_collection_of_a_sister_device_serves(promoted: Promoted, tmp_path: Path) -> None:
    kept = collection.load(promoted[0].calibration / "collection")
    assert kept is not None
    archive.export(kept, tmp_path / "site.zip")
    sister = Site.made(tmp_path / "sister", frames=())
    assert collected(sister, source="archive", name=str(tmp_path / "site.zip"))[0].startswith("8 frames of 8")
    brought = collection.load(sister.calibration / "collection")
    assert brought is not None
    assert brought.digest == kept.digest
