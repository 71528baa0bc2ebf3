"""Registry: a table entry `"package.module:Name"` becomes the object it names.

Tables (CAMERAS, BACKENDS, TRANSPORTS, SENSORS) are dict literals of such strings: they can be searched with
grep, nothing is imported before it is used, and a missing optional library hurts only whoever asks for it.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

from edge_agent.errors import ConfigError


def load(table: Mapping[str, str], name: str, what: str) -> Any:
    """The object registered as `name`; ConfigError names the choices, or the library to install.

    load(CAMERAS, "rtsp", "camera kind")
    """
    if name not in table:
        near = difflib.get_close_matches(name, table, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"unknown {what} {name!r}; choose one of {', '.join(sorted(table))}{hint}")
    module_name, _, attribute = table[name].partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.split(".")[0] == "edge_agent":
            raise  # our own module is broken inside: a bug, not a missing library
        raise ConfigError(f"{what} {name!r} needs the Python package {exc.name!r}, which is not installed") from exc
    return getattr(module, attribute)
