"""Every security kind of KEDA's trigger, in KEDA's spellings and in ours, and what is refused with the way out."""

from __future__ import annotations

from typing import Any

import pytest

from devstack.certificates import Authority
from lagscale.errors import InvalidInput
from lagscale.kafka.security import list_privileged
from services.api.clusters.security import canonicalize

ROLE = "arn:aws:iam::111122223333:role/lagscale"
CERTIFICATE = Authority.make().certificate
KEYS = {"awsAccessKeyID": "AKIA", "awsSecretAccessKey": "s"}
OAUTH = {"sasl": "oauthbearer", "tls": "enable", "username": "c", "oauthTokenEndpointUri": "https://login/t"}
MSK = {"sasl": "aws_msk_iam", "tls": "enable", "awsRegion": "eu-west-1"}


def field_errors(security: dict[str, Any], secrets: dict[str, Any] | None, *, platform: bool = False) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        canonicalize(security, secrets, platform=platform)
    assert "canary" not in caught.value.message
    return {field_error.field: field_error.text for field_error in caught.value.field_errors}


@pytest.mark.parametrize(
    ("keda", "ours", "secrets"),
    [
        (
            {"sasl": "scram_sha256", "tls": "enable", "username": "a"},
            {"protocol": "sasl_ssl", "mechanism": "scram-sha-256", "username": "a"},
            {"password": "p"},
        ),
        (
            {"sasl": "plaintext", "username": "a"},
            {"protocol": "SASL_PLAINTEXT", "mechanism": "plain", "username": "a"},
            {"password": "p"},
        ),
        (
            {**OAUTH, "saslTokenProvider": "bearer", "scopes": "a, b", "oauthExtensions": "logicalCluster=lkc-1,x=y"},
            {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "username": "c", "tokenUrl": "https://login/t",
             "scopes": "a, b", "extensions": "logicalCluster=lkc-1,x=y"},
            {"password": "p"},
        ),
        (
            MSK,
            {"protocol": "SASL_SSL", "mechanism": "AWS_MSK_IAM", "awsRegion": "eu-west-1"},
            {"awsAccessKeyID": "a", "awsSecretAccessKey": "s", "awsSessionToken": "t"},
        ),
        (
            {"sasl": "oauthbearer", "tls": "enable", "saslTokenProvider": "aws_msk_iam", "awsRegion": "eu-west-1"},
            {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "tokenProvider": "aws_msk_iam",
             "awsRegion": "eu-west-1"},
            {"awsAccessKeyId": "a", "awsSecretAccessKey": "s"},
        ),
    ],
)  # fmt: skip
def test_kedas_spellings_and_ours_mean_the_same(
    keda: dict[str, Any], ours: dict[str, Any], secrets: dict[str, str]
) -> None:
    found = canonicalize(keda, secrets)
    assert found == canonicalize(ours, secrets)
    # The stored form, also in camel case as it is shown, is a form that may be given.
    assert canonicalize(found.security, found.secrets) == found
    assert canonicalize(found.security, None).security == found.security


def test_kerberos_is_the_platforms_and_its_names_cannot_hold_a_command() -> None:
    given = {"sasl": "gssapi", "tls": "enable", "username": "lagscale/host", "realm": "EXAMPLE.COM",
             "kerberosServiceName": "kafka"}  # fmt: skip
    assert "platform administrator" in field_errors(given, None)["security.mechanism"]
    assert canonicalize(given, None, platform=True).security["kerberos_service_name"] == "kafka"
    for name in ("username", "realm", "kerberosServiceName"):
        for value in ("a;id", "$(id)", "a b", "`id`", "-x", "a@b|c"):
            assert f"security.{name}" in field_errors({**given, name: value}, None, platform=True)


@pytest.mark.parametrize(
    ("security", "secrets", "field"),
    [
        ({**OAUTH, "oauthTokenEndpointUri": None}, {"password": "canary"}, "security.tokenUrl"),
        ({**OAUTH, "username": None}, {"password": "canary"}, "security.username"),
        (OAUTH, {}, "secrets.password"),
        ({**OAUTH, "oauthTokenEndpointUri": "file:///etc/passwd"}, None, "security.tokenUrl"),
        ({**OAUTH, "oauthTokenEndpointUri": "https://u:p@login/t"}, None, "security.tokenUrl"),
        ({**OAUTH, "oauthTokenEndpointUri": "https://login:99999/t"}, None, "security.tokenUrl"),
        ({**OAUTH, "oauthTokenEndpointUri": "https://login\\@evil/t"}, None, "security.tokenUrl"),
        ({**OAUTH, "oauthTokenEndpointUri": "https:///t"}, None, "security.tokenUrl"),
        ({**OAUTH, "oauthExtensions": "auth=x"}, None, "security.oauthExtensions"),
        ({**OAUTH, "oauthExtensions": "a=b,auth=x"}, None, "security.oauthExtensions"),
        ({**OAUTH, "oauthExtensions": "nothing"}, None, "security.oauthExtensions"),
        ({**OAUTH, "saslTokenProvider": "azure"}, None, "security.saslTokenProvider"),
        ({"sasl": "plaintext", "username": "a", "saslTokenProvider": "bearer"}, None, "security.saslTokenProvider"),
        ({"sasl": "none", "saslTokenProvider": "aws_msk_iam"}, None, "security.saslTokenProvider"),
        ({"sasl": "plaintext", "username": "a", "scopes": "x"}, None, "security.scopes"),
        ({"tls": "enable", "awsRegion": "eu-west-1"}, None, "security.awsRegion"),
        ({**MSK, "tls": "disable"}, KEYS, "security.protocol"),
        ({**MSK, "awsRegion": "evil.example/#"}, KEYS, "security.awsRegion"),
        (MSK, {"awsAccessKeyID": "AKIA"}, "secrets.awsSecretAccessKey"),
        (MSK, {}, "secrets.awsAccessKeyID"),
        ({**MSK, "awsEndpoint": "x"}, KEYS, "security.awsEndpoint"),
        ({"protocol": "SASL_SSL", "username": "a"}, {"password": "canary"}, "security.mechanism"),
        ({"sasl": "plaintext", "username": "a"}, {"username": "b", "password": "canary"}, "secrets.username"),
        ({"sasl": "gssapi", "keytab": "canary"}, None, "security.keytab"),
        ({}, {"kerberosConfig": "canary"}, "secrets.kerberosConfig"),
        ({}, {"realm": "canary"}, "secrets.realm"),
        ({"sasl": "plaintext", "username": "a"}, {"password": {"file": "../x"}}, "secrets.password"),
        ({"sasl": "plaintext", "username": "a"}, {"password": {"url": "canary"}}, "secrets.password"),
    ],
)
def test_what_is_missing_or_too_much_is_named(
    security: dict[str, Any], secrets: dict[str, Any] | None, field: str
) -> None:
    assert field in field_errors(security, secrets)


