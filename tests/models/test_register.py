"""Register: a user's own model becomes one of the house, or leaves nothing behind."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import safetensors.numpy
from onnx import TensorProto, helper

from edge_agent.errors import ModelError
from edge_agent.models import charset
from edge_agent.models.manifest import state
from edge_agent.models.register import Wish, add, read_labels
from edge_agent.models.spec import ModelSpec, available
from tests.models import small, test_bert


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "engines"
    folder.mkdir()
    return folder


def write(folder: Path, model: onnx.ModelProto, name: str = "mine.onnx") -> Path:
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def take(models_dir: Path, path: Path, task: Any, **wish: Any) -> ModelSpec:
    return add(models_dir, path, Wish(name=wish.pop("name", "mine"), task=task, **wish), lambda line: None)


def tokenizer(folder: Path) -> Path:
    path = folder / "tokenizer.json"
    path.write_text('{"padding": {"strategy": {"Fixed": 128}}, "truncation": null, "model": {}}')
    return path


def assert_nothing_left(models_dir: Path) -> None:
    assert list(models_dir.iterdir()) == []


def test_detector_is_taken_in_with_the_normalisation_given(models_dir: Path, tmp_path: Path) -> None:
    path = write(tmp_path, small.detector())
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    take(models_dir, path, "text_detection", mean=mean, std=std, colour_order="RGB", licence="MIT")
    spec = ModelSpec.load(models_dir, "mine")
    assert (spec.licence, spec.task) == ("MIT", "text_detection")
    assert state(spec, models_dir / "mine") == "ready"
    picture = np.random.default_rng(1).integers(0, 256, (1, 32, 64, 3), np.uint8)
    x = ((picture[..., ::-1] / 255 - mean) / std).transpose(0, 3, 1, 2).astype(np.float32)
    got = small.run(onnx.load(models_dir / "mine" / "model.onnx"), image=picture)["probability"]
    assert np.abs(got / 255 - small.run(small.detector(), x=x)["p"][:, 0]).max() < 0.5 / 255 + 1e-4


@pytest.mark.parametrize("space", [True, False])
def test_recogniser_takes_its_characters_from_a_file_with_or_without_the_space(
    models_dir: Path, tmp_path: Path, space: bool
) -> None:
    characters = ["A", "B", "C"]
    graph = small.recogniser(characters if space else characters[:2], metadata=False)
    dictionary = tmp_path / "dictionary.txt"
    dictionary.write_text("\n".join(characters) + "\n")
    take(models_dir, write(tmp_path, graph), "text_recognition", charset=dictionary)
    want = ("", *characters, " ") if space else ("", *characters)
    assert charset.read(models_dir / "mine" / "charset.json") == want


def test_recogniser_with_a_large_charset_gets_a_latin_variant(models_dir: Path, tmp_path: Path) -> None:
    characters = ["A", "é", *(chr(0x4E00 + n) for n in range(1000))]
    spec = take(models_dir, write(tmp_path, small.recogniser(characters)), "text_recognition")
    assert spec.variants == ("full", "latin")
    assert charset.read(models_dir / "mine" / "charset.latin.json") == ("", "A", "é", " ")


def test_encoder_is_taken_in_as_others_export_it(models_dir: Path, tmp_path: Path) -> None:
    spec = take(models_dir, write(tmp_path, small.encoder()), "text_embedding", tokenizer=tokenizer(tmp_path))
    assert [tensor.shape for tensor in spec.outputs] == [(None, 8)]
    made = onnx.load(models_dir / "mine" / "model.onnx")
    assert [value.name for value in made.graph.input] == ["input_ids", "attention_mask"]
    assert json.loads((models_dir / "mine" / "tokenizer.json").read_text())["padding"] is None


def test_model_made_here_is_taken_in_unchanged(models_dir: Path, tmp_path: Path) -> None:
    take(models_dir, write(tmp_path, small.detector()), "text_detection")
    made = models_dir / "mine" / "model.onnx"
    take(models_dir, made, "text_detection", name="again")
    assert (models_dir / "again" / "model.onnx").read_bytes() == made.read_bytes()


def test_folder_with_safetensors_becomes_an_encoder(models_dir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bert"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(safetensors.numpy.save(test_bert.weights("bert.")))
    (folder / "config.json").write_text(json.dumps(test_bert.CONFIG))
    tokenizer(folder)
    spec = take(models_dir, folder, "text_embedding", prefix="query: ")
    assert spec.encoder is not None
    assert spec.encoder.prefix == "query: "
    got = test_bert.run(onnx.load(models_dir / "mine" / "model.onnx"), test_bert.TEXTS)
    want = test_bert.sentence_vectors(test_bert.weights(), test_bert.CONFIG, test_bert.TEXTS)
    np.testing.assert_allclose(got, want, atol=2e-5)


def test_folder_with_another_pooling_is_refused(models_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "bert" / "1_Pooling").mkdir(parents=True)
    (tmp_path / "bert" / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    with pytest.raises(ModelError, match="asks for pooling_mode_cls_token; this builder knows the mean"):
        take(models_dir, tmp_path / "bert", "text_embedding")
    assert_nothing_left(models_dir)


def test_weights_that_lie_beside_the_graph_are_taken_along(models_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.onnx"
    onnx.save(small.detector(), path, save_as_external_data=True, location="mine.weights", size_threshold=0)
    take(models_dir, path, "text_detection")
    (tmp_path / "mine.weights").unlink()
    picture = np.zeros((1, 32, 32, 3), np.uint8)
    assert small.run(onnx.load(models_dir / "mine" / "source.onnx"), x=picture.transpose(0, 3, 1, 2).astype(np.float32))


def test_weights_that_are_missing_beside_the_graph_are_said(models_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.onnx"
    onnx.save(small.detector(), path, save_as_external_data=True, location="mine.weights", size_threshold=0)
    (tmp_path / "mine.weights").unlink()
    with pytest.raises(ModelError, match="its weights lie in another file that cannot be read"):
        take(models_dir, path, "text_detection")
    assert_nothing_left(models_dir)


def test_taken_name_and_name_that_is_none_are_refused(models_dir: Path, tmp_path: Path) -> None:
    path = write(tmp_path, small.detector())
    take(models_dir, path, "text_detection")
    before = (models_dir / "mine" / "model.yaml").read_bytes()
    with pytest.raises(ModelError, match="there is a model 'mine' already"):
        take(models_dir, path, "text_detection")
    for name in ("../mine", ".hidden", "", "a/b"):
        with pytest.raises(ModelError, match="not a model name"):
            take(models_dir, path, "text_detection", name=name)
    assert available(models_dir) == ["mine"]
    assert (models_dir / "mine" / "model.yaml").read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x89PNG\r\n\x1a\n" + b"\0" * 64, b"{}"])
def test_file_that_is_not_onnx_is_refused(models_dir: Path, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mine.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"mine\.onnx: the file is not ONNX"):
        take(models_dir, path, "text_detection")
    assert_nothing_left(models_dir)


@pytest.mark.parametrize(
    ("make", "task", "fixed"),
    [
        (small.detector, "text_detection", [1, 3, 640, 640]),
        (small.detector, "text_detection", [1, 3, "H", "W"]),
        (small.recogniser, "text_recognition", ["N", 3, 48, 320]),
    ],
)
def test_graph_for_one_size_of_picture_is_refused_by_its_sides(
    models_dir: Path, tmp_path: Path, make: Callable[[], onnx.ModelProto], task: str, fixed: list[int | str]
) -> None:
    model = make()
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, fixed))
    with pytest.raises(ModelError, match=r"takes pictures of .* only; export it again with N, .*W left open"):
        take(models_dir, write(tmp_path, model), task)
    assert_nothing_left(models_dir)


def test_graph_that_is_not_valid_is_refused_in_one_line(models_dir: Path, tmp_path: Path) -> None:
    model = small.detector()
    model.graph.node[1].input[0] = "c1"  # a ring
    with pytest.raises(ModelError, match="not valid ONNX") as caught:
        take(models_dir, write(tmp_path, model), "text_detection")
    assert "\n" not in str(caught.value)
    assert_nothing_left(models_dir)


@pytest.mark.parametrize("mean", [(math.nan, 0.5, 0.5), (0.5, math.inf, 0.5), (123.7, 116.3, 103.5)])
def test_mean_that_is_none_of_pixels_from_0_to_1_is_refused(
    models_dir: Path, tmp_path: Path, mean: tuple[float, float, float]
) -> None:
    with pytest.raises(ModelError, match="mean is .*; expected that of pixels / 255, near 0 to 1"):
        take(models_dir, write(tmp_path, small.detector()), "text_detection", mean=mean)
    assert_nothing_left(models_dir)


def test_pipe_or_device_in_place_of_a_file_is_refused_at_once(models_dir: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ModelError, match="is not a regular file; expected an ONNX file"):
            take(models_dir, path, "text_detection")
    assert_nothing_left(models_dir)


def test_file_that_is_not_there_is_said(models_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        take(models_dir, tmp_path / "nowhere.onnx", "text_detection")


def test_foreign_operators_are_named(models_dir: Path, tmp_path: Path) -> None:
    model = small.detector()
    model.graph.node[1].domain = "my.plugin"
    model.opset_import.append(helper.make_opsetid("my.plugin", 1))
    with pytest.raises(ModelError, match=r"operators that no backend here has \(my\.plugin: Relu\)"):
        take(models_dir, write(tmp_path, model), "text_detection")
    assert_nothing_left(models_dir)


def test_operators_of_onnx_runtime_are_taken_and_said(models_dir: Path, tmp_path: Path) -> None:
    model = small.detector()
    model.graph.node[1].CopyFrom(helper.make_node("Gelu", ["c0"], ["r0"], domain="com.microsoft"))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    said: list[str] = []
    add(models_dir, write(tmp_path, model), Wish(name="mine", task="text_detection"), said.append)
    assert "mine: runs on ONNX Runtime only, TensorRT does not know com.microsoft: Gelu" in said
    assert state(ModelSpec.load(models_dir, "mine"), models_dir / "mine") == "ready"


@pytest.mark.parametrize(
    ("task", "graph", "fault"),
    [
        ("text_detection", small.encoder(), "expected one picture"),
        ("text_recognition", small.detector(), "no metadata `character`"),
        ("text_recognition", small.recogniser(metadata=False), "--charset FILE"),
        ("text_embedding", small.encoder(), "--tokenizer"),
    ],
)
def test_graph_that_does_not_fit_its_task_leaves_nothing_behind(
    models_dir: Path, tmp_path: Path, task: str, graph: onnx.ModelProto, fault: str
) -> None:
    with pytest.raises(ModelError, match=fault):
        take(models_dir, write(tmp_path, graph), task)
    assert_nothing_left(models_dir)


def test_charset_of_another_length_is_refused_with_both_numbers(models_dir: Path, tmp_path: Path) -> None:
    dictionary = tmp_path / "dictionary.txt"
    dictionary.write_text("a\nb\n")
    with pytest.raises(ModelError, match="the classifier has 11 classes, the charset 3 with the blank"):
        take(models_dir, write(tmp_path, small.recogniser()), "text_recognition", charset=dictionary)
    assert_nothing_left(models_dir)


def test_graph_made_of_local_functions_is_taken_in(models_dir: Path, tmp_path: Path) -> None:
    """torch's newer exporter writes functions of its own domain."""
    model = small.detector()
    function = helper.make_function(
        "pkg.torch", "act", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], [helper.make_opsetid("", 11)]
    )
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("pkg.torch", 1))
    model.ir_version = 8
    model.graph.node[1].CopyFrom(helper.make_node("act", ["c0"], ["r0"], domain="pkg.torch"))
    take(models_dir, write(tmp_path, model), "text_detection")
    kinds = {(n.domain, n.op_type) for n in onnx.load(models_dir / "mine" / "model.onnx").graph.node}
    assert ("", "Relu") in kinds


