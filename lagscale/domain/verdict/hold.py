"""The answer while the verdict is unknown: last-known answers, frozen ones, and judgments of a part of the topics.

Pure functions; the scaler, the API and the store's adapters call them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Answer, Judgment, Reason, Verdict, VerdictRequest
from lagscale.domain.verdict.value import compute_worth

#: How far before a freeze the last known instant is searched; older samples are mostly past retention.
FREEZE_LOOKBACK_MS: Final = 24 * 3600 * 1000


def pick_last_known(judgments: Iterable[Judgment], members: int | None, now_ms: int, policy: Policy) -> Answer | None:
    """The last-known answer from earlier judgments, each made at its own sample time.

    Args:
        judgments: those with a known verdict at [K - window, K]; others are ignored.
        members: of the newest round, None when not known.
        now_ms: the instant of the request.
        policy: gives `holdSeconds`.
    """
    known_values = [(j.at_ms, j.value, j.active) for j in judgments if j.at_ms is not None and j.value is not None]
    if not known_values:
        return None
    last = max(at for at, _, _ in known_values)
    if now_ms - last > policy.hold_ms or policy.hold_ms == 0:
        return None
    window = [(value, active) for at, value, active in known_values if at >= last - policy.hold_window_ms]
    if not any(active for _, active in window) and not (members is not None and members >= 1):
        return None
    return Answer(max(value for value, _ in window), True, last)


def choose_answer(judgment: Judgment, policy: Policy, last_known: Answer | None = None) -> Answer | None:
    """The measured answer, else the last-known one, else activation from zero; None means an error."""
    if judgment.value is not None and judgment.active is not None:
        return Answer(judgment.value, judgment.active)
    if last_known is not None:
        return last_known
    return Answer(policy.target_lag, True) if judgment.activates_from_zero else None


def apply_partial_coverage(judgment: Judgment, policy: Policy) -> Judgment:
    """The judgment of a monitor from that of some of its topics.

    The rest counts like missing partitions: sustained lag in the part is proven, and the value may rise but not fall
    below the current replicas; everything else is unknown, because calm requires every topic.
    """
    if judgment.verdict is Verdict.SUSTAINED and judgment.value is not None and judgment.members is not None:
        floor = compute_worth(judgment.members, policy)
        return replace(judgment, value=max(judgment.value, floor), incomplete=True)
    reason = Reason.MEMBERS_UNKNOWN if judgment.verdict is Verdict.SUSTAINED else Reason.MISSING
    return replace(judgment, verdict=Verdict.UNKNOWN, reason=reason, value=None, active=None, incomplete=True)


def without_hold_limit(policy: Policy) -> Policy:
    """The policy that finds the answer of a frozen monitor."""
    return replace(policy, hold_ms=FREEZE_LOOKBACK_MS)


def build_frozen_request(request: VerdictRequest, at_ms: int) -> VerdictRequest:
    """The request whose last-known answer is that of a freeze: later samples do not exist."""
    return replace(request, policy=without_hold_limit(request.policy), upto_ms=at_ms, judged_at_ms=at_ms)
