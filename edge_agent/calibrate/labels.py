"""Labels: what a frame truly says, from labels.jsonl beside the frames; one JSON object a line.

    {"file": "img_1.jpg", "lines": ["LOT A123", "EXP 2027-08"]}
    {"file": "img_2.jpg", "text": "S/N 4711"}

Lines for one file add up. Empty lines are left out.
"""

from __future__ import annotations

import json
from pathlib import Path

from edge_agent.errors import CalibrationRefused

LABELS_FILE = "labels.jsonl"
MAX_BYTES = 16 << 20
MAX_CHARS = 4096  # of one text

EXPECTED = 'expected {"file": name, "lines": [text, ...]} or {"file": name, "text": text}'


def read_labels(path: Path) -> dict[str, tuple[str, ...]]:
    """The true texts by file name; empty where the file does not exist. CalibrationRefused names line and fault."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return {}
    except OSError as exc:
        raise CalibrationRefused(f"{path} cannot be read: {exc.strerror}; check its owner and mode") from exc
    if len(content) > MAX_BYTES:
        raise CalibrationRefused(f"{path} has more than {MAX_BYTES} bytes; label fewer frames")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        at = content.count(b"\n", 0, exc.start) + 1
        raise CalibrationRefused(f"{path}, line {at}: is not UTF-8; save the file as UTF-8") from exc
    labels: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            name, lines = parse_label(line, f"{path}, line {number}")
            labels[name] = labels.get(name, ()) + lines
    return labels


def parse_label(line: str, where: str) -> tuple[str, tuple[str, ...]]:
    """File name and texts of one line; CalibrationRefused tells `where`."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise CalibrationRefused(f"{where}: is no JSON ({exc}); {EXPECTED}") from exc
    if not isinstance(value, dict):
        raise CalibrationRefused(f"{where}: is a {type(value).__name__}, not an object; {EXPECTED}")
    keys = set(value)
    if keys not in ({"file", "lines"}, {"file", "text"}):
        raise CalibrationRefused(f"{where}: has the keys {', '.join(sorted(map(repr, keys))) or 'none'}; {EXPECTED}")
    lines = value["lines"] if "lines" in value else [value["text"]]
    if not isinstance(value["file"], str) or not isinstance(lines, list) or not all(isinstance(t, str) for t in lines):
        raise CalibrationRefused(f"{where}: file and texts must be strings; {EXPECTED}")
    if any(len(text) > MAX_CHARS or not is_unicode(text) for text in (value["file"], *lines)):
        raise CalibrationRefused(f"{where}: a text is longer than {MAX_CHARS} characters or holds a lone surrogate")
    return value["file"], tuple(text for text in lines if text.strip())


def is_unicode(text: str) -> bool:
    """Whether the text has a UTF-8 form: no lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
