"""Causes: each failure in words with a cure; said once, then seldom."""

from __future__ import annotations

import socket
import ssl

import pytest

from edge_agent.transports.causes import CauseLog, explain


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def certificate(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = code
    error.verify_message = "unable to get local issuer certificate"
    return error


@pytest.mark.parametrize(
    ("error", "part"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "nothing listens on broker:8883"),
        (ConnectionResetError(104, "Connection reset by peer"), "check mqtt.port, and mqtt.tls"),
        (TimeoutError("timed out"), "does not answer"),
        (socket.gaierror(-2, "Name or service not known"), "cannot be resolved"),
        (OSError(101, "Network is unreachable"), "Network is unreachable"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"), "check that this port speaks TLS"),
        (certificate(9), "the clock of this device says 2000-01-01, before the certificate"),
        (certificate(10), "has expired"),
        (certificate(62), "is for another name, not broker"),
        (certificate(64), "is for another name, not broker"),
        (certificate(20), "is not trusted (unable to get local issuer certificate); set mqtt.ca_file"),
    ],
)
def test_each_failure_is_told_with_a_cure(error: OSError, part: str) -> None:
    assert part in explain(error, "broker", 8883, now=946_684_800.0)


def test_cause_is_said_once_and_again_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    causes = CauseLog(repeat_s=600.0, clock=clock)
    for _ in range(10):
        causes.failed("refused")
        clock.now += 50
    assert [record.getMessage() for record in caplog.records] == ["not connected after 1 try: refused"]
    clock.now += 100
    causes.failed("refused")
    assert caplog.records[-1].getMessage() == "not connected after 11 tries: refused"


def test_other_cause_is_news_and_a_flapping_one_is_not(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    causes = CauseLog(repeat_s=600.0, clock=clock)
    for _ in range(5):
        causes.failed("broke")
        causes.failed("refused")
        causes.connected()
        clock.now += 10
    assert len(caplog.records) == 2
    clock.now += 600
    causes.connected()
    causes.failed("broke")
    assert caplog.records[-1].getMessage() == "not connected after 1 try: broke"
