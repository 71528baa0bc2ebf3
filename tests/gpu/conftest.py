"""One backend for all GPU tests of a process, on the thread that runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.backends.small_models import layered
from tests.gpu import support


@pytest.fixture(scope="session")
def plans_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plans outlive the run where EDGE_AGENT_GPU_PLANS says where."""
    return Path(os.environ.get("EDGE_AGENT_GPU_PLANS") or tmp_path_factory.mktemp("plans"))


@pytest.fixture(scope="session")
def backend(plans_dir: Path) -> Iterator[Any]:
    from edge_agent.backends.trt import TrtBackend

    with TrtBackend(support.settings(plans_dir)) as made:
        yield made


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of a few layers; `image` uint8 (N, H, W, 3) -> `peak` float32 (N,)."""
    folder = tmp_path_factory.mktemp("small") / "layered"
    folder.mkdir()
    return layered(folder / "model.onnx")


@pytest.fixture
def engine(backend: Any, small_model: Path) -> Iterator[Any]:
    made = backend.load(small_model, support.IMAGE_PROFILES)
    yield made
    made.close()
