"""Secrets: passwords are read from files that others cannot read, and leave this program in no message.

`masked` shows a URL without its password, `with_password` puts one in so that FFmpeg can read it, `Secrets` removes
registered passwords from every log record.
"""

from __future__ import annotations

import logging
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from edge_agent.errors import ConfigError

MASK = "***"
MAX_PASSWORD_BYTES = 4096
# systemd's credentials and container secrets: the folder is private, the file's own mode says nothing
PRIVATE_FOLDERS = (Path("/run/credentials"), Path("/run/secrets"))
SHORT_SECRET = 4  # below this length a secret is removed only where it stands as a word of its own

_SECRET_KEY = re.compile(r"pass|pwd|secret|token|credential|auth|user|source|url|(^|_)key$", re.IGNORECASE)
_SECRET_PARAMETER = re.compile(
    r"((?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|auth|signature|sig|(?:api|access)?_?key)=)[^&;]*",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:?/+")
_HOST_AND_PORT = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.%]+\])(?::[0-9]*)?")


def is_secret_key(name: str) -> bool:
    """Whether the value of a setting called `name` may hold a secret: such values are never repeated in a message."""
    return _SECRET_KEY.search(name) is not None


@dataclass(frozen=True)
class _Url:
    """A URL cut for masking: `scheme` with its slashes, then user[:password]@, then `rest` from the host on."""

    scheme: str
    user: str
    password: str | None
    rest: str


def _cut(url: str, end: int | None = None) -> _Url | None:
    """The parts of a URL whose user information ends at the last @ before `end`; None where it has none.

    Without `end` that @ may stand behind a slash or a #: a password written without percent-encoding may hold all of
    them, and hiding a piece of the path is better than showing a piece of a password.
    """
    at = url.rfind("@", 0, end)
    if at < 0:
        return None
    match = _SCHEME.match(url)
    start = match.end() if match and match.end() <= at else 0
    user, colon, password = url[start:at].partition(":")
    return _Url(url[:start], user, password if colon else None, url[at + 1 :])


def _cut_for_use(url: str) -> _Url | None:
    """Like `_cut`, but an @ behind the host belongs to the path; only where no host can be seen is it a password's."""
    match = _SCHEME.match(url)
    start = match.end() if match else 0
    end = min((at for at in (url.find(mark, start) for mark in "/?#") if at >= 0), default=len(url))
    if "@" in url[start:end]:
        return _cut(url, end)
    return None if _HOST_AND_PORT.fullmatch(url[start:end]) else _cut(url)


def masked(url: str) -> str:
    """`url` with *** for its password and for values of parameters such as `password=` and `token=`.

    masked("rtsp://admin:S3cr#t@pw@host/live") == "rtsp://admin:***@host/live"
    """
    parts = _cut(url)
    if parts is not None and parts.password is not None:
        at = len(url) - len(parts.rest) - 1
        if any(match.start() <= at < match.end() for match in _SECRET_PARAMETER.finditer(url)):
            return parts.scheme + MASK  # the @ may be a piece of a parameter's secret: show nothing
        url = f"{parts.scheme}{parts.user}:{MASK}@{parts.rest}"
    return _SECRET_PARAMETER.sub(rf"\g<1>{MASK}", url)


def url_user(url: str) -> str | None:
    """The user named in `url`, percent-decoded, or None."""
    parts = _cut_for_use(url)
    return unquote(parts.user) if parts is not None and parts.user else None


def url_secrets(url: str) -> tuple[str, ...]:
    """Every secret that `url` holds, as written there: its password and the values of secret parameters."""
    parts = _cut(url)
    for_use = _cut_for_use(url)
    found = [cut.password for cut in (parts, for_use) if cut is not None and cut.password]
    found += [match.group()[len(match.group(1)) :] for match in _SECRET_PARAMETER.finditer(url)]
    return tuple(dict.fromkeys(text for text in found if text))


def url_password(url: str) -> str | None:
    """The password in `url`, percent-decoded; None where it has none."""
    parts = _cut_for_use(url)
    return unquote(parts.password) if parts is not None and parts.password else None


def with_password(url: str, password: str | None) -> str:
    """`url` with user and password percent-encoded, as FFmpeg must have them; None keeps the password that it holds.

    with_password("rtsp://admin@host/live", "S3cr#t@pw") == "rtsp://admin:S3cr%23t%40pw@host/live"
    """
    parts = _cut_for_use(url)
    if parts is None:
        return url
    if password is None and parts.password is not None:
        password = unquote(parts.password)
    colon_password = "" if password is None else ":" + quote(password, safe="")
    return f"{parts.scheme}{quote(unquote(parts.user), safe='')}{colon_password}@{parts.rest}"


