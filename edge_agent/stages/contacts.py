"""Contact: web addresses, e-mail addresses and telephone numbers, in one spelling each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import phonenumbers

from edge_agent.stages.dates import DIGIT_OF

# Endings that a bare name (no www, no scheme) must have, and that an address is checked against.
_ENDINGS = frozenset(
    "com org net info biz eu de at ch fr be nl lu es pt it uk ie us ca mx br ar cl co pe au nz za in cn hk tw jp kr sg"
    " my th id ph vn ae sa il tr ru ua pl cz sk hu ro bg gr hr si rs dk se no fi ee lv lt is io app shop store dev ai"
    " tv me edu gov int online site tech cc world food bio coop health care wine beer coffee".split()
)
_WEB = re.compile(
    r"(?:(?P<scheme>h[tf]{1,2}p?[s5]?)\s?[:;.,]?\s?[/1lI|]{1,2}\s?(?P<w>w{2,3}\.)?"
    r"|(?P<www>\bw{3}\s?[.,]\s?|w{3}\.|\b[wv]{2,3}[.,](?=[\w-]{4,63}[.,][a-z]{2,6}\b)))",
    re.IGNORECASE,
)
_HOST_PATH = re.compile(r"[\w-]{1,63}(?:[.,][\w-]{1,63}){1,5}(?::[0-9]{2,5})?(?:/[^\s<>\"(),;]{0,200})?")
_MAIL = re.compile(
    r"(?P<name>[\w.+-]{1,64})(?P<at>\s?(?:@|[(\[]at[)\]])\s?)(?P<host>[\w-]{1,63}(?:[.,][\w-]{1,63}){1,5})"
)
_AT = re.compile(r"\s?(?:@|[(\[]at[)\]])")
_TRUNK = re.compile(r"(?<=[0-9 ])\(0\)")  # of +49 (0)40 5550: dialled within the country alone
_BARE_HOST = re.compile(r"[a-zA-Z0-9][\w-]{1,62}(?:\.[\w-]{1,63}){0,3}\.[a-z]{2,10}(?:/[^\s<>\"(),;]{0,200})?")
_PHONE = re.compile(r"(?<![\w])(?:\+|00|\()?[0-9OIlZSB|](?:[ ()/.-]{0,2}[0-9OIlZSB|]){6,15}(?![\w])")


@dataclass(frozen=True)
class Contact:
    """A contact at `text[start:end]`: host and path without scheme and www, an address, or digits with a leading +."""

    value: str
    start: int
    end: int
    flags: tuple[str, ...] = ()


def find_contact(text: str, *, keyed: bool, region: str | None = None) -> Contact | None:
    """The first contact in a clean text; a telephone number counts behind its phrase or with a leading +.

    With a `region` (ISO 3166-1) its numbers without a country count too where its numbering plan has them, and all
    come with a leading + and their country.
    """
    return _mail(text) or _web(text) or _bare_host(text) or _phone(text, keyed=keyed, region=region)


def _mail(text: str) -> Contact | None:
    at = _AT.search(text)
    match = None if at is None else _MAIL.search(text, max(0, at.start() - 64))
    if match is None:
        return None
    host = match["host"].replace(",", ".")
    flags = () if match["at"] == "@" and host == match["host"] else ("repaired",)
    return Contact(f"{match['name']}@{host}".lower(), *match.span(), (*flags, *_ending_flags(host)))


def _web(text: str) -> Contact | None:
    for head in _WEB.finditer(text):
        if (match := _HOST_PATH.match(text, head.end())) is None:
            continue
        flags = () if re.fullmatch(r"https?://(www\.)?|www\.", head[0], re.IGNORECASE) else ("repaired",)
        return _site(match[0], head.start(), flags, match.start())
    return None


def _bare_host(text: str) -> Contact | None:
    """A name such as example.com, alone in its word, with an ending that exists."""
    for word in re.finditer(r"[^\s,;:()<>]{4,253}", text):
        match = _BARE_HOST.fullmatch(word[0].rstrip("."))
        if match and match[0].split("/")[0].rpartition(".")[2] in _ENDINGS and not re.search(r"[A-Z]", word[0][1:]):
            return _site(match[0], word.start(), (), word.start())
    return None


def _site(seen: str, start: int, flags: tuple[str, ...], host_at: int) -> Contact:
    before, comma, _ = seen.partition(",")
    if comma and "." in before and not _ending_flags(before):  # example.com,Tel.040
        seen = before
    host, slash, path = seen.partition("/")
    if "," in host:
        host, flags = host.replace(",", "."), ("repaired",)
    value = (host.lower() + slash + path).rstrip("./")
    return Contact(value, start, host_at + len(seen), (*flags, *_ending_flags(host)))


def _ending_flags(host: str) -> tuple[str, ...]:
    ending = host.partition(":")[0].rpartition(".")[2].lower()
    return () if ending in _ENDINGS else ("check_failed",)


def _phone(text: str, *, keyed: bool, region: str | None) -> Contact | None:
    for match in _PHONE.finditer(text):
        seen = match[0]
        abroad = seen.startswith(("+", "00"))
        digits = re.sub(r"[^\w|]", "", _TRUNK.sub("", seen) if abroad else seen)
        mended = digits.translate(DIGIT_OF)
        real = sum(map(str.isdigit, digits))
        if not 7 <= len(mended) <= 15 or real < 0.7 * len(digits):
            continue
        flags: tuple[str, ...] = ("repaired",) if mended != digits else ()
        if abroad:
            if not (keyed or seen.startswith("+")):
                continue
            value = f"+{mended.removeprefix('00') if seen.startswith('00') else mended}"
            return Contact(value, *match.span(), flags if _number(value, None) else (*flags, "check_failed"))
        national = _number(mended, region) if region else None
        if national is not None or keyed:
            return Contact(national or mended, *match.span(), flags)
    return None


@lru_cache(maxsize=1024)
def _number(digits: str, region: str | None) -> str | None:
    """The number with + and its country, where it has a length that its country gives out; of a number without a
    country the plan of `region` must have it."""
    try:
        number = phonenumbers.parse(digits, region)
    except phonenumbers.NumberParseException:
        return None
    holds = phonenumbers.is_possible_number(number) if region is None else phonenumbers.is_valid_number(number)
    return str(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)) if holds else None
