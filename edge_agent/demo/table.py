"""Table: readings as they arrive, a live table on a terminal, one line each where stdout is a file or a pipe."""

from __future__ import annotations

import importlib.util
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Protocol

from edge_agent.plain_text import printable
from edge_agent.records import INFORMING_FLAGS, json_bytes

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

NONE = "-"
FPS_WINDOW = 30  # readings of one camera that its frames a second are taken over

# field -> the table's column, in order; other fields stand together in the last one
COLUMNS = {"product_name": "product", "lot": "lot", "expiry_date": "expiry", "serial_number": "serial"}
OTHER = "also"
CUT = "cut"  # flag of a line, and of the fields in it, that the edge of the picture cuts
DOUBT = "? "  # in front, where a narrow column does not lose it


@dataclass(frozen=True)
class Row:
    """One reading in words; `fields` by name, every text made safe to print."""

    camera: str
    seq: int
    lines: tuple[str, ...]
    fields: Mapping[str, str]
    confidence: float | None
    fps: float | None
    reason: str

    @property
    def headline(self) -> str:
        """The product's name, else the texts one after the other, else why there are none."""
        return self.fields.get("product_name") or " | ".join(self.lines) or self.reason

    @property
    def other(self) -> str:
        """The fields that have no column."""
        return ", ".join(value for name, value in self.fields.items() if name not in COLUMNS)


@dataclass
class FpsMeter:
    """Frames a second of each camera over its last readings; None until there are two."""

    arrivals: dict[str, deque[float]] = field(default_factory=dict)

    def tick(self, camera: str, mono: float) -> float | None:
        times = self.arrivals.setdefault(camera, deque(maxlen=FPS_WINDOW))
        times.append(mono)
        return (len(times) - 1) / (times[-1] - times[0]) if times[-1] > times[0] else None


def row(reading: Mapping[str, Any], fps: float | None) -> Row:
    """The row of one message of the MQTT result schema."""
    found = {field["name"] for field in reading["fields"]}
    names = [name for name in COLUMNS if name in found] + sorted(found - set(COLUMNS))
    confidences = [float(line["confidence"]) for line in reading["lines"]]
    return Row(
        safe(reading["camera"]),
        int(reading["seq"]),
        tuple(safe(line["text"]) for line in reading["lines"]),
        {name: values_of(name, reading["fields"]) for name in names},
        sum(confidences) / len(confidences) if confidences else None,
        fps,
        safe(reading["reason"] or "no_text"),
    )


def values_of(name: str, fields: Sequence[Mapping[str, Any]]) -> str:
    """The values of the fields of that name, those cut by the picture's edge left out where there are others.

    Of product names the surest one. What is in doubt begins with `? `.
    """
    found = [field for field in fields if field["name"] == name]
    shown = [field for field in found if CUT not in field["flags"]] or found
    if name == "product_name":
        shown = [max(shown, key=lambda field: float(field["confidence"]))]
    return " / ".join(dict.fromkeys(value_of(field) for field in shown))


def value_of(field: Mapping[str, Any]) -> str:
    """The field's value; where it has none (a date that does not exist) the text as seen, in doubt."""
    sure = field["value"] and INFORMING_FLAGS.issuperset(field["flags"])
    return ("" if sure else DOUBT) + safe(field["value"] or field["text"])


def safe(text: Any) -> str:
    """What a message says, as text that does nothing to a terminal."""
    return printable(str(text))


class ReadingTable(Protocol):
    """Shows messages of the MQTT result schema; a context manager."""

    def add(self, reading: Mapping[str, Any], fps: float | None) -> None: ...

    def note(self, text: str) -> None:
        """Says something that is not a reading; not on stdout unless that is a terminal."""
        ...

    def __enter__(self) -> ReadingTable: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def open_table(title: str, stream: IO[str], as_json: bool = False) -> ReadingTable:
    """A live table where `stream` is a terminal and rich is installed, else plain lines with the same content.

    `as_json`: the messages themselves, one a line.
    """
    if as_json:
        return JsonLines(stream)
    if stream.isatty() and importlib.util.find_spec("rich") is not None:
        return LiveTable(title, stream)
    return PlainTable(stream)


class PlainTable:
    """One line a reading: for logs, pipes and CI."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def add(self, reading: Mapping[str, Any], fps: float | None) -> None:
        shown = row(reading, fps)
        fields = "  ".join(f"{COLUMNS.get(name, name)} {value}" for name, value in shown.fields.items())
        texts = fields or " | ".join(shown.lines) or shown.reason
        count = f"{len(shown.lines)} {'line' if len(shown.lines) == 1 else 'lines'}"
        figures = f"confidence {figure(shown.confidence, 2)}  fps {figure(shown.fps, 1)}"
        print(f"{shown.camera}  #{shown.seq}  {count}  {figures}  {texts}", file=self._stream, flush=True)

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def __enter__(self) -> PlainTable:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class JsonLines(PlainTable):
    """The message itself, one a line."""

    def add(self, reading: Mapping[str, Any], fps: float | None) -> None:
        print(json_bytes(reading).decode(), file=self._stream, flush=True)


class LiveTable:
    """The last readings, drawn in place."""

    def __init__(self, title: str, stream: IO[str]) -> None:
        from rich.console import Console
        from rich.live import Live

        self._title = title
        self._console: Console = Console(file=stream)
        self._rows: deque[Row] = deque(maxlen=max(3, min(12, self._console.height - 8)))
        self._count = 0
        self._live: Live = Live(self._drawn(), console=self._console, refresh_per_second=8, transient=False)

    def add(self, reading: Mapping[str, Any], fps: float | None) -> None:
        self._count += 1
        self._rows.append(row(reading, fps))
        self._live.update(self._drawn())

    def note(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)

    def __enter__(self) -> LiveTable:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def _drawn(self) -> Table:
        from rich.box import ROUNDED, SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        roomy = self._console.width >= 130
        title = Text(f"{self._title}   {self._count} readings", "bold")
        table = Table(box=ROUNDED, title=title, expand=True)
        if not roomy:
            table.box, table.padding = SIMPLE_HEAD, 0
        table.add_column("camera", no_wrap=True)
        table.add_column("seq", justify="right", no_wrap=True)
        table.add_column("lines", justify="right", no_wrap=True)
        table.add_column("product", no_wrap=True, overflow="ellipsis", ratio=1)
        for name, heading in COLUMNS.items():
            if name != "product_name":
                table.add_column(heading, style="green", no_wrap=True, overflow="ellipsis", min_width=10, max_width=24)
        if roomy:
            table.add_column(OTHER, style="cyan", no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_column("conf", justify="right", no_wrap=True)
        table.add_column("FPS", justify="right", no_wrap=True, style="bold")
        for shown in self._rows:
            table.add_row(*(Text(cell) for cell in self._cells(shown, roomy)))
        return table

    def _cells(self, shown: Row, roomy: bool) -> list[str]:
        found = [shown.fields.get(name, NONE) for name in COLUMNS if name != "product_name"]
        other = [shown.other or NONE] if roomy else []
        figures = [figure(shown.confidence, 2), figure(shown.fps, 1)]
        return [shown.camera, str(shown.seq), str(len(shown.lines)), shown.headline, *found, *other, *figures]


def figure(value: float | None, digits: int) -> str:
    """A number, or `-` where there is none."""
    return NONE if value is None else f"{value:.{digits}f}"
