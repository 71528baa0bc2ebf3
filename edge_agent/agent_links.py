"""Links: what joins the agent to the world outside, from before there are engines on until after the last reading."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from edge_agent import registry
from edge_agent.board import Board
from edge_agent.clock import DeviceClock
from edge_agent.config import Config
from edge_agent.errors import EdgeAgentError, in_one_line
from edge_agent.events import Events
from edge_agent.last_words import TIDY, LastWords
from edge_agent.outbox.base import Outbox
from edge_agent.outbox.opening import open_outbox
from edge_agent.publisher import Publisher
from edge_agent.records import Message
from edge_agent.remote.control import RemoteAccess, RemoteControl
from edge_agent.telemetry.history import keeping_events
from edge_agent.transports import TRANSPORTS
from edge_agent.transports.base import Transport
from edge_agent.web_site import AgentWebSite, web_page

log = logging.getLogger(__name__)

STOP_PUBLISHER_S = 5.0


@dataclass(frozen=True)
class Links:
    """`put` takes messages to the outbox, past the page where there is one."""

    clock: DeviceClock
    events: Events
    outbox: Outbox
    put: Callable[[Message], None]
    board: Board
    publisher: Publisher
    page: AgentWebSite | None
    remote: RemoteControl | None


@contextmanager
def connected(
    config: Config, models_dir: Path, access: RemoteAccess | None, words: LastWords | None
) -> Iterator[Links]:
    """The agent says how it is, and hears what it is asked, inside."""
    with ExitStack() as opened:
        clock, events = DeviceClock(), Events(opened.enter_context(keeping_events(config)))
        tell_of_run_before(words, events)
        outbox = open_outbox(config.outbox, clock, events.say)
        opened.callback(outbox.close)
        board = Board(outbox)
        before = None if words is None else words.before
        page = AgentWebSite(config, board, models_dir, access, before) if config.web.enabled else None
        put = outbox.put if page is None else page.overhearing(outbox.put)
        events.attach(put)
        publisher = opened.enter_context(publishing(config, outbox, board, events))
        board.say_health("starting", reason="loading models")
        if page is not None:
            opened.enter_context(web_page(page, publisher.inbound, events.say))
        remote = None
        if access is not None:
            now = clock.unix_if_trusted
            remote = opened.enter_context(RemoteControl(access, publisher.inbound, board.say, put, now))
        yield Links(clock, events, outbox, put, board, publisher, page, remote)


def tell_of_run_before(words: LastWords | None, events: Events) -> None:
    """Why the run before this one ended, where there was one: to the log, and as an event."""
    if words is not None and words.before is not None:
        log.log(logging.INFO if words.before.kind in TIDY else logging.WARNING, "%s", words.before.text)
        events.say(words.before.kind, words.before.text)


@contextmanager
def publishing(config: Config, outbox: Outbox, board: Board, events: Events) -> Iterator[Publisher]:
    """What is put into the outbox leaves, inside; at the end the rest is offered, and a farewell said."""
    make = registry.load(TRANSPORTS, config.transport, "transport")
    transport: Transport = make.from_config(config, config.device(), board.will(), board.birth)
    settings = config.outbox
    publisher = Publisher(
        outbox, transport, settings.historical_after_s, replay_per_s=settings.replay_per_s, tell=events.say
    )
    publisher.start()
    farewell = board.farewell
    try:
        yield publisher
    except EdgeAgentError as exc:
        board.say_fault(in_one_line(exc))
        farewell = partial(board.farewell, "fault")
        raise
    finally:
        publisher.stop(farewell(), STOP_PUBLISHER_S)
