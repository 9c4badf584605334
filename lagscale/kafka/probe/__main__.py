"""`python -m lagscale.kafka.probe.__main__`: looks at one cluster and ends. A question comes on stdin, findings go to stdout.

A process of its own: the client's library can abort its process when a broker answers out of turn, a look-up of a name
can hang, and whoever registers a cluster chooses what answers. None of that may touch the service that asks.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from confluent_kafka import KafkaException
from cryptography import x509
from pydantic import TypeAdapter

from lagscale.errors import TokenUnavailable
from lagscale.kafka.addresses import REFUSED, AddressRules, split_server
from lagscale.kafka.client import client_config
from lagscale.kafka.features import FeatureMissing
from lagscale.kafka.probe.access import Rights, principal_of
from lagscale.kafka.probe.connect import SETTINGS, Apis, Trial, kinds_of, reach, try_address, version_of
from lagscale.kafka.probe.result import AddressSeen, Findings, Outcome, Question, Step
from lagscale.kafka.security import lends_pod
from lagscale.kafka.token_makers import token_maker
from lagscale.kafka.tokens import TokenSource

_MOST_ADDRESSES = 16
_MOST_NAMES = 50
#: What of the time there is may go to trying addresses; the rights have the rest.
_SHARE = 0.5
_ADVERTISED_SECONDS = 1.5
_MOST_BYTES = 16_000_000
_MOST_LISTED = 20_000
_NO_POD = "the role of the scraper's pod is the scraper's alone; see the cluster's state once it is polled"
_NO_KERBEROS = (
    "The API's Kafka client is built without Kerberos, so it cannot look; see the cluster's state once a scraper that has "
    "it polls the cluster."
)
_LATE = Step(Outcome.FAILED, "This took too long.")


def main() -> int:
    """Answer one question."""
    question = TypeAdapter(Question).validate_json(sys.stdin.buffer.read())
    began = time.monotonic()
    findings = Findings()
    # Whatever hangs, what was found until then is told.
    looking = threading.Thread(target=look, args=(question, findings), daemon=True)
    looking.start()
    looking.join(question.seconds)
    findings.seconds = round(time.monotonic() - began, 3)
    sys.stdout.buffer.write(TypeAdapter(Findings).dump_json(findings))
    sys.stdout.flush()
    # Threads that hang in a look-up, and the client's own, end with the process.
    os._exit(0)


def look(question: Question, findings: Findings) -> None:
    """Fill the findings, step by step."""
    until = time.monotonic() + question.seconds - 0.3
    rules = AddressRules.of_text(question.rules)
    findings.problem, findings.text = "timeout", "The cluster did not answer in time."
    config = _config(question, rules, findings)
    if config is None:
        return
    # Whoever answers there is not trusted: one answer may not fill the memory.
    config["receive.message.max.bytes"] = _MOST_BYTES
    apis: dict[int, tuple[int, int]] = {}
    servers = list(question.bootstrap)
    if question.each_address:
        share = time.monotonic() + question.seconds * _SHARE
        servers = _try_each(config, servers, rules, until=share, findings=findings, apis=apis)
        if not servers:
            findings.problem, findings.text = _common(findings.addresses)
            return
    try:
        trial = Trial(config, servers, rules)
    except (KafkaException, ValueError, TypeError, RuntimeError):
        findings.problem, findings.text = "settings_refused", SETTINGS
        return
    try:
        told = [AddressSeen(f"{host}:{port}", number) for number, host, port in trial.brokers(until)]
    except KafkaException:
        # The client may have left the server for a listener that it advertises before that answered.
        told = [AddressSeen(address) for address in trial.advertised_refused(servers)]
        if not told:
            findings.problem, findings.text = trial.reason()
            if trial.guard.refused():
                findings.problem, findings.text = "address_refused", f"A bootstrap server {REFUSED}."
            return
    if _refused(told, rules, until, findings, question.each_address) or trial.guard.refused():
        findings.problem = "address_refused"
        findings.text = f"A listener that the brokers advertise {REFUSED}."
        return
    _ask(question, trial, servers[0], {**trial.heard.apis, **apis}, until=until, findings=findings)


def _config(question: Question, rules: AddressRules, findings: Findings) -> dict[str, Any] | None:
    """The client's settings, with a token where the cluster wants one; None when there can be none, which is told."""
    hand_over = None
    try:
        make = token_maker(question.security, question.secrets, rules)
        if make is not None:
            if lends_pod(question.security):
                raise TokenUnavailable(_NO_POD)
            source = TokenSource(make, tenant=0)
            source.renew()
            source.token()
            hand_over = source.hand_over
        return client_config(
            question.bootstrap, question.security, question.secrets, question.properties, oauth_cb=hand_over
        )
    except TokenUnavailable as missing:
        findings.problem, findings.text = "token_unavailable", f"No access token can be had: {missing.message}."
    except FeatureMissing:
        findings.problem, findings.text = "mechanism_missing", _NO_KERBEROS
    except ValueError:
        findings.problem, findings.text = "settings_refused", SETTINGS
    return None


