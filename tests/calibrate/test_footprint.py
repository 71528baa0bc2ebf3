"""Footprint: what real engines take, in processes of their own; and that no child can spoil a calibration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from edge_agent.calibrate.footprint import Scale
from edge_agent.config import Config
from edge_agent.models.spec import find_models_dir
from tests.calibrate import small_nets

LARGE = {"image": np.zeros((1, 3, 1600, 1600), np.uint8)}
SMALL = {"image": np.zeros((1, 3, 32, 32), np.uint8)}


def scale(feed: dict[str, Any]) -> Scale:
    settings = Config.model_validate({"backend": {"kind": "onnxruntime", "threads": 1}})
    return Scale.of(settings, find_models_dir(), (), feed)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    onnx.save(small_nets.detector(), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def test_engine_takes_at_least_its_largest_tensor_and_no_more_than_a_few_of_them(net: Path) -> None:
    tensor_bytes = 8 * 800 * 800 * 4  # what the stem makes
    small, large = (scale(feed).memory_bytes(net) for feed in (SMALL, LARGE))
    assert small is not None
    assert large is not None
    assert small < tensor_bytes < large - small < 12 * tensor_bytes


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import sys; print('out of luck', file=sys.stderr); sys.exit(1)", "out of luck"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "net.onnx is not known"),
        ('print(\'{"memory_bytes": "much"}\')', "net.onnx is not known"),
    ],
)
def test_child_that_fails_leaves_the_figure_out_and_says_why(
    net: Path, body: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert scale(SMALL).memory_bytes(net, (sys.executable, "-c", body)) is None
    assert said in caplog.text


def test_file_that_is_no_model_has_no_figure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "net.onnx").write_bytes(b"no model")
    assert scale(SMALL).memory_bytes(tmp_path / "net.onnx") is None
    assert "cannot be loaded by onnxruntime" in caplog.text


def test_child_that_hangs_is_not_waited_for(net: Path, caplog: pytest.LogCaptureFixture) -> None:
    hanging = (sys.executable, "-c", "import time; time.sleep(60)")
    assert scale(SMALL).memory_bytes(net, hanging, most_s=0.3) is None
    assert "no answer within 0.3 s" in caplog.text


def test_program_that_cannot_be_started_is_named(net: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert scale(SMALL).memory_bytes(net, ("/nowhere/python",)) is None
    assert "No such file" in caplog.text