def read_password_file(path: Path) -> str:
    """The password in `path`: UTF-8, one line; the newline at its end is not part of it.

    Raises ConfigError when it cannot be read, anybody may write it, it is empty, or holds more than one line.
    `private_file_caution` tells whether others may read it.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):  # opening a named pipe would wait for a writer
            raise ConfigError(f"password file {path} is not a regular file; expected a file with one line")
        with path.open("rb") as file:
            raw = file.read(MAX_PASSWORD_BYTES + 1)
    except OSError as exc:
        raise ConfigError(
            f"password file {path} cannot be read: {exc.strerror}; expected a file with one line"
        ) from exc
    if mode & stat.S_IWOTH:
        raise ConfigError(
            f"password file {path} may be written by anybody (mode {stat.S_IMODE(mode):04o}); run: chmod 600 {path}"
        )
    if len(raw) > MAX_PASSWORD_BYTES:
        raise ConfigError(f"password file {path} is longer than {MAX_PASSWORD_BYTES} bytes; expected one line")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"password file {path} is not UTF-8; save it as UTF-8") from None
    password = text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")
    if not password:
        raise ConfigError(f"password file {path} is empty; write the password into it, on one line")
    if any(character in password for character in "\n\r\0"):
        raise ConfigError(f"password file {path} holds more than one line or a NUL; expected the password alone")
    return password


def private_file_caution(path: Path) -> str | None:
    """What to do where others than its owner may read a file that is meant for it alone; None where nothing is."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None  # whoever reads it says what is wrong
    private = any(path.is_relative_to(folder) for folder in PRIVATE_FOLDERS)
    if private or not mode & (stat.S_IRGRP | stat.S_IROTH):
        return None
    return f"{path} may be read by others (mode {mode:04o}); run: chmod 600 {path}"


class Secrets(logging.Filter):
    """Removes registered secrets from log records, tracebacks included; belongs on each log *handler*.

    A secret is found raw, percent-encoded (any mix, also twice) and as repr or JSON would write it. `register` and
    `scrub` may be called from any thread.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._texts: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self.register(*secrets)

    def register(self, *secrets: str) -> None:
        """Adds secrets, each as it stands in a URL or as it is; empty ones are passed over."""
        texts = self._texts | {form for text in secrets for form in (text, unquote(text)) if form}
        if texts == self._texts:
            return
        # the longest first: a secret that begins like another one is removed whole
        forms = [_any_form(text) for text in sorted(texts, key=len, reverse=True)]
        self._texts, self._pattern = texts, re.compile("|".join(forms))

    def scrub(self, text: str) -> str:
        """`text` with *** for every registered secret."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrites the record in place, so that no formatter sees a secret; always lets it pass."""
        if self._pattern is None:
            return True
        try:
            message = record.getMessage()
        except (TypeError, ValueError, LookupError):  # logging itself would print the arguments to stderr
            message = f"{record.msg} (its arguments do not fit: {record.args})"
        record.msg, record.args = self.scrub(message), None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        record.exc_info = None
        for name, value in list(record.__dict__.items()):
            if isinstance(value, str):  # exc_text, stack_info and whatever came by `extra`
                record.__dict__[name] = self.scrub(value)
        return True


def _any_form(text: str) -> str:
    """A regular expression for `text`, each character raw, percent-encoded or escaped."""
    body = "".join(_any_character(character) for character in text)
    return body if len(text) >= SHORT_SECRET else rf"(?<!\w){body}(?!\w)"


def _any_character(character: str) -> str:
    octets = character.encode("utf-8", "surrogatepass")
    percent = "".join(rf"%(?:25)*(?i:{octet:02x})" for octet in octets)
    forms = [re.escape(character), percent]
    if character in "\"'\\":
        forms[0] = r"\\*" + forms[0]
    if character == " ":
        forms.append(r"\+")
    if not character.isascii():
        utf16 = character.encode("utf-16-be", "surrogatepass").hex()
        forms.append("".join(rf"\\u(?i:{utf16[i : i + 4]})" for i in range(0, len(utf16), 4)))
        forms.append("".join(rf"\\x{octet:02x}" for octet in octets))
    return f"(?:{'|'.join(forms)})"
