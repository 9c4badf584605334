"""Clusters' properties, references and what is lent by the platform, through the API on a real database."""

from __future__ import annotations

from typing import Any

import httpx
import psycopg
import pytest

from tests.integration.api.conftest import Shop

pytestmark = pytest.mark.integration

MSK = {"sasl": "aws_msk_iam", "tls": "enable", "awsRegion": "eu-west-1"}
REFERENCES = {"username": {"env": "KAFKA_USER"}, "password": {"file": "kafka/password"}}
SASL = {"sasl": "plaintext", "tls": "enable"}


def body(**more: Any) -> dict[str, Any]:
    return {"bootstrapServers": ["kafka:9092"], **more}


def fields(answer: httpx.Response) -> set[str]:
    assert answer.status_code == 422, answer.text
    return {error["field"] for error in answer.json()["errors"]}


async def test_properties_and_references_come_back_as_they_were_given(shop: Shop, shared_url: str) -> None:
    path = f"{shop.path}/clusters/orders"
    wanted = body(security=SASL, secrets=REFERENCES, properties={"socket.timeout.ms": "5000", "client.id": "x"})
    made = await shop.api.put(path, json=wanted)
    assert made.status_code == 201, made.text
    assert made.json()["properties"] == {"socket.timeout.ms": 5000, "client.id": "x"}
    assert made.json()["secretReferences"] == REFERENCES
    assert made.json()["hasSecrets"] is False
    # What is shown can be given back, and is no change.
    again = body(security=made.json()["security"], secrets=made.json()["secretReferences"])
    same = await shop.api.put(path, json=again | {"properties": made.json()["properties"]})
    assert (same.status_code, same.json()["version"]) == (200, 1)
    # Secrets left out stay, the references among them; properties left out go, as all of the body but secrets does.
    assert fields(await shop.api.put(path, json=body(security={**SASL, "username": "u"}))) == {"security.username"}
    kept = await shop.api.put(path, json=body())
    assert kept.status_code == 200, kept.text
    assert (kept.json()["secretReferences"], kept.json()["properties"]) == (REFERENCES, {})
    removed = await shop.api.put(path, json=body(secrets={}))
    assert removed.json()["secretReferences"] == {}
    with psycopg.connect(shared_url) as connection:
        told = connection.execute("select after from audit_event where object = 'cluster/orders'").fetchall()
    assert any(row[0]["secret_references"] == REFERENCES for row in told)


async def test_all_faults_of_security_secrets_and_properties_come_at_once(shop: Shop) -> None:
    key = await shop.key("tenant-admin")
    given = body(
        security={"sasl": "kerberos"},
        secrets={"password": {"file": "/etc/passwd"}},
        properties={"plugin.library.paths": "x", "socket.timeout.ms": 0},
    )
    answer = await shop.api.post(f"{shop.path}/clusters", json=given | {"name": "bad"}, headers=key)
    assert fields(answer) == {
        "security.sasl", "secrets.password", "properties.plugin.library.paths", "properties.socket.timeout.ms",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (body(properties={"ssl.ca.location": "/etc/ca.pem"}), "properties.ssl.ca.location"),
        (body(security=MSK | {"awsPodRole": True}, secrets={}), "security.awsPodRole"),
        (body(security={"sasl": "gssapi", "username": "lagscale"}), "security.mechanism"),
    ],
)
async def test_what_the_platform_lends_is_not_the_tenants_to_take_or_to_send_elsewhere(
    shop: Shop, given: dict[str, Any], field: str
) -> None:
    path = f"{shop.path}/clusters/lent"
    tenant = await shop.key("tenant-admin")
    assert field in fields(await shop.api.put(path, json=given, headers=tenant))
    assert (await shop.api.put(path, json=given)).status_code == 201
    elsewhere = await shop.api.put(path, json=body(bootstrapServers=["evil:9092"]), headers=tenant)
    assert elsewhere.status_code == 403
    assert field in elsewhere.json()["detail"]
    assert (await shop.api.get(path)).json()["version"] == 1
    # The platform goes on to change it, and the tenant may let it go.
    assert (await shop.api.put(path, json=given | {"bootstrapServers": ["other:9092"]})).json()["version"] == 2
    assert (await shop.api.delete(path, headers=tenant)).status_code == 204


@pytest.mark.parametrize(
    "secrets",
    [
        {"password": ["canary"]},
        {"password": {"file": ["canary"]}},
        {"password": {"file": "../canary"}},
        {"password": {"env": "canary"}},
        {"password": {"canary": "x"}},
        {"password": "canary\n"},
        {"key": "canary"},
        ["canary"],
        "canary",
    ],
)
async def test_a_refused_secret_is_not_told_back(shop: Shop, secrets: object) -> None:
    answer = await shop.api.put(f"{shop.path}/clusters/odd", json=body(security=SASL, secrets=secrets))
    assert answer.status_code == 422
    assert "canary" not in answer.text
