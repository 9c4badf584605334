"""What a numbered history expects of every engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Answer, Judgment, Reason, Verdict, VerdictRequest
from tests.contract.histories import History, ms
from tests.contract.random_histories import Instant, RandomHistory

#: The policy of the table; a case names what differs.
DEFAULTS: Mapping[str, str] = {
    "lagThreshold": "100",
    "sustainSeconds": "60",
    "samplingInterval": "15",
    "maxGapSeconds": "45",
    "staleAfterSeconds": "60",
    "workSeconds": "0",
    "holdSeconds": "0",
    "allowIdleConsumers": "true",
}


#: Facts that only evidence tells; without it the newest rows may decide.
_OF_EVIDENCE = frozenset({"island", "stuck", "stuck_lag", "lagging", "time_lag"})


@dataclass(frozen=True, slots=True)
class Expected:
    """What one ask must answer. Only what is named in `facts` is compared beside verdict, value and activity.

    `facts` are attributes of a judgment; `span` (seconds) and `start_known` those of its island.
    """

    at: float
    verdict: Verdict
    value: float | None = None
    active: bool | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def check(self, judged: Judgment, *, islands: bool = True) -> None:
        """Fail with everything that differs."""
        found: dict[str, Any] = {"verdict": judged.verdict, "value": judged.value, "active": judged.active}
        wanted: dict[str, Any] = {"verdict": self.verdict, "value": self.value, "active": self.active}
        for name, fact in self.facts.items():
            if name in {"span", "start_known", "lag"}:
                if islands:
                    wanted[name] = fact
                    found[name] = _of_island(judged, name)
            elif name not in _OF_EVIDENCE or islands:
                wanted[name] = fact
                found[name] = getattr(judged, name)
        assert found == wanted, f"at {self.at} s: {judged}"


def _of_island(judged: Judgment, name: str) -> object:
    if judged.island is None:
        return None
    return {
        "span": judged.island.span_ms / 1000,
        "start_known": judged.island.start_known,
        "lag": judged.island.lag,
    }[name]


@dataclass(frozen=True, slots=True)
class Holding:
    """What is told at an instant: measured, held or waking. None is an error."""

    at: float
    told: Answer | None


@dataclass(frozen=True, slots=True)
class Case:
    """One history under one policy."""

    number: str
    says: str
    history: Callable[[], History]
    expected: tuple[Expected | Holding, ...]
    policy: Mapping[str, str] = field(default_factory=dict)

    def parsed(self) -> Policy:
        """The policy with every default resolved."""
        return parse_policy({**DEFAULTS, **self.policy})

    def judged(self) -> RandomHistory:
        """The same history and its instants, to be compared with the random ones."""
        instants = [Instant(ms(one.at), ms(one.at)) for one in self.expected]
        return RandomHistory(self.parsed(), self.history().rows(), instants)

    def request(self, at: float, tenant: int, targets: tuple[int, ...]) -> VerdictRequest:
        """As asked at an instant: later samples do not exist yet."""
        return VerdictRequest(tenant, targets, self.parsed(), upto_ms=ms(at), judged_at_ms=ms(at))


def sustained(at: float, value: float, **facts: Any) -> Expected:
    """Sustained, and so active."""
    return Expected(at, Verdict.SUSTAINED, value, True, {"reason": Reason.LASTED, **facts})


def calm(at: float, *, active: bool = False, value: float = 0.0, **facts: Any) -> Expected:
    """Calm, which is value 0 unless an active value is set."""
    return Expected(at, Verdict.CALM, value, active, facts)


def unknown(at: float, reason: Reason, **facts: Any) -> Expected:
    """Unknown, which is neither value nor activity."""
    return Expected(at, Verdict.UNKNOWN, None, None, {"reason": reason, **facts})


def every(first: int, last: int, make: Callable[..., Expected], *args: Any, **facts: Any) -> tuple[Expected, ...]:
    """The same expectation every 15 s, both ends included."""
    return tuple(make(at, *args, **facts) for at in range(first, last + 1, 15))
