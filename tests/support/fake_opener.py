"""An opener whose clients are those of a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from lagscale.store.scraping.targets import ClusterEntry
from services.scraper.polling.round import PollProblem

Client = TypeVar("Client")


class FakeOpener(Generic[Client]):
    """Opens what `find` returns for a cluster, and counts the clients in use."""

    def __init__(self, find: Callable[[ClusterEntry], Client | PollProblem | None]) -> None:
        self._find = find
        self.in_use: list[object] = []

    def open(self, cluster: ClusterEntry, *, responsive: bool) -> Client | PollProblem | None:
        client = self._find(cluster)
        if client is not None and not isinstance(client, PollProblem):
            self.in_use.append(client)
        return client

    def release(self, client: object) -> None:
        self.in_use.remove(client)
