"""The cluster of a trigger: addresses and security, from whatever the manifests tell; what they do not is asked for.

Two triggers have one cluster when their addresses, in any order, and their security are the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from services.cli.importing.findings import Findings, Outcome
from services.cli.importing.kafka_keys import KEDA_KEYS, Fate
from services.cli.importing.sources import SECRETS, Given
from services.cli.importing.trigger import Trigger

_USER = ("username", "password")
#: `sasl` of KEDA's -> what it needs, and what it may have.
_NEEDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "none": ((), ()),
    "plaintext": (_USER, ()),
    "scram_sha256": (_USER, ()),
    "scram_sha512": (_USER, ()),
    "oauthbearer": ((*_USER, "oauthTokenEndpointUri"), ("scopes", "oauthExtensions", "saslTokenProvider")),
    "gssapi": (("username",), ("password", "realm", "kerberosServiceName")),
}
_MSK = ("awsRegion",), ("saslTokenProvider", "awsRoleArn", "awsAccessKeyID", "awsSecretAccessKey", "awsSessionToken")
_TLS = ("ca", "cert", "key", "keyPassword")
_AWS = {"aws", "aws-eks", "aws-kiam"}
_NAME_LENGTH = 50


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster to be registered.

    Attributes:
        servers: addresses in their order; one `Given` without a text where they are not known.
        security, secrets: KEDA's key -> value or place; of secrets only places.
        pod_role: the pod's own role at AWS is meant.
    """

    tenant: str
    servers: tuple[Given, ...]
    security: tuple[tuple[str, Given], ...]
    secrets: tuple[tuple[str, Given], ...]
    pod_role: bool = False

    @property
    def digest(self) -> str:
        """Eight hex digits of its content, the same in every run."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:8]

    @property
    def stem(self) -> str:
        """A name for it, from its first address; not yet unique."""
        text = self.servers[0].text or "kafka"
        host = re.sub(r":\d+$", "", text).lower()
        host = re.sub(r"\.svc(\.cluster\.local)?$", "", host)
        stem = re.sub(r"[^a-z0-9]+", "-", host).strip("-")[:_NAME_LENGTH].strip("-") or "kafka"
        return f"kafka-{stem}"[:_NAME_LENGTH].strip("-") if stem[0].isdigit() else stem


def cluster_of(trigger: Trigger, tenant: str, findings: Findings) -> Cluster:
    """The cluster of a trigger; tells of every key that belongs to it."""
    security: dict[str, Given] = {}
    secrets: dict[str, Given] = {}
    sasl, needs, may = _kind(trigger, findings)
    tls = trigger.text("tls")
    if tls not in {"enable", "disable"}:
        findings.faults.append(f"{trigger.key('tls')}: must be enable or disable, for KEDA too")
    unknown_tls = _is_elsewhere(trigger, "tls")
    for name in ("sasl", "tls"):
        if name in trigger.values:
            security[name] = trigger.values[name]
        elif trigger.authentication.missing:
            security[name] = Given(None, f"{trigger.authentication.told}, parameter {name}, if it has it")
    if sasl and sasl != "none":
        security["sasl"] = Given(sasl, "the trigger")
    used = {*needs, *may, *(_TLS if tls == "enable" or unknown_tls else ())}
    for name in used & trigger.values.keys():
        if KEDA_KEYS[name].fate in {Fate.SECURITY, Fate.SECRET}:
            (secrets if name in SECRETS else security)[name] = trigger.values[name]
    pod_role = _of_aws(trigger, needs, security, secrets, findings)
    for name in needs:
        if name not in security and name not in secrets:
            _missing(trigger, name, secrets if name in SECRETS else security, findings)
    if tls == "enable" and ("cert" in trigger.values) != ("key" in trigger.values):
        findings.faults.append(f"{trigger.path}: cert and key must be given together, for KEDA too")
    _tell(trigger, used, sasl, findings)
    servers = _servers(trigger, findings)
    _drop_defaults(security)
    return Cluster(tenant, servers, tuple(sorted(security.items())), tuple(sorted(secrets.items())), pod_role)


def _kind(trigger: Trigger, findings: Findings) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The kind of SASL, what it needs, and what it may have; empty where the manifests do not tell it."""
    if _is_elsewhere(trigger, "sasl") or (trigger.authentication.missing and "sasl" not in trigger.values):
        every = tuple(name for needs, may in (*_NEEDS.values(), _MSK) for name in (*needs, *may))
        return "", (), every
    sasl = trigger.text("sasl")
    if sasl == "aws_msk_iam" or (sasl == "oauthbearer" and trigger.text("saslTokenProvider") == "aws_msk_iam"):
        return sasl, *_MSK
    if sasl not in _NEEDS:
        findings.faults.append(f"{trigger.key('sasl')}: must be one of {', '.join(_NEEDS)}, for KEDA too")
        return sasl, (), ()
    return sasl, *_NEEDS[sasl]