def _ask(question: Question, trial: Trial, server: str, apis: Apis, *, until: float, findings: Findings) -> None:
    findings.version, findings.group_kinds = version_of(apis), kinds_of(apis)
    if question.listing:
        listed = trial.admin.list_topics(timeout=max(until - time.monotonic(), 0.2)).topics
        findings.listed = sorted(str(name) for name in listed)[:_MOST_LISTED]
    rights = Rights(trial.admin, principal_of(question.security, _subject), server, apis, until)
    findings.rights = rights.rights
    groups = dict(list(question.groups.items())[:_MOST_NAMES])
    rights.try_all(question.topics[:_MOST_NAMES], {name: wanted[:_MOST_NAMES] for name, wanted in groups.items()})
    findings.topics, findings.groups = list(rights.topics.values()), list(rights.groups.values())
    findings.problem, findings.text = "", ""


def _try_each(
    config: dict[str, Any],
    servers: Sequence[str],
    rules: AddressRules,
    *,
    until: float,
    findings: Findings,
    apis: dict[int, tuple[int, int]],
) -> list[str]:
    """Try every bootstrap server alone; those that answered."""
    asked: list[tuple[str, Future[tuple[AddressSeen, Apis]]]] = []
    threads = ThreadPoolExecutor(_MOST_ADDRESSES)
    for server in servers[:_MOST_ADDRESSES]:
        asked.append((server, threads.submit(try_address, config, server, rules, until)))
    good: list[str] = []
    for server, future in asked:
        seen = AddressSeen(server, resolved=_LATE)
        try:
            seen, heard = future.result(max(until + 0.2 - time.monotonic(), 0.0))
            apis.update(heard)
        except FutureTimeout:
            pass
        findings.addresses.append(seen)
        if seen.answered.outcome is Outcome.OK:
            good.append(server)
    findings.addresses += [AddressSeen(server) for server in servers[_MOST_ADDRESSES:]]
    return good


def _refused(
    told: list[AddressSeen], rules: AddressRules, until: float, findings: Findings, each_address: bool
) -> bool:
    """Look where the advertised listeners lead; whether one is refused."""
    # Those that are refused in any case come first: all of them are judged, and no more than can be read is told.
    told.sort(key=lambda seen: not rules.refuses(*split_server(seen.address)))
    findings.advertised = tried = told[:_MOST_ADDRESSES]
    threads = ThreadPoolExecutor(_MOST_ADDRESSES)
    share = min(until, time.monotonic() + _ADVERTISED_SECONDS)
    asked = [threads.submit(reach, seen, rules, share) for seen in tried if each_address or rules.limited]
    for seen, future in zip(tried, asked, strict=False):
        try:
            future.result(max(share + 0.2 - time.monotonic(), 0.0))
        except FutureTimeout:
            seen.resolved = _LATE if seen.resolved.outcome is Outcome.NOT_TRIED else seen.resolved
    return any(REFUSED in seen.resolved.text for seen in tried)


def _common(addresses: Sequence[AddressSeen]) -> tuple[str, str]:
    """The state of a cluster none of whose addresses answered: of the one that came the farthest."""
    for state, step in (
        ("authentication_failed", "authenticated"),
        ("tls_failed", "tls"),
        ("unreachable", "answered"),
        ("unreachable", "connected"),
        ("unreachable", "resolved"),
    ):
        for seen in addresses:
            found: Step = getattr(seen, step)
            if found.outcome is Outcome.FAILED:
                named = {SETTINGS: "settings_refused", f"This address {REFUSED}.": "address_refused"}
                return named.get(found.text, state), found.text
    return "timeout", "The cluster did not answer in time."


def _subject(certificate: str) -> str:
    try:
        return x509.load_pem_x509_certificate(certificate.encode()).subject.rfc4514_string()
    except ValueError:
        return "<subject of the certificate>"


if __name__ == "__main__":
    sys.exit(main())
