-- The tenant that each KEDA instance and Kubernetes namespace is bound to. All tenants: bindings identify the tenant.
select b.instance, b.namespace, b.tenant_id
from namespace_binding as b
