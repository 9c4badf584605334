"""A simulated cluster whose only topic has 100,000 partitions, and a process that polls it out of band."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from multiprocessing.process import BaseProcess

from lagscale.store.connection import ScraperDatabase
from lagscale.store.scraping.leases import Lease
from services.scraper.engine.large_groups import LargeGroupPoller
from services.scraper.engine.options import EngineOptions
from services.scraper.planning.plan import ClusterPlan
from services.scraper.polling.round import Committed, Ends, GroupDescription, Partition, TopicDescription
from tests.support.fake_opener import FakeOpener

PARTITIONS = 100_000


class OversizedCluster:
    """Answers at once; its messages come steadily, and no group reads them."""

    describes_groups = True

    def __init__(self, partitions: int = PARTITIONS) -> None:
        self._partitions = dict.fromkeys(range(partitions), True)

    def describe_topics(self, names: Sequence[str], until: float) -> Mapping[str, TopicDescription]:
        return {name: TopicDescription(f"id-of-{name}", self._partitions) for name in names}

    def request_commits(
        self, groups: Mapping[str, Sequence[Partition]], until: float
    ) -> Callable[[], Mapping[str, Committed]]:
        return lambda: {name: dict.fromkeys(partitions, 5) for name, partitions in groups.items()}

    def request_ends(
        self, partitions: Iterable[Partition], committed_only: Iterable[Partition], until: float
    ) -> Callable[[], Ends]:
        asked = list(partitions)
        end = int(time.monotonic())
        return lambda: Ends(dict.fromkeys(asked, 0), dict.fromkeys(asked, end), {})

    def request_groups(self, names: Sequence[str], until: float) -> Callable[[], Mapping[str, GroupDescription]]:
        return lambda: dict.fromkeys(names, GroupDescription(1, 3))

    def find_share_groups(self, names: Sequence[str], until: float) -> frozenset[str]:
        return frozenset()


def start_background_poller(options: EngineOptions, plans: Sequence[ClusterPlan], lease: Lease) -> BaseProcess:
    """A process that polls oversized groups as the planning process does; the test ends it."""
    process = multiprocessing.get_context("spawn").Process(target=_poll, args=(options, plans, lease), daemon=True)
    process.start()
    return process


def _poll(options: EngineOptions, plans: Sequence[ClusterPlan], lease: Lease) -> None:
    oversized = OversizedCluster()
    database = ScraperDatabase(options.database_url)
    poller = LargeGroupPoller(options, database, FakeOpener(lambda _: oversized), lambda: lease)
    poller.set_plans(plans)
    poller.run()
