"""Feed store: recorded inputs of one model on disk, bound to all that they depend on.

<model>/feeds/<part>/000001.npz ...     one feed each: its arrays in the order that the manifest names the inputs
<model>/feeds/<part>/manifest.json      written last: without it, or bound to something else, nothing counts
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from edge_agent.backends.base import Array, Feed
from edge_agent.errors import CalibrationRefused
from edge_agent.files import write_atomically

VERSION = 2
MANIFEST_FILE = "manifest.json"
MOST_FEEDS = 400
MOST_BYTES = 1 << 30
MAX_MANIFEST_BYTES = 16 << 20
NEVER = "none were recorded to the end yet"


@dataclass(frozen=True)
class FeedBinding:
    """Facts that feeds depend on, by name; feeds of other facts are other feeds."""

    facts: Mapping[str, str]

    @property
    def key(self) -> str:
        """sha256 over the facts."""
        return hashlib.sha256(json.dumps(dict(self.facts), sort_keys=True).encode()).hexdigest()

    def differing(self, other: Mapping[str, str]) -> list[str]:
        """The names of facts that are not the same in `other`, sorted."""
        return sorted(name for name in self.facts.keys() | other.keys() if self.facts.get(name) != other.get(name))


@dataclass(frozen=True)
class StoredFeed:
    """One feed's file: `shape` as in `8x48x320x3`, `rows` what a batch holds, padding rows included."""

    name: str
    sha256: str
    size_bytes: int
    shape: str
    rows: int


class FeedStore:
    """The feeds of one model and part. Open it, and unless it is `whole`: `begin`, `sink` each feed, `finish`.

    Of more than `most_feeds` (or `most_bytes`) the most frequent shapes are thinned first, so that each shape that was
    met keeps some; which feed of a shape goes is drawn by lot, the same way each time. `reason` tells why an existing
    recording cannot be used, and is empty for a whole one.
    """

    def __init__(
        self, directory: Path, binding: FeedBinding, most_feeds: int = MOST_FEEDS, most_bytes: int = MOST_BYTES
    ) -> None:
        self.directory = directory
        self.binding = binding
        self.left_out = 0
        self.whole = False
        self._most_feeds = most_feeds
        self._most_bytes = most_bytes
        self._inputs: tuple[str, ...] = ()
        self._kept: list[StoredFeed] = []
        self._met: Counter[str] = Counter()
        self._handed_in = 0
        self._draw = random.Random(binding.key)
        self.reason = self._reopen()

    @staticmethod
    def open(directory: Path, binding: FeedBinding, most_feeds: int = MOST_FEEDS) -> FeedStore:
        """The store in `directory`; `whole` where it was recorded to its end under the same binding, undamaged."""
        return FeedStore(directory, binding, most_feeds)

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def rows(self) -> int:
        """Rows of all batches kept."""
        return sum(feed.rows for feed in self._kept)

    @property
    def digest(self) -> str:
        """sha256 over the feeds' contents in order, for what is derived from them."""
        return hashlib.sha256(json.dumps([feed.sha256 for feed in self._kept]).encode()).hexdigest()

    def shapes(self) -> dict[str, int]:
        """How many feeds are kept of each shape, `8x48x320x3`."""
        return dict(sorted(Counter(feed.shape for feed in self._kept).items()))

    def met(self) -> dict[str, int]:
        """How often each shape ran while these were recorded, those that were left out included: what the site has."""
        return dict(sorted(self._met.items()))

    def begin(self) -> None:
        """Forgets what is there and is ready for `sink`. Raises CalibrationRefused where the disk does not let it."""
        self.whole = False
        self._kept.clear()
        self._met.clear()
        self._inputs = ()
        self._handed_in = self.left_out = 0
        self._draw = random.Random(self.binding.key)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            (self.directory / MANIFEST_FILE).unlink(missing_ok=True)  # first: what follows is half a recording
            for path in self.directory.glob("*.npz"):
                path.unlink()
        except OSError as exc:
            raise self._not_writable(exc) from exc

    def sink(self, feed: Feed) -> None:
        """Keeps the feed, or one like it that came before; CalibrationRefused where it cannot be written."""
        self._handed_in += 1
        if not self._inputs:
            self._inputs = tuple(sorted(feed))
        if tuple(sorted(feed)) != self._inputs:
            raise CalibrationRefused(f"a feed has {sorted(feed)}; those before had {list(self._inputs)}")
        content = packed([feed[name] for name in self._inputs])
        shape = shape_of(feed)
        self._met[shape] += 1
        if not self._make_room(shape, len(content)):
            self.left_out += 1
            return
        name = f"{self._handed_in:06d}.npz"
        try:
            (self.directory / name).write_bytes(content)
        except OSError as exc:
            raise self._not_writable(exc) from exc
        rows = int(feed[self._inputs[0]].shape[0])
        self._kept.append(StoredFeed(name, hashlib.sha256(content).hexdigest(), len(content), shape, rows))

    def finish(self, promised: int) -> None:
        """Makes the recording count. Raises CalibrationRefused where not `promised` feeds were handed in."""
        if self._handed_in != promised:
            raise CalibrationRefused(
                f"{self.directory}: {self._handed_in} inputs were recorded of {promised} that ran; calibrate again"
            )
        manifest = {
            "v": VERSION,
            "key": self.binding.key,
            "facts": dict(sorted(self.binding.facts.items())),
            "inputs": list(self._inputs),
            "promised": promised,
            "left_out": self.left_out,
            "met": self.met(),
            "feeds": [asdict(feed) for feed in self._kept],
        }
        try:
            write_atomically(self.directory / MANIFEST_FILE, json.dumps(manifest, indent=1).encode("ascii") + b"\n")
        except OSError as exc:
            raise self._not_writable(exc) from exc
        self.whole = True
        self.reason = ""

    def feeds(self) -> Iterator[dict[str, Array]]:
        """The feeds in the order in which they ran, one at a time.

        Raises CalibrationRefused where the recording is not whole, or a file is missing or damaged.
        """
        if not self.whole:
            raise CalibrationRefused(f"{self.directory}: {self.reason or NEVER}; record them first")
        for feed in self._kept:
            yield dict(zip(self._inputs, unpacked(self._read(feed)), strict=True))

    def _make_room(self, shape: str, size_bytes: int) -> bool:
        used_bytes = sum(feed.size_bytes for feed in self._kept)
        if len(self._kept) < self._most_feeds and used_bytes + size_bytes <= self._most_bytes:
            return True
        victim = self._victim(shape)
        if victim is None or used_bytes - victim.size_bytes + size_bytes > self._most_bytes:
            return False
        (self.directory / victim.name).unlink(missing_ok=True)
        self._kept.remove(victim)
        self.left_out += 1
        return True

    def _victim(self, shape: str) -> StoredFeed | None:
        """The feed that goes for one of `shape`: of the most frequent shape, or by lot of its own (reservoir sampling:
        Vitter, 1985); None where the new one is the one to go."""
        counts = Counter(feed.shape for feed in self._kept)
        if not counts:
            return None
        most = max(counts.values())
        if counts[shape] + 1 < most:
            crowded = min(name for name, count in counts.items() if count == most)
            return self._draw.choice([feed for feed in self._kept if feed.shape == crowded])
        lot = self._draw.randrange(self._met[shape])
        own = [feed for feed in self._kept if feed.shape == shape]
        return own[lot] if lot < len(own) else None

    def _reopen(self) -> str:
        """Takes over what was recorded before; why not, where it cannot be used."""
        try:
            with (self.directory / MANIFEST_FILE).open("rb") as file:
                manifest = FeedManifest.model_validate_json(file.read(MAX_MANIFEST_BYTES))
        except FileNotFoundError:
            return NEVER
        except (OSError, ValidationError) as exc:
            return f"their manifest cannot be read ({type(exc).__name__})"
        differing = self.binding.differing(manifest.facts)
        if differing:
            return f"they were recorded with another {', '.join(differing)}"
        kept = [StoredFeed(**dict(entry)) for entry in manifest.feeds]
        try:
            for feed in kept:
                self._read(feed)
        except CalibrationRefused as exc:
            return str(exc)
        if sum(manifest.met.values()) != manifest.promised or not {feed.shape for feed in kept} <= manifest.met.keys():
            return "their manifest is damaged: its counts do not agree"
        self._kept, self._inputs, self._met = kept, manifest.inputs, Counter(manifest.met)
        self._handed_in, self.left_out, self.whole = manifest.promised, manifest.left_out, True
        return ""

    def _read(self, feed: StoredFeed) -> bytes:
        path = self.directory / feed.name
        try:
            content = path.read_bytes()
        except OSError as exc:
            raise CalibrationRefused(f"{path} cannot be read: {exc.strerror}; calibrate again") from exc
        if hashlib.sha256(content).hexdigest() != feed.sha256:
            raise CalibrationRefused(f"{path} is damaged: its sha256 is another; calibrate again")
        return content

    def _not_writable(self, error: OSError) -> CalibrationRefused:
        return CalibrationRefused(f"{self.directory} cannot be written: {error.strerror}; free space or mend its owner")


