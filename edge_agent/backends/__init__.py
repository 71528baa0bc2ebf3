"""Backends: how a model file becomes an engine. A new one is a file here and a row in BACKENDS."""

BACKENDS = {
    "onnxruntime": "edge_agent.backends.ort:OrtBackend",
}
