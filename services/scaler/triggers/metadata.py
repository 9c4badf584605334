"""Trigger metadata as a small language: one table of keys reads it, reports all its faults, and renders its page.

`TriggerReader` serves every call; `render_docs` makes `docs/metadata.md`. Values of keys that are not ours are never kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from cachetools import LRUCache

from lagscale.domain.policy.keys import KEYS, KEYS_BY_NAME
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Policy
from lagscale.domain.policy.tenant_rules import NO_RULES, PolicyRules
from lagscale.domain.tenancy import compute_edit_distance
from lagscale.domain.topics import TopicScope, lacks_single_topic, normalize_names
from lagscale.errors import FieldError, InvalidInput

_FROM_ENV: Final = "FromEnv"
#: An unknown key this near to one of ours is a slip of the pen.
_MAX_TYPO_DISTANCE: Final = 2
#: Different triggers whose reading is remembered.
_CACHE_SIZE: Final = 20_000
#: Longer metadata are read again each time, so that a caller cannot fill the memory; characters.
_MAX_CACHED_LENGTH: Final = 8_192


@dataclass(frozen=True, slots=True)
class TriggerKey:
    """A key that says what is asked for; the keys of the policy have their own table."""

    name: str
    description: str
    example: str = ""


TRIGGER_KEYS: Final = (
    TriggerKey(
        "serviceType",
        "the registered monitor, or several by commas; its registration rules, so of the keys below only the policy "
        "keys of an overridable monitor may stand beside it",
        "ingest-logs",
    ),
    TriggerKey("tenant", "may be given as a check: it must be the tenant to whom the namespace is bound", "acme"),
    TriggerKey("cluster", "inline: the name of a registered cluster of the tenant", "main"),
    TriggerKey(
        "bootstrapServers",
        "inline, in place of `cluster`: equal, in any order, to the addresses of exactly one cluster of the tenant",
        "kafka-0:9092,kafka-1:9092",
    ),
    TriggerKey("consumerGroup", "inline: the consumer group whose lag is judged", "orders"),
    TriggerKey(
        "topic",
        "inline: the topic, or several by commas; without it and without `topicPattern` all topics are meant on which "
        "the group has commits, and no other topic of the cluster is asked",
        "orders.created",
    ),
    TriggerKey(
        "topicPattern",
        "inline, in place of `topic`: a regular expression in RE2's syntax for the whole name of a topic; topics are "
        "found and left as they come and go, those that begin with `__` are never meant",
        "orders\\..*",
    ),
    TriggerKey(
        "excludeTopics",
        "inline: names or patterns by commas that are left out of a pattern's topics, or of all topics of a group; an "
        "entry of only letters, digits, `.`, `_` and `-` is a name",
        "orders.test,.*\\.retry",
    ),
)
#: What KEDA puts beside a trigger's own keys.
KEDA_KEYS: Final = ("scalerAddress", "enableTLS", "unsafeSsl", "caCert", "tlsClientCert", "tlsClientKey")
#: Keys of KEDA's `kafka` trigger that a copied trigger still carries; the cluster's registration settles them.
IGNORED_KEYS: Final = (
    "version", "fullMetadata", "sasl", "tls", "username", "password", "ca", "cert", "key", "keyPassword", "realm",
    "keytab", "kerberosConfig", "kerberosServiceName", "kerberosDisableFAST", "gssapi", "oauthTokenEndpointUri",
    "scopes", "oauthExtensions", "saslTokenProvider", "awsRegion", "awsEndpoint", "awsRoleArn", "awsAccessKeyID",
    "awsSecretAccessKey", "awsSessionToken", "awsExternalID", "excludePersistentLag",
)  # fmt: skip
_STUCK = "leaves out partitions that are stuck, and Lagscale judges those by time: remove it, and use stuckAfterSeconds"

_SCOPE_NAMES: Final = {"topics": "topic", "pattern": "topicPattern", "exclude": "excludeTopics"}
_KEYS_BY_NAME: Final = {key.name: key for key in TRIGGER_KEYS}
_READ: Final = frozenset(_KEYS_BY_NAME) | frozenset(KEYS_BY_NAME) | {"excludePersistentLag"}
_READ_OR_ENV: Final = _READ | {name + _FROM_ENV for name in _READ}
_ACCEPTED: Final = _READ | frozenset(KEDA_KEYS) | frozenset(IGNORED_KEYS)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TriggerMetadata:
    """A trigger's metadata, read: what is asked for, and the policy keys as given, without spaces around them.

    Compared by identity: one content is read once.

    `policies` remembers the policies that the given keys resolve to, by the tenant's least interval in seconds.
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
    def measured(self) -> tuple[str, ...]:
        """The given trigger keys that say what is measured."""
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
    """Reads metadata and remembers what it read by content, faults included."""

    def __init__(self, tick_seconds: float, on_memo: Callable[[bool], None] = lambda hit: None) -> None:
        self._tick = tick_seconds
        self._on_memo = on_memo
        self._memo: LRUCache[frozenset[tuple[str, str]], TriggerMetadata | InvalidInput] = LRUCache(_CACHE_SIZE)

    def read(self, metadata: Mapping[str, str]) -> TriggerMetadata:
        """The trigger that the metadata describes.

        Raises:
            InvalidInput: with every fault at once.
        """
        # What is not ours may be a credential; only the key's name can matter.
        content = frozenset((name, text if name in _READ_OR_ENV else "") for name, text in metadata.items())
        cached = self._memo.get(content)
        self._on_memo(cached is not None)
        if cached is None:
            cached = self._parse(dict(content))
            if sum(len(text) for _, text in content) <= _MAX_CACHED_LENGTH:
                self._memo[content] = cached
        if isinstance(cached, InvalidInput):
            # A new error each time: a raised one keeps the frames that it went through.
            raise InvalidInput(cached.field_errors)
        return cached

    def policy(self, trigger: TriggerMetadata, minimum_interval: int, rules: PolicyRules = NO_RULES) -> Policy:
        """The trigger's own policy, with every default resolved.

        Args:
            trigger: as read.
            minimum_interval: the tenant's least `samplingInterval`, in seconds.
            rules: the tenant's.

        Raises:
            InvalidInput: the tenant's minimum, or a default of its, forbids what is given.
        """
        if rules.defaults:
            # Not remembered here: the caller does, as long as the rules are these.
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
    """Our keys with their texts, `FromEnv` resolved, and a fault for each slip of the pen."""
    values: dict[str, str] = {}
    field_errors: list[FieldError] = []
    for name in sorted(metadata):
        key = name.removesuffix(_FROM_ENV)
        text = metadata[name].strip()
        if key in _READ:
            # As in KEDA an empty text is no text; a plain key goes before its `FromEnv`, and sorts before it too.
            if text and key not in values:
                values[key] = text
        elif key not in _ACCEPTED and name not in _ACCEPTED and (near := _find_nearest_key(key)) is not None:
            field_errors.append(FieldError(name, f"is no key of Lagscale; did you mean {near}?"))
    return values, field_errors


