"""The kinds of objects in manifests as one table: names, REST paths, and the order in which they depend on each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from lagscale.domain.tenancy import DEFAULT_INSTANCE, suggest_names
from lagscale.errors import InvalidInput


@dataclass(frozen=True, slots=True, eq=False)
class ObjectKind:
    """One kind.

    Attributes:
        name: `kind` of a manifest.
        plural: the name in REST paths.
        input_schema, output_schema: schemas of request and response in the API's OpenAPI document.
        columns: of a table, after the name: title -> field of the response.
    """

    name: str
    plural: str
    input_schema: str
    output_schema: str
    columns: Mapping[str, str]

    @property
    def label(self) -> str:
        """The name in sentences and arguments."""
        return self.name.lower()

    @property
    def method(self) -> str:
        """The HTTP method that creates or replaces an object."""
        return "post" if self.name == "Binding" else "put"

    @property
    def route(self) -> str:
        """The path of that operation in the OpenAPI document."""
        listing = "/v1/tenants" if self.name == "Tenant" else f"/v1/tenants/{{tenant}}/{self.plural}"
        return listing if self.method == "post" else f"{listing}/{{{self.label}}}"


TENANT = ObjectKind(
    "Tenant", "tenants", "TenantIn", "TenantOut",
    {"display name": "displayName", "auto-register": "autoRegister", "max monitors": "maxMonitors"},
)  # fmt: skip
CLUSTER = ObjectKind(
    "Cluster", "clusters", "ClusterIn", "ClusterOut",
    {"bootstrap servers": "bootstrapServers", "secrets": "hasSecrets", "state": "state"},
)  # fmt: skip
MONITOR = ObjectKind(
    "Monitor", "monitors", "MonitorIn", "MonitorOut",
    {"cluster": "cluster", "group": "consumerGroup", "topics": "measuredTopics", "auto": "autoRegistered",
     "topic discovery": "topicDiscovery"},
)  # fmt: skip
BINDING = ObjectKind(
    "Binding", "bindings", "BindingIn", "BindingOut", {"instance": "instance", "namespace": "namespace"}
)  # fmt: skip
#: In dependency order: what others need first.
KINDS = (TENANT, CLUSTER, MONITOR, BINDING)
KINDS_BY_NAME: Mapping[str, ObjectKind] = {kind.name: kind for kind in KINDS}


class ObjectRef(NamedTuple):
    """Identity of an object: a tenant's own name is empty, a binding's is INSTANCE/NAMESPACE."""

    kind: ObjectKind
    tenant: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind.label} {self.tenant}" + (f"/{self.name}" if self.name else "")

    @property
    def sort_key(self) -> tuple[int, str, str]:
        """Sort key: dependency order, then by name."""
        return KINDS.index(self.kind), self.tenant, self.name

    @property
    def collection(self) -> str:
        """The path of its listing."""
        return build_collection_path(self.kind, self.tenant)

    @property
    def path(self) -> str:
        """The path of the object; a binding's with the query that identifies it."""
        if self.kind is TENANT:
            return f"/v1/tenants/{quote(self.tenant, safe='')}"
        if self.kind is BINDING:
            instance, namespace = split_binding_name(self.name)
            return f"{self.collection}?{urlencode({'instance': instance, 'namespace': namespace})}"
        return f"{self.collection}/{quote(self.name, safe='')}"


def build_collection_path(kind: ObjectKind, tenant: str) -> str:
    """The path of a listing."""
    return "/v1/tenants" if kind is TENANT else f"/v1/tenants/{quote(tenant, safe='')}/{kind.plural}"


def build_binding_name(spec: Mapping[str, Any]) -> str:
    """A binding's name: INSTANCE/NAMESPACE."""
    return f"{spec.get('instance', DEFAULT_INSTANCE)}/{spec.get('namespace', '')}"


def split_binding_name(name: str) -> tuple[str, str]:
    """Instance and namespace of a binding's name. A namespace has no slash; an instance, a URI, may have some."""
    instance, _, namespace = name.rpartition("/")
    return instance or DEFAULT_INSTANCE, namespace


def build_ref(kind: ObjectKind, answer: Mapping[str, Any], tenant: str) -> ObjectRef:
    """The identity of an object that the API returned."""
    if kind is TENANT:
        return ObjectRef(kind, str(answer["name"]))
    return ObjectRef(kind, tenant, build_binding_name(answer) if kind is BINDING else str(answer["name"]))


def parse_kind(text: str) -> ObjectKind:
    """The kind of an argument: `monitor`, `monitors`, `Monitor`.

    Raises:
        InvalidInput: there is no such kind.
    """
    for kind in KINDS:
        if text.lower() in {kind.label, kind.plural}:
            return kind
    raise InvalidInput.of("KIND", describe_unknown_name(text, KINDS_BY_NAME, "unknown kind"))


def describe_unknown_name(name: str, valid: Iterable[str], text: str) -> str:
    """`text` with the nearest valid name, or with all of them if none is near."""
    names = sorted(valid)
    # Names here are camelCase, and typing errors are often of case.
    near = suggest_names(name, [one.lower() for one in names], 1)
    suggested = [one for one in names if near and one.lower() == near[0]]
    return f"{text}; did you mean {suggested[0]}?" if suggested else f"{text}; valid: {', '.join(names)}"
