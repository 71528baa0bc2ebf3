"""Strict text: bytes become characters, or a refusal that names line and cure; what YAML and JSON begin with."""

from __future__ import annotations

import codecs
import re

from edge_agent.settings.problems import KeyPath, Problem

MAX_BYTES = 65_536
MAX_DEPTH = 20
MAX_DIGITS = 18  # of a whole number: fits int64; longer ones are identifiers, and those are text

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")


class Refused(Exception):
    """Ends the reading: there is no document."""

    def __init__(self, line: int, text: str, path: KeyPath = ()) -> None:
        super().__init__(text)
        self.problem = Problem(line, path, text)


def decoded(raw: bytes, max_bytes: int) -> str:
    """`raw` as text: UTF-8, or what its byte order mark says. Raises Refused."""
    if len(raw) > max_bytes:
        raise Refused(0, f"is larger than {max_bytes} bytes; expected a short text of settings")
    mark, encoding = next((bom for bom in _BOMS if raw.startswith(bom[0])), (b"", "utf-8"))
    body = raw[len(mark) :]
    try:
        return body.decode(encoding)
    except UnicodeDecodeError as exc:
        line = body[: exc.start].decode(encoding, "replace").count("\n") + 1
        byte = body[exc.start]
        raise Refused(line, f"byte 0x{byte:02x} is not {encoding.upper()}; save the file as UTF-8") from None


def check_characters(text: str) -> None:
    """Raises Refused for the first control character."""
    found = CONTROL.search(text)
    if found is None:
        return
    line = text.count("\n", 0, found.start()) + 1
    advice = "save the file as UTF-8" if found.group() == "\0" else "remove it"
    raise Refused(line, f"control character U+{ord(found.group()):04X}; {advice}")
