"""The soaks' accounts: what is not in order is found. The soaks themselves take minutes and are run by hand."""

from __future__ import annotations

import importlib.util
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from edge_agent.config import without_file
from edge_agent.telemetry.history import find_history_dir
from tests.conftest import ROOT


def program(name: str) -> ModuleType:
    """A module of benchmarks/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up, and soak_demo imports soak
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def soak() -> ModuleType:
    return program("soak")


@pytest.fixture(scope="module")
def soak_demo(soak: ModuleType) -> ModuleType:
    return program("soak_demo")


def ledger(produced: int, delivered: int, queued: int = 0, **dropped: int) -> dict[str, Any]:
    return {"produced": produced, "delivered": delivered, "queued": queued, "dropped": dropped}


def heard(soak: ModuleType, *seqs: int, historical: tuple[int, ...] = ()) -> Any:
    """An operator that heard these frames of one camera, in this order."""
    readings = [soak.Heard(f"id-{seq}", "left", seq, seq in historical, 0.0) for seq in seqs]
    return SimpleNamespace(readings=readings, replies=defaultdict(list))


def faults(soak: ModuleType, row: dict[str, Any], operator: Any) -> list[str]:
    return list(soak.camera_faults("left", soak.of_camera("left", operator, row)))


def test_everything_heard_once_or_more_and_in_order_is_in_order(soak: ModuleType) -> None:
    assert faults(soak, ledger(4, 4), heard(soak, 1, 2, 3, 2, 3, 4)) == []
    assert faults(soak, ledger(5, 4, outbox_full=1), heard(soak, 1, 2, 3, 4)) == []


def test_backlog_beside_what_is_live_is_in_order_each_for_itself(soak: ModuleType) -> None:
    assert faults(soak, ledger(4, 4), heard(soak, 3, 1, 4, 2, historical=(1, 2))) == []


def test_reading_that_waits_may_have_been_heard_without_its_confirmation(soak: ModuleType) -> None:
    assert faults(soak, ledger(3, 2, 1), heard(soak, 1, 2, 3)) == []


@pytest.mark.parametrize(
    ("row", "seqs", "says"),
    [
        (ledger(4, 3), (1, 2, 3), "left: 4 readings were produced, 3 are accounted for"),
        (ledger(4, 4), (1, 2, 4), "left: 4 readings were confirmed, 3 were heard"),
        (ledger(3, 3), (1, 2, 3, 4), "left: 3 readings were confirmed, 4 were heard"),
        (ledger(3, 3), (1, 3, 2), "left: 1 readings came out of order"),
        (ledger(0, 0), (), "left: nothing was read"),
    ],
)
def test_what_is_not_in_order_is_named(soak: ModuleType, row: dict[str, Any], seqs: tuple[int, ...], says: str) -> None:
    assert faults(soak, row, heard(soak, *seqs)) == [says]


def test_growth_of_a_process_that_has_settled_is_named_and_its_beginning_is_not(soak: ModuleType) -> None:
    steady = soak.Footprint(0.0, [100.0] * 50 + [200.0] * 100, [3] * 50 + [14] * 100, [5] * 50 + [15] * 100)
    assert list(soak.footprint_faults(soak.footprint_of(steady))) == []
    growing = soak.Footprint(0.0, [200.0 + n for n in range(150)], list(range(150)), list(range(150)))
    named = list(soak.footprint_faults(soak.footprint_of(growing)))
    assert [fault.split(" grew")[0] for fault in named] == ["memory", "threads", "files"]


def test_half_hour_is_told_tenth_by_tenth_and_growth_in_it_is_named(soak: ModuleType, soak_demo: ModuleType) -> None:
    steady = soak.Footprint(0.0, [400.0] * 600, [10] * 600, [14] * 600)
    leaking = soak.Footprint(0.0, [400.0 + n / 10 for n in range(600)], [10] * 600, [14] * 600)
    processes = {name: soak_demo.of_process(life) for name, life in (("agent", leaking), ("demo", steady))}
    assert processes["demo"]["tenths"] == {"rss_mb": [400.0] * 10, "threads": [10] * 10, "files": [14] * 10}
    assert processes["agent"]["tenths"]["rss_mb"][-1] > processes["agent"]["tenths"]["rss_mb"][0] + 50
    (fault,) = soak.footprint_faults(processes["agent"])
    figures = {"readings": 9, "minutes": 10, "load_15_min": 1.0, "processes": processes, "faults": [f"agent: {fault}"]}
    assert "NOT IN ORDER: agent: memory grew from" in soak_demo.table(figures)


def test_agent_of_the_half_hour_runs_with_one_thread_and_keeps_what_a_service_keeps(
    soak_demo: ModuleType, tmp_path: Path
) -> None:
    program, *words = soak_demo.agent_command(tmp_path)
    environ = dict(word.split("=", 1) for word in words if word.startswith("EDGE_AGENT_"))
    config = without_file(environ)
    assert program == "env"
    assert (config.backend.threads, config.outbox.kind) == (1, "disk")
    assert find_history_dir(config) == tmp_path / "telemetry"
