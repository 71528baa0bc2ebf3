"""Certificates for tests, made by the openssl command; skips the test where that is missing."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

_CA_CONFIG = """
[ca]
default_ca = own
[own]
dir = {folder}
database = {folder}/{name}.index
serial = {folder}/{name}.serial
new_certs_dir = {folder}
default_md = sha256
policy = any
unique_subject = no
copy_extensions = copy
[any]
commonName = supplied
"""


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, PEM files."""

    cert: Path
    key: Path


def make_authority(folder: Path) -> Pair:
    """A self-signed authority, valid now."""
    pair = Pair(folder / "authority.pem", folder / "authority.key")
    _openssl("req", "-x509", *_new_key(pair.key), "-out", pair.cert, "-days", "2", "-subj", "/CN=test authority")
    return pair


def make_certificate(
    folder: Path, name: str, authority: Pair, san: str, start: str = "20200101000000Z", end: str = "20990101000000Z"
) -> Pair:
    """A certificate signed by `authority`: `san` such as `DNS:broker.plant.local`, times as YYYYMMDDhhmmssZ."""
    pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    request, config = folder / f"{name}.csr", folder / f"{name}.cnf"
    config.write_text(_CA_CONFIG.format(folder=folder, name=name), encoding="utf-8")
    (folder / f"{name}.index").touch()
    (folder / f"{name}.serial").write_text("01\n", encoding="utf-8")
    extensions = ("-addext", f"subjectAltName={san}")
    _openssl("req", *_new_key(pair.key), "-out", request, "-subj", f"/CN={name}", *extensions)
    signer = ("-cert", authority.cert, "-keyfile", authority.key)
    validity = ("-startdate", start, "-enddate", end)
    _openssl("ca", "-batch", "-notext", "-config", config, *signer, *validity, "-in", request, "-out", pair.cert)
    return pair


def _new_key(path: Path) -> tuple[str | Path, ...]:
    return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path)


def _openssl(*arguments: str | Path) -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("needs the openssl command: apt-get install openssl")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