def test_declared_height_of_lines_is_the_graphs(models_dir: Path, tmp_path: Path) -> None:
    spec = take(models_dir, write(tmp_path, small.recogniser()), "text_recognition")
    assert spec.recogniser is not None
    assert spec.recogniser.height_px == 48
    assert spec.recogniser.step_px == 8
    assert spec.inputs[0].shape == (None, 48, None, 3)
    made = onnx.load(models_dir / "mine" / "model.onnx")
    assert {v.name: v.type.tensor_type.elem_type for v in made.graph.output} == {
        "index": TensorProto.INT32,
        "probability": TensorProto.FLOAT,
        "code_margin": TensorProto.FLOAT,
    }


@pytest.mark.parametrize("margins", [True, False])
def test_graph_that_ends_in_index_and_probability_may_have_margins_or_not(
    models_dir: Path, tmp_path: Path, margins: bool
) -> None:
    take(models_dir, write(tmp_path, small.recogniser()), "text_recognition")
    agreed = onnx.load(models_dir / "mine" / "model.onnx")
    helper.set_model_props(agreed, {"character": "".join(f"{character}\n" for character in small.CHARACTERS)})
    if not margins:
        kept = [value for value in agreed.graph.output if value.name != "code_margin"]
        del agreed.graph.output[:]
        agreed.graph.output.extend(kept)
    spec = take(models_dir, write(tmp_path, agreed), "text_recognition", name="again")
    assert ("code_margin" in [tensor.name for tensor in spec.outputs]) is margins


