"""A tenant's rules for policies: what holds where a monitor does not give a key, and what is allowed of each.

REST, bulk changes, inline triggers, overrides beside `serviceType` and the single monitor all judge by these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lagscale.domain.policy.keys import KEYS_BY_NAME
from lagscale.domain.policy.limits import KeyLimit, build_unknown_key_fault, normalize_value, read_limits
from lagscale.domain.policy.policy import Policy
from lagscale.domain.policy.values import ALL, format_effective_values
from lagscale.errors import FieldError, InvalidInput


@dataclass(frozen=True, slots=True)
class PolicyRules:
    """The rules. Without any of them everything is as if there were no tenant.

    Attributes:
        defaults: key -> text, in force where a policy does not give the key; values that are fixed included.
        limits: key -> what is allowed of it.
    """

    defaults: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, KeyLimit] = field(default_factory=dict)

    @classmethod
    def read(cls, defaults: Mapping[str, str], limits: Mapping[str, Mapping[str, object]]) -> PolicyRules:
        """The rules from texts.

        Raises:
            InvalidInput: with every fault at once; fields as in `policyDefaults.sustainSeconds`, and as in
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
                    FieldError(f"policyDefaults.{name}", f"is fixed at {fixed[name]} by policyLimits; leave it out")
                )
        if field_errors:
            raise InvalidInput(field_errors)
        merged = given | {name: text for name, text in fixed.items() if text != ALL}
        return cls(merged, read)

    def __bool__(self) -> bool:
        return bool(self.defaults or self.limits)

    def inherited(self, given: Mapping[str, str]) -> dict[str, str]:
        """What the tenant's defaults add to the keys that are given."""
        present = {name for name, text in given.items() if text.strip()}
        return {name: text for name, text in self.defaults.items() if name not in present}

    def policy(self, given: Mapping[str, str], *, tick_seconds: float, minimum_interval: int) -> Policy:
        """The policy in force of the keys that are given; its limits are another question, see `field_errors`.

        Raises:
            InvalidInput: with every fault at once.
        """
        inherited = self.inherited(given)
        try:
            return Policy.parse({**inherited, **given}, tick_seconds=tick_seconds, minimum_interval=minimum_interval)
        except InvalidInput as wrong:
            raise InvalidInput(
                [_add_defaults_hint(field_error, inherited) for field_error in wrong.field_errors]
            ) from wrong

    def field_errors(
        self, policy: Policy, given: Mapping[str, str], *, except_for: Policy | None = None
    ) -> list[FieldError]:
        """What of a policy in force is not allowed.

        Args:
            policy: in force.
            given: the keys as given.
            except_for: a policy whose values are let pass: they were there before.
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
        """What is wrong with the defaults themselves: they cannot stand together, or the limits forbid them."""
        try:
            policy = Policy.parse(self.defaults, tick_seconds=tick_seconds, minimum_interval=minimum_interval)
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


#: Of a tenant without any.
NO_RULES = PolicyRules()


def _prefix_field(place: str, field_error: FieldError) -> FieldError:
    return FieldError(f"{place}.{field_error.field}", field_error.text)


def _add_defaults_hint(field_error: FieldError, inherited: Mapping[str, str]) -> FieldError:
    if not inherited:
        return field_error
    text = f"{field_error.text} (in force by the tenant's policyDefaults: {', '.join(sorted(inherited))}; give a key to overrule it)"
    return FieldError(field_error.field, text)
