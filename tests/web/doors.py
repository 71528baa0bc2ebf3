"""A real agent process with its door open, and a client that knows the way."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.broker import DEADLINE_S, free_port, wait_until
from tests.light import LIGHT
from tests.test_agent import label_folder

PASSWORD = "correct horse battery"


class Door:
    """The agent `press7` with one camera `left`, reading two frames a second, and `http`, a client of its door."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes], address: str, port: int) -> None:
        self.folder = folder
        self.process = process
        self.port = port
        self.http = httpx.Client(base_url=address, timeout=DEADLINE_S)

    def get(self, path: str, **query: Any) -> Any:
        """The JSON of an answer that is well."""
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def log(self) -> str:
        return (self.folder / "log.txt").read_text(encoding="utf-8")

    def readings(self) -> int:
        """How many frames of `left` were read so far."""
        report = self.http.get("/v1/telemetry")
        return int(report.json()["frames"].get("left", {}).get("processed", 0)) if report.status_code == 200 else 0

    def client(self, **options: Any) -> httpx.Client:
        """Another visitor."""
        return httpx.Client(base_url=self.http.base_url, timeout=DEADLINE_S, **options)

    def raw(self) -> socket.socket:
        """A connection of which every byte is the test's."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_S)


def settings(folder: Path, port: int, **sections: Any) -> Path:
    """The file of settings of such an agent; `sections` over it."""
    labels = folder / "labels"
    if not labels.exists():
        label_folder(labels, 2)
    camera = {"kind": "folder", "source": str(labels), "loop": True, "max_fps": 2}
    values: dict[str, Any] = {
        "device_id": "press7",
        "transport": "jsonl",
        "pipeline": LIGHT,
        "cameras": {"left": camera},
        "telemetry": {"interval_s": 0.5},
        "outbox": {"path": str(folder / "outbox.db")},
        "backend": {"threads": 1},
    }
    values |= {name: value for name, value in sections.items() if name != "web"}
    values["web"] = {"enabled": True, "port": port, **sections.get("web", {})}
    path = folder / "config.yaml"
    path.write_text(json.dumps(values), encoding="utf-8")
    return path


@contextmanager
def opened(
    folder: Path,
    *,
    ready: bool = True,
    address: str = "http://127.0.0.1",
    module: Sequence[str] = ("edge_agent",),
    **sections: Any,
) -> Iterator[Door]:
    """The agent, its door open; with `ready`, reading too. `module`: what runs it, with its own arguments."""
    port = free_port()
    config = settings(folder, port, **sections)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_AGENT_")}
    command = [sys.executable, "-m", *module, "run", "--config", str(config)]
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=environ)
    door = Door(folder, process, f"{address}:{port}", port)
    try:
        wait_until(lambda: process.poll() is not None or is_open(door, ready), "the door is open", 60)
        if process.poll() is not None:
            pytest.fail(f"the agent has ended:\n{door.log()}")
        yield door
    finally:
        door.http.close()
        process.terminate()
        try:
            process.wait(DEADLINE_S)
        finally:
            process.kill()


def is_open(door: Door, ready: bool) -> bool:
    try:
        answer = door.http.get("/v1/ready")
    except httpx.TransportError:
        return False
    return answer.status_code == 200 or not ready


def heard(door: Door, path: str, enough: Callable[[list[tuple[str, Any]]], bool], **headers: str) -> list[Any]:
    """Server-sent events, (kind, data) each, until there are `enough`."""
    found: list[tuple[str, Any]] = []
    kind = ""
    deadline = threading.Event()
    timer = threading.Timer(DEADLINE_S, deadline.set)
    timer.start()
    try:
        with door.http.stream("GET", path, headers={"Accept": "text/event-stream", **headers}) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream"), answer.read()
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    found.append((kind, json.loads(line.removeprefix("data: "))))
                    if enough(found):
                        return found
                assert not deadline.is_set(), f"not enough came: {[kind for kind, _ in found]}"
    finally:
        timer.cancel()
    return found
