"""Installation: the agent as a service of this machine: units, user, folders, settings; and their removal.

    /etc/systemd/system/edge-agent*.service    as shipped, with the program's full path
    /etc/edge-agent/config.yaml                made from the answers; the operator's from then on
    /etc/edge-agent/mqtt_password              where one was given
    /etc/edge-agent/installed.json             what was written, so that exactly that can be taken away

`root` is a folder that stands for /: what a packager stages. Commands that change the machine itself go through `run`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edge_agent.errors import ConfigError
from edge_agent.files import write_atomically

USER = "edge-agent"
GROUPS = ("video", "render")
UNITS = ("edge-agent.service", "edge-agent-calibrate.service")
UNITS_DIR = "etc/systemd/system"
SETTINGS_DIR = "etc/edge-agent"
STATE_DIR = "var/lib/edge-agent"
CACHE_DIR = "var/cache/edge-agent"
RECORD = f"{SETTINGS_DIR}/installed.json"
CONFIG = f"{SETTINGS_DIR}/config.yaml"
PASSWORD = f"{SETTINGS_DIR}/mqtt_password"
OURS = (*(f"{UNITS_DIR}/{name}" for name in UNITS), CONFIG, PASSWORD)  # all that is ever removed by a record's word
HOMES = ("/home/", "/root/")  # which the units do not see

Run = Callable[[Sequence[str]], None]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Answers:
    """What is asked of an operator. `camera_kind` None: no camera yet."""

    device_id: str | None = None
    camera_kind: str | None = None
    camera_source: str | None = None
    mqtt_host: str = "127.0.0.1"
    mqtt_port: int = 1883
    mqtt_username: str | None = None
    mqtt_password: str | None = None


def shipped(name: str) -> Path:
    """A file that comes with the product: beside the source, or where pip put it. ConfigError where it is missing."""
    places = (Path(__file__).resolve().parents[1], Path(sys.prefix) / "share" / "edge-agent")
    for place in places:
        if (place / name).is_file():
            return place / name
    raise ConfigError(f"{name} is in none of {', '.join(map(str, places))}; install edge_agent again")


class Installation:
    """One machine's, or one folder's. `run` None: only files are written, and nothing of the machine is touched."""

    def __init__(self, root: Path, run: Run | None, say: Say) -> None:
        self._root = root
        self._run = run
        self._say = say
        self._record = self._read_record()

    def install(self, program: Path, answers: Answers) -> None:
        """Puts everything in place; again: mends what is missing or old, and leaves the operator's settings alone.

        Raises ConfigError where the service could not run this program, or the answers make no right settings; OSError.
        """
        # what is staged runs on another machine, whose interpreter is not this one's
        places = [program] if self._run is None else runs_from(program)
        hidden = [path for path in places if str(path).startswith(HOMES)]
        if hidden:
            raise ConfigError(
                f"{hidden[0]} lies in somebody's home, which a service does not see; install edge_agent into "
                "/opt/edge-agent, by the system's own Python, and say it again with that one's edge-agent"
            )
        config = config_text(shipped("config.yaml").read_text(encoding="utf-8"), answers)
        self._make_user()
        self._folder(SETTINGS_DIR, 0o750, f"root:{USER}")
        self._folder(STATE_DIR, 0o750, f"{USER}:{USER}")
        for name in UNITS:
            text = shipped(f"systemd/{name}").read_text(encoding="utf-8")
            self._put(f"{UNITS_DIR}/{name}", with_program(text, program), 0o644, "root:root")
        self._keep(CONFIG, config, 0o640, f"root:{USER}")
        if answers.mqtt_password is not None:
            self._keep(PASSWORD, answers.mqtt_password + "\n", 0o600, f"{USER}:{USER}")
        self._write_record()
        self._read_units_again()
        self._call("systemctl", "enable", UNITS[0])

    def start(self) -> bool:
        """Starts the service, or starts it again with what is new; False where systemd does not run, as in the making
        of an image: there it starts with the machine."""
        if self._booted:
            self._call("systemctl", "restart", "--no-block", UNITS[0])
        return self._booted

    def uninstall(self, *, purge: bool) -> None:
        """Takes away what was written here. Settings, readings, plans and the user stay, unless `purge`.

        A unit that somebody has changed since is somebody's, and stays as well without `purge`.
        """
        if not any((self._root / name).exists() for name in OURS):
            self._say("nothing was installed here")
        present = [name for name in UNITS if (self._root / UNITS_DIR / name).exists()]
        if present:
            self._call("systemctl", "disable", *(["--now"] if self._booted else []), *present)
        for name in OURS:
            self._remove(name, purge)
        if purge:
            for folder in (SETTINGS_DIR, STATE_DIR, CACHE_DIR):
                self._remove_folder(folder)
            self._remove_user()
        self._read_units_again()
        if not purge and (self._root / SETTINGS_DIR).is_dir():
            self._write_record()

    # The parts

    @property
    def _booted(self) -> bool:
        """Whether systemd runs here: sd_booted(3)."""
        return (self._root / "run/systemd/system").is_dir()

    def _read_units_again(self) -> None:
        if self._booted:
            self._call("systemctl", "daemon-reload")

    def _make_user(self) -> None:
        for group in GROUPS:
            if not self._known("group", group):
                self._call("groupadd", "--system", group)
        if self._known("passwd", USER):
            return
        self._call(
            *("useradd", "--system", "--user-group", "--home-dir", f"/{STATE_DIR}", "--no-create-home"),
            *("--shell", "/usr/sbin/nologin", USER),
        )
        self._record["user_made"] = True

    def _remove_user(self) -> None:
        if self._record["user_made"] and self._known("passwd", USER):
            self._call("userdel", USER)

    def _known(self, database: str, name: str) -> bool:
        lines = self._root / "etc" / database
        return lines.is_file() and any(line.startswith(f"{name}:") for line in lines.read_text("utf-8").splitlines())

    def _folder(self, name: str, mode: int, owner: str) -> None:
        folder = self._root / name
        if not folder.is_dir():
            folder.mkdir(parents=True)
            self._say(f"made {folder}")
        folder.chmod(mode)
        self._call("chown", owner, str(folder))

    def _remove_folder(self, name: str) -> None:
        folder = self._root / name
        if folder.is_dir():
            shutil.rmtree(folder)
            self._say(f"removed {folder} and what was in it")

    def _put(self, name: str, text: str, mode: int, owner: str) -> None:
        """Writes the file where it differs."""
        path = self._root / name
        self._record["files"][name] = sha256_of(text.encode())
        if path.is_file() and path.read_bytes() == text.encode():
            return
        write_atomically(path, text.encode(), mode)
        self._call("chown", owner, str(path))
        self._say(f"wrote {path}")

    def _keep(self, name: str, text: str, mode: int, owner: str) -> None:
        """Writes the file where there is none: it is the operator's after that."""
        if (self._root / name).exists():
            self._say(f"kept {self._root / name}, which was there")
        else:
            self._put(name, text, mode, owner)

    def _remove(self, name: str, purge: bool) -> None:
        path = self._root / name
        if name in (CONFIG, PASSWORD) and not purge and path.exists():
            self._say(f"kept {path}")
            return
        written = self._record["files"].pop(name, None)
        if not path.is_file():
            return
        if sha256_of(path.read_bytes()) != written and not purge:
            self._say(f"kept {path}: it is not as it was written here; --purge removes it")
            return
        path.unlink()
        self._say(f"removed {path}")

    def _call(self, *words: str) -> None:
        if self._run is not None:
            self._run(words)

    def _read_record(self) -> dict[str, Any]:
        try:
            record = json.loads((self._root / RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            record = {}
        record = record if isinstance(record, dict) else {}
        files = record.get("files")
        known = {name: files[name] for name in OURS if name in files} if isinstance(files, dict) else {}
        return {"files": known, "user_made": record.get("user_made") is True}

    def _write_record(self) -> None:
        text = json.dumps(self._record, indent=2, sort_keys=True) + "\n"
        write_atomically(self._root / RECORD, text.encode(), 0o644)


def runs_from(program: Path) -> Iterator[Path]:
    """The program and, where it is here and names one, its interpreter; each as written and with links followed."""
    yield from (program, program.resolve())
    if program.is_file():
        with program.open("rb") as file:
            first = file.readline(4096)
        if first.startswith(b"#!/"):
            interpreter = Path(os.fsdecode(first[2:].split()[0]))
            yield from (interpreter, interpreter.resolve())


def sha256_of(content: bytes) -> str:
    """As hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def with_program(unit: str, program: Path) -> str:
    """The unit, with the program's full path. ConfigError for a path that systemd would read as something else."""
    if not re.fullmatch(r"/[\w./+@-]+", str(program)):
        raise ConfigError(f"{program}: expected a full path of letters, digits and ._+@-, as a unit can hold it")
    return re.sub(r"^(Exec\w+=-?)edge-agent ", rf"\g<1>{program} ", unit, flags=re.MULTILINE)


def config_text(template: str, answers: Answers) -> str:
    """The shipped file of settings with the answers in it, comments and all."""
    text = template
    for section, key, value in settings_of(answers):
        text = with_value(text, section, key, value)
    if answers.camera_kind is not None:
        camera = (
            f"  line1:\n    kind: {json.dumps(answers.camera_kind)}\n    source: {json.dumps(answers.camera_source)}"
        )
        text = text.replace("\ncameras:\n", f"\ncameras:\n{camera}\n", 1)
    return text


def settings_of(answers: Answers) -> Iterator[tuple[str | None, str, Any]]:
    """(section, key, value) of what differs from the defaults."""
    defaults = Answers()
    if answers.device_id is not None:
        yield None, "device_id", answers.device_id
    for key in ("host", "port", "username"):
        value = getattr(answers, f"mqtt_{key}")
        if value != getattr(defaults, f"mqtt_{key}"):
            yield "mqtt", key, value
    if answers.mqtt_password is not None:
        yield "mqtt", "password_file", f"/{PASSWORD}"


def with_value(text: str, section: str | None, key: str, value: Any) -> str:
    """The file with another value at `section.key`, which must stand in it; JSON is YAML."""
    start = 0 if section is None else text.index(f"\n{section}:\n") + 1
    indent = "" if section is None else "  "
    line = re.compile(rf"^({indent}{key}: )\S+", re.MULTILINE)
    changed, count = line.subn(lambda found: found[1] + json.dumps(value), text[start:], count=1)
    if count == 0:
        raise ConfigError(f"config.yaml as shipped has no {key}; install edge_agent again")
    return text[:start] + changed
