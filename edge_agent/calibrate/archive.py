"""Archive: a collection as one file, to calibrate a sister device with; a zip whose members are stored as they are.

    manifest.json         the collection's own
    frames/<name>         each frame that it names, and nothing else

The file may come from anywhere: everything in it is checked before anything of it is put in place.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile

from edge_agent.calibrate.collect import clear_leftovers
from edge_agent.calibrate.collection import (
    FRAMES_FOLDER,
    MANIFEST_FILE,
    MAX_FRAME_BYTES,
    MAX_MANIFEST_BYTES,
    MAX_TOTAL_BYTES,
    MOST_FRAMES,
    CollectedFrame,
    Collection,
    commit,
    decoded,
    manifest_bytes,
    parse_manifest,
    read_frame,
    write_frame,
)
from edge_agent.cameras.pixels import check_pixels
from edge_agent.errors import CalibrationRefused, FrameError
from edge_agent.files import sync_folder
from edge_agent.settings.cameras import MAX_PIXELS

MAX_DIRECTORY_BYTES = 8 << 20  # of the zip's own list of members; MOST_FRAMES take a tenth
MAX_COMMENT_BYTES = 65_535
END_OF_ZIP = b"PK\x05\x06"  # APPNOTE.TXT 4.3.16, 22 bytes and the comment
ZIP64_LOCATOR = b"PK\x06\x07"  # 4.3.15, 20 bytes, right before it
ENCRYPTED = 0x1
STAMP = (1980, 1, 1, 0, 0, 0)  # the earliest a zip can tell: the same collection gives the same file
ADVICE = "export it again on the other device and copy it whole"


def export(collection: Collection, path: Path) -> None:
    """Writes the collection to `path`, whole or not at all; the same bytes for the same collection.

    Raises CalibrationRefused where a frame is damaged or the file cannot be written.
    """
    temporary: Path | None = None
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = Path(file.name)
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(member(MANIFEST_FILE), manifest_bytes(collection))
                for frame in collection.frames:
                    archive.writestr(member(f"{FRAMES_FOLDER}/{frame.name}"), read_frame(collection.directory, frame))
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as exc:
        raise CalibrationRefused(f"{path} cannot be written: {exc.strerror}") from exc
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def import_(
    path: Path,
    directory: Path,
    max_pixels: int = MAX_PIXELS,
    report: Callable[[float], None] = lambda share: None,
) -> Collection:
    """The collection in the archive `path`, in place of what was in `directory`; progress 0..1 goes to `report`.

    Raises CalibrationRefused naming what is wrong; what was there before stays then.
    """
    try:
        with path.open("rb") as file:
            check_size(file.fileno(), path)
            with zipfile.ZipFile(file) as archive:
                collection = replace(check(archive, path, max_pixels, report), directory=directory)
                put_in_place(archive, collection, path)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as exc:
        raise CalibrationRefused(f"{path} is damaged or no archive of a collection: {exc}; {ADVICE}") from exc
    except OSError as exc:
        raise CalibrationRefused(f"{path} cannot be read: {exc.strerror or exc}") from exc
    report(1.0)
    return collection


def check_size(descriptor: int, path: Path) -> None:
    """Refuses a file that is too large, or whose list of members is: zipfile reads that whole."""
    size = os.fstat(descriptor).st_size
    if size > MAX_TOTAL_BYTES + MAX_MANIFEST_BYTES + MAX_DIRECTORY_BYTES:
        raise CalibrationRefused(f"{path} has {size} bytes; a collection has {MAX_TOTAL_BYTES} at most")
    start = max(0, size - MAX_COMMENT_BYTES - 22 - 20)
    tail = os.pread(descriptor, size - start, start)
    at = tail.rfind(END_OF_ZIP)
    if at < 0 or at + 22 > len(tail):
        raise CalibrationRefused(f"{path} is cut short or no archive of a collection: no zip ends there; {ADVICE}")
    (directory_bytes,) = struct.unpack_from("<I", tail, at + 12)
    if directory_bytes > MAX_DIRECTORY_BYTES or tail[max(0, at - 20) : at].startswith(ZIP64_LOCATOR):
        raise CalibrationRefused(f"{path} lists more members than a collection can have: it is none; {ADVICE}")


def check(archive: zipfile.ZipFile, path: Path, max_pixels: int, report: Callable[[float], None]) -> Collection:
    """The collection that the archive holds, every member of which is as it should be, pictures decoded."""
    members = check_members(archive, path)
    manifest = content_of(archive, members, MANIFEST_FILE, MAX_MANIFEST_BYTES, path)
    collection = parse_manifest(manifest, path.parent, f"{path}, {MANIFEST_FILE}")
    expected = {MANIFEST_FILE, *(f"{FRAMES_FOLDER}/{frame.name}" for frame in collection.frames)}
    for name in sorted(members.keys() ^ expected):
        fault = "is missing" if name in expected else "is not in its manifest"
        raise CalibrationRefused(f"{path}: {name!r} {fault}; {ADVICE}")
    for number, frame in enumerate(collection.frames):
        check_frame(
            content_of(archive, members, f"{FRAMES_FOLDER}/{frame.name}", MAX_FRAME_BYTES, path),
            frame,
            path,
            max_pixels,
        )
        report(0.8 * (number + 1) / len(collection.frames))
    return collection


def check_members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """The archive's members by name: plain stored files, each name once, in all no larger than the file itself."""
    members = archive.infolist()
    if len(members) > MOST_FRAMES + 1:
        raise CalibrationRefused(f"{path} has {len(members)} members; a collection has {MOST_FRAMES} frames at most")
    twice = [name for name, count in Counter(info.filename for info in members).items() if count > 1]
    if twice:
        raise CalibrationRefused(f"{path} has {twice[0]!r} twice; {ADVICE}")
    for info in members:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if info.is_dir() or kind not in (0, stat.S_IFREG):
            raise CalibrationRefused(f"{path}: {info.filename!r} is a folder, link or device, not a file; {ADVICE}")
        if info.flag_bits & ENCRYPTED:
            raise CalibrationRefused(f"{path}: {info.filename!r} is encrypted; {ADVICE}")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise CalibrationRefused(
                f"{path}: {info.filename!r} is compressed; members of a collection are stored as they are; {ADVICE}"
            )
    total = sum(info.file_size for info in members)
    if total > MAX_TOTAL_BYTES + MAX_MANIFEST_BYTES:
        raise CalibrationRefused(f"{path} holds {total} bytes; a collection has {MAX_TOTAL_BYTES} at most")
    return {info.filename: info for info in members}


