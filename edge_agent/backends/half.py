"""Half: a float32 ONNX as float16, for TensorRT 11, where the graph alone says in which precision it is computed.

The conversion is onnxruntime's own (MIT). What is sensitive stays float32: layer norms and softmaxes, which may
overflow or lose their small terms in float16, batch norms, whose variances may be too small for it, and TopK, which
picks the winning class.
"""

from __future__ import annotations

from pathlib import Path

from edge_agent.errors import ModelError

FLOAT32_OPERATORS = ("LayerNormalization", "BatchNormalization", "Softmax", "TopK", "Range", "CumSum", "Min", "Max")


def half_precision(onnx_path: Path) -> bytes:
    """The model's bytes in float16, inputs and outputs unchanged; one that holds float16 weights already as it is.

    ModelError where onnxruntime is missing or the model cannot be converted.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        from onnxruntime.transformers.float16 import convert_float_to_float16
    except ImportError as exc:
        raise ModelError(
            f"fp16 on this TensorRT needs onnxruntime to convert {onnx_path.name}: {exc}; pip install onnxruntime, or "
            "build as fp32 or int8"
        ) from exc
    try:
        model = onnx.load(onnx_path)
        if not any(tensor.data_type == onnx.TensorProto.FLOAT16 for tensor in model.graph.initializer):
            for number, node in enumerate(model.graph.node):
                node.name = node.name or f"node_{number}"  # onnxruntime before 1.24 names its casts after the nodes
            model = convert_float_to_float16(model, keep_io_types=True, op_block_list=list(FLOAT32_OPERATORS))
        content: bytes = model.SerializeToString()
    except (DecodeError, ValueError, RuntimeError, OSError) as exc:
        raise ModelError(f"{onnx_path.name} cannot be converted to float16: {exc}; build it as fp32 or int8") from exc
    return content
