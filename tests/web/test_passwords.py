"""Passwords: what is kept is a hash, its owner's alone, and opens for the right one only."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from edge_agent.__main__ import main
from edge_agent.errors import ConfigError
from edge_agent.web.passwords import (
    PasswordHash,
    add_token,
    read_password_hash,
    read_tokens,
    remove_token,
    write_password,
)


def test_kept_password_fits_itself_alone_and_stands_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "web_password"
    write_password(path, "Grüße aus Halle 7")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "Halle" not in path.read_text()
    kept = read_password_hash(path)
    assert kept.fits("Grüße aus Halle 7")
    assert not kept.fits("Grüße aus Halle 8")
    assert not kept.fits("")
    assert not kept.fits("x" * 1_000_000)


def test_same_password_is_kept_differently_each_time() -> None:
    assert str(PasswordHash.of("correct horse")) != str(PasswordHash.of("correct horse"))


@pytest.mark.parametrize("password", ["", "short", "x" * 1025])
def test_password_that_is_too_short_or_too_long_is_refused(tmp_path: Path, password: str) -> None:
    with pytest.raises(ConfigError, match="expected 8 to 1024"):
        write_password(tmp_path / "web_password", password)
    assert not (tmp_path / "web_password").exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "web_password"
    write_password(path, "correct horse")
    path.chmod(mode)
    with pytest.raises(ConfigError, match="run: chmod 600"):
        read_password_hash(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "correct horse",
        "scrypt$16384$8$1$c2FsdHNhbHRzYWx0c2FsdA==$",
        "scrypt$99999999$8$1$c2FsdHNhbHRzYWx0c2FsdA==$c2FsdHNhbHRzYWx0c2FsdA==",  # would take 100 GB
        "scrypt$16384$8$1$c2FsdHNhbHRzYWx0c2FsdA=$c2FsdHNhbHRzYWx0c2FsdA==",
    ],
)
def test_file_without_a_hash_is_refused_without_repeating_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "web_password"
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(ConfigError, match="holds no password's hash") as refused:
        read_password_hash(path)
    assert "horse" not in str(refused.value)


def test_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_password_hash(tmp_path / "none")


def test_tokens_are_told_apart_replaced_and_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    historian, first_mes = add_token(path, "historian"), add_token(path, "mes")
    mes = add_token(path, "mes")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert mes not in path.read_text()
    tokens = read_tokens(path)
    assert [tokens.name_of(token) for token in (historian, mes, first_mes, "", "mes")] == [
        "historian",
        "mes",
        None,
        None,
        None,
    ]
    remove_token(path, "mes")
    assert read_tokens(path).name_of(mes) is None
    with pytest.raises(ConfigError, match="holds no token 'mes'; there are: historian"):
        remove_token(path, "mes")


@pytest.mark.parametrize("name", ["", "a b", "../x", "n\nm sha256 0", "x" * 65])
def test_name_of_a_token_cannot_forge_a_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="is no name"):
        add_token(tmp_path / "tokens", name)


def test_command_keeps_the_password_of_its_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "web_password"
    monkeypatch.setattr("sys.stdin", (tmp_path / "typed").open("w+"))
    (tmp_path / "typed").write_text("correct horse\n")
    assert main(["web", "set-password", str(path)]) == 0
    assert read_password_hash(path).fits("correct horse")
    assert "horse" not in "".join(capsys.readouterr())


def test_command_prints_a_token_that_opens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tokens"
    assert main(["web", "add-token", str(path), "mes"]) == 0
    assert read_tokens(path).name_of(capsys.readouterr().out.strip()) == "mes"
    assert main(["web", "remove-token", str(path), "mes"]) == 0
