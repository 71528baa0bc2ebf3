"""Python and the packages that this program needs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import metadata

import edge_agent
from edge_agent.doctor.base import Patient, Row

# (what must be there, whatever the machine)
NEEDED = "numpy onnx paho-mqtt psutil pydantic pyyaml rapidfuzz safetensors simplejpeg tokenizers".split()
OPTIONAL = "onnxruntime tensorrt pycuda".split()


def check(_patient: Patient) -> Iterator[Row]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Row("python", "ok", f"Python {version} ({sys.executable}), edge_agent {edge_agent.__version__}")
    found = {name: version_of(name) for name in (*NEEDED, *OPTIONAL)}
    missing = [name for name in NEEDED if found[name] is None]
    if missing:
        yield Row(
            "python", "fail", f"packages are missing: {', '.join(missing)}", "pip install edge-agent, in its venv"
        )
    told = ", ".join(f"{name} {version}" for name, version in found.items() if version is not None)
    yield Row("python", "ok", told)


def version_of(package: str) -> str | None:
    """The installed version; None where it is not installed."""
    try:
        return re.sub(r"\s", "", metadata.version(package))
    except metadata.PackageNotFoundError:
        return None
