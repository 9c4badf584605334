"""The kinds of objects that files declare, as one table: their names, where the API keeps them, what order they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from lagscale.domain.tenancy import DEFAULT_INSTANCE, suggest_names
from lagscale.errors import FieldError, InvalidInput


@dataclass(frozen=True, slots=True, eq=False)
class ObjectKind:
    """One kind.

    Attributes:
        name: as files write it.
        plural: as URLs write it.
        input_schema, output_schema: the names of what the API takes and answers in its OpenAPI document.
        columns: what a table shows beside the name: title -> the answer's field.
    """

    name: str
    plural: str
    input_schema: str
    output_schema: str
    columns: Mapping[str, str]

    @property
    def word(self) -> str:
        """As sentences write it."""
        return self.name.lower()

    @property
    def method(self) -> str:
        """The method by which the API makes an object so."""
        return "post" if self.name == "Binding" else "put"

    @property
    def route(self) -> str:
        """The path of that operation, as the OpenAPI document writes it."""
        listing = "/v1/tenants" if self.name == "Tenant" else f"/v1/tenants/{{tenant}}/{self.plural}"
        return listing if self.method == "post" else f"{listing}/{{{self.word}}}"


TENANT = ObjectKind(
    "Tenant", "tenants", "TenantIn", "TenantOut",
    {"display name": "displayName", "auto-register": "autoRegister", "most monitors": "maxMonitors"},
)  # fmt: skip
CLUSTER = ObjectKind(
    "Cluster", "clusters", "ClusterIn", "ClusterOut",
    {"bootstrap servers": "bootstrapServers", "secrets": "hasSecrets", "state": "state"},
)  # fmt: skip
MONITOR = ObjectKind(
    "Monitor", "monitors", "MonitorIn", "MonitorOut",
    {"cluster": "cluster", "group": "consumerGroup", "topics": "measuredTopics", "auto": "autoRegistered",
     "topics' state": "scope"},
)  # fmt: skip
BINDING = ObjectKind(
    "Binding", "bindings", "BindingIn", "BindingOut", {"instance": "instance", "namespace": "namespace"}
)  # fmt: skip
#: In the order in which they need each other.
KINDS = (TENANT, CLUSTER, MONITOR, BINDING)
KINDS_BY_NAME: Mapping[str, ObjectKind] = {kind.name: kind for kind in KINDS}


class ObjectRef(NamedTuple):
    """Which object: a tenant's own name is empty, a binding's is INSTANCE/NAMESPACE."""

    kind: ObjectKind
    tenant: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind.word} {self.tenant}" + (f"/{self.name}" if self.name else "")

    @property
    def sort_key(self) -> tuple[int, str, str]:
        """By which objects are sorted: what others need first, then by name."""
        return KINDS.index(self.kind), self.tenant, self.name

    @property
    def collection(self) -> str:
        """The path of its listing."""
        return collection(self.kind, self.tenant)

    @property
    def path(self) -> str:
        """Its own path; a binding's with the query that names it."""
        if self.kind is TENANT:
            return f"/v1/tenants/{quote(self.tenant, safe='')}"
        if self.kind is BINDING:
            instance, namespace = split_binding_name(self.name)
            return f"{self.collection}?{urlencode({'instance': instance, 'namespace': namespace})}"
        return f"{self.collection}/{quote(self.name, safe='')}"


def collection(kind: ObjectKind, tenant: str) -> str:
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
    """Which object an answer of the API shows."""
    if kind is TENANT:
        return ObjectRef(kind, str(answer["name"]))
    return ObjectRef(kind, tenant, build_binding_name(answer) if kind is BINDING else str(answer["name"]))


def parse_kind(text: str) -> ObjectKind:
    """The kind that an argument names: `monitor`, `monitors`, `Monitor`.

    Raises:
        InvalidInput: none is called that.
    """
    for kind in KINDS:
        if text.lower() in {kind.word, kind.plural}:
            return kind
    raise InvalidInput([FieldError("KIND", describe_unknown_kind(text))])


def describe_unknown_kind(text: str) -> str:
    """Why a text names no kind, with the nearest that does."""
    near = suggest_names(text, [kind.word for kind in KINDS], 1)
    named = [kind for kind in KINDS if near and kind.word == near[0]]
    names = ", ".join(KINDS_BY_NAME)
    return f"is no kind; did you mean {named[0].name}?" if named else f"is no kind of Lagscale's; known are {names}"
