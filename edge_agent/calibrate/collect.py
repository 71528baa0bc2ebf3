"""Collecting: chooses the frames of a collection from what a source offers, and puts them in the old one's place."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import cv2

from edge_agent.calibrate.collection import (
    FRAMES_FOLDER,
    MANIFEST_FILE,
    MAX_FRAME_BYTES,
    MAX_TOTAL_BYTES,
    MOST_FRAMES,
    PARTS,
    CollectedFrame,
    Collection,
    Part,
    Tally,
    commit,
    digest_of,
    parse_manifest,
    write_frame,
)
from edge_agent.calibrate.diversity import Gallery, choose, impression_of
from edge_agent.calibrate.frames import FrameSource, OfferedFrame, Skipped
from edge_agent.cameras.image_file import decode_image
from edge_agent.errors import CalibrationRefused, ConfigError, FrameError
from edge_agent.files import sync_folder
from edge_agent.settings.cameras import MAX_PIXELS

SHARES: Mapping[Part, float] = {"calibration": 0.50, "search": 0.15, "held_out": 0.35}
MIN_FRAMES = 6  # different ones; fewer leave a part without any


@dataclass(frozen=True)
class FrameWish:
    """How many frames to keep at most, and the largest picture taken, px."""

    count: int = 60
    max_pixels: int = MAX_PIXELS

    def __post_init__(self) -> None:
        if not MIN_FRAMES <= self.count <= MOST_FRAMES:
            raise ConfigError(f"{self.count} frames were asked for; expected {MIN_FRAMES} to {MOST_FRAMES}")


@dataclass(frozen=True)
class Candidate:
    """A frame that could be kept: where its bytes are, and what was seen of it."""

    source: str
    path: Path
    width_px: int
    height_px: int
    captured_at: float | None
    dhash: int


@dataclass(frozen=True)
class Sifted:
    """What is left of a source's frames once those are gone that add nothing."""

    candidates: tuple[Candidate, ...]
    skipped: tuple[Skipped, ...]
    tally: Tally


def collect(
    source: FrameSource,
    directory: Path,
    wish: FrameWish | None = None,
    report: Callable[[float], None] = lambda share: None,
) -> Collection:
    """The collection of `source`'s frames, in place of what was in `directory`; progress 0..1 goes to `report`.

    Near duplicates are dropped, and of more frames than wanted those are kept that are spread over time and look most
    different. Raises CalibrationRefused with all counts where too few are left; what was there before stays then.
    """
    wish = wish or FrameWish()
    labels = source.labels()
    try:
        sifted = sift(source, directory / FRAMES_FOLDER, wish, report)
        if len(sifted.candidates) < MIN_FRAMES:
            raise CalibrationRefused(too_few(source, sifted))
        chosen = chosen_of(sifted.candidates, wish.count)
        frames = with_parts([stored(candidate, directory, wish.max_pixels) for candidate in chosen])
        check_total(directory, frames)
        left_out = source.left_out + len(sifted.candidates) - len(chosen)
        tally = Tally(sifted.tally.offered, sifted.tally.near_duplicates, sifted.tally.flat, left_out)
        kept = {frame.source for frame in frames}
        known = {name: texts for name, texts in sorted(labels.items()) if name in kept}
        collection = Collection(
            directory,
            digest_of(frames, known),
            source.described,
            tuple(frames),
            sifted.skipped,
            tally,
            source.note,
            known,
        )
        commit(collection)
    finally:
        clear_leftovers(directory)
    report(1.0)
    return collection


def sift(source: FrameSource, frames_folder: Path, wish: FrameWish, report: Callable[[float], None]) -> Sifted:
    """Looks at each frame that `source` offers, until its end or, of an endless one, until enough are different."""
    gallery = Gallery()
    candidates: list[Candidate] = []
    skipped: list[Skipped] = []
    offered = near_duplicates = flat = 0
    with closing(source.offered()) as frames:
        for frame in frames:
            offered += 1
            if isinstance(frame, Skipped):
                skipped.append(frame)
            else:
                impression = impression_of(frame.image)
                if not gallery.admits(impression):
                    near_duplicates += 1
                elif impression.flat:
                    flat += 1
                else:
                    candidates.append(candidate_of(frame, impression.dhash, frames_folder))
            report(0.9 * (len(candidates) / wish.count if source.endless else offered / max(len(source), offered)))
            if source.endless and len(candidates) >= wish.count:
                break
    return Sifted(tuple(candidates), tuple(skipped), Tally(offered, near_duplicates, flat))


