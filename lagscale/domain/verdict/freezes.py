"""The brake: a monitor that is frozen keeps the held answer of the moment at which it was. Pure.

The scaler, the API and the store's adapters call it. The rule is that of *Hold*, as of the freeze and without its time
limit; where there was nothing to hold, the answer is an error, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import VerdictRequest

#: How far before the freeze the last known instant is looked for; beyond it hardly any sample is kept.
FREEZE_LOOKBACK_MS: Final = 24 * 3600 * 1000
#: A freeze that nobody remembers is an outage to come.
MAX_FREEZE_MS: Final = 30 * 24 * 3600 * 1000
#: Reasons reach Kubernetes events, which are short.
_MAX_REASON_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class Freeze:
    """A freeze of a whole tenant, of the monitors of one cluster, or of one monitor.

    Attributes:
        cluster: its name; None unless the freeze is of a cluster.
        monitor_id: None unless it is of a monitor.
        since_ms, until_ms: by the database's clock; the second instant is no longer frozen.
    """

    freeze_id: str
    tenant_id: int
    cluster: str | None
    monitor_id: int | None
    since_ms: int
    until_ms: int
    reason: str


class Freezes:
    """Freezes of many tenants, found by what they are of."""

    def __init__(self, every: Iterable[Freeze]) -> None:
        self._of: dict[tuple[int, str | None, int | None], list[Freeze]] = {}
        for one in every:
            self._of.setdefault((one.tenant_id, one.cluster, one.monitor_id), []).append(one)

    def __bool__(self) -> bool:
        return bool(self._of)

    def of(self, tenant_id: int, cluster: str, monitor_id: int | None) -> tuple[Freeze, ...]:
        """Those that a monitor is under, ended ones too; None is an inline monitor that is not registered yet."""
        if not self._of:
            return ()
        whole, of_cluster = (tenant_id, None, None), (tenant_id, cluster, None)
        names = [whole, of_cluster] if monitor_id is None else [whole, of_cluster, (tenant_id, None, monitor_id)]
        return tuple(one for name in names for one in self._of.get(name, ()))


def select_active(freezes: Iterable[Freeze], now_ms: int | None) -> tuple[Freeze, ...]:
    """Those that have not ended, the oldest first. While no clock is known every one holds: it is a brake."""
    present = [one for one in freezes if now_ms is None or now_ms < one.until_ms]
    return tuple(sorted(present, key=lambda one: (one.since_ms, one.freeze_id)))


def without_hold_limit(policy: Policy) -> Policy:
    """The policy by which a frozen monitor's answer is looked for."""
    return replace(policy, hold_ms=FREEZE_LOOKBACK_MS)


def build_frozen_request(request: VerdictRequest, at_ms: int) -> VerdictRequest:
    """The ask whose held answer is that of a freeze: samples after it do not exist."""
    return replace(request, policy=without_hold_limit(request.policy), upto_ms=at_ms, judged_at_ms=at_ms)


def describe_freezes(freezes: Sequence[Freeze], *, has_answer: bool) -> str:
    """What KEDA's events and explanations say.

    Args:
        freezes: those in force, at least one.
        has_answer: whether there is an answer that is held.
    """
    last = max(freezes, key=lambda one: one.until_ms)
    until = datetime.fromtimestamp(last.until_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    reason = last.reason[:_MAX_REASON_LENGTH]
    if has_answer:
        return f"Frozen until {until} ({reason}): KEDA gets the last answer that was known."
    return (
        f"Frozen until {until} ({reason}), and no answer was known before that could be held; "
        "`lagscale unfreeze` ends it."
    )
