"""The package as a whole: what importing it does, and does not, to the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.backends.small_models import mean_colour

LOAD_AND_CONVERT = """
import sys
from pathlib import Path
from edge_agent.backends.half import half_precision
from edge_agent.backends.ort import OrtBackend
from edge_agent.models.check import runtime_missing
assert runtime_missing() is None
half_precision(Path(sys.argv[1]))
OrtBackend(1).load(Path(sys.argv[1])).close()
"""


def test_onnxruntime_reports_to_nobody_and_leaves_nothing_in_the_home_folder(tmp_path: Path) -> None:
    model = mean_colour(tmp_path / "model.onnx")
    home = tmp_path / "home"
    home.mkdir()
    left_out = ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME")
    environ = {name: value for name, value in os.environ.items() if name not in left_out}
    command = [sys.executable, "-B", "-c", LOAD_AND_CONVERT, str(model)]
    subprocess.run(command, env={**environ, "HOME": str(home)}, check=True, timeout=120)
    assert list(home.rglob("*")) == []


ONE_THREAD = """
import contextlib, os
from edge_agent.__main__ import main
with contextlib.suppress(SystemExit):
    main(["--version"])
import numpy
print(len(os.listdir("/proc/self/task")))
"""


def test_numpy_computes_in_the_thread_that_asks() -> None:
    environ = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    command = [sys.executable, "-c", ONE_THREAD]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "1", done.stderr
