"""The keys of KEDA's `kafka` and `apache-kafka` triggers as one table: default, target in Lagscale, and the difference.

Import, comparison and trigger metadata read it. docs/from-keda-kafka.md describes the differences at length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class KeyTarget(StrEnum):
    """What a key becomes."""

    MONITOR = "monitor"
    POLICY = "policy"
    SECURITY = "cluster, security"
    SECRET = "cluster, secrets"  # noqa: S105 -- a target, not a secret.
    CLUSTER = "cluster"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class KedaKey:
    """A key: its default (empty without one), its target, and what differs."""

    name: str
    target: KeyTarget
    default: str
    note: str


_TABLE: tuple[KedaKey, ...] = (
    KedaKey("bootstrapServers", KeyTarget.CLUSTER, "", "addresses of the cluster, to which the monitor refers"),
    KedaKey("consumerGroup", KeyTarget.MONITOR, "", "unchanged"),
    KedaKey("topic", KeyTarget.MONITOR, "", "unchanged; without a topic, all topics with commits of the group; without commits, \"nothing to measure\" instead of every topic of the cluster"),
    KedaKey("partitionLimitation", KeyTarget.POLICY, "", "same syntax; requires exactly one topic"),
    KedaKey("lagThreshold", KeyTarget.POLICY, "10", "threshold and HPA target; the total must stay above it for sustainSeconds"),
    KedaKey("activationLagThreshold", KeyTarget.POLICY, "0", "strictly above it, as in KEDA; a group that makes progress stays active for workSeconds even with lag 0"),
    KedaKey("offsetResetPolicy", KeyTarget.POLICY, "latest", "unchanged; `earliest` counts readable messages, not the whole end offset"),
    KedaKey("scaleToZeroOnInvalidOffset", KeyTarget.POLICY, "false", "same effect on activity with `latest`; a partition without a commit never counts for the value; no effect with `earliest`, because messages are waiting"),
    KedaKey("allowIdleConsumers", KeyTarget.POLICY, "false", "unchanged, without KEDA's one replica more than partitions"),
    KedaKey("limitToPartitionsWithLag", KeyTarget.POLICY, "false", "unchanged"),
    KedaKey("ensureEvenDistributionOfPartitions", KeyTarget.POLICY, "false", "unchanged"),
    KedaKey("excludePersistentLag", KeyTarget.POLICY, "false", "becomes stuckAfterSeconds: no commit progress for that time while the group had members; KEDA compares with its previous call, which may be milliseconds ago, and loses it at any error"),
    KedaKey("version", KeyTarget.NONE, "1.0.0", "the client negotiates the version with the brokers"),
    KedaKey("fullMetadata", KeyTarget.NONE, "", "only required topics are requested"),
    KedaKey("sasl", KeyTarget.SECURITY, "none", "of the cluster, in KEDA's spelling"),
    KedaKey("tls", KeyTarget.SECURITY, "disable", "of the cluster, in KEDA's spelling"),
    KedaKey("unsafeSsl", KeyTarget.NONE, "false", "certificates are always verified; set `ca` of the cluster, and `verifyHostname: false` if names differ"),
    KedaKey("username", KeyTarget.SECURITY, "", "of the cluster"),
    KedaKey("password", KeyTarget.SECRET, "", "of the cluster, stored encrypted and never returned"),
    KedaKey("key", KeyTarget.SECRET, "", "of the cluster, stored encrypted and never returned"),
    KedaKey("keyPassword", KeyTarget.SECRET, "", "of the cluster, stored encrypted and never returned"),
    KedaKey("ca", KeyTarget.SECURITY, "", "of the cluster"),
    KedaKey("cert", KeyTarget.SECURITY, "", "of the cluster"),
    KedaKey("keytab", KeyTarget.NONE, "", "cannot be stored; a platform administrator sets the path of a file in the scraper (property sasl.kerberos.keytab)"),
    KedaKey("realm", KeyTarget.SECURITY, "", "of the cluster; requires a client library with Kerberos"),
    KedaKey("kerberosConfig", KeyTarget.NONE, "", "cannot be stored; mount it into the scraper as /etc/krb5.conf"),
    KedaKey("kerberosServiceName", KeyTarget.SECURITY, "", "of the cluster; requires a client library with Kerberos"),
    KedaKey("kerberosDisableFAST", KeyTarget.NONE, "false", "the client library does not use FAST"),
    KedaKey("saslTokenProvider", KeyTarget.SECURITY, "", "of the cluster"),
    KedaKey("scopes", KeyTarget.SECURITY, "", "of the cluster"),
    KedaKey("oauthTokenEndpointUri", KeyTarget.SECURITY, "", "of the cluster"),
    KedaKey("oauthExtensions", KeyTarget.SECURITY, "", "of the cluster"),
    KedaKey("awsRegion", KeyTarget.SECURITY, "", "of the cluster"),
    KedaKey("awsEndpoint", KeyTarget.NONE, "", "tokens for MSK are signed by the client without an endpoint"),
    KedaKey("awsRoleArn", KeyTarget.SECURITY, "", "of the cluster; the scraper must be allowed to assume that role"),
    KedaKey("awsAccessKeyID", KeyTarget.SECRET, "", "of the cluster, stored encrypted and never returned"),
    KedaKey("awsSecretAccessKey", KeyTarget.SECRET, "", "of the cluster, stored encrypted and never returned"),
    KedaKey("awsSessionToken", KeyTarget.SECRET, "", "of the cluster; it expires, so use long-term keys or the role of the scraper"),
    KedaKey("awsExternalID", KeyTarget.NONE, "", "not supported; use a role without an external id"),
)  # fmt: skip
KEDA_KEYS: Mapping[str, KedaKey] = {key.name: key for key in _TABLE}
#: Keys that KEDA also reads from a variable of the workload, with the suffix `FromEnv`.
FROM_ENV = ("bootstrapServers", "consumerGroup", "topic")
#: Secrets; an import copies none, not even from a manifest that contains it in plain text.
SECRETS = frozenset(key.name for key in _TABLE if key.target is KeyTarget.SECRET) | {"keytab"}
#: Keys that KEDA reads from a TriggerAuthentication only; in the metadata of a trigger they have no effect.
AUTHENTICATION_ONLY = frozenset(
    {"username", "password", "ca", "cert", "key", "keyPassword", "keytab", "realm", "kerberosConfig",
     "kerberosServiceName", "kerberosDisableFAST", "scopes", "oauthTokenEndpointUri", "oauthExtensions"}
)  # fmt: skip
FLAGS = (
    "scaleToZeroOnInvalidOffset",
    "allowIdleConsumers",
    "limitToPartitionsWithLag",
    "ensureEvenDistributionOfPartitions",
    "excludePersistentLag",
)
#: Keys of which an import writes the default too.
WRITTEN_OUT = ("lagThreshold", "activationLagThreshold", "offsetResetPolicy", *FLAGS[:-1])
