"""Addresses: which cameras' addresses may come from afar. The device sits inside a plant's network, and must not be
talked into knocking at its own doors, at its neighbours' or at a cloud's metadata service.

A host is taken in its plain form alone, so that no second spelling (decimal, octal, hexadecimal, short, IPv6-mapped,
a trailing dot, full-width digits) reaches what the plain one may not; a name only where config.yaml lists it, for a
name may lead anywhere and elsewhere tomorrow.
"""

from __future__ import annotations

import fnmatch
import ipaddress
import re
from collections.abc import Collection, Sequence

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# where clouds keep credentials; that of most is link-local already
METADATA = frozenset({"100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254"})
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
IPV4_COMPATIBLE = ipaddress.IPv6Network("::/96")

_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://"
    r"(?:(?P<user>[A-Za-z0-9._~%!$&'()*+,;=-]*)(?P<password>:[^@/]*)?@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<rest>/[\x21-\x3f\x41-\x7e]*)?"  # no second @
)
_NAME = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")


def address_refusal(
    source: str, schemes: Collection[str], hosts: Sequence[str], own: Collection[str] = ()
) -> str | None:
    """Why a camera's address is not taken from afar; None when it is.

    `schemes` that may be, `hosts` that may be (names, `*.names`, addresses, networks; none: any camera's IP address),
    `own`: addresses of this device. Nothing said repeats the source.
    """
    match = _URL.fullmatch(source)
    if match is None:
        return "is no plain address; expected scheme://[user@]host[:port]/path in ASCII, with one @ at most"
    if match["scheme"] not in schemes:
        return f"the scheme {match['scheme'][:20]}:// is not among remote.camera_schemes, {', '.join(sorted(schemes))}"
    if match["password"] is not None:
        return "holds a password; put it into password_file on the device, it does not travel"
    return host_refusal(match["host"], hosts, own)


def host_of(source: str) -> str | None:
    """The host of a plain address, in lower case; None for anything else."""
    match = _URL.fullmatch(source)
    return None if match is None else match["host"].lower()


def host_refusal(host: str, hosts: Sequence[str], own: Collection[str] = ()) -> str | None:
    """Why a host is not taken from afar; None when it is. An IPv6 address stands in brackets."""
    try:
        address = _address(host)
    except ValueError as exc:
        return str(exc)
    if any(_fits(host, address, allowed) for allowed in hosts):
        return None
    if hosts:
        return "the host is not among remote.camera_hosts"
    if address is None:
        return "the host is a name, which may lead anywhere; list it in remote.camera_hosts, or write an IP address"
    kind = _forbidden_kind(address, own)
    return None if kind is None else f"the host is {kind}; only remote.camera_hosts could allow that"


def _address(host: str) -> IpAddress | None:
    """The IP address; None for a name. Raises ValueError for what is neither, or an address in disguise."""
    if host.startswith("["):
        try:
            return ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise ValueError("the host is no IPv6 address") from None
    try:
        return ipaddress.IPv4Address(host)
    except ValueError:
        pass
    if len(host) > 253 or not _NAME.fullmatch(host):
        raise ValueError("the host is neither a name nor an IP address in its plain form, such as 192.0.2.10")
    return None


def _fits(host: str, address: IpAddress | None, allowed: str) -> bool:
    if address is None:
        return fnmatch.fnmatchcase(host.lower(), allowed.lower()) and not _is_network(allowed)
    return _is_network(allowed) and address in ipaddress.ip_network(allowed, strict=False)


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _forbidden_kind(address: IpAddress, own: Collection[str]) -> str | None:
    if isinstance(address, ipaddress.IPv6Address) and _carries_ipv4(address):
        return "an IPv4 address inside an IPv6 one: write it as it is"
    if str(address) in METADATA:
        return "a cloud's metadata service"
    if address.is_loopback or str(address) in own:
        return "this device itself"
    if address.is_link_local:
        return "a link-local address"
    this_network = isinstance(address, ipaddress.IPv4Address) and address in ipaddress.IPv4Network("0.0.0.0/8")
    if address.is_unspecified or address.is_multicast or address.is_reserved or this_network:
        return "no camera's address"
    if isinstance(address, ipaddress.IPv6Address) and address.is_site_local:
        return "no camera's address"
    return None


def _carries_ipv4(address: ipaddress.IPv6Address) -> bool:
    embedded = address.ipv4_mapped or address.sixtofour or address.teredo
    compatible = address in IPV4_COMPATIBLE and int(address) > 1
    return bool(embedded) or address in NAT64 or compatible


def is_host_pattern(text: str) -> bool:
    """Whether `text` can stand in remote.camera_hosts: a name, `*.name`, an IP address or a network."""
    return _is_network(text) or bool(_NAME.fullmatch(text.removeprefix("*.")))