class Section(BaseModel):
    """Base of the manifest's blocks: frozen, strict types, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class FeedEntry(Section):
    """A StoredFeed as JSON."""

    name: Annotated[str, StringConstraints(pattern=r"^[0-9]{6,12}\.npz$")]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    size_bytes: Annotated[int, Field(ge=1)]
    shape: str
    rows: Annotated[int, Field(ge=1)]


class FeedManifest(Section):
    """manifest.json of a feed store."""

    v: Literal[2]
    key: str
    facts: dict[str, str]
    inputs: tuple[str, ...]
    promised: Annotated[int, Field(ge=0)]
    left_out: Annotated[int, Field(ge=0)]
    met: dict[str, Annotated[int, Field(ge=1)]]
    feeds: tuple[FeedEntry, ...]


def shape_of(feed: Feed) -> str:
    """`8x48x320x3`; of several inputs the shapes that differ, joined with `+`."""
    shapes = dict.fromkeys("x".join(map(str, feed[name].shape)) for name in sorted(feed))
    return "+".join(shapes)


def packed(arrays: list[Array]) -> bytes:
    """Arrays as an uncompressed .npz."""
    buffer = io.BytesIO()
    np.savez(buffer, *arrays)  # by position: an input may be called anything
    return buffer.getvalue()


def unpacked(content: bytes) -> list[Array]:
    """The arrays that `packed` packed; CalibrationRefused where they are not."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return [arrays[f"arr_{n}"] for n in range(len(arrays.files))]
    except (zipfile.BadZipFile, ValueError, KeyError) as exc:
        raise CalibrationRefused(f"a recorded feed cannot be read: {exc}; calibrate again") from exc
