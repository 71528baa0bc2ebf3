"""YAML file: a strict file beside config.yaml, such as model.yaml or recipe.yaml, and the model that it makes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from edge_agent.errors import ConfigError
from edge_agent.settings.strict_text import MAX_BYTES
from edge_agent.settings.strict_yaml import parse

_Model = TypeVar("_Model", bound=BaseModel)


def read_values(path: Path, where: str) -> dict[str, Any]:
    """The mapping in the file; `where` names it in messages. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as exc:
        raise ConfigError(f"{where} cannot be read: {exc.strerror}; check its owner and mode") from exc
    return parse(text, where)


def made_of(model: type[_Model], values: Mapping[str, Any], where: str, whole: str) -> _Model:
    """Plain YAML values as a `model`; ConfigError names `where`, key and fault, `whole` what is no single key's."""
    try:
        # by way of JSON: strict mode then takes lists for tuples and still refuses "1" for 1
        return model.model_validate_json(json.dumps(values))
    except ValidationError as exc:
        faults = "; ".join(f"{'.'.join(map(str, e['loc'])) or whole}: {e['msg']}" for e in exc.errors())
        raise ConfigError(f"{where}: {faults}") from exc
    except (TypeError, ValueError) as exc:
        raise ConfigError(f"{where}: {exc}; expected text, numbers, lists and mappings only") from exc
