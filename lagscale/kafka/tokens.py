"""Access tokens of clusters, cached per process and renewed in the background before they expire.

The Kafka client gets a token by a callback, and opening it waits for the first one. So no callback and no poll waits
here: tokens are fetched in threads of their own, a bounded number in total and per tenant. No library among the
dependencies renews tokens in the background with such bounds.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lagscale.errors import LagscaleError, TokenUnavailable
from lagscale.kafka.addresses import ANY_ADDRESS, AddressRefused, AddressRules
from lagscale.kafka.security import MSK_IAM, find_mechanism

#: Share of its lifetime after which a token is renewed: early, because the library asks for the next token at 90 %.
_RENEW_SHARE = 0.5
#: A token with a shorter remaining lifetime counts as expired.
_MIN_VALIDITY_SECONDS = 1.0
_MIN_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS = 2.0, 60.0
#: A token without requests for this long is no longer renewed: twice the longest interval between two polls.
_IDLE_SECONDS = 7200.0
_POLL_SECONDS = 1.0
#: Concurrent fetches of the process and of one tenant: an unresponsive endpoint delays its own tenant only.
MAX_FETCHES, MAX_FETCHES_PER_TENANT = 8, 2
_FAILED = "the token could not be obtained"


@dataclass(frozen=True, slots=True)
class Token:
    """An access token; `expires_at` in seconds since 1970."""

    value: str = field(repr=False)
    expires_at: float
    principal: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)


class TokenSource:
    """The token of one cluster. `clock` returns seconds since 1970."""

    def __init__(self, make: Callable[[], Token], tenant: Hashable, clock: Callable[[], float] = time.time) -> None:
        self._make, self.tenant, self._clock = make, tenant, clock
        self._token: Token | None = None
        self._failure: str | None = None
        #: Number of tokens so far; a poll sees by it whether its client has the newest.
        self.generation = 0
        self._backoff_seconds = _MIN_BACKOFF_SECONDS
        self.due_at = self.used_at = clock()

    def token(self) -> Token | None:
        """The current token; None while the first one is being fetched. Never waits.

        Raises:
            TokenUnavailable: the last attempt failed, and there is no valid token.
        """
        self.used_at = self._clock()
        if self._token is not None and self._token.expires_at - self.used_at > _MIN_VALIDITY_SECONDS:
            return self._token
        if self._failure is not None:
            raise TokenUnavailable(self._failure)
        return None

    def provide_token(self, _config: str | None = None) -> tuple[str, float, str, dict[str, str]]:
        """The client's `oauth_cb`. After an exception the client calls it again in ten seconds.

        Raises:
            TokenUnavailable: there is no valid token.
        """
        used_at = self.used_at
        token = self.token()
        # The client asks as long as it is open, also for a cluster that is no longer polled.
        self.used_at = used_at
        if token is None:
            raise TokenUnavailable("the token is not available yet")
        return token.value, token.expires_at, token.principal, dict(token.extensions)

    def renew(self) -> None:
        """Fetch a token in the caller's thread."""
        began = self._clock()
        try:
            made = self._make()
        except LagscaleError as failed:
            self._record_failure(failed.message)
        except Exception as failed:
            # The cause may contain what was sent, so only its type is reported.
            self._record_failure(f"{_FAILED} ({type(failed).__name__})")
        else:
            self._token, self._failure, self._backoff_seconds = made, None, _MIN_BACKOFF_SECONDS
            self.generation += 1
            self.due_at = began + max(_RENEW_SHARE * (made.expires_at - began), _POLL_SECONDS)

    def _record_failure(self, text: str) -> None:
        self._failure = text
        self.due_at = self._clock() + self._backoff_seconds
        self._backoff_seconds = min(2 * self._backoff_seconds, _MAX_BACKOFF_SECONDS)


