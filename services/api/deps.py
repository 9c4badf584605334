"""What routes take from a request: the authenticated caller's access, preconditions, pages, and parts of the application.

`Viewer`, `TenantAdmin` and `PlatformAdmin` name a tenant of the path; `AnyCaller` and `Platform` name none. Each
authenticates, checks the role, and gives an object that opens transactions in its context. A route opens one itself,
because its transaction has to be committed before the response is sent, and closed before Kafka or a verdict is waited
for; and because a request is validated as a whole before the database is asked for any object.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from lagscale.clock import to_datetime, to_ms
from lagscale.domain.tenancy import is_name
from lagscale.errors import FieldError, InvalidInput, NotAllowed, NotFound
from lagscale.store.registry import api_keys
from lagscale.store.registry.paging import MAX_PAGE_SIZE, PageRequest
from lagscale.store.registry.session import (
    AccessScope,
    Precondition,
    RegistryDatabase,
    RegistrySession,
    Row,
    TenantSession,
    WriteResult,
)
from services.api.auth.authenticator import Principal
from services.api.middleware import find_client_address

_BEARER = HTTPBearer(
    auto_error=False,
    description="An API key, as in `Authorization: Bearer lsk_...`; the bootstrap key; or a token of the OpenID Connect "
    "issuer.",
)
#: A role includes the roles after it.
_ROLES_BY_POWER = (api_keys.PLATFORM_ADMIN, api_keys.TENANT_ADMIN, api_keys.TENANT_VIEWER)

_ANY_VERSION = "*"
_INVALID_TAG = 'must be the ETag of the object as it was read, as in "3"; several comma-separated; or * for any version'
_WEAK_TAG = "must be a strong ETag: a proxy weakened this one; omit W/, or configure the proxy to pass ETags unchanged"
_MAX_DIGITS = 9
#: More than a browser or a tool ever sends.
_MAX_TAGS = 32

_TIME_FORMAT = "must be a time with its zone, as in 2030-01-31T12:00:00Z, or milliseconds since 1970"
#: A plus sign that nobody encoded arrives as a space.
_LOST_PLUS = re.compile(r"(T\S+) (\d\d:?\d\d)")
_LATEST = to_datetime(0) + timedelta(days=365 * 1000)


@dataclass(frozen=True, slots=True)
class ScopeAccess:
    """An authenticated caller with the role that the route requires; opens transactions of the caller's scope."""

    database: RegistryDatabase
    scope: AccessScope

    def session(self, *, dry_run: bool = False) -> AbstractAsyncContextManager[RegistrySession]:
        """A transaction that sees the rows of the caller's tenant, or every row for the platform's administrators."""
        return self.database.within(replace(self.scope, dry_run=dry_run))


@dataclass(frozen=True, slots=True)
class TenantAccess:
    """An authenticated caller with the role that the route requires, and the tenant that the path names."""

    database: RegistryDatabase
    scope: AccessScope
    name: str

    def session(self, *, lock: bool = False, dry_run: bool = False) -> AbstractAsyncContextManager[TenantSession]:
        """A transaction in the tenant's context.

        Args:
            lock: exclude other changes of the tenant under this lock until the end.
            dry_run: roll back at the end.

        Raises:
            NotFound: the caller has no tenant of this name.
        """
        return self.database.tenant(replace(self.scope, dry_run=dry_run), self.name, lock=lock)

    def platform_session(self, *, dry_run: bool = False) -> AbstractAsyncContextManager[RegistrySession]:
        """A transaction of the caller's own scope, for routes of the platform's administrators: it sees every row."""
        return ScopeAccess(self.database, self.scope).session(dry_run=dry_run)


async def _authenticate_caller(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
) -> Principal:
    state = request.app.state
    address = find_client_address(request.scope)
    caller: Principal = await state.authenticator.identify(
        None if credentials is None else credentials.credentials, address
    )
    state.tenant_rates.count(caller.tenant_id)
    return caller


def _require_role(role: str) -> Callable[..., Awaitable[ScopeAccess]]:
    allowed = _ROLES_BY_POWER[: _ROLES_BY_POWER.index(role) + 1]

    async def check_role(request: Request, caller: Annotated[Principal, Depends(_authenticate_caller)]) -> ScopeAccess:
        # Before any object is looked up, so that the response reveals nothing of objects.
        if caller.role not in allowed:
            raise NotAllowed(f"This key has the role {caller.role}; the role {role} is required.")
        return ScopeAccess(request.app.state.database, caller.scope)

    return check_role


def _require_tenant(role: str) -> Callable[..., TenantAccess]:
    # As a default, because an annotation in a nested function cannot be resolved.
    requires_role = Depends(_require_role(role))

    def name_tenant(
        tenant: Annotated[str, Path(description="Name of the tenant.")], access: ScopeAccess = requires_role
    ) -> TenantAccess:
        return TenantAccess(access.database, access.scope, check_name(tenant))

    return name_tenant


def part(name: str) -> Any:
    """The part of the application of this name, of those that `__main__` built."""

    def get_part(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(get_part)


def _read_page_request(
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, description="Maximum number of items of a page.")] = 100,
    cursor: Annotated[str | None, Query(max_length=1000, description="`next` of the previous page.")] = None,
) -> PageRequest:
    return PageRequest(limit, cursor)


