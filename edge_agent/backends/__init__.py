"""Backends: how a model file becomes an engine. A new one is a file here and a row in BACKENDS.

`choose.py` decides which one runs on this machine; `choose.open_backend` makes it.
"""

BACKENDS = {
    "onnxruntime": "edge_agent.backends.ort:OrtBackend",
    "tensorrt": "edge_agent.backends.trt:TrtBackend",
}