class TokenCache:
    """Token sources of one process by cluster, renewed by a thread that starts with the first source."""

    def __init__(self, clock: Callable[[], float] = time.time, *, threads: bool = True) -> None:
        """Create an empty cache; without `threads` the caller runs `take_due` and `fetch`."""
        self._clock, self._threads = clock, threads
        self._lock = threading.Lock()
        self._sources: dict[int, tuple[Hashable, TokenSource]] = {}
        self._under_way: set[TokenSource] = set()
        self._wake = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def source(self, cluster_id: int, key: Hashable, tenant: Hashable, make: Callable[[], Token]) -> TokenSource:
        """The source of a cluster; a new one when the key changes, as with the settings and the secrets.

        `make` fetches one token and may wait for seconds; it counts as one of the tenant's concurrent fetches.
        """
        with self._lock:
            entry = self._sources.get(cluster_id)
            if entry is not None and entry[0] == key:
                return entry[1]
            source = TokenSource(make, tenant, self._clock)
            self._sources[cluster_id] = (key, source)
            if self._threads and self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._run, name="tokens", daemon=True)
                self._thread.start()
        self._wake.set()
        return source

    def close(self) -> None:
        """Stop renewing; a running fetch ends by itself."""
        with self._lock:
            self._stopped = True
            self._sources.clear()
        self._wake.set()

    def take_due(self) -> list[TokenSource]:
        """Take the sources that are due, within the bounds, the longest overdue first; the caller passes each to `fetch`."""
        now = self._clock()
        with self._lock:
            for cluster_id in [one for one, (_, idle) in self._sources.items() if now - idle.used_at > _IDLE_SECONDS]:
                del self._sources[cluster_id]
            busy = Counter(source.tenant for source in self._under_way)
            due = sorted((one for _, one in self._sources.values() if one.due_at <= now), key=lambda one: one.due_at)
            taken = []
            for source in due:
                if source in self._under_way or busy[source.tenant] >= MAX_FETCHES_PER_TENANT:
                    continue
                if len(self._under_way) >= MAX_FETCHES:
                    break
                busy[source.tenant] += 1
                self._under_way.add(source)
                taken.append(source)
        return taken

    def fetch(self, source: TokenSource) -> None:
        """Renew a source from `take_due`."""
        try:
            source.renew()
        finally:
            with self._lock:
                self._under_way.discard(source)
            self._wake.set()

    def _run(self) -> None:
        while not self._stopped:
            self._wake.clear()
            for source in self.take_due():
                threading.Thread(target=self.fetch, args=(source,), name="token", daemon=True).start()
            self._wake.wait(_POLL_SECONDS)


def build_token_fetcher(
    security: Mapping[str, Any], secrets: Mapping[str, str], rules: AddressRules = ANY_ADDRESS
) -> Callable[[], Token] | None:
    """A function that fetches one token of a cluster, which may wait for seconds; None if the cluster uses no tokens.

    `security` is in canonical form, and `secrets` are resolved; `rules` apply to the token endpoint.
    """
    given = {**security, **secrets}
    mechanism = find_mechanism(security)
    if mechanism == MSK_IAM:
        from lagscale.kafka.msk import MskIam

        key_id, secret_key = given.get("aws_access_key_id", ""), given.get("aws_secret_access_key", "")
        session, role = given.get("aws_session_token"), security.get("aws_role_arn")
        uses_pod_role = security.get("aws_pod_role") is True
        return MskIam(str(given.get("aws_region", "")), key_id, secret_key, session, uses_pod_role, role).fetch
    if mechanism != "OAUTHBEARER":
        return None
    from lagscale.kafka.oauth import ClientCredentials

    client = ClientCredentials(
        str(given.get("token_url", "")),
        given.get("username", ""),
        given.get("password", ""),
        tuple(str(given.get("scopes", "")).replace(",", " ").split()),
        parse_extensions(str(given.get("extensions", ""))),
        given.get("token_ca"),
    )
    return lambda: client.fetch(lambda host, port: _resolve_endpoint(rules, host, port))


def parse_extensions(text: str) -> dict[str, str]:
    """Parse KEDA's form `NAME=VALUE,NAME=VALUE`."""
    pairs = (part.partition("=") for part in text.split(",") if part.strip())
    return {name.strip(): value for name, _, value in pairs}


def _resolve_endpoint(rules: AddressRules, host: str, port: int) -> list[str]:
    try:
        return [address[0] for _, address in rules.resolve(host, port)]
    except AddressRefused as refused:
        raise TokenUnavailable(f"the token URL {refused}") from None
