"""Registry: names become objects, and a wrong name gets help."""

from __future__ import annotations

import pytest

from edge_agent import registry
from edge_agent.errors import ConfigError

TABLE = {"queue": "queue:Queue", "absent": "no_such_library_here:Thing"}


def test_known_name_gives_the_object() -> None:
    assert registry.load(TABLE, "queue", "thing").__name__ == "Queue"


def test_unknown_name_lists_choices_and_the_near_one() -> None:
    with pytest.raises(ConfigError, match=r"unknown thing 'queu'.*absent, queue.*did you mean 'queue'"):
        registry.load(TABLE, "queu", "thing")


def test_missing_library_is_named() -> None:
    with pytest.raises(ConfigError, match="no_such_library_here.*not installed"):
        registry.load(TABLE, "absent", "thing")
