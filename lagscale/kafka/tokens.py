"""Access tokens of clusters, kept per process and renewed before they expire, beside whatever asks for them.

The Kafka client asks by a callback, and makes whoever opens it wait for the first answer. So nothing here waits in a
callback, nor in a poll: tokens are fetched in threads of their own, bounded, few of them for one tenant.
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

#: The share of its life after which a token is renewed: early, so that another client is there when the broker asks
#: for the next token, of which the library tells it at 90 %.
_RENEW_SHARE = 0.5
#: A token that ends sooner is as good as none; seconds.
_MIN_VALIDITY_SECONDS = 1.0
_MIN_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS = 2.0, 60.0
#: What nobody asked for this long is renewed no more: twice the longest interval between two polls; seconds.
_IDLE_SECONDS = 7200.0
_POLL_SECONDS = 1.0
#: Fetches at once, of this process and of one tenant: an endpoint that never answers holds up its own tenant only.
MAX_FETCHES, MAX_FETCHES_PER_TENANT = 8, 2
_FAILED = "the token could not be made"


@dataclass(frozen=True, slots=True)
class Token:
    """What the broker is shown; `expires_at` in seconds since 1970."""

    value: str = field(repr=False)
    expires_at: float
    principal: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)


class TokenSource:
    """One cluster's token. `clock` tells seconds since 1970."""

    def __init__(self, make: Callable[[], Token], tenant: Hashable, clock: Callable[[], float] = time.time) -> None:
        self._make, self.tenant, self._clock = make, tenant, clock
        self._token: Token | None = None
        self._failure: str | None = None
        #: How many tokens there have been.
        self.number = 0
        self._backoff_seconds = _MIN_BACKOFF_SECONDS
        self.due_at = self.used_at = clock()

    def token(self) -> Token | None:
        """The present token; None while the first one is under way. Never waits.

        Raises:
            TokenUnavailable: the last attempt failed and there is no token that is still good.
        """
        self.used_at = self._clock()
        if self._token is not None and self._token.expires_at - self.used_at > _MIN_VALIDITY_SECONDS:
            return self._token
        if self._failure is not None:
            raise TokenUnavailable(self._failure)
        return None

    def provide_token(self, _config: str | None = None) -> tuple[str, float, str, dict[str, str]]:
        """The client's `oauth_cb`. What it raises makes the client ask again after ten seconds.

        Raises:
            TokenUnavailable: there is none.
        """
        used_at = self.used_at
        token = self.token()
        # The client asks as long as it is open, also for a cluster that nobody polls any more.
        self.used_at = used_at
        if token is None:
            raise TokenUnavailable("the token is not here yet")
        return token.value, token.expires_at, token.principal, dict(token.extensions)

    def renew(self) -> None:
        """Fetch a token now, in the caller's thread."""
        began = self._clock()
        try:
            made = self._make()
        except LagscaleError as failed:
            self._record_failure(failed.message)
        except Exception as failed:
            # The cause may hold what was sent, so only its kind is told.
            self._record_failure(f"{_FAILED} ({type(failed).__name__})")
        else:
            self._token, self._failure, self._backoff_seconds = made, None, _MIN_BACKOFF_SECONDS
            self.number += 1
            self.due_at = began + max(_RENEW_SHARE * (made.expires_at - began), _POLL_SECONDS)

    def _record_failure(self, text: str) -> None:
        self._failure = text
        self.due_at = self._clock() + self._backoff_seconds
        self._backoff_seconds = min(2 * self._backoff_seconds, _MAX_BACKOFF_SECONDS)


class TokenCache:
    """The sources of one process, by cluster. A thread renews them; it begins with the first source."""

    def __init__(self, clock: Callable[[], float] = time.time, *, threads: bool = True) -> None:
        """Make an empty set; without `threads` a test calls `take_due` and what it returns."""
        self._clock, self._threads = clock, threads
        self._lock = threading.Lock()
        self._sources: dict[int, tuple[Hashable, TokenSource]] = {}
        self._under_way: set[TokenSource] = set()
        self._wake = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def source(self, cluster_id: int, key: Hashable, tenant: Hashable, make: Callable[[], Token]) -> TokenSource:
        """The cluster's source; another one as soon as the key differs.

        Args:
            cluster_id: whose.
            key: changes with the settings and the secrets.
            tenant: whose share of the fetches it takes.
            make: fetches one token; may wait for seconds.
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
        """Renew nothing any more; a fetch under way ends by itself."""
        with self._lock:
            self._stopped = True
            self._sources.clear()
        self._wake.set()

    def take_due(self) -> list[TokenSource]:
        """Take what is due now, as far as the bounds allow, the longest due first; each is to be given to `fetch`."""
        now = self._clock()
        with self._lock:
            self._sources = {
                cluster_id: entry
                for cluster_id, entry in self._sources.items()
                if now - entry[1].used_at <= _IDLE_SECONDS
            }
            busy = Counter(source.tenant for source in self._under_way)
            due = sorted(
                (source for _, source in self._sources.values() if source.due_at <= now),
                key=lambda source: source.due_at,
            )
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
        """Renew what `take_due` has taken."""
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
    """What fetches one token of this cluster, and may wait for seconds.

    Args:
        security: the canonical form.
        secrets: all of them, resolved; they count before what `security` says.
        rules: which addresses the token endpoint may have.
    """
    given = {**security, **secrets}
    mechanism = find_mechanism(security)
    if mechanism == MSK_IAM:
        from lagscale.kafka.msk import MskIam

        return MskIam(
            str(given.get("aws_region", "")),
            given.get("aws_access_key_id", ""),
            given.get("aws_secret_access_key", ""),
            given.get("aws_session_token"),
            security.get("aws_pod_role") is True,
            security.get("aws_role_arn"),
        ).fetch
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
    """KEDA's form `NAME=VALUE,NAME=VALUE`, read."""
    pairs = (part.partition("=") for part in text.split(",") if part.strip())
    return {name.strip(): value for name, _, value in pairs}


def _resolve_endpoint(rules: AddressRules, host: str, port: int) -> list[str]:
    try:
        return [address[0] for _, address in rules.resolve(host, port)]
    except AddressRefused as refused:
        raise TokenUnavailable(f"the token URL {refused}") from None
