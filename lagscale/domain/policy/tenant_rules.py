"""A tenant's rules for policies: defaults of keys that a monitor does not set, and limits of every key.

REST, bulk changes, inline triggers, overrides with `serviceType` and the single monitor all apply them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from lagscale.domain.policy.keys import ALL, KEYS_BY_NAME, OFF, PolicyKey
from lagscale.domain.policy.parsing import (
    format_effective_values,
    format_number,
    normalize_value,
    parse_plain_number,
    parse_policy,
)
from lagscale.domain.policy.policy import Policy
from lagscale.domain.tenancy import suggest_names
from lagscale.errors import FieldError, InvalidInput

_CONTACT = "or ask a platform administrator to change the tenant's policyLimits"
_MAX_ALLOWED = 64


@dataclass(frozen=True, slots=True)
class KeyLimit:
    """The limit of one key.

    Attributes:
        minimum, maximum: inclusive bounds of a number.
        allowed: texts in canonical form, as `format_effective_values` gives them; empty allows all.
        fixed: whether `allowed` is one value, which is the default too.
    """

    key: PolicyKey
    minimum: Decimal | None = None
    maximum: Decimal | None = None
    allowed: tuple[str, ...] = ()
    fixed: bool = False

    def field_error(self, value: str, *, is_given: bool) -> FieldError | None:
        """The violation by a value in force; None when it is allowed."""
        description = self._find_violation(value)
        if description is None:
            return None
        shown = value if is_given else f"{value}, by default"
        return FieldError(self.key.name, f"is {shown}; this tenant allows {description}: set such a value, {_CONTACT}")

    def _find_violation(self, value: str) -> str | None:
        if self.allowed:
            return None if value in self.allowed else f"only {' or '.join(self.allowed)}"
        # Never is later than any number of seconds.
        number = Decimal("Infinity") if value == OFF else Decimal(value)
        if self.minimum is not None and number < self.minimum:
            return f"at least {format_number(self.minimum)}"
        if self.maximum is not None and number > self.maximum:
            return f"at most {format_number(self.maximum)}"
        return None


def read_limits(given: Mapping[str, Mapping[str, object]]) -> dict[str, KeyLimit]:
    """Key -> limit, from `min`, `max`, `allowed` (a list) or `fixed` of each key, as texts.

    Raises:
        InvalidInput: with all field errors at once; fields as in `lagThreshold.min`.
    """
    field_errors: list[FieldError] = []
    limits = {name: _parse_limit(name, rules, field_errors) for name, rules in given.items()}
    if field_errors:
        raise InvalidInput(field_errors)
    return {name: limit for name, limit in limits.items() if limit is not None}


def build_unknown_key_fault(name: str) -> FieldError:
    """The field error of a name that is not a policy key."""
    near = suggest_names(name, KEYS_BY_NAME, 1)
    return FieldError(name, "unknown policy key" + (f"; did you mean {near[0]}?" if near else ""))


def _parse_limit(name: str, given: Mapping[str, object], field_errors: list[FieldError]) -> KeyLimit | None:
    """The limit of one key; None with field errors, which invalid values add too."""
    rules = {rule: value for rule, value in given.items() if value is not None}
    kind = next((rule for rule in ("fixed", "allowed") if rule in rules), None)

    def add_error(rule: str, text: str) -> None:
        field_errors.append(FieldError(f"{name}.{rule}", text))

    key = KEYS_BY_NAME.get(name)
    if key is None:
        field_errors.append(build_unknown_key_fault(name))
    elif not rules:
        field_errors.append(FieldError(name, "has no limit; set min, max, allowed or fixed, or omit it"))
    elif kind is not None and len(rules) > 1:
        add_error(kind, "excludes the other rules; remove it, or the others")
    elif kind is not None:
        values = rules[kind]
        allowed = values if kind == "allowed" and isinstance(values, list) else [values]
        return KeyLimit(key, allowed=_parse_values(key, kind, allowed, add_error), fixed=kind == "fixed")
    elif not key.is_number:
        for rule in rules:
            add_error(rule, f"is for numbers, but the type of this key is {key.value_type.value}; set allowed or fixed")
    else:
        bounds = {rule: parse_plain_number(str(text)) for rule, text in rules.items()}
        for rule in (rule for rule in ("min", "max") if rule in bounds and bounds[rule] is None):
            add_error(rule, "must be a number from 0 to 10^15")
        minimum, maximum = bounds.get("min"), bounds.get("max")
        if minimum is not None and maximum is not None and minimum > maximum:
            add_error("max", f"must be at least min = {format_number(minimum)}")
        return KeyLimit(key, minimum, maximum)
    return None


def _parse_values(
    key: PolicyKey, rule: str, values: Sequence[object], add_error: Callable[[str, str], None]
) -> tuple[str, ...]:
    if not values or len(values) > _MAX_ALLOWED:
        add_error(rule, f"must have 1 to {_MAX_ALLOWED} values")
    texts = [normalize_value(key, str(value).strip()) for value in values]
    for _ in range(texts.count(None)):
        add_error(rule, f"has an invalid value for this key: {key.description}")
    return tuple(dict.fromkeys(text for text in texts if text is not None))


@dataclass(frozen=True, slots=True)
class PolicyRules:
    """Defaults and limits; empty rules change nothing.

    Attributes:
        defaults: key -> text, in force where a policy does not set the key; includes fixed values.
        limits: key -> its limit.
    """

    defaults: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, KeyLimit] = field(default_factory=dict)

    @classmethod
    def read(cls, defaults: Mapping[str, str], limits: Mapping[str, Mapping[str, object]]) -> PolicyRules:
        """Parse rules from texts.

        Raises:
            InvalidInput: with all field errors at once; fields as in `policyDefaults.sustainSeconds`, and as in
                `policyLimits.lagThreshold.min`.
        """
        field_errors: list[FieldError] = []
        given = {name: text.strip() for name, text in defaults.items() if text.strip()}
        field_errors += [
            _prefix_field("policyDefaults", build_unknown_key_fault(name)) for name in given if name not in KEYS_BY_NAME
        ]
        try:
            read = read_limits(limits)
        except InvalidInput as wrong:
            raise InvalidInput(
                field_errors + [_prefix_field("policyLimits", field_error) for field_error in wrong.field_errors]
            ) from wrong
        fixed = {name: limit.allowed[0] for name, limit in read.items() if limit.fixed}
        for name in sorted(given.keys() & fixed.keys() & KEYS_BY_NAME.keys()):
            if normalize_value(KEYS_BY_NAME[name], given[name]) != fixed[name]:
                field_errors.append(
                    FieldError(f"policyDefaults.{name}", f"is fixed at {fixed[name]} by policyLimits; omit it")
                )
        if field_errors:
            raise InvalidInput(field_errors)
        merged = given | {name: text for name, text in fixed.items() if text != ALL}
        return cls(merged, read)

    def __bool__(self) -> bool:
        return bool(self.defaults or self.limits)

    def inherited(self, given: Mapping[str, str]) -> dict[str, str]:
        """What the tenant's defaults add to the given keys."""
        present = {name for name, text in given.items() if text.strip()}
        return {name: text for name, text in self.defaults.items() if name not in present}

    def policy(self, given: Mapping[str, str], *, tick_seconds: float, minimum_interval: int) -> Policy:
        """The policy in force from the given keys; limits are not checked here, see `field_errors`.

        Raises:
            InvalidInput: with all field errors at once.
        """
        inherited = self.inherited(given)
        try:
            return parse_policy({**inherited, **given}, tick_seconds=tick_seconds, minimum_interval=minimum_interval)
        except InvalidInput as wrong:
            raise InvalidInput(
                [_add_defaults_hint(field_error, inherited) for field_error in wrong.field_errors]
            ) from wrong

    def field_errors(
        self, policy: Policy, given: Mapping[str, str], *, except_for: Policy | None = None
    ) -> list[FieldError]:
        """Violations of the limits by a policy in force.

        Args:
            policy: in force.
            given: the keys as given.
            except_for: an earlier policy, whose values remain allowed.
        """
        if not self.limits:
            return []
        values = format_effective_values(policy, {**self.inherited(given), **given})
        excepted = {} if except_for is None else format_effective_values(except_for, {})
        found = (
            limit.field_error(values[name], is_given=name in given)
            for name, limit in self.limits.items()
            if name in values and excepted.get(name) != values[name]
        )
        return [field_error for field_error in found if field_error is not None]

    def own_faults(self, *, tick_seconds: float, minimum_interval: int) -> list[FieldError]:
        """Errors of the defaults themselves: they contradict each other, or the limits."""
        try:
            policy = parse_policy(self.defaults, tick_seconds=tick_seconds, minimum_interval=minimum_interval)
        except InvalidInput as wrong:
            return [_prefix_field("policyDefaults", field_error) for field_error in wrong.field_errors]
        found = self.field_errors(policy, self.defaults)
        return [
            FieldError(
                f"policyDefaults.{field_error.field}", field_error.text.partition(":")[0] + ": change one of the two"
            )
            for field_error in found
            if field_error.field in self.defaults
        ]


#: The rules of a tenant without any.
NO_RULES = PolicyRules()


def _prefix_field(place: str, field_error: FieldError) -> FieldError:
    return FieldError(f"{place}.{field_error.field}", field_error.text)


def _add_defaults_hint(field_error: FieldError, inherited: Mapping[str, str]) -> FieldError:
    if not inherited:
        return field_error
    text = f"{field_error.text} (from the tenant's policyDefaults: {', '.join(sorted(inherited))}; set a key to override it)"
    return FieldError(field_error.field, text)
