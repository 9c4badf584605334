"""What a judgement is worth when it saw a part of the monitor's topics only. Pure; the scaler and the API call it."""

from __future__ import annotations

from dataclasses import replace

from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Judgement, Reason, Verdict
from lagscale.domain.verdict.value import replicas_of


def by_a_part(judgement: Judgement, policy: Policy) -> Judgement:
    """The judgement of the whole, from that of a part.

    The rest counts as missing partitions do: lag that lasted in the part is proven, and the value may rise but not
    fall below what the members stand for; everything else is unknown, for calm needs every topic.
    """
    if judgement.verdict is Verdict.SUSTAINED and judgement.value is not None and judgement.members is not None:
        floor = replicas_of(judgement.members, policy) * policy.target_lag
        return replace(judgement, value=max(judgement.value, floor), incomplete=True)
    reason = Reason.MEMBERS_UNKNOWN if judgement.verdict is Verdict.SUSTAINED else Reason.MISSING
    return replace(judgement, verdict=Verdict.UNKNOWN, reason=reason, value=None, active=None, incomplete=True)
