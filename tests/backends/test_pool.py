"""The pool's books: hits, misses, high water and the budget, over pools that count bytes as pycuda's do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from edge_agent.backends.pool import Pool
from edge_agent.errors import ConfigError
from tests.backends.fake_cuda import FakeDevicePool, FakePageLockedPool


@pytest.fixture
def pool() -> Pool:
    return Pool(FakeDevicePool(), FakePageLockedPool())


def test_freed_block_is_handed_out_again_and_counts_as_a_hit(pool: Pool) -> None:
    block = pool.device(1000, "detector")
    address = int(block)
    del block
    assert int(pool.device(1000, "detector")) == address
    counters = pool.counters()["device"]
    assert (counters.hits, counters.misses) == (1, 1)


def test_held_memory_is_told_from_memory_in_use(pool: Pool) -> None:
    kept, given_back = pool.device(4096, "a"), pool.device(1024, "b")
    del given_back
    counters = pool.counters()["device"]
    assert counters.active_bytes == 4096
    assert counters.held_bytes == counters.high_water_bytes >= 5120
    del kept


def test_high_water_stays_after_blocks_are_given_back(pool: Pool) -> None:
    arrays = [pool.page_locked(1000) for _ in range(3)]
    arrays.clear()
    pool.close()
    counters = pool.counters()["page_locked"]
    assert counters.held_bytes == counters.active_bytes == 0
    assert counters.high_water_bytes >= 3000


def test_page_locked_memory_is_a_writable_byte_array(pool: Pool) -> None:
    array = pool.page_locked(10)
    assert (array.dtype, array.shape) == (np.uint8, (10,))
    array[:] = 7


def test_budget_says_who_asks_for_how_much() -> None:
    pool = Pool(FakeDevicePool(), FakePageLockedPool(), budget_bytes=100 << 20)
    pool.take_outside(30 << 20, "detector")
    block = pool.device(40 << 20, "scratch")
    with pytest.raises(ConfigError) as refusal:
        pool.device(50 << 20, "recogniser")
    for part in ("recogniser asks for 50 MiB", "budget of 100 MiB", "detector 30 MiB", "scratch 40 MiB"):
        assert part in str(refusal.value)
    pool.release("detector")
    pool.device(50 << 20, "recogniser")
    del block


def test_counters_are_plain_numbers_for_telemetry(pool: Pool) -> None:
    pool.device(100, "a")
    values: Sequence[Any] = list(pool.counters()["device"].to_json().values())
    assert all(type(value) is int for value in values)
