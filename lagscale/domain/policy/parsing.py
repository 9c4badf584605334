"""Policies from texts and back, by the table of keys. Trigger metadata, the API and the store use this one parser."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from itertools import combinations
from typing import Any

from lagscale.domain.policy.keys import (
    ALL,
    FALSE_TEXTS,
    KEYS,
    KEYS_BY_NAME,
    OFF,
    TRUE_TEXTS,
    Derived,
    PolicyKey,
    Unit,
    ValueType,
)
from lagscale.domain.policy.policy import (
    MAX_LAG,
    MAX_LOOKBACK_MS,
    MAX_STABILIZATION_SECONDS,
    MAX_TIME_LAG_SECONDS,
    Metric,
    PersistenceScope,
    Policy,
)
from lagscale.errors import FieldError, InvalidInput

#: Digits of a number with decimals that a double, and PostgreSQL's cast of one, give back unchanged.
_MAX_DIGITS = 15
#: Rules of the value of which only one can be followed.
_EXCLUSIVE_KEYS = ("allowIdleConsumers", "limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions")
_NUMBER = re.compile(r"\d{1,18}(\.\d{1,18})?")
_PLAIN_NUMBER = re.compile(r"[+]?[\d.]{1,32}")


def parse_policy(values: Mapping[str, str], *, tick_seconds: float = 5.0, minimum_interval: int = 1) -> Policy:
    """Parse a policy from texts, as trigger metadata and the API give them; unknown names are ignored.

    Args:
        values: key -> text; surrounding whitespace is ignored.
        tick_seconds: the scraper's tick; no interval can be shorter.
        minimum_interval: the shortest `samplingInterval` that the tenant may request, in seconds.

    Raises:
        InvalidInput: with all field errors at once.
    """
    parser = _PolicyParser(values, minimum_interval)
    parser.check(tick_seconds, minimum_interval)
    policy = parser.build()
    if parser.field_errors:
        raise InvalidInput(parser.field_errors)
    return policy


class _PolicyParser:
    """Parses texts by the table and collects all field errors."""

    def __init__(self, values: Mapping[str, str], minimum_interval: int) -> None:
        self.field_errors: list[FieldError] = []
        self._texts = {name: str(text).strip() for name, text in values.items() if name in KEYS_BY_NAME}
        # Values of all keys; of these numbers, in the key's own unit.
        self._values: dict[str, Any] = {}
        self._numbers: dict[str, Decimal] = {}
        # Names of keys with a valid value, and without OFF.
        self._given: set[str] = set()
        for key in KEYS:
            self._parse_key(key, minimum_interval)

    def _parse_key(self, key: PolicyKey, minimum_interval: int) -> None:
        text = self._texts.get(key.name)
        value = None if text is None else self._parse_given(key, text)
        if value is None:
            value = self._default(key)
            if key.name == "samplingInterval":
                value = max(value, Decimal(minimum_interval))
        self._values[key.name] = value
        if isinstance(value, Decimal):
            self._numbers[key.name] = value

    def _parse_given(self, key: PolicyKey, text: str) -> Any:
        try:
            value = _parse_text(key, text)
        except ValueError as wrong:
            self._reject(key.name, str(wrong))
            return None
        if text != OFF:
            self._given.add(key.name)
        return value

    def _default(self, key: PolicyKey) -> Any:
        if isinstance(key.default, Derived):
            return key.default.compute(self._numbers)
        if key.default is None:
            return None
        return () if key.default == ALL else _parse_text(key, key.default)

    def _reject(self, name: str, text: str) -> None:
        self.field_errors.append(FieldError(name, text))

    def check(self, tick_seconds: float, minimum_interval: int) -> None:
        """Check rules that relate keys to each other, the tick and the tenant's minimum."""
        sampling = self._numbers["samplingInterval"]
        if sampling < tick_seconds:
            self._reject("samplingInterval", f"is below the system's tick of {tick_seconds:g} s; set at least that")
        elif sampling < minimum_interval:
            self._reject("samplingInterval", f"is below this tenant's minimum of {minimum_interval} s")
        if self._numbers["targetLag"] == 0:
            self._reject("targetLag", "must be above 0")
        if self._numbers["activeValue"] > self._numbers["targetLag"]:
            target = format_number(self._numbers["targetLag"])
            self._reject(
                "activeValue", f"must be at most targetLag = {target}: more would add replicas to a calm group"
            )
        if "windowSize" in self._given:
            self._check_window(int(sampling), int(self._numbers["sustainSeconds"]))
        self._check_gaps(int(sampling))
        self._check_exclusive()
        if self._values["metric"] is Metric.TIME_LAG:
            self._check_time_lag()

    def _check_window(self, sampling: int, sustain: int) -> None:
        window_size = int(self._numbers["windowSize"])
        fits = (window_size - 1) * sampling
        if fits < sustain:
            needed = -(-sustain // sampling) + 1
            self._reject(
                "windowSize",
                f"{window_size} samples of {sampling} s prove {fits} s, less than sustainSeconds {sustain}: "
                f"set windowSize to {needed} or more, or sustainSeconds to {fits} or less",
            )

    def _check_gaps(self, sampling: int) -> None:
        gap = self._numbers["maxGapSeconds"]
        if gap < 2 * sampling:
            self._reject(
                "maxGapSeconds",
                f"must be at least 2 x samplingInterval = {2 * sampling}: one missing sample is not a dip",
            )
        if self._numbers["staleAfterSeconds"] < gap:
            self._reject("staleAfterSeconds", f"must be at least maxGapSeconds = {float(gap):g}")
        if 0 < self._numbers["workSeconds"] < gap:
            self._reject("workSeconds", f"must be 0 (off) or at least maxGapSeconds = {float(gap):g}")
        if "stuckAfterSeconds" in self._given and self._numbers["stuckAfterSeconds"] < gap:
            self._reject("stuckAfterSeconds", f"must be at least maxGapSeconds = {float(gap):g}, or {OFF}")

    def _check_exclusive(self) -> None:
        for one, other in combinations([name for name in _EXCLUSIVE_KEYS if self._values[name]], 2):
            self._reject(other, f"excludes {one}; remove one of them")
        windows = self._numbers["scaleUpStabilization"] + self._numbers["scaleDownStabilization"]
        if windows > MAX_STABILIZATION_SECONDS:
            self._reject(
                "scaleDownStabilization",
                f"and scaleUpStabilization are {windows} s together, at most {MAX_STABILIZATION_SECONDS}: "
                "shorten one of them",
            )

    def _check_time_lag(self) -> None:
        if self._values["persistenceScope"] is PersistenceScope.TOTAL:
            self._reject("persistenceScope", "total is not possible with metric timeLag: seconds do not add up")
        if self._values["ensureEvenDistributionOfPartitions"]:
            self._reject("ensureEvenDistributionOfPartitions", "is not possible with metric timeLag; remove it")
        if self._numbers["drainSeconds"]:
            self._reject("drainSeconds", "is not possible with metric timeLag: it compares messages; remove it")
        for name in ("lagThreshold", "targetLag"):
            text = self._texts.get(name, "")
            if _NUMBER.fullmatch(text) and Decimal(text) > MAX_TIME_LAG_SECONDS:
                self._reject(
                    name, f"is in seconds with metric timeLag, at most {MAX_TIME_LAG_SECONDS}, not {text[:40]}"
                )

    def build(self) -> Policy:
        """The policy; with field errors its values mean nothing."""
        policy = Policy(**{key.field: _to_field(key, self._values[key.name]) for key in KEYS if key.field is not None})
        if policy.answer_lookback_ms > MAX_LOOKBACK_MS:
            self._reject(
                "sustainSeconds",
                f"the policy looks back {policy.answer_lookback_ms / 3_600_000:.1f} h, at most 18 h can be judged: "
                "shorten sustainSeconds, activationSustainSeconds, workSeconds, stuckAfterSeconds, maxGapSeconds, "
                "staleAfterSeconds or the stabilization windows",
            )
        return policy


def _parse_text(key: PolicyKey, text: str) -> Any:
    """The value of a text in the key's own unit; ValueError says what is wrong with it."""
    match key.value_type:
        case ValueType.COUNT:
            return _parse_count(key, text)
        case ValueType.NUMBER | ValueType.SECONDS:
            return _parse_number(key, text)
        case ValueType.FLAG:
            return _parse_flag(key, text)
        case ValueType.CHOICE:
            return _parse_choice(key, text)
        case ValueType.PARTITIONS:
            return _parse_partitions(text)


def _parse_count(key: PolicyKey, text: str) -> Decimal:
    if not re.fullmatch(r"[+-]?\d{1,18}", text):
        raise ValueError(f"must be a whole number, not {text[:40]!r}")
    value = int(text)
    if not key.minimum <= value <= key.maximum:
        raise ValueError(f"must be at least {key.minimum} and at most {key.maximum}, not {value}")
    return Decimal(value)


def _parse_number(key: PolicyKey, text: str) -> Decimal:
    if text == key.default == OFF:
        return Decimal(0)
    value = parse_number(text)
    if value is None or not key.minimum <= value <= key.maximum:
        raise ValueError(f"must be a number from {key.minimum} to {key.maximum}, not {text[:40]!r}")
    if round(value, 3) != value:
        raise ValueError(f"has at most 3 decimals, not {text[:40]!r}")
    if len(value.normalize().as_tuple().digits) > _MAX_DIGITS:
        raise ValueError(f"has at most {_MAX_DIGITS} digits, not {text[:40]!r}")
    return value


def parse_number(text: str) -> Decimal | None:
    """A number from 0 to 10^15, exponents included; None for any other text."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() and 0 <= value <= MAX_LAG else None


def parse_plain_number(text: str) -> Decimal | None:
    """As `parse_number`, but digits and one dot only, as tenants' rules have them."""
    return parse_number(text.strip()) if _PLAIN_NUMBER.fullmatch(text.strip()) else None


def _parse_flag(key: PolicyKey, text: str) -> bool:
    if text not in TRUE_TEXTS | FALSE_TEXTS:
        raise ValueError(f"must be true or false, not {text[:40]!r}")
    return text in TRUE_TEXTS


def _parse_choice(key: PolicyKey, text: str) -> str:
    if key.choice is None or text not in key.choices:
        raise ValueError(f"must be {' or '.join(key.choices)}, not {text[:40]!r}")
    return key.choice(text)


def _parse_partitions(text: str) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    for part in (p.strip() for p in text.split(",") if p.strip()):
        match = re.fullmatch(r"(\d{1,6})(?:\s*-\s*(\d{1,6}))?", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise ValueError(f"must have the form 1,3,5-8; {part[:40]!r} does not")
        ranges.append((int(match[1]), int(match[2] or match[1])))
    return tuple(sorted(ranges))


def _to_field(key: PolicyKey, value: Any) -> Any:
    if key.unit is Unit.SECONDS:
        return int(value * 1000)
    if key.value_type is ValueType.NUMBER:
        return float(value)
    return int(value) if key.value_type is ValueType.COUNT else value


def list_effective_values(policy: Policy) -> dict[str, str | int | float | bool]:
    """Every key of the policy with its value in force."""
    return {key.name: _from_field(key, getattr(policy, key.field)) for key in KEYS if key.field is not None}


def _from_field(key: PolicyKey, value: Any) -> Any:
    if key.unit is Unit.SECONDS:
        return OFF if key.default == OFF and not value else value / 1000
    if key.value_type is ValueType.PARTITIONS:
        return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in value) or ALL
    return value.value if key.value_type is ValueType.CHOICE else value


def format_effective_values(policy: Policy, given: Mapping[str, str]) -> dict[str, str]:
    """The same as texts in their canonical form; with `windowSize`, which is not part of a policy, where it is given."""
    texts = {name: _format_value(value) for name, value in list_effective_values(policy).items()}
    size = given.get("windowSize", "").strip()
    return texts | {"windowSize": str(int(size))} if size else texts


def _format_value(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else format_number(Decimal(str(value)))


def format_number(value: Decimal) -> str:
    """A number in the policy's canonical form: without an exponent and trailing zeros."""
    return format(value.normalize(), "f")


def normalize_value(key: PolicyKey, text: str) -> str | None:
    """A value of a key, as tenants' rules have it, in its canonical form; None when it is invalid."""
    if text == key.default and text in {ALL, OFF}:
        return text
    if key.is_number:
        value = parse_plain_number(text)
        if value is None or (key.value_type is ValueType.COUNT and value != value.to_integral_value()):
            return None
        return format_number(value) if key.minimum <= value <= key.maximum else None
    try:
        return _format_value(_from_field(key, _parse_text(key, text)))
    except ValueError:
        return None
