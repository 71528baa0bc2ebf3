"""Can the files of secrets be read, and by their owner alone?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from edge_agent.config import Config
from edge_agent.doctor.base import Patient, Row
from edge_agent.errors import ConfigError
from edge_agent.secrets import private_file_caution, read_password_file


def check(patient: Patient) -> Iterator[Row]:
    if patient.config is None:
        return
    for key, path, is_password in secret_files(patient.config):
        try:
            if is_password:
                read_password_file(path)
            else:
                path.open("rb").close()
        except ConfigError as exc:
            yield Row("secrets", "fail", f"{key}: {exc}", f"one line in {path}, owned by the agent's user, chmod 600")
        except OSError as exc:
            yield Row("secrets", "fail", f"{key}: {path}: {exc.strerror}", f"let the agent's user read {path}")
        else:
            caution = private_file_caution(path)
            yield Row("secrets", "ok" if caution is None else "warn", caution or f"{key}: its owner's alone", caution)


def secret_files(config: Config) -> Iterator[tuple[str, Path, bool]]:
    """Key, file, and whether it holds a password."""
    if config.mqtt.password_file is not None:
        yield "mqtt.password_file", config.mqtt.password_file, True
    if config.mqtt.key_file is not None:
        yield "mqtt.key_file", config.mqtt.key_file, False
    for name, camera in config.cameras.items():
        if camera.password_file is not None and camera.enabled:
            yield f"cameras.{name}.password_file", camera.password_file, True
