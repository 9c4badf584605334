"""The client's settings: each kind of security, properties before our own and never before security."""

from __future__ import annotations

from typing import Any

import pytest

from lagscale.kafka import client as module
from lagscale.kafka.client import FeatureMissing, build_client_config, has_feature

SASL = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "username": "u"}


def config(security: dict[str, Any], secrets: dict[str, str] | None = None, **properties: Any) -> dict[str, Any]:
    return build_client_config(["a:1", "b:2"], security, secrets or {}, properties)


def test_every_part_of_security_has_its_setting() -> None:
    found = config(
        SASL | {"ca": "CA", "certificate": "C", "verify_hostname": False},
        {"password": "p", "key": "K", "key_password": "kp"},
    )
    assert found["bootstrap.servers"] == "a:1,b:2"
    assert {name: value for name, value in found.items() if name.startswith(("s", "e")) and "socket" not in name} == {
        "enable.metrics.push": False, "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u", "sasl.password": "p", "ssl.ca.pem": "CA", "ssl.certificate.pem": "C",
        "ssl.key.pem": "K", "ssl.key.password": "kp", "ssl.endpoint.identification.algorithm": "none",
    }  # fmt: skip


def test_what_is_a_secret_counts_before_what_is_not() -> None:
    found = config(SASL, {"username": "of the file", "password": "p", "ca": "of the file too"})
    assert (found["sasl.username"], found["ssl.ca.pem"]) == ("of the file", "of the file too")


def test_a_password_is_not_handed_to_a_cluster_without_sasl() -> None:
    assert not any(name.startswith("sasl") for name in config({"protocol": "SSL"}, {"password": "p"}))
    oauth = {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "username": "u"}
    assert "sasl.password" not in config(oauth, {"password": "p"})


def test_properties_count_before_ours() -> None:
    assert config({}, None, **{"client.id": "x", "enable.metrics.push": True}) | {"client.id": "x"} == config(
        {}, None, **{"client.id": "x", "enable.metrics.push": True}
    )
    assert config({}, None, **{"reconnect.backoff.ms": 5000})["reconnect.backoff.max.ms"] == 5000
    both = {"reconnect.backoff.ms": 100, "reconnect.backoff.max.ms": 200}
    assert both.items() <= config({}, None, **both).items()


@pytest.mark.parametrize("name", ["sasl.mechanism", "bootstrap.servers", "error_cb", "sasl.oauthbearer.config", "nope"])
def test_a_property_that_nobody_may_set_is_refused_though_it_is_stored(name: str) -> None:
    with pytest.raises(ValueError, match="is not allowed"):
        config({}, None, **{name: "x"})


def test_the_wheel_has_no_kerberos_and_that_is_said() -> None:
    assert has_feature("sasl_scram")
    assert not has_feature("sasl_gssapi")
    with pytest.raises(FeatureMissing):
        config({"protocol": "SASL_SSL", "mechanism": "GSSAPI", "username": "u"})


def test_kerberos_names_cannot_hold_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "has_feature", lambda feature: True)
    given = {"protocol": "SASL_SSL", "mechanism": "GSSAPI", "username": "lagscale/host", "realm": "EXAMPLE.COM"}
    found = config(given)
    assert found["sasl.kerberos.principal"] == "lagscale/host@EXAMPLE.COM"
    assert found["sasl.kerberos.service.name"] == "kafka"
    for wrong in ({"username": "x;id"}, {"realm": "$(id)"}, {"kerberos_service_name": "`id`"}, {"username": ""}):
        with pytest.raises(ValueError, match="Kerberos"):
            config(given | {"realm": ""} | wrong)
    with pytest.raises(ValueError, match="Kerberos"):
        config(given, {"username": "a b"})
