from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from edge_agent.calibrate.ort_graph import ORT_DOMAIN, for_onnxruntime
from tests.calibrate.small_nets import Net


def gelu_net(root: float = math.sqrt(2), half: float = 0.5, *, divide: bool = True) -> Net:
    net = Net()
    factor = root if divide else 1 / root
    names = {"root": factor, "one": 1.0, "half": half}
    for name, number in names.items():
        net.store(name, np.array([number], np.float32))
    net.add("Div" if divide else "Mul", ["x", "root"], "scaled")
    net.add("Erf", ["scaled"], "erf")
    net.add("Add", ["one", "erf"], "lifted")
    net.add("Mul", ["lifted", "x"], "product")
    net.add("Mul", ["product", "half"], "y")
    return net


def model_of(net: Net, rank: int = 4) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, "H", "W"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b", "c", "d"][:rank])
    return net.model([x], [y])


def kinds(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in for_onnxruntime(model).nodes]


def run(model: onnx.ModelProto, x: Any) -> Any:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


@pytest.mark.parametrize("divide", [True, False])
def test_five_nodes_of_gelu_become_one_that_computes_the_same(divide: bool) -> None:
    model = model_of(gelu_net(divide=divide))
    made = for_onnxruntime(model).to_model()
    made.opset_import.append(helper.make_opsetid(ORT_DOMAIN, 1))
    assert [node.op_type for node in made.graph.node] == ["Gelu"]
    x = np.random.default_rng(0).normal(0, 3, (1, 3, 5, 7)).astype(np.float32)
    assert run(made, x) == pytest.approx(run(model, x), abs=1e-5)


@pytest.mark.parametrize(("root", "half"), [(1.0, 0.5), (math.sqrt(2), 0.4)])
def test_what_only_looks_like_gelu_stays(root: float, half: float) -> None:
    assert "Erf" in kinds(model_of(gelu_net(root, half)))


def test_gelu_whose_inner_values_are_read_elsewhere_stays() -> None:
    net = gelu_net()
    net.nodes[-1].output[0] = "almost"
    net.add("Add", ["almost", "erf"], "y")
    assert "Erf" in kinds(model_of(net))


def test_mean_over_the_picture_becomes_pooling() -> None:
    net = Net()
    net.add("ReduceMean", ["x"], "y", axes=[2, 3])
    model = model_of(net)
    assert kinds(model) == ["GlobalAveragePool"]
    x = np.random.default_rng(0).normal(0, 3, (1, 3, 5, 7)).astype(np.float32)
    assert run(for_onnxruntime(model).to_model(), x) == pytest.approx(run(model, x), abs=1e-6)


@pytest.mark.parametrize("attributes", [{"axes": [1, 2]}, {"axes": [3]}, {"axes": [2, 3], "keepdims": 0}])
def test_other_means_stay(attributes: dict[str, Any]) -> None:
    net = Net()
    net.add("ReduceMean", ["x"], "y", **attributes)
    assert kinds(model_of(net, rank=4 if attributes.get("keepdims", 1) else 2)) == ["ReduceMean"]
