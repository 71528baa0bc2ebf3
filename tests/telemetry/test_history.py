"""History: the last day's reports on disk, bounded, whole after kill -9."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from edge_agent.config import Config, rebuilt
from edge_agent.records import Message
from edge_agent.telemetry.history import (
    EVENTS_FOLDER,
    History,
    find_history_dir,
    find_segments,
    history_lines,
    keeping_events,
    read_history,
)
from tests.broker import wait_until

MIB = 1_048_576


class Time:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def report(n: int, more_bytes: int = 0) -> Message:
    return Message("telemetry", json.dumps({"n": n, "more": "x" * more_bytes}).encode())


def numbers(folder: Path) -> list[int]:
    return [body["n"] for body in read_history(folder)]


def test_reports_come_back_in_order_over_restarts(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "telemetry"
    for start in (0, 3):
        with History(folder, 86_400, MIB) as history:
            for n in range(start, start + 3):
                history.append(report(n))
    assert numbers(folder) == [0, 1, 2, 3, 4, 5]
    assert len(find_segments(folder)) == 2
    assert find_segments(folder)[0].stat().st_mode & 0o007 == 0


def test_bytes_stay_within_the_bound_and_the_newest_are_kept(tmp_path: Path) -> None:
    with History(tmp_path, 86_400, MIB) as history:
        for n in range(400):
            history.append(report(n, 10_000))
            assert sum(path.stat().st_size for path in find_segments(tmp_path)) <= MIB
    kept = numbers(tmp_path)
    assert kept == list(range(kept[0], 400))
    assert 80 <= len(kept) <= 105


def test_report_larger_than_a_segment_is_kept_within_the_bound(tmp_path: Path) -> None:
    with History(tmp_path, 86_400, MIB) as history:
        for n in range(30):
            history.append(report(n, 100_000))
            assert sum(path.stat().st_size for path in find_segments(tmp_path)) <= MIB
    assert numbers(tmp_path)[-1] == 29


def test_reports_older_than_a_day_go(tmp_path: Path) -> None:
    clock = Time()
    with History(tmp_path, 86_400, 100 * MIB, clock) as history:
        for n in range(48):
            history.append(report(n))
            os.utime(find_segments(tmp_path)[-1], (clock.now, clock.now))
            clock.now += 3_600
    assert 23 <= len(numbers(tmp_path)) <= 26
    assert numbers(tmp_path)[-1] == 47


def test_clock_set_back_begins_a_segment_and_loses_nothing(tmp_path: Path) -> None:
    clock = Time()
    with History(tmp_path, 86_400, MIB, clock) as history:
        history.append(report(1))
        clock.now = 1_000.0
        history.append(report(2))
        history.append(report(3))
    assert numbers(tmp_path) == [1, 2, 3]
    assert len(find_segments(tmp_path)) == 2


def test_restarts_without_end_leave_a_bounded_number_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edge_agent.telemetry.history.MOST_SEGMENTS", 20)
    for n in range(30):
        with History(tmp_path, 86_400, MIB) as history:
            history.append(report(n))
    assert numbers(tmp_path) == list(range(10, 30))


def test_disk_that_cannot_be_written_costs_one_warning_until_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "telemetry"
    blocked.write_text("a file where the folder should be")
    with History(blocked, 86_400, MIB) as history:
        history.append(report(1))
        history.append(report(2))
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        blocked.unlink()
        history.append(report(3))
    assert numbers(blocked) == [3]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_is_survived(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with History(tmp_path, 86_400, MIB) as history:
        history.append(report(1))
        assert history._descriptor is not None
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, history._descriptor)
        os.close(full)
        history.append(report(2))
        assert "No space left" in caplog.text
        history.append(report(3))
    assert numbers(tmp_path) == [1, 3]


def test_messages_of_several_threads_are_whole_lines(tmp_path: Path) -> None:
    with History(tmp_path, 86_400, MIB) as history:
        threads = [
            threading.Thread(target=lambda n=n: [history.append(report(n, 2000)) for _ in range(40)]) for n in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert Counter(numbers(tmp_path)) == dict.fromkeys(range(4), 40)


@pytest.mark.parametrize(
    ("settings", "state", "folder"),
    [
        ({}, "/var/lib/edge-agent", "/var/lib/edge-agent/telemetry"),
        ({}, "", "state/telemetry"),
        ({"outbox": {"path": "/mnt/readings/o.db"}}, "/var/lib/edge-agent", "/mnt/readings/telemetry"),
        ({"outbox": {"kind": "memory"}}, "/var/lib/edge-agent", None),
        ({"outbox": {"kind": "memory"}, "telemetry": {"directory": "/mnt/t"}}, "", "/mnt/t"),
    ],
)
def test_history_lies_beside_the_outbox_or_where_it_is_told(
    settings: dict[str, Any], state: str, folder: str | None
) -> None:
    found = find_history_dir(rebuilt(Config(), settings, "test"), {"STATE_DIRECTORY": state})
    assert found == (None if folder is None else Path(folder))


def test_events_are_kept_beside_the_reports_and_not_among_them(tmp_path: Path) -> None:
    config = rebuilt(Config(), {"telemetry": {"directory": str(tmp_path), "keep_event_bytes": 65_536}}, "test")
    with keeping_events(config) as keep:
        for n in range(300):
            keep(report(n, 1000))
    events = tmp_path / EVENTS_FOLDER
    assert numbers(tmp_path) == []
    assert numbers(events)[-1] == 299
    assert sum(path.stat().st_size for path in find_segments(events)) <= 65_536


def test_what_is_no_segment_whatever_its_name_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "00000001.jsonl").mkdir()
    (tmp_path / "00000002.jsonl").symlink_to("nowhere")
    os.mkfifo(tmp_path / "00000003.jsonl")
    for n in range(2):
        with History(tmp_path, 1e6, MIB) as history:
            history.append(report(n))
    assert [path.name for path in find_segments(tmp_path)] == ["00000004.jsonl", "00000005.jsonl"]
    assert numbers(tmp_path) == [0, 1]


def test_events_of_an_agent_without_a_disk_are_kept_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with keeping_events(rebuilt(Config(), {"outbox": {"kind": "memory"}}, "test")) as keep:
        keep(report(1))
    assert list(tmp_path.rglob("*")) == []


def test_killed_writer_leaves_whole_lines_and_its_successor_goes_on(tmp_path: Path) -> None:
    script = (
        "import itertools, sys\n"
        "from pathlib import Path\n"
        "from tests.telemetry.test_history import History, MIB, report\n"
        "with History(Path(sys.argv[1]), 86400, 64 * MIB) as history:\n"
        "    for n in itertools.count():\n"
        "        history.append(report(n, 3000))\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], cwd=Path(__file__).parents[2]) as writer:
        wait_until(lambda: len(numbers(tmp_path)) > 50, "reports")
        writer.send_signal(signal.SIGKILL)
    killed = numbers(tmp_path)
    assert killed == list(range(len(killed)))
    with find_segments(tmp_path)[-1].open("ab") as file:
        file.write(b'{"n": 7, "mo')  # what a power cut may leave
    with History(tmp_path, 86_400, 64 * MIB) as history:
        history.append(report(-1))
    assert numbers(tmp_path) == [*killed, -1]


def test_segment_that_makes_room_while_others_are_read_costs_its_own_lines_alone(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"{number:08}.jsonl").write_bytes(b'{"n":%d}\n' % number)
    lines = history_lines(tmp_path)
    assert next(lines) == b'{"n":1}\n'
    (tmp_path / "00000002.jsonl").unlink()
    assert list(lines) == [b'{"n":3}\n']
