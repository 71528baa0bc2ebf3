"""Surgery: the graph that comes out says the same as the one that went in, in the agreed tensors."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from edge_agent.errors import ModelError
from edge_agent.models import surgery
from tests.models import small

MEAN, STD = (0.5, 0.4, 0.3), (0.5, 0.25, 0.2)


def pictures(height: int = 33, width: int = 47) -> small.Array:
    return np.random.default_rng(3).integers(0, 256, (2, height, width, 3), np.uint8)


def normal(picture: small.Array, *, rgb: bool = False) -> small.Array:
    pixels = picture[..., ::-1] if rgb else picture
    return ((pixels / 255 - MEAN) / STD).transpose(0, 3, 1, 2).astype(np.float32)


def with_head(model: onnx.ModelProto, **options: object) -> onnx.ModelProto:
    return surgery.uint8_head(surgery.raise_opset(model), scale=1 / 255, mean=MEAN, std=STD, **options)  # type: ignore[arg-type]


def test_raising_the_opset_changes_no_value() -> None:
    model = small.recogniser()
    raised = surgery.raise_opset(model)
    assert surgery.default_opset(raised) == 17
    assert raised.ir_version == 8
    x = normal(pictures(48, 96))
    np.testing.assert_allclose(small.run(raised, x=x)["p"], small.run(model, x=x)["p"], atol=1e-7)


def test_raising_an_old_opset_works_too() -> None:
    model = small.detector()
    model.opset_import[0].version = 9
    x = normal(pictures())
    np.testing.assert_allclose(small.run(surgery.raise_opset(model), x=x)["p"], small.run(model, x=x)["p"], atol=1e-6)


def test_newer_opset_is_left_alone() -> None:
    model = small.detector()
    model.opset_import[0].version = 18
    assert surgery.default_opset(surgery.raise_opset(model)) == 18


def test_softmax_over_several_axes_is_refused_by_name() -> None:
    nodes = [helper.make_node("Softmax", ["x"], ["p"], axis=1)]
    with pytest.raises(ModelError, match=r"Softmax 'p' runs over the axes from 1 on of 4"):
        surgery.raise_opset(small.model(nodes, ["N", 3, "H", "W"], "p", ["N", 3, "H", "W"], []))


@pytest.mark.parametrize("order", ["BGR", "RGB"])
def test_uint8_head_equals_normalising_before_also_at_the_border(order: str) -> None:
    model = small.detector()
    headed = with_head(model, colour_order=order)
    picture = pictures()
    want = small.run(model, x=normal(picture, rgb=order == "RGB"))["p"]
    np.testing.assert_allclose(small.run(headed, image=picture)["p"], want, atol=2e-6)


def test_uint8_head_begins_with_a_cast_and_folds_the_factor() -> None:
    kinds = [node.op_type for node in with_head(small.detector()).graph.node]
    assert kinds[:4] == ["Cast", "Transpose", "Add", "Conv"]


def test_factor_stays_a_node_where_the_input_is_read_by_more_than_convolutions() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["p"])]
    model = small.model(nodes, ["N", 3, "H", "W"], "p", ["N", 3, "H", "W"], [])
    headed = with_head(model)
    assert "Mul" in [node.op_type for node in headed.graph.node]
    picture = pictures()
    np.testing.assert_allclose(small.run(headed, image=picture)["p"], np.maximum(normal(picture), 0), atol=2e-6)


def test_factor_stays_a_node_where_the_weights_serve_another_convolution() -> None:
    model = small.detector()
    weights = "w0"
    model.graph.node.append(helper.make_node("Conv", ["y", weights, "b0"], ["q"], pads=[1, 1, 1, 1]))
    model.graph.node.append(helper.make_node("Relu", ["x"], ["y"]))
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([nodes[-1], *nodes[:-1]])
    model.graph.output.append(helper.make_tensor_value_info("q", onnx.TensorProto.FLOAT, ["N", 8, "H", "W"]))
    picture = pictures()
    want = small.run(model, x=normal(picture))
    got = small.run(with_head(model), image=picture)
    np.testing.assert_allclose(got["q"], want["q"], atol=1e-5)


def test_height_is_fixed_when_asked() -> None:
    dims = with_head(small.recogniser(), height_px=48).graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dims] == ["N", 48, "W", 3]


def test_graph_with_another_input_is_refused_and_the_input_named() -> None:
    with pytest.raises(ModelError, match=r"input_ids: int64 \(b, s\).*expected one picture"):
        with_head(small.encoder())


def test_detector_tail_rounds_to_the_nearest_of_256_levels() -> None:
    model = surgery.raise_opset(small.detector())
    tailed = surgery.detector_tail(model)
    x = normal(pictures())
    p = small.run(model, x=x)["p"][:, 0]
    got = small.run(tailed, x=x)["probability"]
    assert got.dtype == np.uint8
    assert got.shape == p.shape
    assert tailed.graph.node[-1].op_type == "Cast"
    assert np.abs(got / 255 - p).max() <= 0.5 / 255 + 1e-6


def test_recogniser_tail_gives_the_winner_and_its_probability() -> None:
    model = surgery.raise_opset(small.recogniser())
    x = normal(pictures(48, 96))
    p = small.run(model, x=x)["p"]
    got = small.run(surgery.recogniser_tail(model), x=x)
    assert got["index"].dtype == np.int32
    np.testing.assert_array_equal(got["index"], p.argmax(axis=2))
    np.testing.assert_allclose(got["probability"], p.max(axis=2), atol=1e-7)


def test_recogniser_tail_gives_how_far_code_characters_are_behind_the_winner() -> None:
    model = surgery.raise_opset(small.recogniser())
    x = normal(pictures(48, 96))
    p = small.run(model, x=x)["p"]
    got = small.run(surgery.recogniser_tail(model, [0, 3, 1]), x=x)
    assert got["code_margin"].dtype == np.float32
    assert (got["code_margin"] <= 0).all()
    log_p = np.log(got["probability"])[..., None] + got["code_margin"]
    np.testing.assert_allclose(log_p, np.log(p[..., [0, 3, 1]]), atol=1e-5)
    assert "code_margin" not in small.run(surgery.recogniser_tail(model), x=x)


def test_recogniser_tail_refuses_a_graph_without_softmax() -> None:
    model = surgery.raise_opset(small.recogniser())
    model.graph.node[-1].op_type = "Sigmoid"
    del model.graph.node[-1].attribute[:]
    with pytest.raises(ModelError, match="does not end in a softmax"):
        surgery.recogniser_tail(model)


def test_tail_takes_a_graph_whose_output_has_the_agreed_name_already() -> None:
    model = surgery.raise_opset(small.detector())
    model.graph.node[-1].output[0] = "probability"
    model.graph.output[0].name = "probability"
    assert small.run(surgery.detector_tail(model), x=normal(pictures()))["probability"].dtype == np.uint8


def test_tail_refuses_a_graph_with_two_outputs() -> None:
    model = surgery.raise_opset(small.detector())
    model.graph.output.append(helper.make_tensor_value_info("r0", onnx.TensorProto.FLOAT, ["N", 8, "H", "W"]))
    with pytest.raises(ModelError, match="expected one float32 output of 4 dimensions"):
        surgery.detector_tail(model)


def test_cut_head_gives_the_softmax_among_the_kept() -> None:
    model = surgery.raise_opset(small.recogniser())
    keep = [0, 2, 3, 7]
    cut = surgery.cut_charset(model, keep)
    assert surgery.class_count(cut) == 4
    x = normal(pictures(48, 96))
    p = small.run(model, x=x)["p"][..., keep]
    np.testing.assert_allclose(small.run(cut, x=x)["p"], p / p.sum(axis=2, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("keep", [[], [1, 2], [0, 3, 2], [0, 2, 2], [0, 11]])
def test_cut_refuses_classes_that_make_no_charset(keep: list[int]) -> None:
    with pytest.raises(ModelError, match="must start with the blank 0, ascend and stay below 11"):
        surgery.cut_charset(surgery.raise_opset(small.recogniser()), keep)


def test_classifier_that_is_not_there_is_said() -> None:
    with pytest.raises(ModelError, match="classifier was not found"):
        surgery.class_count(small.detector())


def test_constants_become_stored_tensors() -> None:
    model = small.detector()
    tensor = model.graph.initializer[0]
    node = helper.make_node("Constant", [], [tensor.name], value=tensor)
    model.graph.node.insert(0, node)
    del model.graph.initializer[0]
    moved = surgery.constants_to_initializers(model)
    assert "Constant" not in [n.op_type for n in moved.graph.node]
    x = normal(pictures())
    np.testing.assert_array_equal(small.run(moved, x=x)["p"], small.run(small.detector(), x=x)["p"])


def test_no_step_changes_the_model_it_was_given() -> None:
    model = small.recogniser()
    raised = surgery.raise_opset(model)
    before = model.SerializeToString(deterministic=True), raised.SerializeToString(deterministic=True)
    surgery.raise_opset(model)
    surgery.cut_charset(raised, [0, 1])
    surgery.recogniser_tail(with_head(raised))
    surgery.infer_shapes(surgery.constants_to_initializers(raised))
    assert before == (model.SerializeToString(deterministic=True), raised.SerializeToString(deterministic=True))


def test_broken_graph_does_not_pass_the_check() -> None:
    model = surgery.raise_opset(small.detector())
    model.graph.node[0].input[0] = "nowhere"
    with pytest.raises(ModelError, match="not valid ONNX"):
        surgery.check(model)
