"""Last good: the content of the file of settings that a process last began with, for a start that finds no file.

A device whose file has vanished, with a card that failed or by a slip, goes on as before, and says so; without this it
would end, and could not be reached from afar any more. A file that is there counts, whatever is in it.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from edge_agent import config as configuration
from edge_agent.config import Config
from edge_agent.files import write_atomically

log = logging.getLogger(__name__)

PRIVATE = 0o600  # a source may hold a password


def load_or_last_good(path: Path, folder: Path, environ: Mapping[str, str] = os.environ) -> tuple[Config, str | None]:
    """The settings in the file `path`, whose content is kept in `folder`; where there is no such file, those that were
    kept last of it, and what is to be said about that.

    Raises ConfigError as `config.load` does, also where there is no file and nothing was kept.
    """
    kept = folder / f"last-good-{hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:12]}.yaml"
    content = _content(kept) if _is_gone(path) else None
    if content is not None:
        why = f"{path}: there is no such file; going on with what it held at the last start, kept in {kept}"
        return configuration.load(path, environ, content), why
    config = configuration.load(path, environ)
    if path.is_file():  # a pipe can be read only once
        _keep(path, kept)
    return config, None


def _is_gone(path: Path) -> bool:
    """Not where it lies in a folder that must not be entered, say: `load` tells what is wrong then."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _content(kept: Path) -> bytes | None:
    try:
        return kept.read_bytes()
    except OSError:
        return None


def _keep(path: Path, kept: Path) -> None:
    try:
        content = path.read_bytes()
        if _content(kept) != content:
            write_atomically(kept, content, PRIVATE)
    except OSError as exc:
        log.warning("%s cannot be kept for a start that finds it gone: %s", path, exc.strerror)
