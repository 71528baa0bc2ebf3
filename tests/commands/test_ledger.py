"""`edge-agent ledger`: the counts of a running outbox, as a table and as JSON, and the messages given up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge_agent.__main__ import main
from edge_agent.clock import DeviceClock
from edge_agent.outbox.disk import DiskOutbox, Limits
from tests.outbox.made_messages import reading

NOON = 1_796_040_000.0  # 2026-11-30T12:00:00Z


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[DiskOutbox]:
    clock = DeviceClock(unix=lambda: NOON)
    outbox = DiskOutbox(tmp_path / "outbox.db", clock, lambda kind, text: None, Limits(flush_s=0))
    yield outbox
    outbox.close()


def filled(outbox: DiskOutbox) -> None:
    for n in range(4):
        outbox.put(reading(n, "left"))
    claimed = outbox.claim(3)
    outbox.done([claimed[0].id])
    outbox.drop([claimed[1].id], "refused", "left/result: 5 bytes are over what the broker takes")
    outbox.put(reading(0, "right"))


def test_ledger_of_a_running_agent_is_shown_and_balances(
    outbox: DiskOutbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(outbox)
    assert main(["ledger", "--database", str(tmp_path / "outbox.db")]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == ["2026-11-30", "left", "4", "1", "2", "1", "(1", "refused)"]
    assert lines[2] == ["2026-11-30", "right", "1", "0", "1", "0"]
    assert lines[3] == ["all", "days", "left", "4", "1", "2", "1", "(1", "refused)"]


def test_ledger_is_found_by_the_configuration_and_given_as_json(
    outbox: DiskOutbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(outbox)
    (tmp_path / "config.yaml").write_text("outbox: {path: outbox.db}\n")
    assert main(["ledger", "--config", str(tmp_path / "config.yaml"), "--json", "--days", "1"]) == 0
    body = json.loads(capsys.readouterr().out)
    left = {"produced": 4, "delivered": 1, "queued": 2, "dropped": {"refused": 1}}
    assert body["days"]["2026-11-30"]["left"] == left == body["all"]["left"]


def test_dead_letters_say_why_and_what(outbox: DiskOutbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "outbox.db")
    assert main(["ledger", "--database", path, "--dead"]) == 0
    assert capsys.readouterr().out == "no message was given up\n"
    filled(outbox)
    assert main(["ledger", "--database", path, "--dead"]) == 0
    when, why, payload = capsys.readouterr().out.splitlines()
    assert when.split() == ["2026-11-30T12:00:00.000Z", "left/result", "refused"]
    assert why.strip() == "left/result: 5 bytes are over what the broker takes"
    assert payload.strip() == "1"
    assert main(["ledger", "--database", path, "--dead", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dead"][0]["payload"] == "1"


def test_file_that_is_no_outbox_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "--database", str(tmp_path / "none.db")]) == 78
    assert "there is no outbox at" in capsys.readouterr().err
    (tmp_path / "text.db").write_text("text " * 100)
    assert main(["ledger", "--database", str(tmp_path / "text.db")]) == 70
    assert "cannot be read: file is not a database" in capsys.readouterr().err
