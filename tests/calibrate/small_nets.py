"""Small networks of convolutions, as calibration meets them: a stem, a gate, a skip, a neck with Resize, a head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper


class Net:
    """Collects nodes and stored values; `model` puts them together."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(7)
        self.nodes: list[NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def store(self, name: str, value: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def conv(self, source: str, output: str, shape: tuple[int, int, int, int], stride: int = 1, group: int = 1) -> str:
        """A convolution with bias that keeps the size up to its stride."""
        fan_in = float(np.prod(shape[1:]))
        weight = self.random.normal(0, 1 / np.sqrt(fan_in), shape).astype(np.float32)
        names = [self.store(f"{output}.w", weight)]
        names.append(self.store(f"{output}.b", self.random.normal(0, 0.1, shape[0]).astype(np.float32)))
        pad = shape[2] // 2
        return self.add(
            "Conv", [source, *names], output, strides=[stride, stride], group=group, pads=[pad, pad, pad, pad]
        )

    def model(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "net", list(inputs), list(outputs), self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        made.ir_version = 8
        onnx.checker.check_model(made)
        return made


def detector() -> onnx.ModelProto:
    """`image` uint8 (N, 3, H, W) -> `probability` float32 (N, 1, H/2, W/2)."""
    net = Net()
    net.add("Cast", ["image"], "float", to=TensorProto.FLOAT)
    net.add("Sub", ["float", net.store("mean", np.array(127.5, np.float32))], "centred")
    net.add("Mul", ["centred", net.store("level", np.array(1 / 64, np.float32))], "levelled")
    net.add("Relu", [net.conv("levelled", "stem", (8, 3, 3, 3), stride=2)], "stem.relu")
    net.conv("stem.relu", "deep", (8, 1, 3, 3), group=8)
    net.add("GlobalAveragePool", ["deep"], "pooled")
    net.add("Relu", [net.conv("pooled", "gate.a", (4, 8, 1, 1))], "gate.relu")
    net.add("HardSigmoid", [net.conv("gate.relu", "gate.b", (8, 4, 1, 1))], "gate")
    net.add("Mul", ["deep", "gate"], "gated")
    net.conv("gated", "wide", (8, 8, 1, 1))
    net.add("Add", ["gated", "wide"], "skipped")
    net.add("Relu", [net.conv("skipped", "down", (16, 8, 3, 3), stride=2)], "down.relu")
    net.conv("down.relu", "lateral", (8, 16, 1, 1))
    net.store("none", np.zeros(0, np.float32))
    net.store("twice", np.array([1, 1, 2, 2], np.float32))
    net.add("Resize", ["lateral", "none", "twice"], "large", mode="nearest")
    net.conv("skipped", "side", (8, 8, 1, 1))
    net.add("Add", ["side", "large"], "joined")
    net.add("Relu", [net.conv("joined", "smooth", (8, 8, 3, 3))], "smooth.relu")
    net.add("Concat", ["smooth.relu", "large"], "both", axis=1)
    net.add("Relu", [net.conv("both", "head.a", (8, 16, 3, 3))], "head.relu")
    net.add("Sigmoid", [net.conv("head.relu", "head.b", (1, 8, 1, 1))], "probability")
    return net.model(
        [helper.make_tensor_value_info("image", TensorProto.UINT8, ["N", 3, "H", "W"])],
        [helper.make_tensor_value_info("probability", TensorProto.FLOAT, ["N", 1, "h", "w"])],
    )


def picture(seed: int, height: int = 32, width: int = 48) -> dict[str, Any]:
    """A feed for `detector`."""
    return {"image": np.random.default_rng(seed).integers(0, 256, (1, 3, height, width), np.uint8)}
