"""FieldTable: which fields there are, how they are named and what they look like: ours and those of the plant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edge_agent.patterns import Pattern
from edge_agent.settings.fields import FieldsConfig
from edge_agent.stages.field_prototypes import PROTOTYPES
from edge_agent.stages.field_values import KINDS, Kind
from edge_agent.stages.key_phrases import VALUE_FIELDS, KeyTable, key_table


@dataclass(frozen=True, eq=False)
class FieldTable:
    """Of each field what its value is, its key phrases, its examples for the encoder, and its mask if it has one."""

    kinds: Mapping[str, Kind]
    keys: KeyTable
    prototypes: Mapping[str, tuple[str, ...]]
    masks: Mapping[str, Pattern]


def field_table(config: FieldsConfig) -> FieldTable:
    """The table that `config` describes; a field of ours keeps its kind of value. ConfigError for a wrong mask."""
    own = {name: custom.value for name, custom in config.custom.items() if name not in KINDS}
    kinds: dict[str, Kind] = {**KINDS, **own}
    examples = {name: custom.prototypes for name, custom in config.custom.items() if custom.prototypes}
    return FieldTable(
        kinds=kinds,
        keys=key_table(
            {name: custom.keys for name, custom in config.custom.items()},
            VALUE_FIELDS | {name for name, kind in own.items() if kind != "text"},
        ),
        prototypes={**PROTOTYPES, **{name: (*PROTOTYPES.get(name, ()), *more) for name, more in examples.items()}},
        masks={name: Pattern.parse(custom.mask) for name, custom in config.custom.items() if custom.mask is not None},
    )
