"""The objects of all manifests by kind, namespace and name, and the ScaledObjects and ScaledJobs among them. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.cli.importing.yaml_text import KubernetesDocument, ParsedDocument, UnreadableDocument, to_plain

SCALED_OBJECT, SCALED_JOB = "ScaledObject", "ScaledJob"
KAFKA_TYPES = ("kafka", "apache-kafka")
Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ScaledResource:
    """A ScaledObject or ScaledJob; `node` has no comments, the document has them."""

    document: KubernetesDocument
    kind: str
    namespace: str
    name: str
    node: Node

    @property
    def title(self) -> str:
        """Its name in the report."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def spec(self) -> Node:
        """The spec; empty if it is not a mapping."""
        return get_map(self.node, "spec")

    @property
    def triggers(self) -> Sequence[Any]:
        """The triggers; empty if they are not a list."""
        nested = self.spec.get("triggers")
        return nested if isinstance(nested, list) else []

    @property
    def annotations(self) -> Node:
        """The annotations."""
        return get_map(get_map(self.node, "metadata"), "annotations")

    def list_kafka_triggers(self) -> list[int]:
        """Indexes of the triggers to convert."""
        numbered = enumerate(self.triggers)
        return [number for number, one in numbered if isinstance(one, Mapping) and one.get("type") in KAFKA_TYPES]


class ManifestIndex:
    """All objects of the manifests. Of duplicates the last one counts, as for `kubectl apply`."""

    def __init__(self, documents: Sequence[ParsedDocument], namespace: str) -> None:
        """Index the documents; `namespace` is of those without one."""
        self.unreadable = [one for one in documents if isinstance(one, UnreadableDocument)]
        self.duplicates: list[str] = []
        self._objects: dict[tuple[str, str, str], tuple[KubernetesDocument, Node]] = {}
        for one in documents:
            if isinstance(one, KubernetesDocument):
                self._add(one, namespace)

    def _add(self, document: KubernetesDocument, namespace: str) -> None:
        node = to_plain(document.node)
        metadata = get_map(node, "metadata")
        kind, name = str(node.get("kind") or ""), str(metadata.get("name") or "")
        object_namespace = "" if kind == "ClusterTriggerAuthentication" else str(metadata.get("namespace") or namespace)
        if kind in {SCALED_OBJECT, SCALED_JOB} and not name:
            self.unreadable.append(UnreadableDocument(document.location, f"the {kind} has no metadata.name"))
            return
        key = (kind, object_namespace, name)
        if key in self._objects and kind in {SCALED_OBJECT, SCALED_JOB}:
            before = self._objects[key][0].location
            self.duplicates.append(
                f"{kind} {object_namespace}/{name} is declared in {before} and in {document.location}; the last one counts"
            )
        self._objects[key] = (document, node)

    def list_resources(self) -> list[ScaledResource]:
        """All ScaledObjects and ScaledJobs, in a stable order."""
        return [
            ScaledResource(document, kind, namespace, name, node)
            for (kind, namespace, name), (document, node) in sorted(self._objects.items(), key=lambda one: one[0])
            if kind in {SCALED_OBJECT, SCALED_JOB}
        ]

    def get(self, kind: str, namespace: str, name: str) -> Node | None:
        """An object, if it is among the manifests."""
        nested = self._objects.get((kind, namespace, name))
        return None if nested is None else nested[1]

    def list_namespaces(self, kind: str, name: str) -> list[str]:
        """The namespaces in which the manifests have an object of this name."""
        return [namespace for one, namespace, other in self._objects if (one, other) == (kind, name)]

    def config_value(self, namespace: str, name: str, key: str) -> str | None:
        """A value of a ConfigMap, if it is among the manifests."""
        value = get_map(self.get("ConfigMap", namespace, name) or {}, "data").get(key)
        return None if value is None else str(value)

    def secret_value(self, namespace: str, name: str, key: str) -> str | None:
        """A value of a Secret, if it is among the manifests. Callers never write it, unless it is a word of a fixed list."""
        secret = self.get("Secret", namespace, name) or {}
        plain_text = get_map(secret, "stringData").get(key)
        if plain_text is not None:
            return str(plain_text)
        encoded = get_map(secret, "data").get(key)
        if encoded is None:
            return None
        try:
            return base64.b64decode(str(encoded), validate=True).decode()
        except ValueError:  # Neither base64 nor UTF-8.
            return None


def get_map(node: Node, *path: str) -> Node:
    """The mapping at a path; empty if there is none."""
    for name in path:
        nested = node.get(name)
        if not isinstance(nested, Mapping):
            return {}
        node = nested
    return node


def list_maps(node: Node, name: str) -> list[Node]:
    """The mappings of a list; empty if there is none."""
    nested = node.get(name)
    return [one for one in nested if isinstance(one, Mapping)] if isinstance(nested, list) else []
