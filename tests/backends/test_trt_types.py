"""Every call to TensorRT has the names and arguments that tensorrt-stubs (10.13) knows; mypy compares."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import ROOT

CALLERS = sorted(ROOT.glob("edge_agent/backends/trt*.py"))


def stub_source() -> str:
    spec = find_spec("tensorrt_bindings")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    stubs = [Path(folder) / "tensorrt.pyi" for folder in folders]
    found = next((stub for stub in stubs if stub.exists()), None)
    if found is None:
        pytest.skip("needs tensorrt-stubs: pip install --no-deps tensorrt-stubs==10.13.0.35.1")
    text = found.read_text(encoding="utf-8")
    # three signatures in the stubs are no Python: a parameter named `in`, and a default before one without
    text = re.sub(r"([(,] *)in\b(?=[:,)])", r"\1in_", text)
    return text.replace("channel_axis: int) ->", "channel_axis: int = 0) ->") + "\n__version__: str\n"


def mypy(stubs: Path, *files: Path) -> list[str]:
    """mypy's complaints about the files themselves, with TensorRT typed by `stubs`."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    cache = ["--cache-dir", str(stubs / "cache")]
    done = subprocess.run(
        [*command, *cache, *map(str, files)],
        cwd=ROOT,
        env={"MYPYPATH": str(stubs), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "errors prevented further checking" not in done.stdout, done.stdout
    return [line for line in done.stdout.splitlines() if ": error:" in line and not line.startswith(str(stubs))]


def test_calls_fit_the_stubs_and_a_wrong_one_would_be_found(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "tensorrt").mkdir()
    (tmp_path / "tensorrt" / "__init__.pyi").write_text(stub_source(), encoding="utf-8")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import tensorrt as trt\ndef run(c: trt.IExecutionContext) -> bool:\n    return c.execute_async_v9(1)\n"
    )
    complaints = mypy(tmp_path, *CALLERS, wrong)
    ours = [line for line in complaints if "wrong.py" not in line]
    assert ours == []
