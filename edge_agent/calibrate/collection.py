"""Collection: the frames that a calibration goes by, chosen, counted and kept.

    collection/frames/<first 16 digits of the file's sha256>.<ending>     as they came; camera frames as PNG
    collection/manifest.json                                              names them: what it does not name is no part

A frame is written under its own content's name and the manifest last, in one step. So whatever ends the program, the
folder holds the collection before or the one after, whole; leftovers are cleared away by the next one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from edge_agent import __version__
from edge_agent.calibrate.frames import Skipped
from edge_agent.cameras.base import Image
from edge_agent.cameras.image_file import decode_image
from edge_agent.cameras.image_header import read_header
from edge_agent.errors import CalibrationRefused, FrameError
from edge_agent.files import write_atomically

Part = Literal["calibration", "search", "held_out"]
PARTS: tuple[Part, ...] = get_args(Part)

VERSION = 1
MANIFEST_FILE = "manifest.json"
FRAMES_FOLDER = "frames"
MOST_FRAMES = 10_000
MAX_MANIFEST_BYTES = 16 << 20
MAX_FRAME_BYTES = 256 << 20  # of one file
MAX_TOTAL_BYTES = 2 << 30  # of all files
READ_ONLY = 0o444
ENDINGS = {"jpeg": "jpg", "png": "png", "bmp": "bmp", "webp": "webp", "tiff": "tif", "pnm": "pnm"}

Text = Annotated[str, StringConstraints(max_length=4096)]
Count = Annotated[int, Field(ge=0)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
FrameName = Annotated[str, StringConstraints(pattern=rf"^[0-9a-f]{{16}}\.(?:{'|'.join(ENDINGS.values())})$")]


@dataclass(frozen=True)
class CollectedFrame:
    """One frame kept: `name` inside frames/, `source` as it was called where it came from, size upright."""

    name: str
    source: str
    sha256: str
    width_px: int
    height_px: int
    captured_at: float | None
    dhash: int
    part: Part


@dataclass(frozen=True)
class Tally:
    """What was offered and did not become part of the collection."""

    offered: int = 0
    near_duplicates: int = 0
    flat: int = 0
    left_out: int = 0

    def __str__(self) -> str:
        return (
            f"offered {self.offered}, near duplicates {self.near_duplicates}, without any texture {self.flat}, "
            f"left out because others are more different {self.left_out}"
        )


@dataclass(frozen=True)
class Collection:
    """The frames in `directory`. `digest`: sha256 over names, contents, parts and labels; `labels` by source name."""

    directory: Path
    digest: str
    described: str
    frames: tuple[CollectedFrame, ...]
    skipped: tuple[Skipped, ...]
    tally: Tally
    note: str
    labels: Mapping[str, tuple[str, ...]]

    @property
    def offered(self) -> int:
        """How many frames and files there were to choose from."""
        return self.tally.offered

    def of(self, part: Part | None) -> tuple[CollectedFrame, ...]:
        """The frames of one part; None: of all."""
        return tuple(frame for frame in self.frames if part in (None, frame.part))

    def images(self, part: Part | None = None) -> Iterator[tuple[CollectedFrame, Image]]:
        """The frames of one part (None: all) and their pictures, uint8 (H, W, 3) BGR, one at a time.

        Raises CalibrationRefused for a file that is missing or is not what was collected.
        """
        for frame in self.of(part):
            yield frame, decoded(frame, read_frame(self.directory, frame))

    def counts(self) -> dict[str, Any]:
        """What was used, what was not, and why, as plain values."""
        parts = Counter(frame.part for frame in self.frames)
        sizes = Counter(f"{frame.width_px}x{frame.height_px}" for frame in self.frames)
        return {
            "source": self.described,
            "offered": self.tally.offered,
            "used": len(self.frames),
            **{part: parts[part] for part in PARTS},
            "near_duplicates": self.tally.near_duplicates,
            "without_texture": self.tally.flat,
            "left_out": self.tally.left_out,
            "skipped": len(self.skipped),
            "skipped_files": [{"name": skipped.name, "reason": skipped.reason} for skipped in self.skipped],
            "labelled": sum(frame.source in self.labels for frame in self.frames),
            "sizes": dict(sorted(sizes.items())),
            "note": self.note,
        }


def load(directory: Path) -> Collection | None:
    """The collection in `directory`, each file held against its sha256; None where there is none.

    Raises CalibrationRefused naming what is missing or damaged.
    """
    path = directory / MANIFEST_FILE
    try:
        with path.open("rb") as file:
            content = file.read(MAX_MANIFEST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise CalibrationRefused(f"{path} cannot be read: {exc.strerror}; check its owner and mode") from exc
    collection = parse_manifest(content, directory, str(path))
    for frame in collection.frames:
        read_frame(directory, frame)
    return collection


def write_frame(frames_folder: Path, content: bytes) -> Path:
    """Writes a frame's file under the name of its content, unless it is there already; the path."""
    name = frame_name(content)
    path = frames_folder / name
    try:
        if not (path.is_file() and path.read_bytes() == content):
            write_atomically(path, content, READ_ONLY)
    except OSError as exc:
        raise CalibrationRefused(f"{path} cannot be written: {exc.strerror}; free space or check the owner") from exc
    return path


def frame_name(content: bytes) -> str:
    """First digits of the sha256, and the ending of the picture's true format."""
    return f"{hashlib.sha256(content).hexdigest()[:16]}.{ENDINGS[read_header(content).format]}"


