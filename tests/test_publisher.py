"""Publisher: what is delivered, what is offered again and in which order, what is given up; then a real Mosquitto."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from edge_agent import messages
from edge_agent.clock import DeviceClock
from edge_agent.outbox.base import Outbox
from edge_agent.outbox.disk import DiskOutbox, Limits
from edge_agent.outbox.memory import MemoryOutbox
from edge_agent.publisher import POISON_AFTER, Publisher
from edge_agent.records import Message, Reading
from edge_agent.settings.mqtt import MqttConfig
from edge_agent.transports.base import Backoff, Outcome, Transport
from edge_agent.transports.mqtt import MqttTransport
from tests.broker import DEADLINE_S, Broker, Observer, Proxy, free_port, wait_until
from tests.fakes import FakeTransport

WILL = messages.status("offline", reason="lost", at=None, started_at=1.0)
BIRTH = messages.status("online", reason=None, at=2.0, started_at=1.0)
STOPPED = messages.status("stopped", reason="shutdown", at=3.0, started_at=1.0)
RESULTS = "edge/dev-1/+/result"


def result(n: int, camera: str = "cam", size: int = 0) -> Message:
    return Message(f"{camera}/result", json.dumps({"id": n, "pad": "x" * size}).encode())


def ids(sent: list[Message]) -> list[int]:
    return [json.loads(message.payload)["id"] for message in sent]


def heard_id(payload: bytes) -> int:
    return int(json.loads(payload)["id"])


def in_flight(transport: FakeTransport, count: int) -> bool:
    return len(transport.in_flight) == count


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


Run = Callable[..., Publisher]


@pytest.fixture
def run() -> Iterator[Run]:
    """Starts publishers that are stopped after the test."""
    publishers: list[Publisher] = []

    def run(outbox: Outbox, transport: Transport, **keys: Any) -> Publisher:
        publisher = Publisher(outbox, transport, **{"backoff": Backoff(0.005, 0.02), **keys})
        publishers.append(publisher)
        publisher.start()
        return publisher

    yield run
    for publisher in publishers:
        publisher.stop(None, 0.2)


@pytest.fixture(params=["memory", "disk"])
def outbox(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Outbox]:
    if request.param == "memory":
        yield MemoryOutbox(max_bytes=10_000_000, max_age_s=3600)
        return
    outbox = DiskOutbox(tmp_path / "outbox.db", DeviceClock(), lambda kind, text: None, Limits(flush_s=0.002))
    yield outbox
    outbox.close()


def test_confirmed_message_leaves_the_outbox_and_no_other(outbox: Outbox, run: Run) -> None:
    transport = FakeTransport()
    publisher = run(outbox, transport)
    transport.connect()
    outbox.put(result(1))
    wait_until(lambda: len(transport.sent) == 1, "the offer")
    assert outbox.stats().depth == 1
    assert publisher.stats().in_flight == 1
    transport.settle_all()
    wait_until(lambda: outbox.stats().depth == 0, "an empty outbox")
    assert publisher.stats().delivered == 1
    assert publisher.stats().connected


def test_nothing_is_offered_while_not_connected(outbox: Outbox, run: Run) -> None:
    transport = FakeTransport()
    publisher = run(outbox, transport)
    for n in range(5):
        outbox.put(result(n))
    transport.connect()
    wait_until(lambda: len(transport.sent) == 5, "five offers")
    transport.settle_all()
    wait_until(lambda: outbox.stats().depth == 0, "an empty outbox")
    assert ids(transport.sent) == [0, 1, 2, 3, 4]
    assert publisher.stats().failed == 0


def test_window_of_the_transport_is_kept(outbox: Outbox, run: Run) -> None:
    transport = FakeTransport(window=2)
    run(outbox, transport)
    transport.connect()
    for n in range(6):
        outbox.put(result(n))
    for _ in range(3):
        wait_until(lambda: len(transport.in_flight) == 2, "a full window")
        assert outbox.stats().claimed == 2
        transport.settle_all()
    wait_until(lambda: outbox.stats().depth == 0, "an empty outbox")
    assert ids(transport.sent) == [0, 1, 2, 3, 4, 5]


def test_lost_messages_go_again_before_newer_ones(outbox: Outbox, run: Run) -> None:
    transport = FakeTransport(window=3)
    publisher = run(outbox, transport)
    transport.connect()
    for n in range(5):
        outbox.put(result(n))
    wait_until(lambda: len(transport.sent) == 3, "a full window")
    transport.disconnect()
    outbox.put(result(5))
    transport.connect()
    wait_until(lambda: len(transport.sent) == 6, "the lost ones again")
    transport.settle_all()
    wait_until(lambda: len(transport.sent) == 9, "the rest")
    transport.settle_all()
    wait_until(lambda: outbox.stats().depth == 0, "an empty outbox")
    assert ids(transport.sent) == [0, 1, 2, 0, 1, 2, 3, 4, 5]
    assert publisher.stats().retries == 3


def test_connection_renewed_between_two_offers_keeps_the_order(outbox: Outbox, run: Run) -> None:
    transport = FakeTransport()

    def renew(message: Message) -> None:
        if ids([message]) == [2] and len(transport.sent) == 2:
            transport.disconnect()  # on the publisher's own thread, in the middle of a batch
            transport.connect()

    transport.refuse = renew
    run(outbox, transport)
    for n in range(4):
        outbox.put(result(n))
    transport.connect()
    wait_until(lambda: len(transport.sent) == 6, "all again")
    assert ids(transport.sent) == [0, 1, 0, 1, 2, 3]


def test_refused_message_is_given_up_counted_and_blocks_nothing(
    outbox: Outbox, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    transport = FakeTransport()
    transport.refuse = lambda message: "too large" if ids([message]) == [1] else None
    publisher = run(outbox, transport)
    transport.connect()
    for n in range(3):
        outbox.put(result(n))
    wait_until(lambda: len(transport.sent) == 2, "the other two")
    transport.settle_all()
    wait_until(lambda: outbox.stats().depth == 0, "an empty outbox")
    assert ids(transport.sent) == [0, 2]
    assert outbox.stats().dropped == {"refused": 1}
    assert publisher.stats().dead_lettered == 1
    assert "cam/result given up (refused; 1 so far): too large" in caplog.text


def test_poison_that_ends_each_connection_is_found_alone_and_given_up(outbox: Outbox, run: Run) -> None:
    transport = FakeTransport(window=3)
    publisher = run(outbox, transport)
    for n in range(4):
        outbox.put(result(n))
    for company in (3, 3, *(1,) * (POISON_AFTER - 2)):  # with others at first, then alone
        transport.connect()
        wait_until(partial(in_flight, transport, company), f"{company} offers")
        transport.disconnect()
        wait_until(lambda: publisher.stats().in_flight == 0, "the loss taken")
    transport.connect()
    wait_until(lambda: len(transport.in_flight) == 3, "those behind it")
    transport.settle_all()
    wait_until(lambda: outbox.stats().depth == 0, "an empty outbox")
    assert ids(transport.sent[-3:]) == [1, 2, 3]
    assert outbox.stats().dropped == {"poison": 1}


def test_unlucky_message_that_gets_through_is_no_poison(outbox: Outbox, run: Run) -> None:
    transport = FakeTransport(window=3)
    publisher = run(outbox, transport)
    for round_ in range(4):
        outbox.put(result(round_))
        for _ in range(POISON_AFTER - 1):
            transport.connect()
            wait_until(lambda: len(transport.in_flight) == 1, "the offer")
            transport.disconnect()
            wait_until(lambda: publisher.stats().in_flight == 0, "the loss taken")
        transport.connect()
        wait_until(lambda: len(transport.in_flight) == 1, "the offer")
        transport.settle_all()
        wait_until(lambda: outbox.stats().depth == 0, "the delivery")
    assert outbox.stats().dropped == {}


def test_message_that_the_other_side_cannot_take_now_backs_off(outbox: Outbox, run: Run) -> None:
    delays: list[float] = []

    def no_jitter(low: float, high: float) -> float:
        delays.append(high)
        return high

    transport = FakeTransport()
    run(outbox, transport, backoff=Backoff(0.001, 0.004, no_jitter))
    transport.connect()
    outbox.put(result(1))
    for _ in range(3):
        wait_until(partial(in_flight, transport, 1), "the offer")
        transport.settle_all(Outcome.LOST)  # quota exceeded: the connection stays
    wait_until(lambda: len(transport.sent) == 4, "the fourth offer")
    transport.settle_all()
    wait_until(lambda: outbox.stats().depth == 0, "an empty outbox")
    assert len(delays) == 3


def test_result_that_waited_is_marked_historical(run: Run) -> None:
    clock = Clock()
    outbox = MemoryOutbox(max_bytes=10_000_000, max_age_s=3600, clock=clock)
    transport = FakeTransport()
    run(outbox, transport, clock=clock, historical_after_s=10.0)
    outbox.put(messages.result(Reading("cam", 1, 5.0, 64, 48)))
    clock.now += 11
    outbox.put(messages.result(Reading("cam", 2, 6.0, 64, 48)))
    transport.connect()
    wait_until(lambda: len(transport.sent) == 2, "both")
    bodies = [json.loads(message.payload) for message in transport.sent]
    assert [(body["seq"], body["historical"]) for body in bodies] == [(2, False), (1, True)]
    assert bodies[1]["captured_at"] == "1970-01-01T00:00:05.000Z"


def aged(count: int, **settings: Any) -> tuple[MemoryOutbox, Clock]:
    """An outbox in which so many readings have waited for long, and the clock by which they have."""
    clock = Clock()
    outbox = MemoryOutbox(max_bytes=10_000_000, max_age_s=3600, clock=clock, **settings)
    for n in range(count):
        outbox.put(messages.result(Reading("cam", n, 5.0, 64, 48)))
    clock.now += 600
    return outbox, clock


def seqs(sent: list[Message]) -> list[int]:
    return [json.loads(message.payload)["seq"] for message in sent]


def test_backlog_goes_no_faster_than_allowed_and_live_readings_are_not_held_back_by_it(run: Run) -> None:
    outbox, clock = aged(1000)
    transport = FakeTransport(window=5000)
    began = time.monotonic()
    run(outbox, transport, clock=clock, replay_per_s=200.0)
    transport.connect()
    wait_until(lambda: len(transport.sent) >= 60, "the first of the backlog")
    outbox.put(messages.result(Reading("cam", 5000, 5.0, 64, 48)))
    wait_until(lambda: 5000 in seqs(transport.sent), "the live one")
    live_at = seqs(transport.sent).index(5000)
    wait_until(lambda: len(transport.sent) >= 131, "more of the backlog")
    most = 50 + 200 * (time.monotonic() - began)  # what was saved up, and since
    old = [seq for seq in seqs(transport.sent) if seq != 5000]
    assert old == list(range(len(old)))
    assert len(old) <= most + 5
    assert live_at < 130


def test_backlog_without_a_limit_goes_as_fast_as_the_window_lets_it(run: Run) -> None:
    outbox, clock = aged(1000)
    transport = FakeTransport(window=5000)
    run(outbox, transport, clock=clock)
    transport.connect()
    wait_until(lambda: len(transport.sent) == 1000, "all of it")
    assert all(json.loads(message.payload)["historical"] for message in transport.sent)


def test_without_live_first_a_live_reading_waits_for_the_backlog(run: Run) -> None:
    outbox, clock = aged(40, live_first=False)
    outbox.put(messages.result(Reading("cam", 5000, 5.0, 64, 48)))
    transport = FakeTransport(window=7)
    run(outbox, transport, clock=clock)
    transport.connect()

    def all_sent() -> bool:
        transport.settle_all()
        return len(transport.sent) == 41

    wait_until(all_sent, "all of it")
    assert seqs(transport.sent) == [*range(40), 5000]


def test_message_given_up_is_told_but_not_an_event_of_it(outbox: Outbox, run: Run) -> None:
    told: list[tuple[str, str]] = []
    transport = FakeTransport()
    transport.refuse = lambda message: "not allowed"
    publisher = run(outbox, transport, tell=lambda *news: told.append(news))
    transport.connect()
    outbox.put(result(1))
    outbox.put(messages.event("dead_letter", "of one before", at=1.0))
    wait_until(lambda: publisher.stats().dead_lettered == 2, "both given up")
    assert told == [("dead_letter", "cam/result given up (refused): not allowed")]
    assert outbox.stats().dropped == {"refused": 2}


def test_messages_from_outside_that_were_not_taken_are_told_each_time_that_there_are_more(
    outbox: Outbox, run: Run
) -> None:
    told: list[tuple[str, str]] = []
    transport = FakeTransport()
    publisher = run(outbox, transport, tell=lambda *news: told.append(news))
    transport.connect()
    for n, transport.inbound_dropped in enumerate((0, 3, 3, 23), start=1):
        outbox.put(result(n))
        wait_until(partial(in_flight, transport, 1), "the offer")
        transport.settle_all()
        wait_until(lambda n=n: publisher.stats().delivered == n, "the delivery")  # type: ignore[misc]
    wait_until(lambda: len(told) == 2, "both")
    why = "too many came at once, or one was larger than mqtt.max_payload_bytes"
    assert told == [
        ("inbound_dropped", f"messages to this device not taken since it started: {count}; {why}") for count in (3, 23)
    ]


def test_stop_waits_for_confirmations_then_says_farewell(outbox: Outbox) -> None:
    transport = FakeTransport(window=1)
    publisher = Publisher(outbox, transport)
    publisher.start()
    transport.connect()
    outbox.put(result(1))
    outbox.put(result(2))
    wait_until(partial(in_flight, transport, 1), "the offer")
    stopper = threading.Thread(target=publisher.stop, args=(STOPPED, 10.0))
    stopper.start()
    for _ in range(2):
        wait_until(partial(in_flight, transport, 1), "an offer")
        assert transport.farewells == []
        transport.settle_all()
    stopper.join(DEADLINE_S)
    assert not stopper.is_alive()
    assert transport.farewells == [STOPPED]
    assert outbox.stats().depth == 0


def test_stop_without_a_connection_is_prompt_and_keeps_what_waits(outbox: Outbox) -> None:
    transport = FakeTransport()
    publisher = Publisher(outbox, transport)
    publisher.start()
    outbox.put(result(1))
    began = time.monotonic()
    publisher.stop(STOPPED, 30.0)
    assert time.monotonic() - began < 5
    assert not publisher.alive
    stats = outbox.stats()
    assert (stats.depth, stats.claimed) == (1, 0)


def test_stop_with_a_silent_broker_ends_in_time(outbox: Outbox) -> None:
    transport = FakeTransport()
    publisher = Publisher(outbox, transport)
    publisher.start()
    transport.connect()
    outbox.put(result(1))
    wait_until(lambda: len(transport.in_flight) == 1, "the offer")
    publisher.stop(STOPPED, 0.2)
    assert transport.farewells == [STOPPED]
    assert outbox.stats().depth == 1


# Against a real broker


def mqtt(port: int, **keys: Any) -> MqttTransport:
    settings = MqttConfig(**{"port": port, "reconnect_min_s": 0.05, "reconnect_max_s": 0.2, **keys})
    return MqttTransport(settings, "dev-1", WILL, lambda: [BIRTH])


def has_heard(observer: Observer, count: int) -> bool:
    return len(set(heard_ids(observer))) >= count


def heard_ids(observer: Observer, camera: str = "cam") -> list[int]:
    return [json.loads(payload)["id"] for payload in observer.payloads(f"edge/dev-1/{camera}/result")]


def test_results_made_offline_arrive_once_each(make_broker: Callable[..., Broker], outbox: Outbox, run: Run) -> None:
    broker = make_broker(port=free_port()).start()
    with Observer(broker.port, RESULTS, made_up=True) as observer, Proxy(broker.port) as proxy:
        proxy.shut()
        publisher = run(outbox, mqtt(proxy.port))
        for n in range(5):
            outbox.put(result(n))
        wait_until(lambda: "without an answer" in (publisher.stats().cause or ""), "a failed try")
        proxy.reopen()
        wait_until(lambda: outbox.stats().depth == 0, "delivery")
        outbox.put(result(99))
        wait_until(lambda: 99 in heard_ids(observer), "the one after")
        assert heard_ids(observer) == [0, 1, 2, 3, 4, 99]


def test_broker_killed_under_load_gets_all_that_it_did_not_confirm_and_in_order(
    broker: Broker, outbox: Outbox, run: Run
) -> None:
    with Proxy(broker.port) as proxy, Observer(broker.port, RESULTS, made_up=True) as observer:
        publisher = run(outbox, mqtt(proxy.port))
        for n in range(300):
            outbox.put(result(n, camera=f"cam-{n % 2}", size=2000))
            if n == 150:
                wait_until(lambda: len(observer.heard) > 10, "some arrivals")
                broker.kill()  # what it had confirmed and not passed on is gone: that is the broker's to keep
        wait_until(lambda: not publisher.stats().connected and publisher.stats().in_flight == 0, "the loss")
        wait_until(lambda: not observer.subscribed, "the loss, at the observer")
        confirmed = publisher.stats().delivered
        assert outbox.stats().depth == 300 - confirmed
        proxy.shut()  # until the observer listens again: the broker forgot it
        broker.start()
        observer.wait_subscribed()
        before = len(observer.heard)
        proxy.reopen()
        wait_until(lambda: len(observer.heard) - before >= 300 - confirmed, "the rest")
        rest = [json.loads(one.payload)["id"] for one in observer.heard[before:]]
        for camera in (0, 1):
            assert [n for n in rest if n % 2 == camera] == [n for n in range(confirmed, 300) if n % 2 == camera]


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_connection_cut_again_and_again_loses_nothing_and_keeps_the_order(
    broker: Broker, outbox: Outbox, run: Run, protocol: str
) -> None:
    with Proxy(broker.port) as proxy, Observer(broker.port, RESULTS, made_up=True) as observer:
        run(outbox, mqtt(proxy.port, protocol=protocol, reconnect_min_s=0.01, reconnect_max_s=0.05))
        for n in range(400):
            outbox.put(result(n))
            if n % 80 == 79:
                wait_until(partial(has_heard, observer, n - 60), "arrivals")
                proxy.swallow_answers = n % 160 == 79  # sometimes the confirmations are lost, sometimes the messages
                outbox.put(result(1000 + n))
                proxy.cut()
                proxy.swallow_answers = False
        wait_until(lambda: outbox.stats().depth == 0, "delivery")
        made = [n for k in range(400) for n in ([k, 1000 + k] if k % 80 == 79 else [k])]
        wait_until(lambda: len(set(heard_ids(observer))) == len(made), "the last arrivals")
        assert list(dict.fromkeys(heard_ids(observer))) == made


def test_frozen_broker_loses_nothing(broker: Broker, outbox: Outbox, run: Run) -> None:
    settings = MqttConfig(port=broker.port, reconnect_min_s=0.05, reconnect_max_s=0.2, connect_timeout_s=0.3)
    transport = MqttTransport(settings.model_copy(update={"keepalive_s": 1}), "dev-1", WILL, lambda: [BIRTH])
    with Observer(broker.port, RESULTS, made_up=True) as observer:
        publisher = run(outbox, transport)
        wait_until(lambda: publisher.stats().connected, "the connection")
        broker.freeze()
        for n in range(50):
            outbox.put(result(n))
        wait_until(lambda: not publisher.stats().connected, "the silence noticed")
        broker.thaw()
        wait_until(lambda: outbox.stats().depth == 0, "delivery")
        wait_until(lambda: 49 in heard_ids(observer), "the last")
        assert list(dict.fromkeys(heard_ids(observer))) == list(range(50))


def test_payload_over_the_brokers_unspoken_limit_does_not_block_the_rest(
    make_broker: Callable[..., Broker], outbox: Outbox, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    broker = make_broker("allow_anonymous true\nmax_packet_size 3000").start()  # on 3.1.1 it just closes
    with Observer(broker.port, RESULTS, made_up=True) as observer:
        run(outbox, mqtt(broker.port, protocol="3.1.1", reconnect_min_s=0.3, reconnect_max_s=0.3))
        for n in (1, 2, 3):
            outbox.put(result(n, size=4000 if n == 2 else 10))
        wait_until(lambda: 3 in heard_ids(observer), "the one behind it")
        assert sorted(set(heard_ids(observer))) == [1, 3]
    wait_until(lambda: outbox.stats().dropped == {"poison": 1}, "the count")
    assert "given up (poison" in caplog.text
    assert "bytes were being sent; does the broker limit the size of a message?" in caplog.text
    assert "id_conflict" not in caplog.text


@pytest.mark.parametrize(
    ("count", "size_bytes", "silent_s"),
    [(6000, 4000, 0.0), pytest.param(100_000, 300, 60.0, marks=pytest.mark.slow)],
)
def test_large_backlog_and_a_broker_that_never_confirms_take_no_memory_and_lose_nothing(
    make_broker: Callable[..., Broker], tmp_path: Path, run: Run, count: int, size_bytes: int, silent_s: float
) -> None:
    """Field case MQ-10, at full length and shortened."""
    broker = make_broker("allow_anonymous true\nmax_queued_messages 0").start()  # else it loses what we do not
    limits = Limits(flush_s=0.02, max_memory_bytes=4_000_000, live_for_s=0.1)
    outbox = DiskOutbox(tmp_path / "outbox.db", DeviceClock(), lambda kind, text: None, limits)
    process = psutil.Process()
    before_bytes = process.memory_info().rss
    for n in range(count):
        outbox.put(result(n, size=size_bytes))
        if n % 400 == 0:
            wait_until(lambda: outbox.stats().unwritten == 0, "on disk")
    wait_until(lambda: outbox.stats().unwritten == 0, "all on disk")
    assert outbox.stats().bytes <= 4_000_000
    assert process.memory_info().rss - before_bytes < count * size_bytes / 2, "what waits is on disk, not in memory"
    with Proxy(broker.port) as proxy, Observer(broker.port, RESULTS, made_up=True) as observer:
        publisher = run(outbox, MqttTransport(MqttConfig(port=proxy.port), "dev-1", WILL, lambda: [BIRTH]))
        wait_until(lambda: len(observer.heard) > 200, "the first")
        proxy.swallow_answers = True
        wait_until(lambda: publisher.stats().in_flight == MqttConfig().max_inflight, "a full window")
        silent_until_mono = time.monotonic() + silent_s
        for n in range(count, count + 10):
            outbox.put(result(n))
        wait_until(lambda: time.monotonic() >= silent_until_mono, "the end of the silence", silent_s + 10)
        assert outbox.stats().bytes <= 4_000_000
        proxy.cut()
        proxy.swallow_answers = False
        wait_until(lambda: outbox.stats().depth == 0, "an empty outbox", 120)
        wait_until(lambda: len(observer.heard) >= count + 10, "all that was sent")
        wait_until(lambda: {heard_id(h.payload) for h in observer.heard} == set(range(count + 10)), "every reading")
    ledger = outbox.ledger().totals()["cam"]
    assert (ledger["produced"], ledger["delivered"], ledger["queued"]) == (count + 10, count + 10, 0)
    publisher.stop(None, 0.2)
    outbox.close()


def test_stop_delivers_the_rest_and_says_stopped(broker: Broker, outbox: Outbox) -> None:
    with Observer(broker.port, "edge/dev-1/#", made_up=True) as observer:
        publisher = Publisher(outbox, mqtt(broker.port))
        publisher.start()
        wait_until(lambda: publisher.stats().connected, "the connection")
        for n in range(100):
            outbox.put(result(n))
        publisher.stop(STOPPED, 10.0)
        assert outbox.stats().depth == 0
        observer.wait_for("edge/dev-1/status", STOPPED.payload)
        assert heard_ids(observer) == list(range(100))
        assert observer.heard[-1].payload == STOPPED.payload
