"""Addresses: every spelling of what must not be reached is refused (SEC kinds)."""

from __future__ import annotations

import pytest

from edge_agent.remote.addresses import address_refusal, host_of, host_refusal, is_host_pattern

RTSP = ("rtsp", "rtsps")


@pytest.mark.parametrize("host", ["192.168.1.20", "10.0.0.7", "203.0.113.9", "[2001:db8::20]", "[fd12:3456::1]"])
def test_ip_address_of_a_camera_is_taken(host: str) -> None:
    assert host_refusal(host, ()) is None
    assert address_refusal(f"rtsp://viewer@{host}:554/live?channel=1", RTSP, ()) is None


@pytest.mark.parametrize(
    "host",
    """127.0.0.1 127.1 127.0.1 127.0.0.53 2130706433 0x7f000001 0x7f.0.0.1 0177.0.0.1 017700000001 127.0.0.1.
    127.000.000.1 0 0.0.0.0 0.0.0.1
    localhost LOCALHOST localhost. localhost.localdomain ip6-localhost [::1] [::] [0:0:0:0:0:0:0:1]
    [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::] [::ffff:10.0.0.7] [fe80::1]
    169.254.169.254 2852039166 0xa9fea9fe 169.254.1.1 [fd00:ec2::254] 100.100.100.200 168.63.129.16 192.0.0.192
    224.0.0.1 255.255.255.255 240.0.0.1 [ff02::1] [fec0::1] 1.2.3 256.1.1.1 1.2.3.4.5 a..b -a a_.1
    metadata.google.internal
    127.0.0.1.nip.io [::1 ::1""".split(),
)
def test_host_that_is_no_camera_or_in_disguise_is_refused(host: str) -> None:
    assert host_refusal(host, ()) is not None
    assert address_refusal(f"rtsp://{host}/live", RTSP, ()) is not None


@pytest.mark.parametrize(
    "source",
    [
        "rtsp://１２７.0.0.1/live",
        "rtsp://127。0。0。1/live",
        "rtsp://192.168.1.20@127.0.0.1/live",
        "rtsp://192.168.1.20#@127.0.0.1/live",
        "rtsp://192.168.1.20\\@127.0.0.1/live",
        "rtsp://192.168.1.20?@127.0.0.1/live",
        "rtsp://a@192.168.1.20@127.0.0.1/live",
        "rtsp://192.168.1.20 /live",
        "rtsp://192.168.1.20\t@127.0.0.1/",
        "rtsp://[fe80::1%25eth0]/live",
        "rtsp:192.168.1.20/live",
        "rtsp:/192.168.1.20/live",
        "rtsp:///live",
        "RTSP://192.168.1.20/live",
        "rtsp://192.168.1.20/li ve",
        "//192.168.1.20/live",
        "",
    ],
)
def test_address_that_two_readers_could_read_differently_is_refused(source: str) -> None:
    assert address_refusal(source, RTSP, ()) is not None


@pytest.mark.parametrize(
    "source",
    """concat:rtsp://192.168.1.20/a|b subfile,,start,0,end,9,,:/etc/passwd file:///etc/passwd file:/etc/passwd pipe:0
    data:,x crypto:rtsp://192.168.1.20/ cache:rtsp://192.168.1.20/ async:x tee:x unix:/run/x gopher://192.168.1.20/
    http://192.168.1.20/ ftp://192.168.1.20/ tcp://192.168.1.20:22 udp://192.168.1.20 hls+http://192.168.1.20/x
    rtsp+file:///x srt://192.168.1.20 rtmp://192.168.1.20/x ffrtmphttp://x concatf:/x fd:0""".split(),
)
def test_protocols_of_ffmpeg_beside_those_listed_are_refused(source: str) -> None:
    assert address_refusal(source, RTSP, ("192.168.1.20",)) is not None


def test_password_does_not_travel_and_is_not_repeated() -> None:
    said = address_refusal("rtsp://admin:S3cret@192.168.1.20/live", RTSP, ())
    assert said is not None
    assert "password_file" in said
    assert "S3cret" not in said


def test_own_address_of_the_device_is_refused() -> None:
    assert host_refusal("192.168.1.5", (), ("192.168.1.5", "127.0.0.1")) == (
        "the host is this device itself; only remote.camera_hosts could allow that"
    )


@pytest.mark.parametrize(
    ("host", "listed", "taken"),
    [
        ("cam7.plant.example", "*.plant.example", True),
        ("CAM7.plant.example", "cam7.plant.EXAMPLE", True),
        ("plant.example", "*.plant.example", False),
        ("cam7.plant.example.evil.org", "*.plant.example", False),
        ("192.168.1.20", "192.168.1.0/24", True),
        ("192.168.2.20", "192.168.1.0/24", False),
        ("192.168.1.20", "192.168.1.20", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("[2001:db8::7]", "2001:db8::/32", True),
        ("10.0.0.1", "*.example", False),
        ("2130706433", "127.0.0.1", False),
    ],
)
def test_listed_hosts_and_no_others_are_taken(host: str, listed: str, taken: bool) -> None:
    assert (host_refusal(host, (listed,)) is None) == taken


def test_host_of_an_address() -> None:
    assert host_of("rtsp://a@Cam7.plant:554/x") == "cam7.plant"
    assert host_of("/dev/video0") is None


@pytest.mark.parametrize("text", ["*", "*.", "a b", "http://x", "1.2.3.4.5", "", "cam*"])
def test_pattern_of_hosts_is_checked(text: str) -> None:
    assert not is_host_pattern(text)
