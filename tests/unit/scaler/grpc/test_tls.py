"""The certificate files at the start: errors name the setting and quote nothing of the content."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from cryptography import x509

from devstack.certificates import Authority, Pair, Request
from lagscale.errors import SettingsInvalid
from services.scaler.grpc.tls import CertificateFiles, CertificateReloader, check, read

_DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.make()


def files(folder: Path, pair: Pair, client_ca: str) -> CertificateFiles:
    for name, text in (("crt", pair.certificate), ("key", pair.key), ("ca", client_ca)):
        (folder / name).write_text(text)
    return CertificateFiles(folder / "crt", folder / "key", folder / "ca")


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ("certificate", "LAGSCALE_SCALER_TLS_CERTIFICATE_FILE: contains no readable PEM certificates"),
        ("key", "LAGSCALE_SCALER_TLS_KEY_FILE: contains no unencrypted PEM private key"),
        ("other key", "LAGSCALE_SCALER_TLS_KEY_FILE: does not match the certificate"),
        ("authorities", "LAGSCALE_SCALER_TLS_CLIENT_CA_FILE: contains no readable PEM certificates"),
        ("missing", r"LAGSCALE_SCALER_TLS_KEY_FILE: cannot be read \(FileNotFoundError\)"),
        ("large", "LAGSCALE_SCALER_TLS_CLIENT_CA_FILE: is too large"),
    ],
)
def test_unusable_files_stop_the_start(tmp_path: Path, authority: Authority, fault: str, named: str) -> None:
    given = files(tmp_path, authority.pair("localhost"), authority.certificate)
    canary = "canary-4471"
    if fault == "certificate":
        given.certificate.write_text(canary)
    elif fault == "key":
        given.key.write_text(f"-----BEGIN PRIVATE KEY-----\n{canary}\n-----END PRIVATE KEY-----\n")
    elif fault == "other key":
        given.key.write_text(authority.pair("localhost").key)
    elif fault == "authorities":
        (tmp_path / "ca").write_text(canary)
    elif fault == "missing":
        given.key.unlink()
    else:
        (tmp_path / "ca").write_text(canary * 200_000)
    with pytest.raises(SettingsInvalid, match=named) as caught:
        CertificateReloader(given)
    assert "canary" not in caught.value.message
    assert str(tmp_path) not in caught.value.message


def test_an_invalid_certificate_is_accepted_at_the_start_but_not_at_a_reload(
    tmp_path: Path, authority: Authority
) -> None:
    past = authority.sign(Request("localhost", (x509.DNSName("localhost"),), begins=-3 * _DAY, ends=-_DAY))
    given = files(tmp_path, past, authority.certificate)
    used = CertificateReloader(given)
    assert used.bundle.expires_at < datetime.datetime.now(datetime.UTC)
    # It is renewed.
    files(tmp_path, authority.pair("localhost"), authority.certificate)
    assert [used.reload(), used.reload(), used.reload()] == [False, True, False]
    good = used.bundle
    for out_of_time in (past, authority.sign(Request("localhost", (x509.DNSName("localhost"),), begins=_DAY / 2))):
        files(tmp_path, out_of_time, authority.certificate)
        assert [used.reload(), used.reload(), used.reload()] == [False, False, False]
        assert used.bundle is good


def test_an_expired_authority_next_to_a_valid_one_is_accepted(tmp_path: Path, authority: Authority) -> None:
    past = authority.sign(Request("old authority", (), begins=-3 * _DAY, ends=-_DAY))
    now = datetime.datetime.now(datetime.UTC)
    both = read(files(tmp_path, authority.pair("localhost"), past.certificate + authority.certificate))
    latest = check(both, now).client_ca_expires_at
    assert latest is not None
    assert latest > now
    with pytest.raises(SettingsInvalid, match="LAGSCALE_SCALER_TLS_CLIENT_CA_FILE: is not currently valid"):
        check(read(files(tmp_path, authority.pair("localhost"), past.certificate)), now)