def candidate_of(frame: OfferedFrame, dhash: int, frames_folder: Path) -> Candidate:
    """The frame as a candidate; one that is no file becomes one now, for it cannot be asked for again."""
    height_px, width_px = frame.image.shape[:2]
    path = frame.path
    if path is None:
        ok, png = cv2.imencode(".png", frame.image)
        if not ok:
            raise CalibrationRefused(f"{frame.name}: OpenCV cannot write {width_px}x{height_px} pixels as PNG")
        path = write_frame(frames_folder, png.tobytes())
    return Candidate(frame.name, path, width_px, height_px, frame.captured_at, dhash)


def chosen_of(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """At most `count` of them, spread; where a capture time is unknown, the order stands for time."""
    times = [
        float(n) if candidate.captured_at is None else candidate.captured_at for n, candidate in enumerate(candidates)
    ]
    if any(candidate.captured_at is None for candidate in candidates):
        times = [float(n) for n in range(len(candidates))]
    return [candidates[n] for n in choose([candidate.dhash for candidate in candidates], times, count)]


def stored(candidate: Candidate, directory: Path, max_pixels: int) -> CollectedFrame:
    """The candidate's file, byte for byte, among the frames; CalibrationRefused where it changed since it was seen."""
    try:
        if candidate.path.stat().st_size > MAX_FRAME_BYTES:
            raise CalibrationRefused(
                f"{candidate.source} has more than {MAX_FRAME_BYTES} bytes; save it as JPEG or PNG, or smaller"
            )
        content = candidate.path.read_bytes()
        seen = impression_of(decode_image(content, max_pixels))
    except (OSError, FrameError) as exc:
        raise CalibrationRefused(f"{candidate.source} changed while it was collected: {exc}; calibrate again") from exc
    if seen.dhash != candidate.dhash:
        raise CalibrationRefused(f"{candidate.source} changed while it was collected; calibrate again")
    path = write_frame(directory / FRAMES_FOLDER, content)
    return CollectedFrame(
        path.name,
        candidate.source,
        hashlib.sha256(content).hexdigest(),
        candidate.width_px,
        candidate.height_px,
        candidate.captured_at,
        candidate.dhash,
        "calibration",
    )


def with_parts(frames: Sequence[CollectedFrame]) -> list[CollectedFrame]:
    """The frames, each with its part, in the same order.

    By their contents alone: sizes in turn, frames of one size by sha256, each to the part that is furthest behind its
    share. No two frames of a collection are near duplicates, so none is held out that was all but calibrated on.
    """
    given: Counter[Part] = Counter()
    parts: dict[str, Part] = {}
    in_turn = sorted(frames, key=lambda frame: (frame.width_px, frame.height_px, frame.sha256))
    for number, frame in enumerate(in_turn, 1):
        part = max(PARTS, key=lambda part: SHARES[part] * number - given[part])
        given[part] += 1
        parts[frame.name] = part
    return [replace(frame, part=parts[frame.name]) for frame in frames]


def check_total(directory: Path, frames: Iterable[CollectedFrame]) -> None:
    """Raises CalibrationRefused where the files take more than MAX_TOTAL_BYTES."""
    total = sum((directory / FRAMES_FOLDER / frame.name).stat().st_size for frame in frames)
    if total > MAX_TOTAL_BYTES:
        raise CalibrationRefused(f"the frames take {total} bytes, more than {MAX_TOTAL_BYTES}; ask for fewer of them")


def too_few(source: FrameSource, sifted: Sifted) -> str:
    """Why a collection is refused, with all counts."""
    bad = "; ".join(f"{skipped.name}: {skipped.reason}" for skipped in sifted.skipped[:3])
    more = f"; and {len(sifted.skipped) - 3} more" if len(sifted.skipped) > 3 else ""
    return (
        f"{source.described}: {len(sifted.candidates)} usable frames, at least {MIN_FRAMES} different ones are needed: "
        f"offered {sifted.tally.offered}, near duplicates {sifted.tally.near_duplicates}, without any texture "
        f"{sifted.tally.flat}, skipped {len(sifted.skipped)}"
        + (f" ({bad}{more})" if bad else "")
        + (f"; {source.note}" if source.note else "")
        + "; give frames of different labels, as the camera sees them"
    )


def clear_leftovers(directory: Path) -> None:
    """Removes files among the frames that the manifest does not name: of an earlier collection, or one cut short."""
    folder = directory / FRAMES_FOLDER
    if not folder.is_dir():
        return
    named: set[str] = set()
    path = directory / MANIFEST_FILE
    if path.exists():
        try:
            named = {frame.name for frame in parse_manifest(path.read_bytes(), directory, str(path)).frames}
        except (CalibrationRefused, OSError):
            return  # whose files they are cannot be told
    for entry in list(folder.iterdir()):
        if entry.name not in named and not entry.is_dir():
            entry.unlink(missing_ok=True)
    sync_folder(folder)
