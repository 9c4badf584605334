"""Settings: slips stop the start and name the way out; secrets stay secret."""

from __future__ import annotations

import importlib

import pytest
from pydantic import BaseModel, SecretStr
from pydantic_settings import BaseSettings

from lagscale.errors import FieldError, SettingsInvalid
from lagscale.kafka.secrets import TENANT_VARIABLE_PREFIX
from lagscale.settings import (
    RENAMED,
    SETTING_NAMES,
    ServiceSettings,
    SingleMonitorSettings,
    find_unknown_names,
    load,
    split_address,
)
from services.scaler.settings import ScalerSettings

CLASSES = ("services.api.settings", "services.cli.settings", "services.scaler.settings", "services.scraper.settings")
MINIMAL = {"LAGSCALE_DATABASE_URL": "postgresql://u:canary-7281@db/lagscale"}


def settings_classes() -> list[type[BaseSettings]]:
    found: list[type[BaseSettings]] = [ServiceSettings]
    for name in CLASSES:
        module = importlib.import_module(name)
        found += [
            kind
            for kind in vars(module).values()
            if isinstance(kind, type) and issubclass(kind, BaseSettings) and kind.__module__ == name
        ]
    return found


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    import os

    for name in list(os.environ):
        if name.upper().startswith("LAGSCALE_"):
            monkeypatch.delenv(name)
    for name, text in MINIMAL.items():
        monkeypatch.setenv(name, text)
    return monkeypatch


def test_every_setting_of_every_service_is_in_the_table_of_names() -> None:
    for kind in settings_classes():
        for name, field in kind.model_fields.items():
            variable = str(field.validation_alias or field.alias or f"LAGSCALE_{name.upper()}")
            assert not variable.startswith("LAGSCALE_") or variable in SETTING_NAMES, f"{variable} of {kind.__name__}"


def test_every_field_is_described_and_none_is_called_port_or_host() -> None:
    classes: list[type[BaseModel]] = [*settings_classes(), SingleMonitorSettings]
    for kind in classes:
        for name, field in kind.model_fields.items():
            assert field.description, f"{kind.__name__}.{name}"
            assert name not in {"port", "host"}


def test_secrets_are_typed_as_secrets() -> None:
    for kind in settings_classes():
        for name, field in kind.model_fields.items():
            if name.endswith(("_key", "_keys", "database_url", "password")):
                assert "SecretStr" in str(field.annotation), f"{kind.__name__}.{name}"


def test_defaults_are_enough_beside_the_database(environ: pytest.MonkeyPatch) -> None:
    settings = load(ServiceSettings)
    assert settings.tick_seconds == 5.0
    assert settings.database_url == SecretStr(MINIMAL["LAGSCALE_DATABASE_URL"])


def test_settings_are_frozen(environ: pytest.MonkeyPatch) -> None:
    settings = load(ServiceSettings)
    with pytest.raises(ValueError, match="frozen"):
        settings.tick_seconds = 1.0


def test_an_unknown_name_stops_the_start_and_names_its_neighbour(environ: pytest.MonkeyPatch) -> None:
    environ.setenv("LAGSCALE_TICK_SECOND", "3")
    with pytest.raises(SettingsInvalid, match=r"LAGSCALE_TICK_SECOND: .* did you mean LAGSCALE_TICK_SECONDS\?"):
        load(ServiceSettings)


def test_another_services_name_is_no_slip() -> None:
    assert (
        find_unknown_names(["LAGSCALE_API_ADMIN_KEY", "LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP", "PATH", "KAFKA_TOPIC"]) == []
    )


@pytest.mark.parametrize(("former", "name"), RENAMED.items())
def test_a_former_name_stops_the_start_and_names_the_new_one(
    environ: pytest.MonkeyPatch, former: str, name: str
) -> None:
    environ.setenv(former, "3")
    with pytest.raises(SettingsInvalid) as refused:
        load(ServiceSettings)
    assert refused.value.facts["field_errors"] == [FieldError(former, f"was renamed to {name}; set that instead")]


def test_former_names_are_settings_no_more() -> None:
    assert not RENAMED.keys() & SETTING_NAMES
    assert set(RENAMED.values()) <= SETTING_NAMES


def test_no_setting_looks_like_a_tenants_secret() -> None:
    # Such a variable would be handed to clusters of tenants, and a typo in it would go unnoticed.
    assert [name for name in SETTING_NAMES if name.startswith(TENANT_VARIABLE_PREFIX)] == []


