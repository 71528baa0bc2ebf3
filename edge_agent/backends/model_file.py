"""Model file: what an ONNX file tells without being parsed: its sha256, its name, and which operators are in it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from edge_agent.errors import ModelError

CHUNK_BYTES = 1 << 20
QUANTISED = b"QuantizeLinear"  # how an ONNX file spells the operator


def file_sha256(onnx_path: Path) -> str:
    """sha256 of a model file, and of the weights file beside it where there is one. ModelError if it cannot be read."""
    digest = hashlib.sha256()
    beside = [onnx_path.with_name(onnx_path.name + suffix) for suffix in (".data", "_data")]
    try:
        for path in [onnx_path, *(path for path in beside if path.is_file())]:
            with path.open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    digest.update(chunk)
    except OSError as exc:
        raise ModelError(
            f"model file {onnx_path} cannot be read: {exc.strerror}; run: edge-agent models fetch"
        ) from exc
    return digest.hexdigest()


def is_quantised(onnx_path: Path) -> bool:
    """Whether the model file has QuantizeLinear nodes; False for a file that cannot be read."""
    try:
        return QUANTISED in onnx_path.read_bytes()
    except OSError:
        return False


def has_convolutions(onnx_path: Path) -> bool:
    """Whether the model file has Conv or ConvTranspose nodes; encoders have none. True for one that cannot be read."""
    try:
        content = onnx_path.read_bytes()
    except OSError:
        return True
    return any(_operator(name) in content for name in (b"Conv", b"ConvTranspose"))


def _operator(name: bytes) -> bytes:
    """How a node's op_type stands in an ONNX file: field 4, length, text."""
    return b"\x22" + bytes([len(name)]) + name


def model_name(onnx_path: Path) -> str:
    """engines/<model>/model.onnx -> <model>; model.latin.onnx there -> <model>.latin; any other file its own stem.

    calibration/<model>/artefacts/<id>/model.int8.onnx -> <model>.int8, whichever artefact it is.
    """
    head, _, variant = onnx_path.stem.partition(".")
    folder = onnx_path.absolute().parent
    if folder.parent.name == "artefacts":
        folder = folder.parent.parent
    if head != "model" or not folder.name:
        return onnx_path.stem
    return ".".join(filter(None, (folder.name, variant)))
