"""The section `pipeline` of agents that tests and soaks start: as little work as the labels that they read need."""

from __future__ import annotations

from typing import Any

LIGHT: dict[str, Any] = {
    "detector": "ppocrv4-mobile-det",
    "recogniser": "ppocrv4-mobile-rec",
    "encoder": None,
    "detector_min_side_px": 320,
    "detector_max_side_px": 640,
}
