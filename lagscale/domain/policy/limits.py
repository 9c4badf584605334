"""What a tenant allows of each key of a policy: bounds, a choice, or one fixed value. Covers every key of the table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from lagscale.domain.policy.keys import BY_NAME, Key, Kind
from lagscale.domain.policy.policy import Policy
from lagscale.domain.policy.values import ALL, OFF, plain, resolved
from lagscale.domain.tenancy import near_names
from lagscale.errors import Fault, InvalidInput

_NUMBERS = frozenset({Kind.COUNT, Kind.NUMBER, Kind.SECONDS})
_WHOM = "or ask the platform's administrators to change the tenant's policyLimits"
#: As the reader of policies has it.
_BEYOND = Decimal(10) ** 15
_MOST_ALLOWED = 64


@dataclass(frozen=True, slots=True)
class Limit:
    """What is allowed of one key.

    Attributes:
        least, greatest: of a number, both included.
        allowed: texts in the form of `policy_values.in_force`; empty allows all.
        fixed: whether `allowed` is one value that holds where none is given, too.
    """

    key: Key
    least: Decimal | None = None
    greatest: Decimal | None = None
    allowed: tuple[str, ...] = ()
    fixed: bool = False

    def fault(self, value: str, *, is_given: bool) -> Fault | None:
        """What is wrong with a value in force; None when it is allowed."""
        rule = self._broken(value)
        if rule is None:
            return None
        told = value if is_given else f"{value}, as it is not given"
        return Fault(self.key.name, f"is {told}, and this tenant allows {rule}: give such a value, {_WHOM}")

    def _broken(self, value: str) -> str | None:
        if self.allowed:
            return None if value in self.allowed else f"only {' or '.join(self.allowed)}"
        # What never comes is later than any number of seconds.
        number = Decimal("Infinity") if value == OFF else Decimal(value)
        if self.least is not None and number < self.least:
            return f"at least {plain(self.least)}"
        if self.greatest is not None and number > self.greatest:
            return f"at most {plain(self.greatest)}"
        return None


def read_limits(given: Mapping[str, Mapping[str, object]]) -> dict[str, Limit]:
    """Key -> limit, from `min`, `max`, `allowed` (a list) or `fixed` of each key, as texts.

    Raises:
        InvalidInput: with every fault at once; fields as in `lagThreshold.min`.
    """
    faults: list[Fault] = []
    found = {name: _Reader(name, rules, faults).limit() for name, rules in given.items()}
    if faults:
        raise InvalidInput(faults)
    return {name: limit for name, limit in found.items() if limit is not None}


def unknown_key(name: str) -> Fault:
    """The fault of a name that is no key of a policy."""
    near = near_names(name, BY_NAME, 1)
    return Fault(name, "is no key of a policy" + (f"; did you mean {near[0]}?" if near else ""))


class _Reader:
    """Reads the limit of one key and collects faults."""

    def __init__(self, name: str, rules: Mapping[str, object], faults: list[Fault]) -> None:
        self._name = name
        self._rules = {rule: value for rule, value in rules.items() if value is not None}
        self._faults = faults

    def limit(self) -> Limit | None:
        key = BY_NAME.get(self._name)
        if key is None:
            self._faults.append(unknown_key(self._name))
            return None
        if not self._rules:
            self._faults.append(Fault(self._name, "limits nothing; give min, max, allowed or fixed, or leave it out"))
            return None
        kinds = [rule for rule in ("fixed", "allowed") if rule in self._rules]
        if len(self._rules) > 1 and kinds:
            self._faults.append(Fault(f"{self._name}.{kinds[0]}", "stands alone; remove it, or the other rules"))
            return None
        if "fixed" in self._rules:
            return Limit(key, allowed=self._values(key, "fixed", [self._rules["fixed"]]), fixed=True)
        if "allowed" in self._rules:
            values = self._rules["allowed"]
            return Limit(key, allowed=self._values(key, "allowed", values if isinstance(values, list) else [values]))
        return self._bounds(key)

    def _bounds(self, key: Key) -> Limit | None:
        if key.kind not in _NUMBERS:
            for rule in self._rules:
                self._fault(rule, f"is of numbers, and this key is {key.kind.value}; give allowed or fixed")
            return None
        least, greatest = self._number("min"), self._number("max")
        if least is not None and greatest is not None and least > greatest:
            self._fault("max", f"must be at least min = {plain(least)}")
        return Limit(key, least, greatest)

    def _number(self, rule: str) -> Decimal | None:
        text = self._rules.get(rule)
        if text is None:
            return None
        value = number(str(text))
        if value is None:
            self._fault(rule, "must be a number from 0 to 10^15")
        return value

    def _values(self, key: Key, rule: str, values: Sequence[object]) -> tuple[str, ...]:
        if not values or len(values) > _MOST_ALLOWED:
            self._fault(rule, f"must have 1 to {_MOST_ALLOWED} values")
        found: list[str] = []
        for value in values:
            text = canonical(key, str(value).strip())
            if text is None:
                self._fault(rule, f"has a value that this key cannot have: {key.rule}")
            elif text not in found:
                found.append(text)
        return tuple(found)

    def _fault(self, rule: str, text: str) -> None:
        self._faults.append(Fault(f"{self._name}.{rule}", text))


def canonical(key: Key, text: str) -> str | None:
    """A value of a key in its one form; None when the key cannot have it."""
    match key.kind:
        case Kind.FLAG:
            return text.lower() if text.lower() in {"true", "false"} else None
        case Kind.CHOICE:
            return text if text in key.choices else None
        case Kind.PARTITIONS:
            return _canonical_partitions(key, text)
        case _:
            return _canonical_number(key, text)


def _canonical_partitions(key: Key, text: str) -> str | None:
    if text == ALL:
        return ALL
    try:
        return str(resolved(Policy.parse({key.name: text}))[key.name])
    except InvalidInput:
        return None


def _canonical_number(key: Key, text: str) -> str | None:
    if key.name == "stuckAfterSeconds" and text == OFF:
        return OFF
    value = number(text)
    if value is None or (key.kind is Kind.COUNT and value != value.to_integral_value()):
        return None
    beyond = key.greatest is not None and value > key.greatest
    return None if value < key.least or beyond else plain(value)


def number(text: str) -> Decimal | None:
    """A number as the policy's language has it; None when it is none."""
    try:
        value = Decimal(text.strip()) if re.fullmatch(r"[+]?[\d.]{1,32}", text.strip()) else None
    except InvalidOperation:
        return None
    return None if value is None or value >= _BEYOND else value
