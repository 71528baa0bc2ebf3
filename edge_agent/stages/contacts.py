"""Contact: web addresses, e-mail addresses and telephone numbers, in one spelling each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

import phonenumbers

from edge_agent.stages.dates import DIGIT_OF

# Endings that a bare name (no www, no scheme) must have, and that an address is checked against.
_ENDINGS = frozenset(
    "com org net info biz eu de at ch fr be nl lu es pt it uk ie us ca mx br ar cl co pe au nz za in cn hk tw jp kr sg"
    " my th id ph vn ae sa il tr ru ua pl cz sk hu ro bg gr hr si rs dk se no fi ee lv lt is io app shop store dev ai"
    " tv me edu gov int online site tech cc world food bio coop health care wine beer coffee".split()
)
_NAME, _ENDING = r"[\w-]{4,63}", r"[a-z]{2,6}\b"
_WEB = re.compile(
    r"(?:(?:https?|(?<![^\W\d_])h[tf]{1,2}p?[s5]?)\s?[:;.,]?\s?(?:/[/1lI|]?|[1lI|]/)\s?(?:w{2,3}\.)?"
    rf"|\bw{{3}}\s?[.,]\s?|w{{3}}\.|\bw{{3}}(?={_NAME}\.{_ENDING})"
    rf"|[wv]{{3}}[.,](?={_NAME}\s?[.,]{_ENDING})|\b[wv]{{2}}[.,](?={_NAME}[.,]{_ENDING}))",
    re.IGNORECASE,
)
_PLAIN_HEAD = re.compile(r"https?://(?:www\.)?|www\.", re.IGNORECASE)
_HOST = r"[\w-]{1,63}(?:[.,][\w-]{1,63}){1,5}"
_PATH = r"(?:/[^\s<>\"(),;]{0,200})?"
_MAIL_HOST, _WEB_HOST = re.compile(_HOST), re.compile(rf"{_HOST}(?::[0-9]{{2,5}})?{_PATH}")
_AT = re.compile(r"\s?(?:@|[(\[]at[)\]])\s?")
_NAME_BEFORE = re.compile(r"[\w.+-]{1,64}\Z")
_TRUNK = re.compile(r"(?<=[0-9 ])\(0\)")  # of +49 (0)40 5550: dialled within the country alone
_PIECE = re.compile(r"[^\s<>\"();]{1,200}")
_MAYBE_ENDING = re.compile(r"\.[a-z]{2,3}\Z", re.IGNORECASE)  # bent, such as .eom; two letters can still complete it
_BARE_WORD = re.compile(r"[^\s,;:()<>]{4,253}")
_BARE_HOST = re.compile(rf"[a-zA-Z0-9][\w-]{{1,62}}(?:\.[\w-]{{1,63}}){{0,3}}\.[a-z]{{2,10}}{_PATH}")
_COMMA_HOST = re.compile(r"[\s:]*([a-z][a-z0-9-]{3,62},(?:com|net|org))\s*")
_FIRST = frozenset({"co", "com", "org", "net", "ac"})  # endings that countries have within their own
_COUNTRY_BEHIND = re.compile(r"\s?[.,]([a-z]{2})(?![\w-])")
_COUNTRY_GLUED = re.compile(r"\.(com?)(uk|au|nz|za|jp|br|mx|kr|sg|tr)\Z")
# Letters that digits are seldom read as count beside a digit alone: not the D of D-20095, the T of 2026-11-30T12:00.
_DIGIT = "(?:[0-9OIlZSB|]|(?<!-[0-9]{2})(?:(?<=[0-9])[oDQGTA]|[oDQGTA](?=[0-9])))"
_PHONE = re.compile(rf"(?<![\w])(?:\+{_DIGIT}|(?:00|\()?[0-9OIlZSB|])(?:[ ()/.-]{{0,2}}{_DIGIT}){{6,15}}(?![\w])")
MOST_PIECES = 3  # of an address that spaces have broken


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
    for at in _AT.finditer(text):
        name = _NAME_BEFORE.search(text, max(0, at.start() - 64), at.start())
        host = None if name is None else _host(text, at.end(), _MAIL_HOST, any_ending=at[0] == at[0].strip())
        if name is not None and host is not None:
            flags = host.flags if at[0] == "@" else _also_repaired(host.flags)
            return Contact(f"{name[0]}@{host.value}".lower(), name.start(), host.end, flags)
    return None


def _web(text: str) -> Contact | None:
    for head in _WEB.finditer(text):
        host = _host(text, head.end(), _WEB_HOST, any_ending=False)
        if host is not None:
            flags = host.flags if _PLAIN_HEAD.fullmatch(head[0]) else _also_repaired(host.flags)
            return replace(host, start=head.start(), flags=flags)
    return None


def _host(text: str, start: int, form: re.Pattern[str], *, any_ending: bool) -> Contact | None:
    """What stands behind the head of an address: whole, or put together where it so has an ending that exists, or,
    for want of such a one, with `any_ending`."""
    match = form.match(text, start)
    whole = None if match is None else _site(match[0], start)
    if whole is not None and "check_failed" not in whole.flags:
        return _with_country(text, whole)
    pieces = list(_put_together(text, start, form))
    sound = next((found for found in pieces if "check_failed" not in found.flags), None)
    return sound or whole or (pieces[0] if any_ending and pieces else None)


def _put_together(text: str, start: int, form: re.Pattern[str]) -> Iterator[Contact]:
    """The hosts that pieces make between which OCR has put spaces: `alpenmil ch.at`, `alpenmilch .at`."""
    seen, end = "", start
    for piece in islice(_PIECE.finditer(text, start), MOST_PIECES):
        ended = seen[-1:] in tuple(",:") or (_MAYBE_ENDING.search(seen) and len(piece[0].rstrip(".,:")) > 2)
        if ended or text[end : piece.start()].strip():
            return
        seen, end = seen + piece[0], piece.end()
        host = seen.rstrip(".,:")
        if end > start + len(seen) and form.fullmatch(host):
            found = _site(host, start)
            yield replace(found, end=end - (len(seen) - len(host)), flags=_also_repaired(found.flags))


def _with_country(text: str, found: Contact) -> Contact:
    """`example.co .uk`: what stands behind such an ending is its country."""
    country = _COUNTRY_BEHIND.match(text, found.end)
    if country is None or country[1] not in _ENDINGS or found.value.rpartition(".")[2] not in _FIRST:
        return found
    return Contact(f"{found.value}.{country[1]}", found.start, country.end(), _also_repaired(found.flags))


def _bare_host(text: str) -> Contact | None:
    """A name such as example.com, alone in its word, with an ending that exists; with a comma, alone in the text."""
    for word in _BARE_WORD.finditer(text):
        seen = word[0].rstrip(".")
        host, slash, path = seen.partition("/")
        host = _mended(host)
        if _BARE_HOST.fullmatch(host + slash + path) and not _ending_flags(host) and not re.search("[A-Z]", host[1:]):
            return _with_country(text, _site(seen, word.start()))
    comma = _COMMA_HOST.fullmatch(text)
    return None if comma is None else _site(comma[1], comma.start(1))


def _site(seen: str, start: int) -> Contact:
    """The host and path that were seen, in one spelling."""
    before, comma, behind = seen.partition(",")
    is_country = before.rpartition(".")[2] in _FIRST and len(behind) == 2 and behind in _ENDINGS
    if comma and "." in before and not _ending_flags(before) and not is_country:  # example.com,Tel.040
        seen = before
    host, slash, path = seen.partition("/")
    mended = _mended(host)
    flags = () if mended == host else ("repaired",)
    value = (mended.lower() + slash + path).rstrip("./")
    return Contact(value, start, start + len(seen), (*flags, *_ending_flags(mended)))


def _mended(host: str) -> str:
    """A host without what OCR bends in it: the dot to a comma, the small l within a word to a capital I, and the dot
    lost before a country: `cIearbrook.couk`."""
    if not re.search(r"[A-HJ-Z]", host):
        host = re.sub(r"(?<=[a-z])I", "l", host)
    return _COUNTRY_GLUED.sub(r".\1.\2", host.replace(",", "."))


def _also_repaired(flags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(("repaired", *flags)))


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