def digest_of(frames: Iterable[CollectedFrame], labels: Mapping[str, tuple[str, ...]]) -> str:
    """sha256 over everything that a calibration's result can depend on."""
    facts = [[f.name, f.source, f.sha256, f.part, list(labels.get(f.source, ()))] for f in frames]
    return hashlib.sha256(json.dumps(sorted(facts)).encode()).hexdigest()


def read_frame(directory: Path, frame: CollectedFrame) -> bytes:
    """The bytes of a frame's file, which are those that were collected, else CalibrationRefused."""
    path = directory / FRAMES_FOLDER / frame.name
    advice = "collect frames again with --frames, --camera or --recorded"
    try:
        content = path.read_bytes()
    except OSError as exc:
        raise CalibrationRefused(f"{path} (from {frame.source}) cannot be read: {exc.strerror}; {advice}") from exc
    if hashlib.sha256(content).hexdigest() != frame.sha256:
        raise CalibrationRefused(f"{path} (from {frame.source}) is damaged: its sha256 is another; {advice}")
    return content


def decoded(frame: CollectedFrame, content: bytes) -> Image:
    """A frame's picture; CalibrationRefused where it is not one of the size that the manifest says."""
    try:
        image = decode_image(content, frame.width_px * frame.height_px)
    except FrameError as exc:
        raise CalibrationRefused(f"{frame.name} (from {frame.source}) cannot be decoded: {exc}") from exc
    if image.shape != (frame.height_px, frame.width_px, 3):
        raise CalibrationRefused(
            f"{frame.name} (from {frame.source}) has {image.shape[1]}x{image.shape[0]} pixels; its manifest says "
            f"{frame.width_px}x{frame.height_px}"
        )
    return image


class Section(BaseModel):
    """Base of the manifest's blocks: frozen, strict types, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, allow_inf_nan=False)


class FrameEntry(Section):
    """A CollectedFrame as JSON; dhash as 16 hexadecimal digits."""

    name: FrameName
    source: Text
    sha256: Sha256
    width_px: Annotated[int, Field(ge=1)]
    height_px: Annotated[int, Field(ge=1)]
    captured_at: float | None
    dhash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
    part: Part


class SkippedEntry(Section):
    """A Skipped as JSON."""

    name: Text
    reason: Text


class Manifest(Section):
    """manifest.json of a collection, and of its archive."""

    v: Literal[1]
    product: Text
    digest: Sha256
    source: Text
    note: Text
    offered: Count
    near_duplicates: Count
    flat: Count
    left_out: Count
    frames: Annotated[tuple[FrameEntry, ...], Field(min_length=1, max_length=MOST_FRAMES)]
    skipped: tuple[SkippedEntry, ...]
    labels: dict[Text, tuple[Text, ...]]

    @model_validator(mode="after")
    def _names_each_frame_once(self) -> Manifest:
        names = Counter(frame.name for frame in self.frames)
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise ValueError(f"{twice[0]} is listed twice")
        for frame in self.frames:
            if not frame.sha256.startswith(frame.name[:16]):
                raise ValueError(f"{frame.name} is not named after its sha256")
        return self


def manifest_bytes(collection: Collection) -> bytes:
    """The manifest of a collection; the same for the same collection."""
    tally = collection.tally
    manifest = {
        "v": VERSION,
        "product": __version__,
        "digest": collection.digest,
        "source": collection.described,
        "note": collection.note,
        "offered": tally.offered,
        "near_duplicates": tally.near_duplicates,
        "flat": tally.flat,
        "left_out": tally.left_out,
        "frames": [{**vars(frame), "dhash": f"{frame.dhash:016x}"} for frame in collection.frames],
        "skipped": [vars(skipped) for skipped in collection.skipped],
        "labels": {name: list(texts) for name, texts in collection.labels.items()},
    }
    return json.dumps(manifest, indent=1).encode("ascii") + b"\n"


def parse_manifest(content: bytes, directory: Path, where: str) -> Collection:
    """The collection that a manifest describes, its files not looked at yet; CalibrationRefused tells `where`."""
    if len(content) > MAX_MANIFEST_BYTES:
        raise CalibrationRefused(f"{where} has more than {MAX_MANIFEST_BYTES} bytes: it is none of this program's")
    try:
        version = json.loads(content).get("v")
    except (ValueError, RecursionError, AttributeError) as exc:
        raise CalibrationRefused(f"{where} is damaged: {exc}; collect frames again") from exc
    if version != VERSION:
        raise CalibrationRefused(f"{where} has version {version!r}, this program reads {VERSION}; update the older one")
    try:
        manifest = Manifest.model_validate_json(content)
    except ValidationError as exc:
        fault = exc.errors()[0]
        key = ".".join(map(str, fault["loc"])) or "manifest"
        raise CalibrationRefused(f"{where} is damaged: {key}: {fault['msg']}; collect frames again") from exc
    frames = tuple(CollectedFrame(**{**dict(f), "dhash": int(f.dhash, 16)}) for f in manifest.frames)
    if digest_of(frames, manifest.labels) != manifest.digest:
        raise CalibrationRefused(f"{where} is damaged: its digest is another; collect frames again")
    return Collection(
        directory,
        manifest.digest,
        manifest.source,
        frames,
        tuple(Skipped(s.name, s.reason) for s in manifest.skipped),
        Tally(manifest.offered, manifest.near_duplicates, manifest.flat, manifest.left_out),
        manifest.note,
        manifest.labels,
    )


def commit(collection: Collection) -> None:
    """Makes the collection the one in its folder: from here on, also after a power cut."""
    path = collection.directory / MANIFEST_FILE
    try:
        write_atomically(path, manifest_bytes(collection), READ_ONLY)
    except OSError as exc:
        raise CalibrationRefused(f"{path} cannot be written: {exc.strerror}; free space or check the owner") from exc
