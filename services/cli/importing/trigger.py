"""One `kafka` trigger as KEDA reads it: each key's value with its source, and the faults that KEDA would see."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from services.cli.importing.findings import ConversionLog, KeyOutcome
from services.cli.importing.kafka_keys import FROM_ENV, KEDA_KEYS, KeyTarget
from services.cli.importing.manifests import ManifestIndex, Node, ScaledResource, get_map
from services.cli.importing.sources import SECRETS, SourcedValue, TriggerCredentials, read_credentials, resolve_variable

_UNRENDERED = re.compile(r"\{\{.*?\}\}|\$\{[^}]*\}|\$\([^)]*\)")
TRUE, _FALSE = {"1", "t", "T", "TRUE", "true", "True"}, {"0", "f", "F", "FALSE", "false", "False"}
#: Also by a TriggerAuthentication; both at once is an error of KEDA's.
_EXCLUSIVE_KEYS = ("sasl", "tls")
_NOT_READ_REASON = "KEDA's kafka trigger does not read it"


@dataclass(frozen=True, slots=True)
class KedaTrigger:
    """A trigger that is to be converted.

    Attributes:
        trigger_index: its number in the list.
        kind: `kafka` or `apache-kafka`.
        node: the trigger, without comments.
        values: of every key that is set, wherever it comes from.
        origin: key -> the path that the report calls it by.
    """

    trigger_index: int
    kind: str
    node: Node
    values: Mapping[str, SourcedValue]
    origin: Mapping[str, str]
    credentials: TriggerCredentials

    @property
    def path(self) -> str:
        """As the report calls it."""
        return f"triggers[{self.trigger_index}]"

    @property
    def name(self) -> str:
        """Its name, by which formulas call it; empty without one."""
        return str(self.node.get("name") or "")

    def key(self, name: str) -> str:
        """The path of a key, as the report calls it."""
        return self.origin.get(name, f"{self.path}.metadata.{name}")

    def text(self, key: str) -> str:
        """The value without spaces around it; the default of KEDA's where it is not set or not known."""
        given = self.values.get(key)
        if given is None or given.text is None or not given.text.strip():
            return KEDA_KEYS[key].default
        return given.text.strip()

    def flag(self, key: str) -> bool:
        """A key that is true or false."""
        return self.text(key) in TRUE


@dataclass(slots=True)
class _TriggerParser:
    manifests: ManifestIndex
    resource: ScaledResource
    path: str
    metadata: Node
    log: ConversionLog
    values: dict[str, SourcedValue] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)

    def set_value(self, name: str, given: SourcedValue, path: str) -> None:
        self.values[name], self.origin[name] = given, path

    def key(self, name: str, value: Any) -> None:
        """One key of the trigger's metadata."""
        path, text = f"{self.path}.metadata.{name}", _to_text(value)
        base_name = name.removesuffix("FromEnv")
        if _UNRENDERED.search(text):
            self.log.field_errors.append(f"{path}: was not rendered; render it, or take `kubectl get -o yaml`")
            # So that it is not called missing as well.
            self.values[base_name] = SourcedValue(None, "a template")
        elif name != base_name and base_name in FROM_ENV:
            self.set_value(base_name, resolve_variable(self.manifests, self.resource, text.strip()), path)
        elif name not in KEDA_KEYS:
            self.log.add_key(path, KeyOutcome.DROPPED, _NOT_READ_REASON)
        elif name in SECRETS:
            self.log.add_key(
                path, KeyOutcome.DROPPED, "KEDA reads it from a TriggerAuthentication, and here all can read it"
            )
            self.log.add_warning(f"{path} holds a secret in the open; take it out, and change that secret.")
        elif name in FROM_ENV and self.metadata.get(f"{name}FromEnv"):
            self.log.add_key(path, KeyOutcome.DROPPED, f"{name}FromEnv counts where both are given")
        else:
            if not isinstance(value, str):
                self.log.add_warning(f"{path} is no text, which Kubernetes refuses; it would have to stand in quotes.")
            self.set_value(name, SourcedValue(text, "the trigger"), path)

    def parameter(self, name: str, given: SourcedValue) -> None:
        """One parameter of the trigger's authentication."""
        path = f"{self.path}.authenticationRef.{name}"
        if name not in KEDA_KEYS:
            self.log.add_key(path, KeyOutcome.DROPPED, _NOT_READ_REASON)
        elif name not in self.values:
            self.set_value(name, given, path)
        elif name in _EXCLUSIVE_KEYS:
            self.log.field_errors.append(
                f"{path}: stands in the trigger too, which KEDA refuses; remove one of the two"
            )
        else:
            self.log.add_key(path, KeyOutcome.DROPPED, "the trigger's own value counts")

    def check(self) -> None:
        """What KEDA refuses in the values by themselves."""
        for name in ("bootstrapServers", "consumerGroup"):
            given = self.values.get(name)
            if given is None or (given.text is not None and not given.text.strip()):
                self.log.field_errors.append(f"{self.path}.metadata.{name}: is missing, which KEDA refuses; set it")
        for name, given in self.values.items():
            wrong = _find_error(name, (given.text or "").strip())
            if wrong:
                self.log.field_errors.append(f"{self.path}.metadata.{name}: {wrong}, for KEDA too")


def read_trigger(
    manifests: ManifestIndex, resource: ScaledResource, trigger_index: int, log: ConversionLog
) -> KedaTrigger:
    """Read a trigger of an object; tell of the keys that KEDA does not read, and of what it refuses."""
    node = resource.triggers[trigger_index]
    trigger_credentials = read_credentials(manifests, resource, node)
    reader = _TriggerParser(manifests, resource, f"triggers[{trigger_index}]", get_map(node, "metadata"), log)
    for name, value in reader.metadata.items():
        reader.key(name, value)
    for name, given in (trigger_credentials.parameters or {}).items():
        reader.parameter(name, given)
    for part in trigger_credentials.unknown:
        log.add_warning(
            f"{reader.path}: `{part}` of {trigger_credentials.source} is not understood; see to it by hand."
        )
    reader.check()
    return KedaTrigger(trigger_index, str(node["type"]), node, reader.values, reader.origin, trigger_credentials)


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _find_error(name: str, text: str) -> str:
    """What KEDA refuses in a key of the policy; empty when nothing."""
    if not text or KEDA_KEYS[name].target is not KeyTarget.POLICY or name == "partitionLimitation":
        return ""
    if name in {"lagThreshold", "activationLagThreshold"}:
        least = 1 if name == "lagThreshold" else 0
        fine = re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII) is not None and int(text) >= least
        return "" if fine else f"must be a whole number of at least {least}"
    if name == "offsetResetPolicy":
        return "" if text in {"latest", "earliest"} else "must be latest or earliest"
    return "" if text in TRUE | _FALSE else "must be true or false"
