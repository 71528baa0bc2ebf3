"""amqtt broker: `python -m edge_agent.demo.amqtt_broker HOST PORT` serves MQTT until SIGTERM, then ends with 0."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from typing import Any


def settings(host: str, port: int) -> dict[str, Any]:
    """One listener, no password: it is for this machine's loopback interface only."""
    return {
        "listeners": {"default": {"type": "tcp", "bind": f"{host}:{port}"}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    }


async def serve(host: str, port: int) -> None:
    """Serves until SIGTERM or SIGINT."""
    from amqtt.broker import Broker

    asked_to_end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, asked_to_end.set)
    broker = Broker(settings(host, port))
    await broker.start()
    print(f"amqtt serves MQTT on {host}:{port}", flush=True)
    await asked_to_end.wait()
    with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
        await asyncio.wait_for(broker.shutdown(), 3.0)  # a client that does not hang up must not hold us


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