def content_of(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], name: str, max_bytes: int, path: Path
) -> bytes:
    """A member's bytes, no more than `max_bytes`."""
    if name not in members:
        raise CalibrationRefused(f"{path}: {name!r} is missing; {ADVICE}")
    if members[name].file_size > max_bytes:
        raise CalibrationRefused(f"{path}: {name!r} has {members[name].file_size} bytes; expected {max_bytes} at most")
    return archive.read(members[name])


def check_frame(content: bytes, frame: CollectedFrame, path: Path, max_pixels: int) -> None:
    """Refuses a frame whose bytes or picture are not those that the manifest describes."""
    if hashlib.sha256(content).hexdigest() != frame.sha256:
        raise CalibrationRefused(f"{path}: {frame.name} (from {frame.source}) is damaged: its sha256 is another")
    try:
        check_pixels(frame.width_px, frame.height_px, max_pixels)
    except FrameError as exc:
        raise CalibrationRefused(f"{path}: {frame.name} (from {frame.source}): {exc}") from exc
    decoded(frame, content)


def put_in_place(archive: zipfile.ZipFile, collection: Collection, path: Path) -> None:
    """Writes the frames and then, in one step, the manifest."""
    try:
        for frame in collection.frames:
            written = write_frame(collection.directory / FRAMES_FOLDER, archive.read(f"{FRAMES_FOLDER}/{frame.name}"))
            if written.name != frame.name:
                raise CalibrationRefused(f"{path}: {frame.name} is not what its name says; {ADVICE}")
        commit(collection)
    finally:
        clear_leftovers(collection.directory)


def member(name: str) -> zipfile.ZipInfo:
    """A plain file's entry, the same each time."""
    info = zipfile.ZipInfo(name, STAMP)
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    info.create_system = 3  # Unix, whatever this runs on
    return info
