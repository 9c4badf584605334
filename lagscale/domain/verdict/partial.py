"""What a judgement is worth when it saw a part of the monitor's topics only. Pure; the scaler and the API call it."""

from __future__ import annotations

from dataclasses import replace

from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Judgment, Reason, Verdict
from lagscale.domain.verdict.value import count_replicas


def apply_partial_coverage(judgment: Judgment, policy: Policy) -> Judgment:
    """The judgement of the whole, from that of a part.

    The rest counts as missing partitions do: lag that lasted in the part is proven, and the value may rise but not
    fall below what the members stand for; everything else is unknown, for calm needs every topic.
    """
    if judgment.verdict is Verdict.SUSTAINED and judgment.value is not None and judgment.members is not None:
        floor = count_replicas(judgment.members, policy) * policy.target_lag
        return replace(judgment, value=max(judgment.value, floor), incomplete=True)
    reason = Reason.MEMBERS_UNKNOWN if judgment.verdict is Verdict.SUSTAINED else Reason.MISSING
    return replace(judgment, verdict=Verdict.UNKNOWN, reason=reason, value=None, active=None, incomplete=True)
