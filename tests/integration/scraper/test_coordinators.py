"""A coordinator that is missing, or found too late, is an error of its group, and does not end the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from devstack.broker import Broker

pytestmark = pytest.mark.integration

#: In a process of its own: the library's crash would end the tests. The broker's first groups have no coordinator yet.
_ASK = """
import sys, time
from services.scraper.kafka.cluster import KafkaCluster
from services.scraper.polling.round import PollProblem

groups = {f"group-{number}": [("orders", 0)] for number in range(60)}
client = KafkaCluster({"bootstrap.servers": sys.argv[1]})
deadline = time.monotonic() + 60
refused = 0
while time.monotonic() < deadline:
    found = client.request_commits(groups, time.monotonic() + 5)()
    failed = [name for name, answer in found.items() if isinstance(answer, PollProblem)]
    refused += len(failed)
    if not failed:
        print("answered", len(found), "refused before" if refused else "at once")
        sys.exit(0)
    if client.needs_replacement:
        client = KafkaCluster({"bootstrap.servers": sys.argv[1]})
sys.exit(f"never answered: {failed[:3]}")
"""

#: Thousands of groups that are new each time, and far too short a time for them.
_HASTE = """
import sys, time
from services.scraper.kafka.cluster import KafkaCluster
from services.scraper.polling.round import PollProblem

client = KafkaCluster({"bootstrap.servers": sys.argv[1]})
answered = late = 0
for number in range(12):
    groups = {f"group-{number}-{one}": [("orders", 0)] for one in range(5000)}
    found = client.request_commits(groups, time.monotonic() + 0.3 + number % 4 / 10)()
    late += sum(isinstance(answer, PollProblem) for answer in found.values())
    answered += sum(not isinstance(answer, PollProblem) for answer in found.values())
print("ended", answered > 0, late > 0)
"""


def _run(script: str, broker: Broker) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, broker.address], capture_output=True, text=True, timeout=90, check=False
    )


@pytest.mark.timeout(120)
def test_groups_of_a_fresh_broker_are_refused_until_they_have_a_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP", raising=False)
    with Broker() as broker:
        done = _run(_ASK, broker)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout} {done.stderr[-2000:]}"
    assert done.stdout.startswith("answered 60")


@pytest.mark.timeout(120)
def test_coordinators_that_are_found_too_late_end_no_process(broker: Broker) -> None:
    done = _run(_HASTE, broker)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout} {done.stderr[-2000:]}"
    assert done.stdout == "ended True True\n"
