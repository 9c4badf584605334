-- Which tenant a KEDA instance and a Kubernetes namespace are bound to. All tenants: this is what tells them apart.
select b.instance, b.namespace, b.tenant_id
from namespace_binding as b
