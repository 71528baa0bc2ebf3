"""Bundle: all that somebody far away needs to see, in one tar file, without secrets."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from edge_agent.config import shown
from edge_agent.doctor.base import Patient
from edge_agent.doctor.examination import examine, table_line, to_json
from edge_agent.errors import ConfigError
from edge_agent.files import write_atomically
from edge_agent.settings.strict_yaml import dump
from edge_agent.telemetry.history import EVENTS_FOLDER, find_history_dir, find_segments

LOG_LINES = 2000
NEWEST_BYTES = 1_000_000
NOTHING = "nothing that can be read\n"
Journal = Callable[[], str]


def write(path: Path, patient: Patient, journal: Journal | None = None) -> list[str]:
    """Writes the file, its owner's alone and whole or not at all; the names in it. ConfigError where it cannot be."""
    names = []
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz" if path.suffix in (".gz", ".tgz") else "w") as tar:
        for name, text in parts(patient, journal or journal_tail):
            content = patient.secrets.scrub(text).encode("utf-8", "replace")
            entry = tarfile.TarInfo(f"edge-agent-support/{name}")
            entry.size, entry.mtime, entry.mode = len(content), int(time.time()), 0o600
            tar.addfile(entry, io.BytesIO(content))
            names.append(name)
    try:
        write_atomically(path, packed.getvalue(), 0o600)
    except OSError as exc:
        raise ConfigError(f"{path} cannot be written: {exc.strerror}; name a file in a folder of yours") from exc
    return names


def parts(patient: Patient, journal: Journal) -> Iterator[tuple[str, str]]:
    """Name and text of each file; what cannot be read says so in its place."""
    rows = list(examine(patient))
    yield "doctor.txt", "\n".join(map(table_line, rows)) + "\n"
    yield "doctor.json", json.dumps(to_json(rows), indent=1)
    # settings that are wrong are not copied: what is secret in them cannot be told
    yield "config.yaml", f"# {patient.problem}\n" if patient.config is None else dump(shown(patient.config))
    yield "last-words.json", first_readable([folder / "last-words.json" for folder in patient.state_folders])
    reports = history_folders(patient)
    yield "telemetry.jsonl", end_of_all(newest_first(reports))
    yield "events.jsonl", end_of_all(newest_first([folder / EVENTS_FOLDER for folder in reports]))
    yield "log.txt", journal()


def history_folders(patient: Patient) -> list[Path]:
    """Where the agent may have kept its reports, with the events below."""
    configured = None if patient.config is None else find_history_dir(patient.config, patient.environ)
    usual = [folder / "telemetry" for folder in patient.state_folders]
    return usual if configured is None else [configured, *usual]


def newest_first(folders: list[Path]) -> list[Path]:
    """The segments kept in the folders, as far as this user may look into them."""
    written_at: dict[Path, float] = {}
    for folder in folders:
        with suppress(OSError):  # there is none, or the agent removes a segment meanwhile
            for path in reversed(find_segments(folder.absolute())):
                written_at[path] = path.stat().st_mtime
    return sorted(written_at, key=lambda path: written_at[path], reverse=True)


def first_readable(paths: list[Path]) -> str:
    """The end of the first that can be read."""
    return next((text for text in map(end_of, paths) if text is not None), NOTHING)


def end_of_all(paths: list[Path]) -> str:
    """The end of what stands in the files, which come the newest first."""
    texts: list[str] = []
    for text in filter(None, map(end_of, paths)):
        texts.insert(0, text)
        if sum(map(len, texts)) > NEWEST_BYTES:
            break
    return "".join(texts) or NOTHING


def end_of(path: Path) -> str | None:
    """At most NEWEST_BYTES; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - NEWEST_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return None


def journal_tail() -> str:
    """The end of the service's log, as far as this user may read it."""
    command = ["journalctl", "--unit=edge-agent", f"--lines={LOG_LINES}", "--no-pager", "--output=short-iso"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, errors="replace").stdout
    except (OSError, subprocess.SubprocessError) as exc:
        return f"the journal cannot be read: {exc}\n"
