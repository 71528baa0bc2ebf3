"""Passwords: how the page's password and the tokens of programs are kept: as hashes, in files of their owner alone.

scrypt$16384$8$1$<salt>$<hash>     one line; RFC 7914, N r p, base64
<name> sha256 <hash>               one line a token; a token is 256 random bits, so that one round is enough
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import stat
from pathlib import Path

from edge_agent.errors import ConfigError
from edge_agent.files import write_atomically
from edge_agent.settings.validation import NAME_PATTERN

PRIVATE = 0o600
COST, BLOCK_SIZE, PARALLEL = 16_384, 8, 1  # 16 MiB and some 50 ms on a Jetson's core
MIN_PASSWORD_CHARS = 8
MAX_PASSWORD_CHARS = 1024
MAX_FILE_BYTES = 65_536

_HASH = re.compile(
    r"scrypt\$([0-9]{1,8})\$([0-9]{1,3})\$([0-9]{1,3})\$([A-Za-z0-9+/=]{16,200})\$([A-Za-z0-9+/=]{16,200})"
)
_TOKEN = re.compile(r"([A-Za-z0-9_-][A-Za-z0-9._-]{0,63}) sha256 ([0-9a-f]{64})")


class PasswordHash:
    """One password, as it is kept."""

    def __init__(self, cost: int, block_size: int, parallel: int, salt: bytes, digest: bytes) -> None:
        self._parameters = (cost, block_size, parallel)
        self._salt = salt
        self._digest = digest

    @staticmethod
    def of(password: str) -> PasswordHash:
        """The hash of a new password; ConfigError where it is too short or too long."""
        if not MIN_PASSWORD_CHARS <= len(password) <= MAX_PASSWORD_CHARS:
            raise ConfigError(
                f"the password has {len(password)} characters; expected {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS}"
            )
        salt = secrets.token_bytes(16)
        digest = _scrypt(password, salt, COST, BLOCK_SIZE, PARALLEL)
        return PasswordHash(COST, BLOCK_SIZE, PARALLEL, salt, digest)

    @staticmethod
    def parse(text: str) -> PasswordHash | None:
        """The inverse of `str`; None for anything else."""
        match = _HASH.fullmatch(text)
        if match is None:
            return None
        cost, block_size, parallel = (int(match[n]) for n in (1, 2, 3))
        bounded = 1024 <= cost <= 1 << 20 and cost & (cost - 1) == 0 and 1 <= block_size <= 32 and 1 <= parallel <= 16
        try:
            salt, digest = (base64.b64decode(match[n], validate=True) for n in (4, 5))
        except ValueError:
            return None
        return PasswordHash(cost, block_size, parallel, salt, digest) if bounded else None

    def fits(self, password: str) -> bool:
        """Whether it is the one; takes 16 MiB and some time."""
        if len(password) > MAX_PASSWORD_CHARS:
            return False
        return hmac.compare_digest(_scrypt(password, self._salt, *self._parameters), self._digest)

    def __str__(self) -> str:
        salt, digest = (base64.b64encode(part).decode("ascii") for part in (self._salt, self._digest))
        return "$".join(("scrypt", *map(str, self._parameters), salt, digest))


class Tokens:
    """The tokens of a file: name and hash of each."""

    def __init__(self, hashes: dict[str, str]) -> None:
        self.hashes = hashes

    def name_of(self, token: str) -> str | None:
        """Whose token it is; None for nobody's. All are compared, in constant time each."""
        digest = token_hash(token)
        found = [name for name, kept in self.hashes.items() if hmac.compare_digest(kept, digest)]
        return found[0] if found else None


def token_hash(token: str) -> str:
    """How a token is kept."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def read_password_hash(path: Path) -> PasswordHash:
    """What `write_password` wrote. ConfigError where it cannot be read, others may read it, or it is no hash."""
    kept = PasswordHash.parse(_read_private(path).strip())
    if kept is None:
        raise ConfigError(f"{path} holds no password's hash; make it by `edge-agent web set-password {path}`")
    return kept


def read_tokens(path: Path) -> Tokens:
    """The tokens in `path`. ConfigError as `read_password_hash`."""
    hashes: dict[str, str] = {}
    for number, line in enumerate(_read_private(path).splitlines(), start=1):
        match = _TOKEN.fullmatch(line.strip())
        if match is not None:
            hashes[match[1]] = match[2]
        elif line.strip():
            raise ConfigError(f"{path}:{number}: no token's hash; make one by `edge-agent web add-token {path} NAME`")
    return Tokens(hashes)


def write_password(path: Path, password: str) -> None:
    """Keeps a password's hash in `path`, its owner's alone. ConfigError for one that cannot be, OSError."""
    write_atomically(path, f"{PasswordHash.of(password)}\n".encode("ascii"), PRIVATE)


def add_token(path: Path, name: str) -> str:
    """Makes a token, keeps its hash in `path` in the place of any other of that name, and gives it: nobody can later.

    ConfigError for a name that cannot be or a file that is none of tokens; OSError.
    """
    if not re.fullmatch(NAME_PATTERN, name):
        raise ConfigError(f"{name[:80]!r} is no name; expected 1 to 64 letters, digits, dots, dashes, underscores")
    known = read_tokens(path).hashes if path.exists() else {}
    token = secrets.token_urlsafe(32)
    known = {**known, name: token_hash(token)}
    text = "".join(f"{each} sha256 {digest}\n" for each, digest in known.items())
    write_atomically(path, text.encode("ascii"), PRIVATE)
    return token


def remove_token(path: Path, name: str) -> None:
    """The token of that name opens nothing any more. ConfigError where there is none; OSError."""
    known = read_tokens(path).hashes
    if name not in known:
        raise ConfigError(f"{path} holds no token {name!r}; there are: {', '.join(known) or 'none'}")
    text = "".join(f"{each} sha256 {digest}\n" for each, digest in known.items() if each != name)
    write_atomically(path, text.encode("ascii"), PRIVATE)


def _read_private(path: Path) -> str:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror}") from exc
    if mode & 0o077:
        raise ConfigError(f"{path} may be used by others (mode {mode:04o}); run: chmod 600 {path}")
    try:
        return content[:MAX_FILE_BYTES].decode("ascii")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} holds other signs than a hash has; write it anew") from None


def _scrypt(password: str, salt: bytes, cost: int, block_size: int, parallel: int) -> bytes:
    memory_bytes = 128 * cost * block_size * (parallel + 2)
    secret = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(secret, salt=salt, n=cost, r=block_size, p=parallel, maxmem=memory_bytes, dklen=32)