def test_written_model_yaml_says_only_what_there_is_to_say(models_dir: Path, tmp_path: Path) -> None:
    take(models_dir, write(tmp_path, small.detector()), "text_detection")
    text = (models_dir / "mine" / "model.yaml").read_text()
    assert "wheel" not in text
    assert "null" in text  # the dimensions that vary
    assert str(tmp_path) not in text


def test_tagger_is_taken_in_with_its_labels(models_dir: Path, tmp_path: Path) -> None:
    labels = tmp_path / "config.json"
    labels.write_text(json.dumps({"id2label": {"1": "B-LOT", "0": "O", "2": "I-LOT"}}))
    graph = small.tagger(labels=3)
    spec = take(
        models_dir, write(tmp_path, graph), "token_classification", tokenizer=tokenizer(tmp_path), labels=labels
    )
    assert spec.tagger is not None
    assert spec.tagger.labels == ("O", "B-LOT", "I-LOT")
    assert [(tensor.name, tensor.dtype) for tensor in spec.inputs] == [
        ("input_ids", "int64"),
        ("attention_mask", "int64"),
    ]
    assert state(ModelSpec.load(models_dir, "mine"), models_dir / "mine") == "ready"
    assert (models_dir / "mine" / "model.onnx").is_file()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "has no id2label"),
        ('{"id2label": {"0": "O", "2": "B-LOT"}}', r"id2label numbers \[0, 2\]; expected 0, 1, 2"),
        (None, "needs its labels: give --labels"),
    ],
)
def test_tagger_without_its_labels_is_refused(models_dir: Path, tmp_path: Path, text: str | None, message: str) -> None:
    labels = tmp_path / "config.json"
    labels.write_text(text or "")
    wish = {"tokenizer": tokenizer(tmp_path), "labels": labels if text is not None else None}
    with pytest.raises(ModelError, match=message):
        take(models_dir, write(tmp_path, small.tagger(labels=3)), "token_classification", **wish)
    assert_nothing_left(models_dir)


def test_labels_are_read_from_text_too(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("O\nB-LOT\n\nI-LOT\n")
    assert read_labels(tmp_path / "labels.txt") == ["O", "B-LOT", "I-LOT"]
