"""Opening: the outbox that a configuration asks for, where it asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_agent.clock import DeviceClock
from edge_agent.outbox.disk import DiskOutbox
from edge_agent.outbox.memory import MemoryOutbox
from edge_agent.outbox.opening import find_database, open_outbox
from edge_agent.settings.outbox import OutboxConfig
from tests.outbox.made_messages import payloads, reading


def quiet(kind: str, text: str) -> None:
    raise AssertionError(f"{kind}: {text}")


def test_database_lies_in_the_services_state_directory_else_in_state() -> None:
    assert find_database({"STATE_DIRECTORY": "/var/lib/edge-agent:/var/lib/more"}) == Path(
        "/var/lib/edge-agent/outbox.db"
    )
    assert find_database({}) == Path("state/outbox.db")


def test_outbox_on_disk_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    for expected in ([], [0]):
        outbox = open_outbox(OutboxConfig(flush_ms=0), DeviceClock(), quiet)
        assert isinstance(outbox, DiskOutbox)
        assert payloads(outbox.claim(10)) == expected
        outbox.put(reading(len(expected)))
        outbox.close()
    assert (tmp_path / "outbox.db").is_file()


def test_path_is_where_the_configuration_says(tmp_path: Path) -> None:
    open_outbox(OutboxConfig(path=tmp_path / "a" / "b.db"), DeviceClock(), quiet).close()
    assert (tmp_path / "a" / "b.db").is_file()


def test_outbox_in_memory_touches_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outbox = open_outbox(OutboxConfig(kind="memory"), DeviceClock(), quiet)
    assert isinstance(outbox, MemoryOutbox)
    outbox.put(reading(1))
    assert payloads(outbox.claim(10)) == [1]
    outbox.close()
    assert list(tmp_path.iterdir()) == []
