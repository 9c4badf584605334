"""The settings of identification: every fault names its variable and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from lagscale.errors import SettingsInvalid
from lagscale.settings import load
from services.api.settings import ApiSettings

ISSUER = "https://login.example/realms/platform"


@pytest.fixture(autouse=True)
def database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGSCALE_DATABASE_URL", "postgresql://db.example/lagscale")


def loaded(monkeypatch: pytest.MonkeyPatch, **variables: str) -> ApiSettings:
    for name, text in variables.items():
        monkeypatch.setenv(f"LAGSCALE_API_{name}", text)
    return load(ApiSettings)


def test_no_issuer_means_no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loaded(monkeypatch).token_rules is None
    assert loaded(monkeypatch, OIDC_ISSUER="").token_rules is None


def test_all_of_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = loaded(
        monkeypatch,
        OIDC_ISSUER=ISSUER,
        OIDC_AUDIENCES="lagscale, other",
        OIDC_ALGORITHMS="ES256, EdDSA",
        OIDC_LEEWAY_SECONDS="5",
        OIDC_TENANT_CLAIM="groups",
        OIDC_TENANTS='{"cn=a,ou=b": "shop"}',
        OIDC_ROLE_CLAIM="realm_access.roles",
        OIDC_ROLES='{"x": "tenant-admin"}',
    ).token_rules
    assert rules is not None
    assert (rules.issuer, rules.audiences, rules.algorithms) == (ISSUER, ("lagscale", "other"), ("ES256", "EdDSA"))
    assert (rules.leeway_seconds, rules.tenant_claim, rules.role_claim) == (5, "groups", "realm_access.roles")
    assert (rules.tenants, rules.roles) == ({"cn=a,ou=b": "shop"}, {"x": "tenant-admin"})


@pytest.mark.parametrize(
    ("variables", "named", "remediation"),
    [
        ({"OIDC_ISSUER": ISSUER}, "LAGSCALE_API_OIDC_AUDIENCES", "must be set"),
        ({"OIDC_ISSUER": "http://login.example", "OIDC_AUDIENCES": "x"}, "LAGSCALE_API_OIDC_ISSUER", "https://"),
        ({"OIDC_ISSUER": "login.example", "OIDC_AUDIENCES": "x"}, "LAGSCALE_API_OIDC_ISSUER", "https://"),
        ({"OIDC_ALGORITHMS": "RS256,HS256"}, "LAGSCALE_API_OIDC_ALGORITHMS", "ES256"),
        ({"OIDC_ALGORITHMS": "none"}, "LAGSCALE_API_OIDC_ALGORITHMS", "ES256"),
        ({"OIDC_ALGORITHMS": ","}, "LAGSCALE_API_OIDC_ALGORITHMS", "ES256"),
        ({"OIDC_TENANTS": "a=b"}, "LAGSCALE_API_OIDC_TENANTS", "JSON object"),
        ({"OIDC_TENANTS": '{"a": ["b"]}'}, "LAGSCALE_API_OIDC_TENANTS", "JSON object"),
        ({"OIDC_ROLES": '{"a": "king"}'}, "LAGSCALE_API_OIDC_ROLES", "tenant-viewer"),
        ({"OIDC_CA_FILE": "/nowhere/ca.pem"}, "LAGSCALE_API_OIDC_CA_FILE", "readable file"),
        ({"OIDC_LEEWAY_SECONDS": "3000"}, "LAGSCALE_API_OIDC_LEEWAY_SECONDS", "300"),
        ({"TRUSTED_PROXIES": "*"}, "LAGSCALE_API_TRUSTED_PROXIES", "10.0.0.0/8"),
        ({"TRUSTED_PROXIES": "proxy.example"}, "LAGSCALE_API_TRUSTED_PROXIES", "names are not looked up"),
        ({"TRUSTED_PROXIES": "10.0.0.7/8"}, "LAGSCALE_API_TRUSTED_PROXIES", "10.0.0.0/8"),
        ({"RATE_LIMIT_BURST": "0"}, "LAGSCALE_API_RATE_LIMIT_BURST", "1"),
    ],
)
def test_a_fault_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], named: str, remediation: str
) -> None:
    with pytest.raises(SettingsInvalid) as refused:
        loaded(monkeypatch, **variables)
    assert named in refused.value.message
    assert remediation in refused.value.message


def test_a_file_without_certificates_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(SettingsInvalid, match="LAGSCALE_API_OIDC_CA_FILE"):
        loaded(monkeypatch, OIDC_CA_FILE=str(tmp_path / "ca.pem"))


def test_proxies_are_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loaded(monkeypatch, TRUSTED_PROXIES="10.0.0.0/8, 2001:db8::1").proxies == ("10.0.0.0/8", "2001:db8::1")
