"""ModelSpec: what a model.yaml may say, which names are models, and what is asked of files before they are loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edge_agent.errors import ModelError
from edge_agent.models.fetch import fetch
from edge_agent.models.spec import ModelSpec, available, find_models_dir, is_safe_member, require_files
from tests.conftest import ROOT
from tests.models import small

SHIPPED = ROOT / "engines"
DEFAULT_SET = ("minilm-l6-v2", "ppocrv4-mobile-det", "ppocrv4-mobile-rec", "ppocrv6-small-det", "ppocrv6-small-rec")
SOURCE = {"files": {"onnx": {"path": "source.onnx", "sha256": "0" * 64}}}


def silent(line: str) -> None:
    pass


def detector_values(**changes: Any) -> dict[str, Any]:
    return {**small.spec_values("det", "text_detection", SOURCE), **changes}


def load(tmp_path: Path, values: dict[str, Any]) -> ModelSpec:
    small.write_spec(tmp_path, values)
    return ModelSpec.load(tmp_path, str(values["name"]))


@pytest.mark.parametrize("name", DEFAULT_SET)
def test_shipped_model_is_declared_whole(name: str) -> None:
    spec = ModelSpec.load(SHIPPED, name)
    assert spec.source.wheel is not None
    assert spec.source.wheel_sha256 is not None
    assert spec.licence == "Apache-2.0"
    assert spec.profiles


@pytest.mark.parametrize("name", [n for n in DEFAULT_SET if n.endswith("-rec")])
def test_shipped_width_ladder_lies_inside_the_profiles(name: str) -> None:
    spec = ModelSpec.load(SHIPPED, name)
    assert spec.recogniser is not None
    for width in spec.recogniser.width_buckets_px:
        assert width % spec.recogniser.step_px == 0
        assert any(p.min["image"][2] <= width <= p.max["image"][2] for p in spec.profiles), width


@pytest.mark.parametrize(
    "name",
    ["../det", "/etc/passwd", "det/../det", "a\0.onnx", "..", ".", "", "..%2f..%2fetc", "x" * 300, "det\n", ".hidden"],
)
def test_name_that_is_no_name_is_refused_without_a_word_on_other_places(tmp_path: Path, name: str) -> None:
    small.write_spec(tmp_path / "engines", detector_values())
    small.write_spec(tmp_path, detector_values())
    with pytest.raises(ModelError) as refused:
        ModelSpec.load(tmp_path / "engines", name)
    assert str(refused.value) == "not a model name; expected 1 to 64 letters, digits, dots, hyphens or underscores"


def test_link_that_leads_outside_looks_like_a_model_that_is_not_there(tmp_path: Path) -> None:
    small.write_spec(tmp_path / "elsewhere", detector_values())
    models_dir = tmp_path / "engines"
    models_dir.mkdir()
    (models_dir / "det").symlink_to(tmp_path / "elsewhere" / "det")
    (models_dir / "gone").symlink_to(tmp_path / "nowhere")
    messages = []
    for name in ("det", "gone", "never"):
        with pytest.raises(ModelError) as refused:
            ModelSpec.load(models_dir, name)
        messages.append(str(refused.value).replace(name, "NAME"))
    assert len(set(messages)) == 1
    assert available(models_dir) == []


def test_unknown_model_is_answered_with_those_that_exist(tmp_path: Path) -> None:
    small.write_spec(tmp_path, detector_values())
    with pytest.raises(ModelError, match="there is no model 'dat'; choose one of det"):
        ModelSpec.load(tmp_path, "dat")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"colour": 1}, "colour"),
        ({"task": "text_guessing"}, "task"),
        ({"licence": ""}, "licence"),
        ({"detector": None}, "has the block detector"),
        ({"encoder": {"max_tokens": 8}}, "has the block detector and no other"),
        ({"detector": {"side_multiple_px": "32", "pad_value": 0}}, "detector.side_multiple_px"),
        ({"detector": {"side_multiple_px": 32, "pad_value": 256}}, "detector.pad_value"),
        ({"source": {"files": {}}}, "either onnx or safetensors"),
        ({"source": {"files": {"onnx": {"path": "a", "sha256": "abc"}}}}, "source.files.onnx.sha256"),
        ({"source": {"wheel": "x; rm -rf /", **SOURCE}}, "source.wheel"),
        ({"source": {"wheel": "--index-url==1", **SOURCE}}, "source.wheel"),
        ({"normalisation": {"scale": 0.1, "mean": [0, 0], "std": [1.0, 1.0, 1.0]}}, "normalisation.mean"),
        ({"normalisation": {"scale": 0.1, "mean": [0.0] * 3, "std": [1.0, 0.0, 1.0]}}, "normalisation.std.1"),
        ({"profiles": [{"min": {"x": [1]}, "opt": {"x": [1]}, "max": {"x": [1]}}]}, "the inputs are"),
        ({"profiles": [{"min": {"image": [2]}, "opt": {"image": [1]}, "max": {"image": [3]}}]}, "do not ascend"),
        ({"name": "other"}, "for a model named 'other'"),
    ],
)
def test_wrong_model_yaml_names_file_key_and_fault(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    path = small.write_spec(tmp_path, detector_values())
    path.write_text(small.write_spec(tmp_path / "aside", detector_values(**changes)).read_text())
    with pytest.raises(ModelError, match="det/model.yaml") as refused:
        ModelSpec.load(tmp_path, "det")
    assert fault in str(refused.value)


def test_key_written_twice_is_refused(tmp_path: Path) -> None:
    path = small.write_spec(tmp_path, detector_values())
    path.write_text(path.read_text() + "licence: MIT\n")
    with pytest.raises(ModelError, match="licence"):
        ModelSpec.load(tmp_path, "det")


def test_ladder_must_ascend_and_full_must_be_among_the_variants(tmp_path: Path) -> None:
    values = small.spec_values("rec", "text_recognition", SOURCE)
    with pytest.raises(ModelError, match="ascending"):
        load(tmp_path, {**values, "recogniser": {**values["recogniser"], "width_buckets_px": [320, 96]}})
    with pytest.raises(ModelError, match="must contain full"):
        load(tmp_path, {**values, "recogniser": {**values["recogniser"], "variants": ["latin"]}})


def test_files_of_a_variant(tmp_path: Path) -> None:
    spec = load(tmp_path, small.spec_values("rec", "text_recognition", SOURCE))
    assert spec.variants == ("full", "latin")
    assert [path.name for path in spec.files("latin").paths] == ["model.latin.onnx", "charset.latin.json"]
    detector = load(tmp_path, detector_values())
    assert [path.name for path in detector.files("cpu").paths] == ["model.cpu.onnx"]
    with pytest.raises(ModelError, match="det has no variant 'latin'; choose one of full, cpu"):
        detector.files("latin")


def test_missing_files_are_named_with_the_cure(tmp_path: Path) -> None:
    spec = load(tmp_path, small.spec_values("rec", "text_recognition", SOURCE))
    with pytest.raises(ModelError, match=r"rec: missing model\.onnx, charset\.json; run: edge-agent models fetch rec"):
        require_files(spec, tmp_path)


def test_fetched_files_are_given_by_absolute_path(tmp_path: Path) -> None:
    models_dir, wheels = small.world(tmp_path)
    fetch(models_dir, ["rec"], silent, wheels_from=wheels)
    files = require_files(ModelSpec.load(models_dir, "rec"), models_dir, "latin")
    assert files.onnx == models_dir.resolve() / "rec" / "model.latin.onnx"
    assert files.charset is not None
    assert all(path.is_absolute() and path.is_file() for path in files.paths)


def test_truncated_file_is_found_before_it_is_loaded(tmp_path: Path) -> None:
    models_dir, wheels = small.world(tmp_path)
    fetch(models_dir, ["det"], silent, wheels_from=wheels)
    path = models_dir / "det" / "model.onnx"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelError, match=r"det: model\.onnx is damaged: \d+ bytes, expected \d+; run: edge-agent"):
        require_files(ModelSpec.load(models_dir, "det"), models_dir)


def test_changed_file_of_the_right_length_is_found_before_it_is_loaded(tmp_path: Path) -> None:
    models_dir, wheels = small.world(tmp_path)
    fetch(models_dir, ["rec"], silent, wheels_from=wheels)
    for name in ("model.latin.onnx", "charset.latin.json"):
        path = models_dir / "rec" / name
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(ModelError, match=rf"rec: {name} is damaged: its sha256 differs.*models fetch rec"):
            require_files(ModelSpec.load(models_dir, "rec"), models_dir, "latin")
        path.write_bytes(whole)
    assert require_files(ModelSpec.load(models_dir, "rec"), models_dir, "latin").charset is not None


def test_model_file_that_is_a_link_to_elsewhere_counts_as_missing(tmp_path: Path) -> None:
    models_dir, wheels = small.world(tmp_path)
    fetch(models_dir, ["det"], silent, wheels_from=wheels)
    path = models_dir / "det" / "model.onnx"
    path.rename(tmp_path / "outside.onnx")
    path.symlink_to(tmp_path / "outside.onnx")
    with pytest.raises(ModelError, match=r"missing model\.onnx"):
        require_files(ModelSpec.load(models_dir, "det"), models_dir)


def test_configured_folder_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "engines").mkdir()
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_models_dir(tmp_path / "mine") == tmp_path / "mine"
    assert find_models_dir(None) == tmp_path / "engines"


def test_configured_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nowhere is not a folder"):
        find_models_dir(tmp_path / "nowhere")


def test_default_folder_is_found_from_any_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_models_dir() == SHIPPED


def test_folder_that_is_not_there_has_no_models(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not a folder"):
        available(tmp_path / "nowhere")


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "", "a\\..\\b"])
def test_path_that_leaves_the_wheel_is_not_a_member(path: str) -> None:
    assert not is_safe_member(path)
    assert is_safe_member("package/models/a.onnx")


def test_package_carries_every_declaration_and_no_fetched_file() -> None:
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for path in (path for name in DEFAULT_SET for path in sorted((SHIPPED / name).glob("*.yaml"))):
        place = path.relative_to(ROOT).as_posix()
        assert f'"{place}" = "share/edge-agent/{place}"' in declared
    assert '"engines" =' not in declared
