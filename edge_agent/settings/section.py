"""Section: what every block of settings is made of, and how a block says that its keys disagree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

from edge_agent.settings.validation import KEYS_DISAGREE


class Section(BaseModel):
    """Base of every block: frozen, strict types, unknown keys refused, input values never echoed."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


def refuse(problems: Iterable[tuple[str, str]]) -> None:
    """Raises one pydantic error that carries every (key, what is wrong with it), if there are any."""
    listed = list(problems)
    if listed:
        text = "; ".join(f"{key}: {why}" for key, why in listed)
        raise PydanticCustomError(KEYS_DISAGREE, "{text}", {"text": text, "problems": listed})


def minimum_above_maximum(section: Section, low: str, high: str) -> Iterator[tuple[str, str]]:
    """The problem of two keys, for `refuse`, of which `low` must not be above `high`."""
    least, most = getattr(section, low), getattr(section, high)
    if least > most:
        yield low, f"{least:g} is greater than {high}, {most:g}"


def one_without_other(section: Section, first: str, second: str) -> Iterator[tuple[str, str]]:
    """The problem of two keys, for `refuse`, of which one alone is set."""
    if (getattr(section, first) is None) != (getattr(section, second) is None):
        absent = first if getattr(section, first) is None else second
        yield absent, f"is missing; {first} and {second} go together"
