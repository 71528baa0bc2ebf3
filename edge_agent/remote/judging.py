"""Judging: the text that is being judged, noted on disk meanwhile, so that none ends one process after the other.

A retained wish comes again at each connect. If judging it ends the process, by an error that nobody foresaw, by taking
all memory or all time, the next one would end in the same way, for ever.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from edge_agent.errors import in_one_line
from edge_agent.files import write_atomically
from edge_agent.remote.desired import text_name

FILE = "judging.json"
PRIVATE = 0o600
MAX_ERROR_CHARS = 500


class Judging:
    """The note in `folder`. `harmless`: sha256 of the text that runs already, which is neither looked up nor noted.

    It needs not outlast a power cut, which is no fault of a text: so it costs no wait for the disk. Where the disk
    takes nothing there is no note.
    """

    def __init__(self, folder: Path, harmless: str | None = None) -> None:
        self._path = folder / FILE
        self._harmless = harmless

    def fault(self, text: bytes, most: int) -> str | None:
        """Why the text is not to be judged: an error came of it, or `most` processes ended without a word while they
        judged it; None where it may be."""
        name = text_name(text)
        begun, error = (0, None) if name == self._harmless else self._noted(name)
        if error is not None:
            return f"judging it has ended the process: {error}"
        return f"{begun} processes ended while they judged it" if begun >= most else None

    @contextmanager
    def of(self, text: bytes) -> Iterator[None]:
        """Inside, `text` is judged."""
        name = text_name(text)
        if name == self._harmless:
            yield
            return
        begun = self._noted(name)[0] + 1
        self._note(name, begun)
        try:
            yield
        except Exception as exc:  # it ends the process; the next one is to know of what
            self._note(name, begun, f"{type(exc).__name__}: {in_one_line(exc, MAX_ERROR_CHARS)}")
            raise
        self._harmless = name
        with suppress(OSError):
            self._path.unlink()

    def _noted(self, name: str) -> tuple[int, str | None]:
        """How many processes began to judge this text and did not end it, and of which error one of them ended."""
        try:
            note = json.loads(self._path.read_bytes())
            if note["text"] != name:
                return 0, None
            return int(note["begun"]), None if note["error"] is None else str(note["error"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0, None

    def _note(self, name: str, begun: int, error: str | None = None) -> None:
        content = json.dumps({"text": name, "begun": begun, "error": error}).encode()
        with suppress(OSError):
            write_atomically(self._path, content, PRIVATE, durable=False)
