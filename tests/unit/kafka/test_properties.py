"""The client's properties are an allow list, held against every property that the client library itself knows."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import confluent_kafka
import pytest

from lagscale.kafka.properties import (
    PLATFORM_PROPERTIES,
    TENANT_PROPERTIES,
    check_properties,
    list_privileged_properties,
)

#: Endings of names that stand for a file, a command, a library, a secret, an address or a callback.
DANGEROUS = re.compile(
    r"\.location$|\.file$|keytab|kinit|plugin|engine|provider|_cb$|callback|password|passphrase|\.pem$|secret|url$|"
    r"bootstrap\.servers|broker\.list|^sasl|verification|verify|^debug|log|opaque|interceptors|^ssl_|signal|events"
)
#: Names that only sound so.
HARMLESS = {"metadata.recovery.strategy"}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """The names of all properties, as the library of the wheel prints them."""
    (path,) = (Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob("librdkafka*.so*")
    library, libc = ctypes.CDLL(str(path)), ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    libc.fopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    libc.fclose.argtypes = [ctypes.c_void_p]
    library.rd_kafka_conf_properties_show.argtypes = [ctypes.c_void_p]
    printed = tmp_path_factory.mktemp("properties") / "all"
    file = libc.fopen(str(printed).encode(), b"w")
    library.rd_kafka_conf_properties_show(file)
    libc.fclose(file)
    return frozenset(re.findall(r"^([a-z][\w.]+) +\|", printed.read_text(), re.MULTILINE))


def test_every_listed_property_is_one_of_the_library(known: frozenset[str]) -> None:
    assert len(known) > 150
    assert set(TENANT_PROPERTIES) | set(PLATFORM_PROPERTIES) <= known
    assert set(TENANT_PROPERTIES) & set(PLATFORM_PROPERTIES) == set()


def test_whatever_is_not_listed_is_refused_to_everybody(known: frozenset[str]) -> None:
    for name in known - TENANT_PROPERTIES.keys():
        assert [field_error.field for field_error in check_properties({name: "1"}, platform=False)[1]] == [
            f"properties.{name}"
        ]
    for name in known - TENANT_PROPERTIES.keys() - PLATFORM_PROPERTIES.keys():
        assert [field_error.field for field_error in check_properties({name: "1"}, platform=True)[1]] == [
            f"properties.{name}"
        ]


def test_nothing_dangerous_is_a_tenants(known: frozenset[str]) -> None:
    dangerous = {name for name in known if DANGEROUS.search(name)} - HARMLESS
    assert {
        "sasl.kerberos.kinit.cmd",
        "plugin.library.paths",
        "ssl.ca.location",
        "open_cb",
        "https.ca.pem",
    } <= dangerous
    assert dangerous & set(TENANT_PROPERTIES) == set()


def test_no_callback_no_secret_and_no_token_setting_is_even_the_platforms(known: frozenset[str]) -> None:
    closed = {name for name in known if re.search(r"_cb$|password|passphrase|\.pem$|oauthbearer|opaque", name)}
    assert len(closed) > 30
    assert closed & set(PLATFORM_PROPERTIES) == set()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("sasl.kerberos.kinit.cmd", "runs a command in Lagscale's pod, so it can be set by a platform administrator"),
        ("plugin.library.paths", "loads a plugin into Lagscale's process, so it"),
        ("ssl.crl.location", "names a file of Lagscale's pod, so it"),
        ("sasl.kerberos.keytab", "names a file of Lagscale's pod, so it"),
        ("debug", "it can be set by a platform administrator only"),
        ("sasl.password", "is not an allowed property; set the secret `secrets.password`"),
        ("sasl.oauthbearer.token.endpoint.url", "is not an allowed property; Lagscale requests tokens itself"),
        ("ssl.key.password", "`secrets.keyPassword`"),
        ("error_cb", "is not an allowed property; see"),
        ("no.such.thing", "is not an allowed property; see"),
    ],
)
def test_a_refusal_says_why_and_the_way_out(name: str, reason: str) -> None:
    _, (field_error,) = check_properties({name: "canary"}, platform=False)
    assert reason in field_error.text
    assert "canary" not in field_error.text


def test_a_refused_name_cannot_fill_the_answer() -> None:
    _, field_errors = check_properties({"x" * 10_000: 1, "a\nb": 1}, platform=True)
    assert [field_error.field for field_error in field_errors] == ["properties.(a name)"] * 2


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("socket.timeout.ms", "2000", 2000),
        ("socket.timeout.ms", 2000, 2000),
        ("socket.keepalive.enable", "TRUE", True),
        ("broker.address.family", "v4", "v4"),
        ("client.id", "lagscale-eu", "lagscale-eu"),
    ],
)
def test_values_have_one_form(name: str, value: object, stored: object) -> None:
    assert check_properties({name: value, "client.rack": None}, platform=False) == ({name: stored}, [])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("socket.timeout.ms", 1),
        ("socket.timeout.ms", True),
        ("socket.timeout.ms", "2e3"),
        ("socket.timeout.ms", "\u0663000"),
        ("receive.message.max.bytes", 2_000_000_000),
        ("reconnect.backoff.ms", 0),
        ("broker.address.family", "v5"),
        ("client.id", "a\nb"),
        ("client.id", ["a"]),
        ("socket.keepalive.enable", "maybe"),
    ],
)
def test_values_out_of_bounds_are_refused(name: str, value: object) -> None:
    found, field_errors = check_properties({name: value}, platform=True)
    assert found == {}
    assert [field_error.field for field_error in field_errors] == [f"properties.{name}"]


def test_what_only_the_platform_may_set_is_told() -> None:
    assert list_privileged_properties({"client.id": "x", "debug": "all", "ssl.ca.location": "/x"}) == [
        "debug",
        "ssl.ca.location",
    ]


def test_the_client_takes_every_property_that_a_tenant_may_set() -> None:
    values = {"broker.address.family": "v4", "metadata.recovery.strategy": "none", "ssl.cipher.suites": "ECDHE+AESGCM"}
    values |= {"ssl.curves.list": "X25519:P-256", "ssl.sigalgs.list": "RSA+SHA256:ECDSA+SHA256"}
    given = {name: values.get(name) or _least(name) for name in TENANT_PROPERTIES}
    found, field_errors = check_properties(given, platform=False)
    assert field_errors == []
    from confluent_kafka.admin import AdminClient

    assert AdminClient({"security.protocol": "SSL", **found}) is not None


def _least(name: str) -> object:
    for value in ("true", "60000", "1048576", "1000"):
        if not check_properties({name: value}, platform=False)[1]:
            return value
    return "x"
