"""`edge-agent install` and `edge-agent uninstall`: the agent as a service of this machine, and back."""

from __future__ import annotations

import argparse
import getpass
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from edge_agent.errors import EXIT_OK, ConfigError
from edge_agent.installation import CONFIG, Answers, Installation, config_text, shipped

CAMERA_KINDS = ("csi", "folder", "rtsp", "v4l2", "video")


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers `install`."""
    parser = verbs.add_parser(
        "install",
        help="make the agent a service of this machine",
        description="Writes systemd's units, makes the user edge-agent and the folders, and a file of settings from "
        "your answers. Again: mends what is missing or old; settings that are there stay as they are.",
    )
    parser.add_argument("--yes", action="store_true", help="ask nothing: options, else defaults")
    parser.add_argument("--root", type=Path, metavar="DIR", help="write below this folder, touch nothing else")
    parser.add_argument("--program", type=Path, metavar="FILE", help="the edge-agent to run (default: this one)")
    parser.add_argument("--no-start", action="store_true", help="enable the service without starting it")
    parser.add_argument("--device-id", metavar="NAME", help="this device's name in topics (default: by its machine id)")
    parser.add_argument("--camera-kind", choices=CAMERA_KINDS, help="what the first camera is (default: none yet)")
    parser.add_argument("--camera-source", metavar="SOURCE", help="its number, path or address")
    parser.add_argument("--mqtt-host", metavar="HOST", help="the broker (default: 127.0.0.1)")
    parser.add_argument("--mqtt-port", type=int, metavar="PORT", help="its port (default: 1883)")
    parser.add_argument("--mqtt-username", metavar="NAME", help="the user there (default: none)")
    parser.add_argument("--mqtt-password-file", type=Path, metavar="FILE", help="a file whose first line is copied")
    parser.set_defaults(func=install)


def add_uninstall_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers `uninstall`."""
    parser = verbs.add_parser(
        "uninstall",
        help="take the service away again",
        description="Stops the service and takes away what `install` wrote. Settings, readings, plans and the "
        "user stay, unless --purge.",
    )
    parser.add_argument("--purge", action="store_true", help="settings, readings, plans, calibrations and user as well")
    parser.add_argument("--root", type=Path, metavar="DIR", help="below this folder, touch nothing else")
    parser.set_defaults(func=uninstall)


def install(args: argparse.Namespace) -> int:
    """0 when all is in place."""
    require_root(args.root)
    answers = answers_of(args) if args.yes or not sys.stdin.isatty() else asked(answers_of(args))
    check(answers)
    program = args.program or Path(sys.prefix) / "bin" / "edge-agent"
    if args.root is None and not os.access(program, os.X_OK):
        raise ConfigError(f"{program} is no program; name the edge-agent that the service is to run with --program")
    with telling_what_cannot_be_written():
        installation = open_installation(args.root)
        installation.install(program.absolute(), answers)
    if args.root is None and not args.no_start:
        started = installation.start()
        shown = "started; see: systemctl status edge-agent, journalctl -fu edge-agent"
        print(shown if started else "systemd does not run here: the service starts with the machine")
    return EXIT_OK


def uninstall(args: argparse.Namespace) -> int:
    """0 when it is gone."""
    require_root(args.root)
    with telling_what_cannot_be_written():
        open_installation(args.root).uninstall(purge=args.purge)
    return EXIT_OK


@contextmanager
def telling_what_cannot_be_written() -> Iterator[None]:
    """Raises ConfigError for an OSError inside."""
    try:
        yield
    except OSError as exc:
        raise ConfigError(f"{exc.filename or 'a file'} cannot be written or removed: {exc.strerror or exc}") from exc


def open_installation(root: Path | None) -> Installation:
    """That of this machine, or of a folder."""
    return Installation(root or Path("/"), call if root is None else None, print)


def call(words: Sequence[str]) -> None:
    """Runs a command of the system. ConfigError where it is missing or fails."""
    try:
        subprocess.run(list(words), check=True, capture_output=True, text=True, timeout=120)
    except FileNotFoundError:
        raise ConfigError(f"{words[0]} is not on this machine; is it one with systemd?") from None
    except subprocess.SubprocessError as exc:
        said = getattr(exc, "stderr", None) or exc
        raise ConfigError(f"{' '.join(words)} failed: {str(said).strip()}") from exc


def require_root(root: Path | None) -> None:
    """ConfigError where this user may not do it."""
    if root is None and os.geteuid() != 0:
        raise ConfigError("a service is root's to install: say it with sudo, or try it with --root DIR")


def answers_of(args: argparse.Namespace) -> Answers:
    """What the options say, defaults for the rest."""
    if (args.camera_kind is None) != (args.camera_source is None):
        raise ConfigError("--camera-kind and --camera-source go together")
    defaults = Answers()
    password = None
    if args.mqtt_password_file is not None:
        from edge_agent.secrets import read_password_file

        password = read_password_file(args.mqtt_password_file)
    return Answers(
        args.device_id,
        args.camera_kind,
        args.camera_source,
        defaults.mqtt_host if args.mqtt_host is None else args.mqtt_host,
        defaults.mqtt_port if args.mqtt_port is None else args.mqtt_port,
        args.mqtt_username,
        password,
    )


def asked(known: Answers) -> Answers:
    """Asks for each answer; Enter takes what stands in brackets."""
    device_id = ask("this device's name in topics", known.device_id, "by its machine id")
    kind = ask(f"first camera: {', '.join(CAMERA_KINDS)}", known.camera_kind, "none yet")
    source = ask("its number, path or address", known.camera_source, "0") or "0" if kind else None
    host = ask("MQTT broker", known.mqtt_host, known.mqtt_host) or known.mqtt_host
    port = ask("its port", str(known.mqtt_port), str(known.mqtt_port)) or ""
    if not port.isdecimal():
        raise ConfigError(f"{port!r} is no port; expected a number, 8883 is usual with TLS")
    username = ask("user there", known.mqtt_username, "none")
    password = known.mqtt_password
    if username and password is None:
        password = getpass.getpass("password (kept in a file of the service's own): ") or None
    return Answers(device_id, kind, source, host, int(port), username, password)


def ask(question: str, known: str | None, shown: str) -> str | None:
    """One line from the terminal. ConfigError where it is closed, as by Ctrl-D."""
    try:
        return input(f"{question} [{known or shown}]: ").strip() or known
    except EOFError:
        raise ConfigError("the terminal was closed before every question was answered; nothing was changed") from None


def check(answers: Answers) -> None:
    """ConfigError where the answers make no right settings, before anything is written."""
    from edge_agent.config import load

    # a service sees no variables of this shell
    load(Path(f"/{CONFIG}"), {}, config_text(shipped("config.yaml").read_text("utf-8"), answers).encode())