def check_name(name: str) -> str:
    """The name from a URL; one that no object can have is answered like one that no object has.

    Raises:
        NotFound: no object can have it.
    """
    if not is_name(name):
        raise NotFound
    return name


def require_name(name: str | None) -> str:
    """The name in a body that has to have one.

    Raises:
        InvalidInput: there is none.
    """
    if name is None:
        raise InvalidInput([FieldError("name", "must be given")])
    return name


def match_name(url_name: str, name: str | None) -> str:
    """The name in the URL, which a body may repeat.

    Raises:
        NotFound: no object can have it.
        InvalidInput: the body has another name.
    """
    if check_name(url_name) != (name or url_name):
        raise InvalidInput([FieldError("name", "must be the name in the URL, or omitted")])
    return url_name


def parse_time(text: str | None, field: str) -> int | None:
    """Milliseconds since 1970 of a query parameter; None without one.

    Raises:
        InvalidInput: it is neither a time with its zone nor a number.
    """
    if text is None:
        return None
    text = text.strip()
    if re.fullmatch(r"\d{1,14}", text, re.ASCII):
        return int(text)
    try:
        parsed = datetime.fromisoformat(_LOST_PLUS.sub(r"\1+\2", text))
    except ValueError:
        raise InvalidInput([FieldError(field, _TIME_FORMAT)]) from None
    if parsed.tzinfo is None or not to_datetime(0) <= parsed <= _LATEST:
        raise InvalidInput([FieldError(field, _TIME_FORMAT)])
    return to_ms(parsed)


def _parse_precondition(
    if_match: Annotated[
        str | None,
        Header(description='Version that was read, as in `"3"`; 412 if the object has another version.'),
    ] = None,
    if_none_match: Annotated[str | None, Header(description="`*`: only create; 412 if the object exists.")] = None,
) -> Precondition | None:
    if if_match is not None and if_none_match is not None:
        raise InvalidInput([FieldError("If-None-Match", "cannot be combined with If-Match; omit one of them")])
    if if_none_match is not None:
        if if_none_match.strip() != _ANY_VERSION:
            raise InvalidInput([FieldError("If-None-Match", "must be * in a change, which only creates")])
        return Precondition(absent=True)
    if if_match is None:
        return None
    return Precondition() if if_match.strip() == _ANY_VERSION else Precondition(frozenset(_parse_tags(if_match)))


def _parse_cached_versions(
    if_none_match: Annotated[
        str | None, Header(description='Cached version, as in `"3"`; 304 while it is current.')
    ] = None,
) -> frozenset[int]:
    # Only an optimization for the reader: what is no tag of ours matches no version.
    tags = (tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")[:_MAX_TAGS])
    return frozenset(int(tag.strip('"')) for tag in tags if _is_tag(tag))


def _parse_tags(text: str) -> list[int]:
    """The versions of a list of ETags.

    Raises:
        InvalidInput: one of them is none of ours, or weak.
    """
    tags = [tag.strip() for tag in text.split(",")]
    for tag in tags:
        if tag.startswith("W/"):
            raise InvalidInput([FieldError("If-Match", _WEAK_TAG)])
        if not _is_tag(tag) or len(tags) > _MAX_TAGS:
            raise InvalidInput([FieldError("If-Match", _INVALID_TAG)])
    return [int(tag.strip('"')) for tag in tags]


def _is_tag(tag: str) -> bool:
    digits = tag[1:-1] if len(tag) > 1 and tag[0] == tag[-1] == '"' else tag
    return digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS


def set_etag(response: Response, version: int) -> None:
    """Set the header `ETag` to the object's version."""
    response.headers["ETag"] = f'"{version}"'


def set_status(response: Response, *, created: bool) -> None:
    """Set the status of a PUT or POST that creates or changes: 201 or 200."""
    response.status_code = 201 if created else 200


def set_status_and_etag(response: Response, outcome: WriteResult, row: Row | None = None) -> None:
    """Set the status and the header `ETag` of a write; the version is that of `row` if it was read again since."""
    set_status(response, created=outcome.created)
    set_etag(response, int((row or outcome.row)["version"]))


Viewer = Annotated[TenantAccess, Depends(_require_tenant(api_keys.TENANT_VIEWER))]
TenantAdmin = Annotated[TenantAccess, Depends(_require_tenant(api_keys.TENANT_ADMIN))]
PlatformAdmin = Annotated[TenantAccess, Depends(_require_tenant(api_keys.PLATFORM_ADMIN))]
AnyCaller = Annotated[ScopeAccess, Depends(_require_role(api_keys.TENANT_VIEWER))]
Platform = Annotated[ScopeAccess, Depends(_require_role(api_keys.PLATFORM_ADMIN))]

PageQuery = Annotated[PageRequest, Depends(_read_page_request)]
DryRun = Annotated[bool, Query(alias="dryRun", description="Return the outcome without changing anything.")]
TickSeconds = Annotated[float, part("tick_seconds")]
#: If-Match and If-None-Match of a change (RFC 9110); None without either.
IfMatch = Annotated[Precondition | None, Depends(_parse_precondition)]
#: If-None-Match of a read: the versions that the caller has cached.
CachedVersions = Annotated[frozenset[int], Depends(_parse_cached_versions)]
