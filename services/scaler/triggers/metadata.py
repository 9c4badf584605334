"""Trigger metadata: one table of keys parses it and reports all errors together; `docs/metadata.md` shows the table.

Values of keys that Lagscale does not read are never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from cachetools import LRUCache

from lagscale.domain.policy.keda_keys import KEDA_KEYS
from lagscale.domain.policy.keys import FALSE_TEXTS, KEYS_BY_NAME, TRUE_TEXTS
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Policy
from lagscale.domain.policy.tenant_rules import NO_RULES, PolicyRules
from lagscale.domain.tenancy import compute_edit_distance, find_group_error
from lagscale.domain.topics import TopicScope, lacks_single_topic, normalize_names
from lagscale.errors import FieldError, InvalidInput

_FROM_ENV: Final = "FromEnv"
#: An unknown key within this edit distance of one of ours is reported as a typo.
_MAX_TYPO_DISTANCE: Final = 2
#: Cached triggers.
_CACHE_SIZE: Final = 20_000
#: Longer metadata are parsed each time, so that a caller cannot fill the memory; characters.
_MAX_CACHED_LENGTH: Final = 8_192


@dataclass(frozen=True, slots=True)
class TriggerKey:
    """A key that selects monitors; policy keys have their own table in `lagscale.domain.policy.keys`."""

    name: str
    description: str
    example: str = ""


TRIGGER_KEYS: Final = (
    TriggerKey(
        "serviceType",
        "name of the registered monitor, or a comma-separated list; of the keys below, only policy keys can be combined "
        "with it, and only if the monitor is overridable",
        "ingest-logs",
    ),
    TriggerKey("tenant", "optional check: must be the tenant that the namespace is bound to", "acme"),
    TriggerKey("cluster", "inline: name of a registered cluster of the tenant", "main"),
    TriggerKey(
        "bootstrapServers",
        "inline, instead of `cluster`: the addresses of exactly one cluster of the tenant, in any order",
        "kafka-0:9092,kafka-1:9092",
    ),
    TriggerKey("consumerGroup", "inline: consumer group whose lag is evaluated", "orders"),
    TriggerKey(
        "topic",
        "inline: topic, or a comma-separated list; without it and without `topicPattern`, all topics on which the group "
        "has committed offsets, and no other topic of the cluster",
        "orders.created",
    ),
    TriggerKey(
        "topicPattern",
        "inline, instead of `topic`: regular expression in RE2 syntax that matches the whole topic name; topics are "
        "added and removed as they are created and deleted, and topics that begin with `__` never match",
        "orders\\..*",
    ),
    TriggerKey(
        "excludeTopics",
        "inline: comma-separated names or patterns to exclude from the topics of a pattern, or from all topics of a "
        "group; an entry of only letters, digits, `.`, `_` and `-` is a name",
        "orders.test,.*\\.retry",
    ),
)
#: Keys that KEDA's external scaler itself reads.
EXTERNAL_SCALER_KEYS: Final = ("scalerAddress", "enableTLS", "unsafeSsl", "caCert", "tlsClientCert", "tlsClientKey")
_SCOPE_NAMES: Final = {"topics": "topic", "pattern": "topicPattern", "exclude": "excludeTopics"}
_KEYS_BY_NAME: Final = {key.name: key for key in TRIGGER_KEYS}
#: Keys of KEDA's `kafka` trigger that a copied trigger still has; the cluster's registration defines their meaning.
#: `gssapi`, a value of KEDA's `sasl`, is ignored as a key, too.
IGNORED_KEYS: Final = (
    *(name for name in KEDA_KEYS if name not in {*_KEYS_BY_NAME, *KEYS_BY_NAME, *EXTERNAL_SCALER_KEYS}),
    "gssapi",
)
EXCLUDE_LAG_ERROR = "is not supported: Lagscale detects stuck partitions by time; remove it and use stuckAfterSeconds"

_READ: Final = frozenset(_KEYS_BY_NAME) | frozenset(KEYS_BY_NAME) | {"excludePersistentLag"}
_READ_OR_ENV: Final = _READ | {name + _FROM_ENV for name in _READ}
_ACCEPTED: Final = _READ | frozenset(EXTERNAL_SCALER_KEYS) | frozenset(IGNORED_KEYS)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TriggerMetadata:
    """A parsed trigger: the monitors that it selects, and its policy keys as written, stripped.

    Compared by identity, because equal metadata is parsed once. `services` is empty for an inline trigger; `policies`
    caches what `given` resolves to, by the tenant's minimum interval in seconds.
    """

    services: tuple[str, ...]
    tenant: str | None
    cluster: str | None
    bootstrap: frozenset[str]
    group: str | None
    scope: TopicScope
    given: Mapping[str, str]
    policies: dict[int, Policy] = field(default_factory=dict)

    @property
    def scope_keys(self) -> tuple[str, ...]:
        """The trigger's keys that select cluster, group and topics."""
        present = {
            "cluster": self.cluster,
            "bootstrapServers": self.bootstrap,
            "consumerGroup": self.group,
            "topic": self.scope.topics,
            "topicPattern": self.scope.pattern,
            "excludeTopics": self.scope.exclude,
        }
        return tuple(name for name, value in present.items() if value)


