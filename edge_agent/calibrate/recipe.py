"""Recipe: how a model is calibrated and what the result must fulfil, from calibration/<model>/recipe.yaml.

A key that is missing has the default that stands here; a model without a recipe is calibrated by the defaults.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from edge_agent.settings.yaml_file import made_of, read_values

RECIPE_FILE = "recipe.yaml"
DEFAULT_DIRECTORY = Path("calibration")

Method = Literal["minmax", "percentile", "entropy"]
METHODS: tuple[Method, ...] = ("minmax", "percentile", "entropy")
Share = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """Base of every block: frozen, strict types, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, allow_inf_nan=False)


class Gates(Section):
    """What INT8 must fulfil beside the float engine, on frames that were not calibrated on."""

    max_cer_increase: Share = 0.005
    """Of the character error rate, 0 to 1, of recognised text: 0.005 is half a point."""
    min_box_recall: Share = 0.99
    """Share of the float engine's boxes that are found again (IoU >= 0.5)."""
    min_box_precision: Share = 0.99
    """Share of the INT8 engine's boxes that the float engine found as well."""
    min_class_agreement: Share = 0.99
    """Share of lines whose nearest class of meaning stays the same."""
    min_cosine: Share = 0.95
    """Mean cosine of sentence vectors to the float engine's."""
    max_changed_fields: Share = 0.05
    """Share of field values of whole readings that may come out otherwise."""
    min_speedup: Annotated[float, Field(ge=0, le=100)] = 1.05
    """Float time over INT8 time, both measured in one run on this device; less is not worth the risk."""


class Recipe(Section):
    """How one model is calibrated."""

    method: Literal["auto", "minmax", "percentile", "entropy"] = "auto"
    """How ranges come from what was seen; auto: the one that does least damage."""
    percentile: Annotated[float, Field(gt=50, lt=100)] = 99.999
    """Share of values, %, that the range of method percentile covers."""
    smoothing: Share | None = None
    """How much of what stands out among the channels before a matrix product its weights take up; none: nothing."""
    float_groups: tuple[str, ...] = ()
    """Groups of nodes that stay float, beside those that always do; `*` at the end stands for any ending."""
    quantised_groups: tuple[str, ...] = ()
    """Groups that stay float by default and are to be tried all the same; `*` at the end stands for any ending."""
    float_nodes: tuple[str, ...] = ()
    """Nodes that stay float, by the name of their first output."""
    most_feeds: Annotated[int, Field(ge=1, le=100_000)] = 400
    """Inputs of the model that are recorded at most."""
    most_trials: Annotated[int, Field(ge=1, le=1000)] = 32
    """Sets of groups that are tried at most."""
    timing_s: Annotated[float, Field(gt=0, le=600)] = 12.0
    """How long the result and the float engine are timed by turns, s."""
    gates: Gates = Gates()
    """What the result must fulfil."""


def load_recipe(model: str, directories: Sequence[Path]) -> Recipe:
    """The recipe of `model` from the first of the folders that has one, else the defaults.

    Raises ConfigError naming file, key and fault.
    """
    for directory in directories:
        path = directory / model / RECIPE_FILE
        if path.is_file():
            return parse_recipe(read_values(path, str(path)), str(path))
    return Recipe()


def parse_recipe(values: Mapping[str, Any], where: str) -> Recipe:
    """A Recipe from plain YAML values; ConfigError names `where`, key and fault."""
    return made_of(Recipe, values, where, "recipe")


def shipped_directories() -> tuple[Path, ...]:
    """Where recipes that come with the product may lie: beside the source, or where pip put them."""
    return (
        Path(__file__).resolve().parents[2] / DEFAULT_DIRECTORY,
        Path(sys.prefix) / "share" / "edge-agent" / DEFAULT_DIRECTORY,
    )