def _is_elsewhere(trigger: Trigger, name: str) -> bool:
    given = trigger.values.get(name)
    return given is not None and given.text is None


def _of_aws(
    trigger: Trigger, needs: tuple[str, ...], security: dict[str, Given], secrets: dict[str, Given], findings: Findings
) -> bool:
    """Whether the pod's own role is meant."""
    identity = trigger.authentication.identity
    msk = needs == _MSK[0]
    if identity:
        path = f"{trigger.path}.authenticationRef.podIdentity"
        if msk and identity in _AWS:
            role = trigger.authentication.role
            if role:
                security.setdefault("awsRoleArn", Given(role, ""))
            key = "awsRoleArn" if role else "awsPodRole"
            findings.say(path, Outcome.CHANGED, f"becomes {key} of the cluster, by the role of Lagscale's scraper")
        else:
            why = f"{identity} is KEDA's own identity towards its cloud; Lagscale reads nothing from there"
            findings.say(path, Outcome.DROPPED, why)
    if not msk or "awsAccessKeyID" in secrets:
        return False
    findings.need(
        "A cluster on MSK takes the role of the scraper's pod (awsPodRole, awsRoleArn): give that pod a role that may "
        "connect and describe, or take on the other one, and let a platform administrator apply the cluster."
    )
    return "awsRoleArn" not in security


def _missing(trigger: Trigger, name: str, into: dict[str, Given], findings: Findings) -> None:
    """What KEDA needs and nobody gives: a fault, unless it may stand in an authentication that was not read."""
    if trigger.authentication.missing:
        into[name] = Given(None, f"{trigger.authentication.told}, parameter {name}")
    else:
        sasl = trigger.text("sasl")
        findings.faults.append(
            f"{trigger.path}: sasl {sasl} needs {name}, for KEDA too; name an authenticationRef with it"
        )


def _tell(trigger: Trigger, used: Iterable[str], sasl: str, findings: Findings) -> None:
    for name, given in trigger.values.items():
        key, path = KEDA_KEYS[name], trigger.key(name)
        if key.fate is Fate.NOWHERE:
            findings.say(path, Outcome.DROPPED, key.why)
        elif name in {"sasl", "tls"}:
            findings.say(path, Outcome.CHANGED, _with_source("moves to the cluster, in KEDA's spelling", given))
        elif key.fate in {Fate.SECURITY, Fate.SECRET}:
            if name in used:
                where = "secrets" if name in SECRETS else "security"
                findings.say(path, Outcome.CHANGED, _with_source(f"becomes {where}.{name} of the cluster", given))
            else:
                findings.say(path, Outcome.DROPPED, f"has no use with sasl {sasl or 'none'} and this tls")
    if trigger.flag("unsafeSsl"):
        findings.need(
            "A trigger does not check certificates (unsafeSsl); Lagscale always does: give that cluster `ca`, and "
            "`verifyHostname: false` where names differ."
        )
    if trigger.authentication.missing:
        told = trigger.authentication.told
        findings.need(f"{told} is not among the manifests; add it and import again, or fill in the cluster by hand.")


def _with_source(text: str, given: Given) -> str:
    return text if given.text is not None else f"{text}; its value stands in {given.told}"


def _drop_defaults(security: dict[str, Given]) -> None:
    """One cluster, whether KEDA's defaults are written or not."""
    for name, default in (("sasl", "none"), ("tls", "disable"), ("saslTokenProvider", "bearer")):
        given = security.get(name)
        if given is not None and given.text is not None and given.text.strip() in {default, ""}:
            del security[name]
    for name, given in security.items():
        # Where a value came from does not make it another one.
        security[name] = given if given.text is None else Given(given.text.strip(), "")


def _servers(trigger: Trigger, findings: Findings) -> tuple[Given, ...]:
    given = trigger.values.get("bootstrapServers", Given(None, "nowhere"))
    if given.text is None:
        return (given,)
    servers = sorted({part.strip() for part in given.text.split(",") if part.strip()})
    for number, server in enumerate(servers):
        if re.fullmatch(r"[^\s:/]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}", server) is None:
            text = f"address {number} must read like kafka.example:9092, for KEDA too"
            findings.faults.append(f"{trigger.key('bootstrapServers')}: {text}")
    return tuple(Given(one, "") for one in servers) or (Given(None, "nowhere"),)
