"""Check: a graph that says something else than its original does not get through."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from edge_agent.errors import ModelError
from edge_agent.models import check
from edge_agent.models.build import build
from edge_agent.models.spec import ModelSpec, parse_spec
from tests.conftest import ROOT
from tests.models import small

SOURCE = {"files": {"onnx": {"path": "source.onnx", "sha256": "0" * 64}}}
ENGINES = ROOT / "engines"


def spec_of(task: str) -> ModelSpec:
    return parse_spec(small.spec_values("m", task, SOURCE), "m")


def nudged(model: onnx.ModelProto, by: float) -> bytes:
    """The graph with its last float weights changed a little."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    tensor = [t for t in changed.graph.initializer if len(t.dims) > 1][-1]
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1 + by), tensor.name))
    return changed.SerializeToString()


def test_detector_that_says_the_same_passes_with_its_numbers() -> None:
    spec, original = spec_of("text_detection"), small.detector().SerializeToString()
    made = build(spec, {"onnx": original})["full"].model
    assert "text probability within 0.00" in check.verify_detector(spec, original, made.SerializeToString())


def test_detector_that_is_a_little_off_is_refused_with_the_numbers() -> None:
    spec, original = spec_of("text_detection"), small.detector().SerializeToString()
    made = build(spec, {"onnx": original})["full"].model
    with pytest.raises(ModelError, match=r"differs from the original's by 0\.\d+; at most 0\.0041"):
        check.verify_detector(spec, original, nudged(made, 0.1))


def test_recogniser_that_is_a_little_off_is_refused_with_the_numbers() -> None:
    spec, original = spec_of("text_recognition"), small.recogniser().SerializeToString()
    made = build(spec, {"onnx": original})["full"].model
    check.verify_recogniser(spec, original, made.SerializeToString())
    with pytest.raises(ModelError, match=r"of \d+ steps read another character|probabilities differ by up to"):
        check.verify_recogniser(spec, original, nudged(made, 0.1))


def test_margins_of_other_characters_than_said_are_refused() -> None:
    spec, original = spec_of("text_recognition"), small.recogniser().SerializeToString()
    made = build(spec, {"onnx": original})["full"].model
    codes = next(tensor for tensor in made.graph.initializer if tensor.name == "code.classes")
    for node in made.graph.node:
        if node.op_type == "Gather" and codes.name in node.input:
            made.graph.initializer.append(
                numpy_helper.from_array(numpy_helper.to_array(codes)[::-1].copy(), "other.classes")
            )
            node.input[1] = "other.classes"
    with pytest.raises(ModelError, match="probabilities differ by up to"):
        check.verify_recogniser(spec, original, made.SerializeToString())


def test_cut_head_is_compared_among_the_kept_classes() -> None:
    spec, original = spec_of("text_recognition"), small.recogniser().SerializeToString()
    latin = build(spec, {"onnx": original})["latin"]
    made = latin.model.SerializeToString()
    assert "steps read alike" in check.verify_recogniser(spec, original, made, latin.kept)
    shifted = [0, *(i - 1 for i in latin.kept[2:]), latin.kept[-1]]
    with pytest.raises(ModelError, match="read another character|differ"):
        check.verify_recogniser(spec, original, made, shifted)


def test_paths_do_as_well_as_bytes(tmp_path: Path) -> None:
    spec, original = spec_of("text_detection"), small.detector().SerializeToString()
    (tmp_path / "a.onnx").write_bytes(original)
    (tmp_path / "b.onnx").write_bytes(build(spec, {"onnx": original})["full"].model.SerializeToString())
    assert "within" in check.verify_against_original(tmp_path / "a.onnx", tmp_path / "b.onnx", spec)


def test_graphs_that_agree_on_values_that_are_not_numbers_are_refused() -> None:
    for task, model in (("text_detection", small.detector()), ("text_recognition", small.recogniser())):
        for tensor in model.graph.initializer:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32("nan"), tensor.name))
        original = model.SerializeToString()
        made = build(spec_of(task), {"onnx": original})["full"].model.SerializeToString()
        verify = check.verify_detector if task == "text_detection" else check.verify_recogniser
        with pytest.raises(ModelError, match="not finite"):
            verify(spec_of(task), original, made)


def test_no_limit_lets_a_difference_pass_that_is_not_a_number() -> None:
    assert check.worst_of(np.array([0.1, -0.3]), 0.2) == pytest.approx(0.3)
    assert check.worst_of(np.array([]), 0.2) == 0.2
    assert not check.worst_of(np.array([0.1, np.nan]), 0.0) <= 1e9
    assert not check.worst_of(np.array([0.1]), float("nan")) <= 1e9


def test_graph_that_the_runtime_refuses_is_an_error_not_a_crash() -> None:
    with pytest.raises(ModelError, match="ONNX Runtime refuses the graph"):
        check.session(b"not a model")


def test_machine_without_runtime_says_that_nothing_was_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, original = spec_of("text_detection"), small.detector().SerializeToString()
    built = build(spec, {"onnx": original})
    monkeypatch.setattr(check.importlib.util, "find_spec", lambda name: None)
    said: list[str] = []
    assert check.verify_built(spec, {"onnx": original}, built, tmp_path, said.append) is False
    assert said == ["m: NOT compared with the original: the Python package onnxruntime is not installed"]


def test_picture_of_text_is_read_by_the_default_recogniser() -> None:
    """The made picture must exercise characters, else comparing on it would say little."""
    path = ENGINES / "ppocrv6-small-rec" / "model.latin.onnx"
    if not path.exists():
        pytest.skip("models not fetched: run edge-agent models fetch")
    from edge_agent.models.charset import read

    characters = read(path.with_name("charset.latin.json"))
    index = check.run(check.session(path.read_bytes()), {"image": check.text_picture(48, 320)[None]})["index"][0]
    steps = [i for place, i in enumerate(index) if i and (place == 0 or index[place - 1] != i)]
    assert "".join(characters[i] for i in steps).replace(" ", "") == check.SAMPLE_TEXT.replace(" ", "")
