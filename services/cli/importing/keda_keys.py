"""Every key that KEDA's `kafka` and `apache-kafka` triggers read: its default, and what an import makes of it.

The table decides what is read; the report prints it. docs/from-keda-kafka.md tells the differences at length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class KeyTarget(StrEnum):
    """Where a key goes."""

    MONITOR = "monitor"
    POLICY = "policy"
    SECURITY = "cluster, security"
    SECRET = "cluster, secrets"  # noqa: S105 -- a place, no secret.
    CLUSTER = "cluster"
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True)
class KedaKey:
    """A key of KEDA's: its default, empty without one; where it goes, and what is to be known of that."""

    name: str
    target: KeyTarget
    default: str
    why: str


_TABLE: tuple[KedaKey, ...] = (
    KedaKey("bootstrapServers", KeyTarget.CLUSTER, "", "the cluster's addresses; the monitor names the cluster"),
    KedaKey("consumerGroup", KeyTarget.MONITOR, "", "the same"),
    KedaKey("topic", KeyTarget.MONITOR, "", "the same; without one, all topics on which the group has commits, and where it has none \"nothing to measure\" instead of every topic of the cluster"),
    KedaKey("partitionLimitation", KeyTarget.POLICY, "", "written alike; needs exactly one topic"),
    KedaKey("lagThreshold", KeyTarget.POLICY, "10", "the breach level and the HPA's target; the total above it must last for sustainSeconds"),
    KedaKey("activationLagThreshold", KeyTarget.POLICY, "0", "strictly above it, as in KEDA; a group that advances stays active by workSeconds though its lag is 0"),
    KedaKey("offsetResetPolicy", KeyTarget.POLICY, "latest", "the same; `earliest` counts what can be read, not the whole end offset"),
    KedaKey("scaleToZeroOnInvalidOffset", KeyTarget.POLICY, "false", "the same for activity under `latest`; a partition without a commit never counts for the value, and under `earliest` it has no effect, for messages wait"),
    KedaKey("allowIdleConsumers", KeyTarget.POLICY, "false", "the same, without KEDA's one replica more than partitions"),
    KedaKey("limitToPartitionsWithLag", KeyTarget.POLICY, "false", "the same"),
    KedaKey("ensureEvenDistributionOfPartitions", KeyTarget.POLICY, "false", "the same"),
    KedaKey("excludePersistentLag", KeyTarget.POLICY, "false", "becomes stuckAfterSeconds: the commit has stood still for that time while the group had members; KEDA compares with its previous call, which may be milliseconds ago, and forgets it at any error"),
    KedaKey("version", KeyTarget.NOWHERE, "1.0.0", "the client finds out what the brokers speak"),
    KedaKey("fullMetadata", KeyTarget.NOWHERE, "", "only topics that are needed are asked for"),
    KedaKey("sasl", KeyTarget.SECURITY, "none", "the cluster's, in KEDA's spelling"),
    KedaKey("tls", KeyTarget.SECURITY, "disable", "the cluster's, in KEDA's spelling"),
    KedaKey("unsafeSsl", KeyTarget.NOWHERE, "false", "certificates are always checked; give the cluster the `ca` that signed the brokers', and `verifyHostname: false` where names differ"),
    KedaKey("username", KeyTarget.SECURITY, "", "the cluster's"),
    KedaKey("password", KeyTarget.SECRET, "", "the cluster's, stored encrypted and never shown"),
    KedaKey("key", KeyTarget.SECRET, "", "the cluster's, stored encrypted and never shown"),
    KedaKey("keyPassword", KeyTarget.SECRET, "", "the cluster's, stored encrypted and never shown"),
    KedaKey("ca", KeyTarget.SECURITY, "", "the cluster's"),
    KedaKey("cert", KeyTarget.SECURITY, "", "the cluster's"),
    KedaKey("keytab", KeyTarget.NOWHERE, "", "cannot be stored; a platform administrator names a file that is mounted into the scraper (property sasl.kerberos.keytab)"),
    KedaKey("realm", KeyTarget.SECURITY, "", "the cluster's; needs a client library with Kerberos"),
    KedaKey("kerberosConfig", KeyTarget.NOWHERE, "", "cannot be stored; mount it into the scraper as /etc/krb5.conf"),
    KedaKey("kerberosServiceName", KeyTarget.SECURITY, "", "the cluster's; needs a client library with Kerberos"),
    KedaKey("kerberosDisableFAST", KeyTarget.NOWHERE, "false", "the client library does not use FAST"),
    KedaKey("saslTokenProvider", KeyTarget.SECURITY, "", "the cluster's"),
    KedaKey("scopes", KeyTarget.SECURITY, "", "the cluster's"),
    KedaKey("oauthTokenEndpointUri", KeyTarget.SECURITY, "", "the cluster's"),
    KedaKey("oauthExtensions", KeyTarget.SECURITY, "", "the cluster's"),
    KedaKey("awsRegion", KeyTarget.SECURITY, "", "the cluster's"),
    KedaKey("awsEndpoint", KeyTarget.NOWHERE, "", "tokens for MSK are signed by the client and no endpoint is asked"),
    KedaKey("awsRoleArn", KeyTarget.SECURITY, "", "the cluster's; the scraper must be allowed to take that role"),
    KedaKey("awsAccessKeyID", KeyTarget.SECRET, "", "the cluster's, stored encrypted and never shown"),
    KedaKey("awsSecretAccessKey", KeyTarget.SECRET, "", "the cluster's, stored encrypted and never shown"),
    KedaKey("awsSessionToken", KeyTarget.SECRET, "", "the cluster's; it expires, so give keys that last or the scraper's own role"),
    KedaKey("awsExternalID", KeyTarget.NOWHERE, "", "is not supported; give a role that needs no external id"),
)  # fmt: skip
KEDA_KEYS: Mapping[str, KedaKey] = {key.name: key for key in _TABLE}
#: Read from a variable of the workload with the suffix `FromEnv`.
FROM_ENV = ("bootstrapServers", "consumerGroup", "topic")
FLAGS = (
    "scaleToZeroOnInvalidOffset",
    "allowIdleConsumers",
    "limitToPartitionsWithLag",
    "ensureEvenDistributionOfPartitions",
    "excludePersistentLag",
)
#: Policy keys of KEDA's that are written out in full.
WRITTEN_OUT = ("lagThreshold", "activationLagThreshold", "offsetResetPolicy", *FLAGS[:-1])
