"""BoundCache: what a calibration computed and need not compute again, as long as nothing differs that it depends on."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edge_agent.errors import CalibrationRefused
from edge_agent.files import write_atomically

log = logging.getLogger(__name__)


class BoundCache:
    """One JSON file: `{"facts": ..., "value": ...}`; a value bound to other facts is as good as none.

    `facts` by name: hashes of model, feeds and recipe, versions, device.
    """

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        self.path = path
        self.facts: dict[str, Any] = json.loads(json.dumps(dict(facts), sort_keys=True))  # as it will be read

    @property
    def key(self) -> str:
        """sha256 over the facts, for what is derived from the value."""
        return hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode()).hexdigest()

    def get(self) -> Any:
        """The value; None where there is none, or where it is bound to something else: then it is logged to what."""
        try:
            kept = json.loads(self.path.read_bytes())
            facts, value = kept["facts"], kept["value"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as exc:
            log.warning("%s cannot be used and is computed afresh: %s: %s", self.path.name, type(exc).__name__, exc)
            return None
        if facts == self.facts:
            return value
        theirs = facts if isinstance(facts, dict) else {}
        names = theirs.keys() | self.facts.keys()
        differing = sorted(name for name in names if theirs.get(name) != self.facts.get(name))
        log.info("%s is computed afresh: %s differ", self.path.name, ", ".join(differing))
        return None

    def put(self, value: Any) -> None:
        """Keeps a value of plain types. Raises CalibrationRefused where it cannot be written."""
        content = json.dumps({"facts": self.facts, "value": value}, allow_nan=False).encode()
        try:
            write_atomically(self.path, content)
        except OSError as exc:
            raise CalibrationRefused(
                f"{self.path} cannot be written: {exc.strerror}; free space or check the owner"
            ) from exc
