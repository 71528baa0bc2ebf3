"""The table: every transport it names can be made from a whole configuration."""

from __future__ import annotations

import typing

import pytest

from edge_agent import messages, registry
from edge_agent.config import Config
from edge_agent.transports import TRANSPORTS
from edge_agent.transports.base import Transport

WILL = messages.status("offline", reason="lost", at=None, started_at=1.0)


@pytest.mark.parametrize("kind", sorted(TRANSPORTS))
def test_every_transport_of_the_table_is_made_from_a_configuration(kind: str) -> None:
    transport: Transport = registry.load(TRANSPORTS, kind, "transport").from_config(Config(), "dev-1", WILL, list)
    assert transport.inbound.empty()
    assert transport.cause is None or "not connected" in transport.cause
    transport.close(None, 0.1)


def test_configuration_offers_just_the_transports_of_the_table() -> None:
    kinds = typing.get_args(Config.model_fields["transport"].annotation)
    assert sorted(kinds) == sorted(TRANSPORTS)