class TriggerReader:
    """Parses metadata; caches the result by content, errors included."""

    def __init__(self, tick_seconds: float, on_lookup: Callable[[bool], None] = lambda hit: None) -> None:
        """`on_lookup` is called with whether the cache had the metadata."""
        self._tick = tick_seconds
        self._on_lookup = on_lookup
        self._cache: LRUCache[frozenset[tuple[str, str]], TriggerMetadata | InvalidInput] = LRUCache(_CACHE_SIZE)

    def read(self, metadata: Mapping[str, str]) -> TriggerMetadata:
        """The trigger that the metadata describes.

        Raises:
            InvalidInput: with all errors together.
        """
        # Values of other keys may be credentials; only the names of those keys can matter.
        content = frozenset((name, text if name in _READ_OR_ENV else "") for name, text in metadata.items())
        cached = self._cache.get(content)
        self._on_lookup(cached is not None)
        if cached is None:
            cached = self._parse(dict(content))
            if sum(len(text) for _, text in content) <= _MAX_CACHED_LENGTH:
                self._cache[content] = cached
        if isinstance(cached, InvalidInput):
            # A new error each time: a raised one keeps references to the frames that it passed.
            raise InvalidInput(cached.field_errors)
        return cached

    def resolve_policy(self, trigger: TriggerMetadata, minimum_interval: int, rules: PolicyRules = NO_RULES) -> Policy:
        """The trigger's own policy, with every default resolved; `minimum_interval` is the tenant's, in seconds.

        Raises:
            InvalidInput: the given keys conflict with the tenant's minimum or with one of its defaults.
        """
        if rules.defaults:
            # Not cached here: the caller caches it for as long as these rules apply.
            return rules.policy(trigger.given, tick_seconds=self._tick, minimum_interval=minimum_interval)
        policy = trigger.policies.get(minimum_interval)
        if policy is None:
            policy = parse_policy(trigger.given, tick_seconds=self._tick, minimum_interval=minimum_interval)
            trigger.policies[minimum_interval] = policy
        return policy

    def _parse(self, metadata: Mapping[str, str]) -> TriggerMetadata | InvalidInput:
        values, field_errors = _read_values(metadata)
        given = {name: text for name, text in values.items() if name in KEYS_BY_NAME}
        trigger = TriggerMetadata(
            services=_split_list(values.get("serviceType", "")),
            tenant=values.get("tenant"),
            cluster=values.get("cluster"),
            bootstrap=frozenset(_split_list(values.get("bootstrapServers", ""))),
            group=values.get("consumerGroup"),
            scope=TopicScope(
                normalize_names(values.get("topic", "").split(",")),
                values.get("topicPattern"),
                normalize_names(values.get("excludeTopics", "").split(",")),
            ),
            given=given,
        )
        field_errors += _check_trigger(trigger, values)
        field_errors += self._check_policy(given, {field_error.field for field_error in field_errors})
        return InvalidInput(field_errors) if field_errors else trigger

    def _check_policy(self, given: Mapping[str, str], named: set[str]) -> list[FieldError]:
        try:
            parse_policy(given, tick_seconds=self._tick)
        except InvalidInput as invalid:
            return [field_error for field_error in invalid.field_errors if field_error.field not in named]
        return []


def _read_values(metadata: Mapping[str, str]) -> tuple[dict[str, str], list[FieldError]]:
    """The values of our keys with `FromEnv` resolved, and an error for each likely typo."""
    values: dict[str, str] = {}
    field_errors: list[FieldError] = []
    for name in sorted(metadata):
        key = name.removesuffix(_FROM_ENV)
        text = metadata[name].strip()
        if key in _READ:
            # As in KEDA, an empty string counts as absent, and a plain key, which sorts first, wins over its `FromEnv`.
            if text and key not in values:
                values[key] = text
        elif key not in _ACCEPTED and name not in _ACCEPTED and (near := _find_nearest_key(key)) is not None:
            field_errors.append(FieldError(name, f"is an unknown key; did you mean {near}?"))
    return values, field_errors


def _find_nearest_key(name: str) -> str | None:
    near = [(compute_edit_distance(name, ours), ours) for ours in (*_KEYS_BY_NAME, *KEYS_BY_NAME)]
    distance, ours = min(near)
    return ours if distance <= _MAX_TYPO_DISTANCE else None


def _check_trigger(trigger: TriggerMetadata, values: Mapping[str, str]) -> list[FieldError]:
    field_errors = []
    exclude_stuck = values.get("excludePersistentLag", "false")
    if exclude_stuck in TRUE_TEXTS:
        field_errors.append(FieldError("excludePersistentLag", EXCLUDE_LAG_ERROR))
    elif exclude_stuck not in FALSE_TEXTS:
        field_errors.append(FieldError("excludePersistentLag", f"must be true or false, not {exclude_stuck[:40]!r}"))
    if "serviceType" in values:
        if not trigger.services:
            field_errors.append(FieldError("serviceType", "must name at least one monitor (comma-separated)"))
        field_errors += [
            FieldError(name, "cannot be combined with serviceType: the registration defines it; remove one of them")
            for name in trigger.scope_keys
        ]
        return field_errors
    return field_errors + _check_inline(trigger)


def _check_inline(trigger: TriggerMetadata) -> list[FieldError]:
    field_errors = trigger.scope.field_errors(_SCOPE_NAMES)
    if not trigger.scope_keys:
        return [FieldError("serviceType", "must name a registered monitor; or set cluster, consumerGroup and topic")]
    if trigger.cluster is None and not trigger.bootstrap:
        field_errors.append(FieldError("cluster", "must name a registered cluster; or set bootstrapServers"))
    if trigger.group is None:
        field_errors.append(FieldError("consumerGroup", "is required without serviceType"))
    elif (group_error := find_group_error(trigger.group)) is not None:
        field_errors.append(FieldError("consumerGroup", group_error))
    if trigger.given.get("partitionLimitation") and lacks_single_topic(trigger.scope):
        field_errors.append(FieldError("partitionLimitation", "needs exactly one topic"))
    return field_errors


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
