"""TLS context: what it demands, and files that cannot be used. Handshakes with a broker are in test_mqtt.py."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from edge_agent.errors import ConfigError
from edge_agent.settings.mqtt import MqttConfig
from edge_agent.transports.tls import tls_context
from tests.certificates import make_authority, make_certificate


def test_certificate_and_name_are_always_checked(tmp_path: Path) -> None:
    authority = make_authority(tmp_path)
    for context in (tls_context(MqttConfig(tls=True)), tls_context(MqttConfig(tls=True, ca_file=authority.cert))):
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_only_the_given_authority_is_trusted(tmp_path: Path) -> None:
    authority = make_authority(tmp_path)
    (only,) = tls_context(MqttConfig(tls=True, ca_file=authority.cert)).get_ca_certs()
    assert only["subject"] == ((("commonName", "test authority"),),)


def test_text_instead_of_a_certificate_is_refused_by_its_key(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("not a certificate")
    with pytest.raises(ConfigError, match=r"mqtt\.ca_file .*ca\.pem cannot be used"):
        tls_context(MqttConfig(tls=True, ca_file=path))


def test_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    authority = make_authority(tmp_path)
    one, other = (make_certificate(tmp_path, name, authority, "DNS:dev") for name in ("one", "other"))
    with pytest.raises(ConfigError, match=r"mqtt\.cert_file .*one\.pem with mqtt\.key_file .*other\.key"):
        tls_context(MqttConfig(tls=True, cert_file=one.cert, key_file=other.key))


def test_key_with_a_passphrase_is_refused_and_nobody_is_asked_for_it(tmp_path: Path) -> None:
    authority = make_authority(tmp_path)
    pair = make_certificate(tmp_path, "dev", authority, "DNS:dev")
    locked = tmp_path / "locked.key"
    command = ["openssl", "ec", "-in", str(pair.key), "-aes256", "-passout", "pass:secret", "-out", str(locked)]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(ConfigError, match=r"mqtt\.key_file .*locked\.key cannot be used"):
        tls_context(MqttConfig(tls=True, cert_file=pair.cert, key_file=locked))
