"""The cluster of a trigger: addresses and security, as far as the manifests contain them.

Two triggers share a cluster if their addresses, in any order, and their security are equal.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lagscale.domain.policy.keda_keys import KEDA_KEYS, SECRETS, KeyTarget
from services.cli.importing.triggers import KedaTrigger, SourcedValue

_USER = ("username", "password")
#: `sasl` of KEDA -> required and optional keys.
_SASL_KEYS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "none": ((), ()),
    "plaintext": (_USER, ()),
    "scram_sha256": (_USER, ()),
    "scram_sha512": (_USER, ()),
    "oauthbearer": ((*_USER, "oauthTokenEndpointUri"), ("scopes", "oauthExtensions", "saslTokenProvider")),
    "gssapi": (("username",), ("password", "realm", "kerberosServiceName")),
}
_MSK_KEYS = (
    ("awsRegion",),
    ("saslTokenProvider", "awsRoleArn", "awsAccessKeyID", "awsSecretAccessKey", "awsSessionToken"),
)
_TLS = ("ca", "cert", "key", "keyPassword")
_HOST = re.compile(r"[^\s:/\[\]]+|\[[0-9a-fA-F:]+\]")
_SERVER = re.compile(r"[^\s:/]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}")
_AWS = {"aws", "aws-eks", "aws-kiam"}
_NAME_LENGTH = 50


@dataclass(frozen=True, slots=True)
class ImportedCluster:
    """A cluster to register.

    Attributes:
        servers: addresses, sorted; one `SourcedValue` without a text if they are unknown.
        security, secrets: KEDA's key -> value or source; of secrets only sources.
        pod_role: the AWS role of the pod is used.
    """

    tenant: str
    servers: tuple[SourcedValue, ...]
    security: tuple[tuple[str, SourcedValue], ...]
    secrets: tuple[tuple[str, SourcedValue], ...]
    pod_role: bool = False

    @property
    def digest(self) -> str:
        """Eight hex digits of a hash of its content, stable across runs."""
        return hashlib.sha256(_canonical_text(self).encode()).hexdigest()[:8]

    @property
    def name_candidate(self) -> str:
        """A name from the first address; not yet unique."""
        text = self.servers[0].text or "kafka"
        host = re.sub(r":\d+$", "", text).lower()
        host = re.sub(r"\.svc(\.cluster\.local)?$", "", host)
        name_candidate = re.sub(r"[^a-z0-9]+", "-", host).strip("-")[:_NAME_LENGTH].strip("-") or "kafka"
        return f"kafka-{name_candidate}"[:_NAME_LENGTH].strip("-") if name_candidate[0].isdigit() else name_candidate


def _canonical_text(cluster: ImportedCluster) -> str:
    """The text of which the digest is a hash. Its form is fixed: names of registered clusters depend on it."""

    def values(items: Sequence[str]) -> str:
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"

    def value(one: SourcedValue) -> str:
        return f"Given(text={one.text!r}, told={one.source!r})"

    def pairs(items: Sequence[tuple[str, SourcedValue]]) -> str:
        return values([f"({key!r}, {value(one)})" for key, one in items])

    servers = values([value(server) for server in cluster.servers])
    return (
        f"Cluster(tenant={cluster.tenant!r}, servers={servers}, security={pairs(cluster.security)}, "
        f"secrets={pairs(cluster.secrets)}, pod_role={cluster.pod_role!r})"
    )


def build_cluster(trigger: KedaTrigger, tenant: str) -> ImportedCluster:
    """The cluster of a trigger; logs every key that belongs to it."""
    log, values, missing = trigger.log, trigger.values, trigger.credentials.missing
    security: dict[str, SourcedValue] = {}
    secrets: dict[str, SourcedValue] = {}
    sasl, required, optional = _find_sasl_keys(trigger)
    tls = trigger.text("tls")
    if tls not in {"enable", "disable"}:
        log.reject(trigger.key("tls"), "must be enable or disable")
    for name in ("sasl", "tls"):
        if name in values:
            security[name] = values[name]
        elif missing:
            security[name] = SourcedValue(None, f"{trigger.credentials.source}, parameter {name}, if it has it")
    if sasl and sasl != "none":
        security["sasl"] = SourcedValue(sasl, "the trigger")
    used = {*required, *optional, *(_TLS if tls == "enable" or _is_unresolved(trigger, "tls") else ())}
    for name in used & values.keys():
        if KEDA_KEYS[name].target in {KeyTarget.SECURITY, KeyTarget.SECRET}:
            (secrets if name in SECRETS else security)[name] = values[name]
    pod_role = _uses_pod_role(trigger, required, security, secrets)
    for name in required:
        if name in security or name in secrets:
            continue
        # A missing key is an error, unless it may be in an authentication that is not among the manifests.
        if missing:
            source = SourcedValue(None, f"{trigger.credentials.source}, parameter {name}")
            (secrets if name in SECRETS else security)[name] = source
        else:
            text = f"sasl {trigger.text('sasl')} requires {name}"
            log.reject(trigger.path, text, "; add it to an authenticationRef")
    if tls == "enable" and ("cert" in values) != ("key" in values):
        log.reject(trigger.path, "cert and key must be given together")
    _log_keys(trigger, used, sasl)
    servers = _parse_servers(trigger)
    _drop_defaults(security)
    return ImportedCluster(tenant, servers, tuple(sorted(security.items())), tuple(sorted(secrets.items())), pod_role)


def _find_sasl_keys(trigger: KedaTrigger) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The kind of SASL, its required and its optional keys; empty if the manifests do not contain it."""
    if _is_unresolved(trigger, "sasl") or (trigger.credentials.missing and "sasl" not in trigger.values):
        return "", (), tuple(name for pair in (*_SASL_KEYS.values(), _MSK_KEYS) for names in pair for name in names)
    sasl = trigger.text("sasl")
    if sasl == "aws_msk_iam" or (sasl == "oauthbearer" and trigger.text("saslTokenProvider") == "aws_msk_iam"):
        return sasl, *_MSK_KEYS
    if sasl not in _SASL_KEYS:
        trigger.log.reject(trigger.key("sasl"), f"must be one of {', '.join(_SASL_KEYS)}")
        return sasl, (), ()
    return sasl, *_SASL_KEYS[sasl]