def _find_nearest_key(name: str) -> str | None:
    near = [(compute_edit_distance(name, ours), ours) for ours in (*_KEYS_BY_NAME, *KEYS_BY_NAME)]
    distance, ours = min(near)
    return ours if distance <= _MAX_TYPO_DISTANCE else None


def _check_trigger(trigger: TriggerMetadata, values: Mapping[str, str]) -> list[FieldError]:
    field_errors = []
    if values.get("excludePersistentLag", "").lower() == "true":
        field_errors.append(FieldError("excludePersistentLag", _STUCK))
    if "serviceType" in values:
        if not trigger.services:
            field_errors.append(FieldError("serviceType", "names no monitor; give one, or several by commas"))
        field_errors += [
            FieldError(
                name, "cannot stand beside serviceType: the registration says what is measured; remove one of them"
            )
            for name in trigger.measured
        ]
        return field_errors
    return field_errors + _check_inline(trigger)


def _check_inline(trigger: TriggerMetadata) -> list[FieldError]:
    field_errors = trigger.scope.field_errors(_SCOPE_NAMES)
    if not trigger.measured:
        return [FieldError("serviceType", "must name a registered monitor, or give cluster, consumerGroup and topic")]
    if trigger.cluster is None and not trigger.bootstrap:
        field_errors.append(FieldError("cluster", "must name a registered cluster, or give its bootstrapServers"))
    if trigger.group is None:
        field_errors.append(FieldError("consumerGroup", "must be given without serviceType"))
    if trigger.given.get("partitionLimitation") and lacks_single_topic(trigger.scope):
        field_errors.append(FieldError("partitionLimitation", "needs exactly one topic"))
    return field_errors


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def render_docs() -> str:
    """The page of all keys, in Markdown."""
    lines = [
        "# Trigger metadata",
        "",
        "Values are texts, and spaces around them are nothing; an empty text counts as absent. `NAMEFromEnv` counts "
        "for `NAME` where `NAME` is absent. All faults are reported together. An unknown key that looks like one of "
        "these is an error, any other unknown key is passed over.",
        "",
        "## What is asked for",
        "",
    ]
    for key in TRIGGER_KEYS:
        lines += [f"### `{key.name}`", "", f"{_render_sentence(key.description)} Example: `{key.example}`.", ""]
    lines += ["## The policy", ""]
    for policy_key in KEYS:
        override_note = " Never beside `serviceType`." if policy_key.affects_sampling else ""
        lines += [
            f"### `{policy_key.name}`",
            "",
            f"{_render_sentence(policy_key.description)} Kind: {policy_key.value_type.value}; default: {policy_key.default_text}.{override_note}",
            "",
        ]
    lines += [
        "## Passed over",
        "",
        "KEDA's own keys are passed over, and so are those keys of its `kafka` trigger that the cluster's "
        "registration settles. Their values are neither kept nor logged.",
        "",
        *(f"- `{name}`" for name in (*KEDA_KEYS, *IGNORED_KEYS) if name != "excludePersistentLag"),
        "",
        f'`excludePersistentLag: "true"` is an error: it {_STUCK}.',
        "",
    ]
    return "\n".join(lines)


def _render_sentence(description: str) -> str:
    return f"{description[0].upper()}{description[1:]}."
