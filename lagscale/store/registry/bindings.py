"""Bindings of KEDA instances and Kubernetes namespaces to tenants. Only platform administrators write them."""

from __future__ import annotations

from sqlalchemy import delete, func, or_, select

from lagscale.domain.tenancy import ANY_NAMESPACE
from lagscale.errors import Conflict
from lagscale.store.registry import audit
from lagscale.store.registry.paging import Page, PageRequest, read_page
from lagscale.store.registry.session import RegistrySession, TenantSession, WriteResult
from lagscale.store.registry.tables import namespace_binding as binding


async def list_page(session: TenantSession, page_request: PageRequest) -> Page:
    """The tenant's bindings."""
    return await read_page(session, select(binding), ["instance", "namespace"], page_request)


async def put(session: RegistrySession, tenant_id: int, instance: str, namespace: str) -> WriteResult:
    """Bind the namespace to the tenant; an existing binding is not changed.

    The session is the platform's, because bindings of other tenants can conflict. The namespace `*` stands for all of
    the instance.

    Raises:
        Conflict: it is bound to another tenant, or `*` would conflict with other bindings of that instance.
    """
    # Two concurrent bindings of one instance must not miss that they exclude each other.
    await session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"binding {instance}", 0))))
    excluded = binding.c.namespace == ANY_NAMESPACE if namespace != ANY_NAMESPACE else binding.c.namespace != namespace
    same = binding.c.namespace == namespace
    statement = select(binding).where(binding.c.instance == instance, or_(same, excluded)).limit(2)
    rows = await session.fetch_all(statement)
    for row in rows:
        if row["namespace"] == namespace and row["tenant_id"] == tenant_id and len(rows) == 1:
            return WriteResult(row)
    if rows:
        raise Conflict(
            "This namespace, or its whole KEDA instance, is already bound: "
            f"a binding of `{ANY_NAMESPACE}` excludes all others of its instance. Delete those bindings first.",
            field="namespace",
        )
    values = {"tenant_id": tenant_id, "instance": instance, "namespace": namespace}
    name = f"{instance}/{namespace}"
    return await audit.insert_row(session, binding, values, "binding.create", name, tenant_id=tenant_id)


async def remove(session: TenantSession, instance: str, namespace: str) -> None:
    """Unbind the namespace.

    Raises:
        NotFound: it is not bound to this tenant.
    """
    statement = delete(binding).where(binding.c.instance == instance, binding.c.namespace == namespace)
    row = await session.fetch_existing(statement.returning(binding))
    await audit.record(session, "binding.delete", f"binding/{instance}/{namespace}", row, None)
