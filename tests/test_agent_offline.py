"""Agent without a broker, without a disk, and killed: what it has read arrives all the same."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from edge_agent.outbox.accounts import read_ledger
from edge_agent.outbox.store import open_reader
from tests.broker import DEADLINE_S, Broker, Observer, wait_until
from tests.test_agent import agent_process, config_file, label_folder, last


def kept(database: Path) -> list[tuple[str, int]]:
    """(id, seq) of the readings that wait on disk, oldest first."""
    if not database.exists():
        return []
    with closing(open_reader(database)) as connection:
        return list(connection.execute("SELECT reading_id, seq FROM waiting WHERE camera = 'left' ORDER BY id"))


def events(observer: Observer) -> list[str]:
    """The kinds of all that were said."""
    return [str(json.loads(payload)["kind"]) for payload in observer.payloads("edge/press7/event")]


def test_agent_killed_twice_and_then_not_let_in_delivers_what_it_had_read_in_order_once_it_may(
    make_broker: Callable[..., Broker], tmp_path: Path
) -> None:
    """Field case MQ-5 as well: while the broker refuses, the cause is named once, and reading goes on."""
    users, secret = tmp_path / "users", tmp_path / "secret"
    subprocess.run(["mosquitto_passwd", "-b", "-c", users, "press7", "right"], check=True, capture_output=True)
    late = make_broker(f"allow_anonymous true\npassword_file {users}")  # whoever gives a name must prove it
    secret.touch(mode=0o600)
    secret.write_text("wr0ng\n")
    left = {"kind": "folder", "source": str(label_folder(tmp_path / "left", 2)), "loop": True, "max_fps": 8}
    config = config_file(tmp_path, late.port, {"left": left})
    settings = json.loads(config.read_text("utf-8"))
    settings["mqtt"] |= {"username": "press7", "password_file": str(secret), "reconnect_min_s": 0.1}
    settings["mqtt"] |= {"reconnect_max_s": 0.2}
    settings["outbox"] |= {"historical_after_s": 2.0}  # what is owed is older by then, however quick the machine
    config.write_text(json.dumps(settings), encoding="utf-8")
    database = tmp_path / "outbox.db"
    for count in (3, 6):
        with agent_process(config) as process:
            wait_until(lambda enough=count: len(kept(database)) >= enough, "readings on disk", 60)  # type: ignore[misc]
            process.kill()
            process.wait(DEADLINE_S)
    owed = kept(database)
    assert [seq for _, seq in owed] == sorted({seq for _, seq in owed})  # numbers go on over restarts
    late.start()
    with Observer(late.port, "edge/press7/left/result") as observer, agent_process(config) as process:

        def heard() -> list[dict[str, Any]]:
            return [json.loads(payload) for payload in observer.payloads("edge/press7/left/result")]

        assert process.stderr is not None
        assert any("refused the login" in line for line in process.stderr)
        count = len(kept(database))
        wait_until(lambda: len(kept(database)) > count + 3, "readings meanwhile", 60)
        assert heard() == []
        secret.write_text("right\n")
        wait_until(lambda: {id_ for id_, _ in owed} <= {body["id"] for body in heard()}, "all that was owed", 60)
        wait_until(lambda: not heard()[-1]["historical"], "some that were read since", 60)
        old = [body["seq"] for body in heard() if body["id"] in {id_ for id_, _ in owed}]
        assert old == sorted(old)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
        log, bodies = process.stderr.read(), heard()
    assert "refused the login" not in log, "it was said once"
    assert "wr0ng" not in log
    assert all(body["historical"] for body in bodies if body["id"] in {id_ for id_, _ in owed})
    live = [body["seq"] for body in bodies if not body["historical"]]
    assert live == sorted(live)
    assert min(live) > max(seq for _, seq in owed)
    assert all(len(body["boot_id"]) == 32 and body["captured_mono"] > 0 for body in bodies)
    for row in read_ledger(database).rows():
        assert row.produced == row.delivered + row.queued + sum(row.dropped.values())
    assert read_ledger(database).totals()["left"]["delivered"] >= len(owed)


def test_outbox_that_cannot_be_written_is_degraded_and_nothing_is_held_up(broker: Broker, tmp_path: Path) -> None:
    left = {"kind": "folder", "source": str(label_folder(tmp_path / "left", 2)), "loop": True}
    config = config_file(tmp_path, broker.port, {"left": left})
    settings = json.loads(config.read_text("utf-8"))
    settings["outbox"] = {"path": str(tmp_path / "file" / "outbox.db")}
    config.write_text(json.dumps(settings), encoding="utf-8")
    (tmp_path / "file").write_text("where the outbox's folder should be")
    with Observer(broker.port, "edge/#") as observer, agent_process(config) as process:
        wait_until(lambda: len(observer.payloads("edge/press7/left/result")) > 2, "results", 60)
        wait_until(lambda: last(observer, "health")["pipeline"] == "degraded", "the state")
        assert "cannot make the folder" in last(observer, "health")["reason"]
        wait_until(lambda: "outbox_in_memory" in events(observer), "the event")
        wait_until(lambda: bool(last(observer, "telemetry").get("outbox", {}).get("fault")), "telemetry")
        (tmp_path / "file").unlink()
        wait_until(lambda: last(observer, "health")["pipeline"] == "running", "recovery")
        wait_until(lambda: events(observer)[-1] == "outbox_on_disk", "the event of it")
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
    assert read_ledger(tmp_path / "file" / "outbox.db").totals()["left"]["delivered"] > 2
