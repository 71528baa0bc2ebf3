"""edge_agent: reads labels from cameras on a device and publishes what they say."""

import os

__version__ = "0.1.0"

# From 1.32 on, ONNX Runtime reports to its maker as soon as it is imported, and keeps an identity of the machine in the
# home folder; this has to be set before, whoever imports it. What a plant's device does is the plant's alone.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