def test_the_pods_role_is_lent_by_the_platform_only() -> None:
    for lent in ({"awsPodRole": True}, {"awsRoleArn": ROLE}):
        (name,) = lent
        assert "platform administrator" in field_errors({**MSK, **lent}, {})[f"security.{name}"]
        stored = canonicalize({**MSK, **lent}, {}, platform=True).security
        assert list_privileged(stored, {}) == [f"security.{name}"]
        assert "secrets.awsAccessKeyID" in field_errors({**MSK, **lent}, KEYS, platform=True)
    assert "security.awsRoleArn" in field_errors({**MSK, "awsRoleArn": "arn:x"}, {}, platform=True)


def test_secrets_may_be_references_and_then_nothing_of_them_is_sealed() -> None:
    found = canonicalize(
        {"protocol": "SASL_SSL", "mechanism": "PLAIN"},
        {"username": {"env": "KAFKA_USER"}, "password": {"file": "kafka/password"}, "ca": {"file": "kafka/ca.crt"}},
    )
    assert found.secrets == {}
    assert found.references == {
        "username": {"env": "KAFKA_USER"}, "password": {"file": "kafka/password"}, "ca": {"file": "kafka/ca.crt"},
    }  # fmt: skip
    mixed = canonicalize({"protocol": "SSL"}, {"cert": {"file": "user.crt"}, "key": {"file": "k"}, "keyPassword": "p"})
    assert mixed.secrets == {"key_password": "p"}
    assert mixed.references == {"certificate": {"file": "user.crt"}, "key": {"file": "k"}}


@pytest.mark.parametrize(
    "extensions", ["extension_logicalCluster=lkc-1,extension_identityPoolId=pool-2", "extension_logicalCluster=lkc-1"]
)
def test_extensions_by_their_url_names_point_to_their_own(extensions: str) -> None:
    text = field_errors(OAUTH | {"oauthExtensions": extensions}, {"password": "p"})["security.oauthExtensions"]
    assert "names are letters" in text
    assert "did you mean logicalCluster" in text
    assert ("identityPoolId" in text) == ("identityPoolId" in extensions)
    other = field_errors(OAUTH | {"oauthExtensions": "a-b=c"}, {"password": "p"})["security.oauthExtensions"]
    assert "did you mean" not in other


def test_a_damaged_certificate_is_an_error_with_the_number_of_its_block() -> None:
    pair = Authority.make().pair("lagscale")
    cut = CERTIFICATE[: len(CERTIFICATE) // 2]
    end = "\n-----END CERTIFICATE-----\n"
    given = {"tls": "enable"}
    for second, text in ((cut + end, "no readable certificate"), (cut, "has no -----END CERTIFICATE-----")):
        found = field_errors(given | {"cert": pair.certificate + second}, {"key": pair.key})["security.certificate"]
        assert found.startswith("block 2 of 2")
        assert text in found
    (found,) = field_errors(given | {"ca": CERTIFICATE + pair.key}, None).values()
    assert found == "block 2 of 2 is a private key; move it to `secrets.key`"
    assert field_errors(given, {"key": pair.key[:80]})["secrets.key"].startswith("block 1 of 1 has no -----END")


def test_chains_with_text_between_their_blocks_and_other_line_ends_are_accepted() -> None:
    pair = Authority.make().pair("lagscale")
    chain = f"Bag Attributes\n    friendlyName: a\n{pair.certificate}subject=CN = b\n\n{CERTIFICATE}"
    for text in (chain, chain.replace("\n", "\r\n"), pair.certificate.strip() + "\n" + CERTIFICATE):
        found = canonicalize({"tls": "enable", "cert": text, "ca": text}, {"key": pair.key.replace("\n", "\r\n")})
        assert found.security["certificate"] == found.security["ca"] == text


def test_unknown_fields_name_their_neighbor() -> None:
    found = field_errors({"protocl": "SSL"}, {"pasword": "canary", "zzzzzz": "canary"})
    assert found["security.protocl"] == "unknown field; did you mean protocol?"
    assert found["secrets.pasword"] == "unknown field; did you mean password?"
    assert found["secrets.zzzzzz"].startswith("unknown field; valid fields: awsAccessKeyID, ")
