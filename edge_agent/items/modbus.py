"""ModbusTrigger: a coil of a controller that becomes true, asked for over Modbus TCP (the Python package pymodbus)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from pymodbus.client import ModbusTcpClient
from pymodbus.exceptions import ModbusException

from edge_agent.items.signal_thread import SignalTrigger

TIMEOUT_S = 1.0


class ModbusTrigger(SignalTrigger):
    """Looks at the coil every `modbus_poll_ms`; true when it is first seen is no signal, for it may be from before."""

    @contextmanager
    def signals(self) -> Iterator[Iterator[list[float]]]:
        config = self.config
        assert config.modbus_host is not None
        client = ModbusTcpClient(config.modbus_host, port=config.modbus_port, timeout=TIMEOUT_S, retries=0)
        try:
            if not client.connect():
                raise ConnectionError(f"{config.modbus_host}:{config.modbus_port} cannot be reached")
            yield self._turns(client)
        finally:
            client.close()

    def _turns(self, client: ModbusTcpClient) -> Iterator[list[float]]:
        before = True
        while True:
            asked_mono = time.monotonic()
            now = self._ask(client)
            yield [asked_mono] if now and not before else []
            before = now
            time.sleep(max(0.0, self.config.modbus_poll_ms / 1e3 - (time.monotonic() - asked_mono)))

    def _ask(self, client: ModbusTcpClient) -> bool:
        config = self.config
        try:
            answer = client.read_coils(config.modbus_coil, count=1, device_id=config.modbus_unit)
        except ModbusException as exc:
            raise ConnectionError(str(exc)) from exc
        if answer.isError():
            raise ConnectionError(
                f"the controller refuses coil {config.modbus_coil} of unit {config.modbus_unit}: {answer}"
            )
        return bool(answer.bits[0])
