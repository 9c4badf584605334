"""Hot partitions: far more lag than the topic's other partitions, from skewed keys or one slow reader. Reported only."""

from __future__ import annotations

from typing import Final

from lagscale.domain.policy.policy import Metric, Policy
from lagscale.domain.verdict.series import MonitorSeries, compute_lag

#: A hot partition has at least so many times the average lag of the topic's other partitions.
HOT_FACTOR: Final = 5
#: The level where the threshold counts seconds: the default of `lagThreshold`.
DEFAULT_LAG_THRESHOLD: Final = 500


def find_hot_partitions(
    series_set: MonitorSeries, policy: Policy, window_ms: int, now_ms: int
) -> frozenset[tuple[int, int]]:
    """(target id, partition) of the partitions that carry far more lag than the others of their topic.

    1. Fresh partitions of one topic's present id are compared, at least two, by their average lag over the window.
    2. Hot is one whose lag is above `lagThreshold` now and on average (500 where the threshold counts seconds), and
       whose average is at least 5 times the average of the topic's other partitions.
    """
    level = policy.lag_threshold if policy.metric is Metric.LAG else DEFAULT_LAG_THRESHOLD
    averages: dict[int, dict[int, float]] = {}
    above: set[tuple[int, int]] = set()
    for series in series_set.series:
        newest = series.newest()
        if newest is None or newest.incarnation != series.incarnation or now_ms - newest.at_ms > policy.stale_after_ms:
            continue
        begin = newest.at_ms - window_ms
        lags = [
            compute_lag(p.sample, policy)
            for p in series.points
            if p.at_ms >= begin and p.incarnation == series.incarnation
        ]
        average = sum(lags) / len(lags)
        averages.setdefault(series.target_id, {})[series.partition] = average
        if min(lags[-1], average) > level:
            above.add((series.target_id, series.partition))
    hot = set()
    for target, partition in above:
        by_partition = averages[target]
        others = sum(by_partition.values()) - by_partition[partition]
        if len(by_partition) > 1 and by_partition[partition] * (len(by_partition) - 1) >= HOT_FACTOR * others:
            hot.add((target, partition))
    return frozenset(hot)
