"""Files: written whole or not at all, whatever happens to the power."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

STATE_FOLDER = "state"
PARTIAL = ".partial"  # ends the name, `.<file's name>-<any>.partial`, of what a process that was killed was writing


def service_state_dir(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The folder that the service manager has for what must not be lost (systemd.exec(5)); None where there is none."""
    named = environ.get("STATE_DIRECTORY", "").split(":")[0]
    return Path(named) if named else None


def find_state_dir(beside: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Where a device keeps what must not be lost: the service's folder for that, else `state` in `beside`."""
    return service_state_dir(environ) or beside / STATE_FOLDER


def write_atomically(path: Path, content: bytes, mode: int = 0o644, *, durable: bool = True) -> None:
    """Puts `content` in the file's place: a reader finds the old bytes or the new ones, also after a power cut.

    Not `durable`: with a power cut there may be neither; the disk is not waited for then. The folder is made if it is
    missing. Raises OSError, also where a device, pipe or folder has the name; nothing half-written stays then.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no file that could be replaced", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", suffix=PARTIAL, dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(path)
    finally:
        with suppress(FileNotFoundError):  # it has its name, when all went well
            temporary.unlink()
    if durable:
        sync_folder(path.parent)


def make_room(
    folder: Path,
    kept: re.Pattern[str],
    wanted_bytes: int,
    *,
    max_bytes: int,
    max_count: int | None = None,
    before: str | None = None,
) -> None:
    """Removes the oldest of the files in `folder` whose names match `kept`, until one more of `wanted_bytes` fits.

    Names sort by age; files that differ in their endings alone are one, and go together. Those that sort before
    `before` go too, and what an ended process half wrote. Raises OSError.
    """
    sizes_bytes: defaultdict[str, int] = defaultdict(int)
    names: defaultdict[str, list[str]] = defaultdict(list)
    with os.scandir(folder) as entries:
        for entry in entries:
            if kept.fullmatch(entry.name):
                stem = entry.name.rpartition(".")[0]
                sizes_bytes[stem] += entry.stat().st_size
                names[stem].append(entry.name)
            elif entry.name.startswith(".") and kept.match(entry.name[1:]):
                Path(entry.path).unlink(missing_ok=True)
    total_bytes, count = sum(sizes_bytes.values()), len(names)
    for stem in sorted(names):
        is_old = before is not None and stem < before
        is_too_many = max_count is not None and count >= max_count
        if not (is_old or is_too_many or total_bytes + wanted_bytes > max_bytes):
            return
        for name in names[stem]:
            (folder / name).unlink(missing_ok=True)
        total_bytes, count = total_bytes - sizes_bytes[stem], count - 1


def sync_folder(folder: Path) -> None:
    """Makes names that were given, changed or removed in the folder outlast a power cut. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
