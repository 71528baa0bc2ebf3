from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edge_agent import registry
from edge_agent.errors import ConfigError
from edge_agent.items.motion import MotionTrigger
from edge_agent.items.triggers import TRIGGERS, open_trigger
from edge_agent.records import Frame
from edge_agent.settings.trigger import TriggerConfig
from tests.broker import DEADLINE_S, free_port


def until(condition: Callable[[], object], timeout_s: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.005)


def frame(at_mono: float, block_x: int | None = None) -> Frame:
    noise = np.random.default_rng(int(at_mono * 1000)).integers(0, 6, (120, 160, 3))
    image = (100 + noise).astype(np.uint8)
    if block_x is not None:
        image[30:90, block_x : block_x + 40] = 240
    return Frame("line1", int(at_mono * 1000), at_mono, at_mono, image)


@pytest.mark.parametrize("kind", sorted(TRIGGERS))
def test_every_kind_of_trigger_is_one_of_the_settings(kind: str) -> None:
    assert TriggerConfig(kind=kind, modbus_host="127.0.0.1").kind == kind


def test_no_trigger_is_none() -> None:
    assert open_trigger("line1", TriggerConfig(), lambda mono: None) is None


def test_message_triggers_with_the_time_at_which_it_came() -> None:
    fired: list[float] = []
    trigger = open_trigger("line1", TriggerConfig(kind="mqtt"), fired.append)
    assert trigger is not None
    trigger.hear(12.5)
    assert fired == [12.5]


def test_motion_triggers_once_for_an_item_that_comes_in_after_a_rest() -> None:
    fired: list[float] = []
    trigger = MotionTrigger("line1", TriggerConfig(kind="motion"), fired.append)
    positions: list[int | None] = [None] * 5 + [10, 40, 60, 60, 60, 60, 60, 60, 90, 120, None, None, None, None, None]
    for n, x in enumerate(positions):
        trigger.look(frame(n / 10, x))
    assert fired == [0.5, 1.3]


def test_missing_library_is_named_when_its_trigger_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRIGGERS, "gpio", "library_that_is_not_there.gpio:GpioTrigger")
    with pytest.raises(ConfigError, match="trigger 'gpio' needs the Python package 'library_that_is_not_there'"):
        open_trigger("line1", TriggerConfig(kind="gpio"), lambda mono: None)


class Line:
    """Edges of a line as the kernel tells them; raises what stands among them."""

    def __init__(self, told: list[list[float] | OSError]) -> None:
        self.told = deque(told)
        self.closed = threading.Event()

    def wait(self, timeout_s: float) -> list[float]:
        if not self.told:
            self.closed.wait(0.01)
            return []
        found = self.told.popleft()
        if isinstance(found, OSError):
            raise found
        return found

    def close(self) -> None:
        self.closed.set()


def test_gpio_edge_triggers_with_the_kernels_time_and_a_lost_line_is_taken_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("gpiod", reason="the extra gpio is not installed")
    from edge_agent.items import signal_thread
    from edge_agent.items.gpio import GpioTrigger

    monkeypatch.setattr(signal_thread, "AGAIN_S", 0.01)
    lines = [Line([[1.25], [], [2.5, 3.0], OSError("the chip has gone")]), Line([[4.0]])]
    opened = iter(lines)
    fired: list[float] = []
    trigger = GpioTrigger("line1", TriggerConfig(kind="gpio"), fired.append, open_line=lambda config: next(opened))
    try:
        until(lambda: len(fired) == 4)
    finally:
        trigger.close()
    assert fired == [1.25, 2.5, 3.0, 4.0]
    assert all(line.closed.is_set() for line in lines)


def test_gpio_chip_that_is_not_there_is_told_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gpiod", reason="the extra gpio is not installed")
    trigger = registry.load(TRIGGERS, "gpio", "trigger")(
        "line1", TriggerConfig(kind="gpio", gpio_chip=tmp_path / "gpiochip9"), lambda mono: None
    )
    try:
        until(lambda: trigger.fault is not None)
    finally:
        trigger.close()


class Controller:
    """A real Modbus TCP server with one unit, and a thread that it runs on."""

    def __init__(self, port: int) -> None:
        pytest.importorskip("pymodbus.simulator", reason="no pymodbus with a simulator")
        from pymodbus.server import ModbusTcpServer
        from pymodbus.simulator import DataType, SimData, SimDevice

        coils = SimData(0, count=16, values=False, datatype=DataType.BITS)
        nothing = SimData(0, count=16, values=0, datatype=DataType.REGISTERS)
        device = SimDevice(7, simdata=([coils], [coils], [nothing], [nothing]))
        self.requests = 0
        self._loop = asyncio.new_event_loop()
        self._served: list[ModbusTcpServer] = []

        def note(sending: bool, pdu: Any) -> Any:
            self.requests += not sending
            return pdu

        async def serve() -> None:
            server = ModbusTcpServer(device, address=("127.0.0.1", port), trace_pdu=note)
            self._served.append(server)
            await server.serve_forever()

        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(serve()), daemon=True)
        self._thread.start()
        until(lambda: reachable(port))

    def set_coil(self, value: bool) -> None:
        """Coil 3, from the next request on."""
        done = asyncio.run_coroutine_threadsafe(self._served[0].async_setValues(7, 5, 3, [value]), self._loop)
        done.result(DEADLINE_S)

    def wait_looked(self) -> None:
        """Until whoever polls has looked at what is now: it asks again once it has seen the answer before."""
        seen = self.requests
        until(lambda: self.requests >= seen + 2)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._served[0].shutdown(), self._loop).result(DEADLINE_S)
        self._thread.join(DEADLINE_S)


def reachable(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 0.2).close()
    except OSError:
        return False
    return True


def test_modbus_coil_triggers_each_time_that_it_becomes_true() -> None:
    port = free_port()
    config = TriggerConfig(
        kind="modbus", modbus_host="127.0.0.1", modbus_port=port, modbus_unit=7, modbus_coil=3, modbus_poll_ms=5
    )
    fired: list[float] = []
    with closing(Controller(port)) as controller:
        controller.set_coil(True)  # from before: no signal
        trigger = open_trigger("line1", config, fired.append)
        assert trigger is not None
        try:
            for count in (1, 2):
                controller.wait_looked()
                began = time.monotonic()
                controller.set_coil(False)
                controller.wait_looked()
                controller.set_coil(True)
                until(lambda count=count: len(fired) == count)  # type: ignore[misc]
                assert began < fired[-1] < time.monotonic()
        finally:
            trigger.close()
    assert len(fired) == 2
