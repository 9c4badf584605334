"""A tenant's rules for policies: what holds where a monitor does not give a key, and what is allowed of each.

REST, bulk changes, inline triggers, overrides beside `serviceType` and the single monitor all judge by these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lagscale.domain.policy.keys import BY_NAME
from lagscale.domain.policy.limits import Limit, canonical, read_limits, unknown_key
from lagscale.domain.policy.policy import Policy
from lagscale.domain.policy.values import ALL, in_force
from lagscale.errors import Fault, InvalidInput


@dataclass(frozen=True, slots=True)
class PolicyRules:
    """The rules. Without any of them everything is as if there were no tenant.

    Attributes:
        defaults: key -> text, in force where a policy does not give the key; values that are fixed included.
        limits: key -> what is allowed of it.
    """

    defaults: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, Limit] = field(default_factory=dict)

    @classmethod
    def read(cls, defaults: Mapping[str, str], limits: Mapping[str, Mapping[str, object]]) -> PolicyRules:
        """The rules from texts.

        Raises:
            InvalidInput: with every fault at once; fields as in `policyDefaults.sustainSeconds`, and as in
                `policyLimits.lagThreshold.min`.
        """
        faults: list[Fault] = []
        given = {name: text.strip() for name, text in defaults.items() if text.strip()}
        faults += [_in("policyDefaults", unknown_key(name)) for name in given if name not in BY_NAME]
        try:
            read = read_limits(limits)
        except InvalidInput as wrong:
            raise InvalidInput(faults + [_in("policyLimits", fault) for fault in wrong.faults]) from wrong
        fixed = {name: limit.allowed[0] for name, limit in read.items() if limit.fixed}
        for name in sorted(given.keys() & fixed.keys() & BY_NAME.keys()):
            if canonical(BY_NAME[name], given[name]) != fixed[name]:
                faults.append(
                    Fault(f"policyDefaults.{name}", f"is fixed at {fixed[name]} by policyLimits; leave it out")
                )
        if faults:
            raise InvalidInput(faults)
        held = given | {name: text for name, text in fixed.items() if text != ALL}
        return cls(held, read)

    def __bool__(self) -> bool:
        return bool(self.defaults or self.limits)

    def inherited(self, given: Mapping[str, str]) -> dict[str, str]:
        """What the tenant's defaults add to the keys that are given."""
        present = {name for name, text in given.items() if text.strip()}
        return {name: text for name, text in self.defaults.items() if name not in present}

    def policy(self, given: Mapping[str, str], *, tick_seconds: float, minimum_interval: int) -> Policy:
        """The policy in force of the keys that are given; its limits are another question, see `faults`.

        Raises:
            InvalidInput: with every fault at once.
        """
        inherited = self.inherited(given)
        try:
            return Policy.parse({**inherited, **given}, tick_seconds=tick_seconds, minimum_interval=minimum_interval)
        except InvalidInput as wrong:
            raise InvalidInput([_explained(fault, inherited) for fault in wrong.faults]) from wrong

    def faults(self, policy: Policy, given: Mapping[str, str], *, but_for: Policy | None = None) -> list[Fault]:
        """What of a policy in force is not allowed.

        Args:
            policy: in force.
            given: the keys as given.
            but_for: a policy whose values are let pass: they were there before.
        """
        if not self.limits:
            return []
        values = in_force(policy, {**self.inherited(given), **given})
        passed = {} if but_for is None else in_force(but_for, {})
        found = (
            limit.fault(values[name], is_given=name in given)
            for name, limit in self.limits.items()
            if name in values and passed.get(name) != values[name]
        )
        return [fault for fault in found if fault is not None]

    def own_faults(self, *, tick_seconds: float, minimum_interval: int) -> list[Fault]:
        """What is wrong with the defaults themselves: they cannot stand together, or the limits forbid them."""
        try:
            policy = Policy.parse(self.defaults, tick_seconds=tick_seconds, minimum_interval=minimum_interval)
        except InvalidInput as wrong:
            return [_in("policyDefaults", fault) for fault in wrong.faults]
        found = self.faults(policy, self.defaults)
        return [
            Fault(f"policyDefaults.{fault.field}", fault.text.partition(":")[0] + ": change one of the two")
            for fault in found
            if fault.field in self.defaults
        ]


#: Of a tenant without any.
NO_RULES = PolicyRules()


def _in(place: str, fault: Fault) -> Fault:
    return Fault(f"{place}.{fault.field}", fault.text)


def _explained(fault: Fault, inherited: Mapping[str, str]) -> Fault:
    if not inherited:
        return fault
    text = f"{fault.text} (in force by the tenant's policyDefaults: {', '.join(sorted(inherited))}; give a key to overrule it)"
    return Fault(fault.field, text)
