"""Expectation: what the items of one camera must say, with an id that every result carries."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from edge_agent.patterns import Pattern
from edge_agent.records import json_bytes
from edge_agent.settings.cameras import CameraConfig
from edge_agent.settings.expected import MAX_RULES, Rule

pattern_of = lru_cache(maxsize=MAX_RULES)(Pattern.parse)  # it is asked at every frame


@dataclass(frozen=True)
class Expectation:
    """`rules` for all that is read of an item, `rois` more of them for what is read in a region, by its name."""

    id: str
    rules: tuple[Rule, ...] = ()
    rois: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rules) or any(self.rois.values())

    def to_json(self) -> dict[str, Any]:
        """As a message writes it."""
        return {"id": self.id, **rules_to_json(self.rules, self.rois)}

    def of_region(self, region: str) -> Expectation:
        """What an item that one region shows must say: the camera's rules and the region's own."""
        return Expectation(self.id, self.rules, {region: self.rois.get(region, ())})

    def masks(self, region: str | None) -> Mapping[str, Pattern]:
        """The patterns of fields in a region (None: the whole picture), for the decoder to read by."""
        rules = (*self.rules, *(() if region is None else self.rois.get(region, ())))
        return {
            rule.name.rpartition(".")[2]: pattern_of(rule.pattern)
            for rule in rules
            if rule.pattern is not None and rule.name is not None and not rule.name.startswith("code.")
        }


def of_camera(camera: CameraConfig) -> Expectation | None:
    """What the settings expect; None where they expect nothing. The id is made of the rules: `config-` and eight
    digits."""
    rois = {name: roi.expected for name, roi in camera.rois.items() if roi.expected}
    if not camera.expected and not rois:
        return None
    return Expectation(f"config-{digest(camera.expected, rois)[:8]}", camera.expected, rois)


def digest(rules: Iterable[Rule], rois: Mapping[str, Iterable[Rule]]) -> str:
    """What makes two sets of rules the same: a sha256 of them, hexadecimal."""
    return hashlib.sha256(json_bytes(rules_to_json(rules, dict(sorted(rois.items()))))).hexdigest()


def rules_to_json(rules: Iterable[Rule], rois: Mapping[str, Iterable[Rule]]) -> dict[str, Any]:
    """Rules, those of regions too, as a message writes them."""
    return {
        "expected": [rule_to_json(rule) for rule in rules],
        "rois": {name: [rule_to_json(rule) for rule in of_region] for name, of_region in rois.items()},
    }


def rule_to_json(rule: Rule) -> dict[str, object]:
    """A rule as it is written down, without the keys that it leaves out."""
    return rule.model_dump(mode="json", exclude_none=True)
