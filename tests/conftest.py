"""Shared by all tests: `gpu` tests skip, and say so, where no GPU is."""

from __future__ import annotations

import importlib.util
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import edge_agent  # noqa: F401 - before any test imports onnxruntime, which reports home otherwise

pytest_plugins = ["tests.broker"]

ROOT = Path(__file__).resolve().parent.parent
# label frames with ground truth, where they lie beside the checkout
SHARED_DATA = ROOT.parent / "shared" / "data"


def pytest_configure() -> None:
    # ignored where the suite runs in the background, and then in every child as well: Ctrl-C could not be tested
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _gpu_missing() -> str | None:
    for package in ("tensorrt", "pycuda"):
        if importlib.util.find_spec(package) is None:
            return f"needs an NVIDIA GPU: Python package {package} is not installed"
    if not any(Path("/dev").glob("nvidia[0-9]*")) and not Path("/dev/nvmap").exists():
        return "needs an NVIDIA GPU: no device node found"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = _gpu_missing()
    if reason is None:
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True, scope="session")
def _workers_share_the_cores() -> Iterator[None]:
    """Engines of tests that run beside others have as many threads as a worker has cores: those that wait for one
    another on busy cores take twice the time."""
    from edge_agent.backends import ort

    cores = ort.usable_cores() // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ort, "usable_cores", lambda: max(1, cores))
        yield


@pytest.fixture(autouse=True, scope="session")
def _every_message_keeps_the_contract() -> Iterator[None]:
    """Whatever a test has the device say, in this process, is held against the schema of its topic (tests/contract.py);
    what other processes say is, where an Observer hears it."""
    from edge_agent import messages
    from edge_agent.records import Message
    from tests import contract

    def checked(topic: str, payload: bytes, *args: Any, **keys: Any) -> Message:
        contract.check(topic, payload)
        return Message(topic, payload, *args, **keys)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "Message", checked)
        yield