def test_all_faults_are_told_at_once_without_values(environ: pytest.MonkeyPatch) -> None:
    environ.setenv("LAGSCALE_DATABASE_URL", "mysql://u:canary-7281@db")
    environ.setenv("LAGSCALE_TICK_SECONDS", "canary-7281")
    environ.setenv("LAGSCALE_LOG_LEVEL", "loud")
    with pytest.raises(SettingsInvalid) as caught:
        load(ServiceSettings)
    text = caught.value.message
    for name in ("LAGSCALE_DATABASE_URL", "LAGSCALE_TICK_SECONDS", "LAGSCALE_LOG_LEVEL"):
        assert name in text
    assert "canary" not in text + repr(caught.value.facts)


def test_a_missing_variable_is_named(environ: pytest.MonkeyPatch) -> None:
    environ.delenv("LAGSCALE_DATABASE_URL")
    with pytest.raises(SettingsInvalid, match="LAGSCALE_DATABASE_URL: must be set"):
        load(ServiceSettings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("127.0.0.1:80", ("127.0.0.1", 80)), (":8080", ("", 8080)), ("[::1]:9", ("::1", 9)), ("a.b:0", ("a.b", 0))],
)
def test_addresses_are_split(text: str, expected: tuple[str, int]) -> None:
    assert split_address(text) == expected


@pytest.mark.parametrize("text", ["", "8080", "host:", "host:http", "host:70000"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must have the form"):
        split_address(text)


def test_one_monitor_is_read_with_its_policy() -> None:
    single = SingleMonitorSettings.parse(
        {
            "KAFKA_BROKERS": "a:9092,b:9092",
            "KAFKA_TOPIC": "orders, refunds,orders",
            "KAFKA_GROUP_ID": "g",
            "LAG_THRESHOLD": "500",
            "WINDOW_SIZE": "",
        }
    )
    assert single.topics() == ["orders", "refunds"]
    assert single.policy() == {"lagThreshold": "500"}
    assert single.grpc_port == 50051


def test_an_incomplete_monitor_names_what_is_missing() -> None:
    assert SingleMonitorSettings.is_configured({"KAFKA_TOPIC": "orders"})
    assert not SingleMonitorSettings.is_configured({"LAG_THRESHOLD": "5", "KAFKA_TOPIC": ""})
    with pytest.raises(SettingsInvalid) as caught:
        SingleMonitorSettings.parse({"KAFKA_TOPIC": "orders", "GRPC_PORT": "many"})
    assert {fault.field for fault in caught.value.facts["field_errors"]} == {
        "KAFKA_BROKERS",
        "KAFKA_GROUP_ID",
        "GRPC_PORT",
    }  # type: ignore[attr-defined]


_TLS = {
    "LAGSCALE_SCALER_TLS_CERTIFICATE_FILE": "/tls/tls.crt",
    "LAGSCALE_SCALER_TLS_KEY_FILE": "/tls/tls.key",
    "LAGSCALE_SCALER_TLS_CLIENT_CA_FILE": "/tls/ca.crt",
}
_SECURITY, _SECOND = "LAGSCALE_SCALER_GRPC_SECURITY", "LAGSCALE_SCALER_MTLS_LISTEN"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({_SECURITY: "mtls"}, "TLS requires .*CERTIFICATE_FILE and .*KEY_FILE and .*CLIENT_CA_FILE"),
        ({**_TLS, _SECURITY: "tls"}, "LAGSCALE_SCALER_TLS_CLIENT_CA_FILE is unused"),
        ({_SECURITY: "tls"}, "requires LAGSCALE_SCALER_TLS_CERTIFICATE_FILE and LAGSCALE_SCALER_TLS_KEY_FILE$"),
        ({_SECOND: ":50052"}, "TLS requires .*LAGSCALE_SCALER_TLS_CLIENT_CA_FILE$"),
        (_TLS, "is unused; set LAGSCALE_SCALER_GRPC_SECURITY"),
        ({**_TLS, _SECURITY: "mtls", _SECOND: ":50052"}, "LAGSCALE_SCALER_MTLS_LISTEN requires a first address"),
        ({_SECURITY: "ssl"}, "LAGSCALE_SCALER_GRPC_SECURITY: "),
    ],
)
def test_a_listener_is_never_less_safe_than_its_settings_look(
    environ: pytest.MonkeyPatch, given: dict[str, str], said: str
) -> None:
    for name, text in given.items():
        environ.setenv(name, text)
    with pytest.raises(SettingsInvalid, match=said):
        load(ScalerSettings)


@pytest.mark.parametrize("given", [{_SECURITY: "mtls"}, {_SECOND: ":50052"}, {_SECOND: ":50052", _SECURITY: "tls"}])
def test_a_listener_with_client_certificates_has_all_it_needs(
    environ: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    for name, text in (_TLS | given).items():
        environ.setenv(name, text)
    assert load(ScalerSettings).requires_client_certificates