def _is_unresolved(trigger: KedaTrigger, name: str) -> bool:
    given = trigger.values.get(name)
    return given is not None and given.text is None


def _uses_pod_role(
    trigger: KedaTrigger,
    required: tuple[str, ...],
    security: dict[str, SourcedValue],
    secrets: dict[str, SourcedValue],
) -> bool:
    """Whether the AWS role of the pod is used."""
    identity, role, log = trigger.credentials.identity, trigger.credentials.role, trigger.log
    msk = required == _MSK_KEYS[0]
    if identity:
        path = f"{trigger.path}.authenticationRef.podIdentity"
        if msk and identity in _AWS:
            if role:
                security.setdefault("awsRoleArn", SourcedValue(role, ""))
            key = "awsRoleArn" if role else "awsPodRole"
            log.change(path, f"becomes {key} of the cluster: the role of the Lagscale scraper")
        else:
            log.drop(path, f"{identity} is the cloud identity of KEDA, which Lagscale does not use")
    if not msk or "awsAccessKeyID" in secrets:
        return False
    log.add_task(
        "A cluster on MSK uses the role of the scraper's pod (awsPodRole, awsRoleArn): give that pod a role that may "
        "connect and describe, or assume the other one, and let a platform administrator apply the cluster."
    )
    return "awsRoleArn" not in security


def _log_keys(trigger: KedaTrigger, used: Iterable[str], sasl: str) -> None:
    log, source = trigger.log, trigger.credentials.source
    for name, given in trigger.values.items():
        key, path = KEDA_KEYS[name], trigger.key(name)
        if key.target is KeyTarget.NONE:
            log.drop(path, key.note)
        elif name in {"sasl", "tls"}:
            log.change(path, _append_source("moved to the cluster, in KEDA's spelling", given))
        elif key.target in {KeyTarget.SECURITY, KeyTarget.SECRET}:
            if name in used:
                where = "secrets" if name in SECRETS else "security"
                log.change(path, _append_source(f"becomes {where}.{name} of the cluster", given))
            else:
                log.drop(path, f"not used with sasl {sasl or 'none'} and this tls")
    if trigger.flag("unsafeSsl"):
        log.add_task(
            "A trigger does not verify certificates (unsafeSsl); Lagscale always does: set `ca` of that cluster, and "
            "`verifyHostname: false` if names differ."
        )
    if trigger.credentials.missing:
        advice = "add it and repeat the import, or complete the cluster by hand"
        log.add_task(f"{source} is not among the manifests; {advice}.")


def _check_servers(trigger: KedaTrigger, servers: Sequence[str]) -> None:
    log, path = trigger.log, trigger.key("bootstrapServers")
    for server in servers:
        if _HOST.fullmatch(server) is not None:
            log.reject(path, f"{server} has no port", f"; append it, for example {server}:9092")
        elif _SERVER.fullmatch(server) is None:
            log.reject(path, f"{server}: expected HOST:PORT, for example kafka.example:9092")
    local = [server for server in servers if re.fullmatch(r"(?!localhost:)[^\s:/.\[]+:\d{1,5}", server)]
    if local:
        host, _, port = local[0].partition(":")
        log.add_task(
            f"A host without a domain resolves only in the namespace of its Service, and Lagscale resolves it in that of the "
            f"scraper: {', '.join(local)}. Use HOST.NAMESPACE.svc in register/10-clusters.yaml, for example "
            f"{host}.{trigger.resource.namespace}.svc:{port}."
        )


def _append_source(text: str, given: SourcedValue) -> str:
    return text if given.text is not None else f"{text}; its value is in {given.source}"


def _drop_defaults(security: dict[str, SourcedValue]) -> None:
    """Remove KEDA's defaults, so that explicit and implicit ones give one cluster."""
    for name, default in (("sasl", "none"), ("tls", "disable"), ("saslTokenProvider", "bearer")):
        given = security.get(name)
        if given is not None and given.text is not None and given.text.strip() in {default, ""}:
            del security[name]
    for name, given in security.items():
        # The source of a known value does not matter.
        security[name] = given if given.text is None else SourcedValue(given.text.strip(), "")


def _parse_servers(trigger: KedaTrigger) -> tuple[SourcedValue, ...]:
    given = trigger.values.get("bootstrapServers", SourcedValue(None, "nowhere"))
    if given.text is None:
        return (given,)
    servers = sorted({part.strip() for part in given.text.split(",") if part.strip()})
    _check_servers(trigger, servers)
    return tuple(SourcedValue(one, "") for one in servers) or (SourcedValue(None, "nowhere"),)
