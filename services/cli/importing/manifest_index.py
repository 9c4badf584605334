"""The objects of all manifests by kind, namespace and name, and what KEDA scales among them. Pure."""

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
    """A ScaledObject or ScaledJob; `node` is without comments, those are in the document."""

    document: KubernetesDocument
    kind: str
    namespace: str
    name: str
    node: Node

    @property
    def title(self) -> str:
        """As the report calls it."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def spec(self) -> Node:
        """The spec; empty where it is no map."""
        return get_map(self.node, "spec")

    @property
    def triggers(self) -> Sequence[Any]:
        """The triggers; empty where they are no list."""
        nested = self.spec.get("triggers")
        return nested if isinstance(nested, list) else []

    @property
    def annotations(self) -> Node:
        """The annotations."""
        return get_map(get_map(self.node, "metadata"), "annotations")

    def list_kafka_triggers(self) -> list[int]:
        """Places of the triggers that are to be converted."""
        numbered = enumerate(self.triggers)
        return [number for number, one in numbered if isinstance(one, Mapping) and one.get("type") in KAFKA_TYPES]


class ManifestIndex:
    """All objects that were read. Of an object that is there twice the last one counts, as for `kubectl apply`."""

    def __init__(self, documents: Sequence[ParsedDocument], namespace: str) -> None:
        """Take the documents, and the namespace of those that name none."""
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
            self.unreadable.append(UnreadableDocument(document.where, f"the {kind} has no metadata.name"))
            return
        key = (kind, object_namespace, name)
        if key in self._objects and kind in {SCALED_OBJECT, SCALED_JOB}:
            before = self._objects[key][0].where
            self.duplicates.append(
                f"{kind} {object_namespace}/{name} stands in {before} and in {document.where}; the last one counts"
            )
        self._objects[key] = (document, node)

    def resource(self) -> list[ScaledResource]:
        """What KEDA scales, in a stable order."""
        return [
            ScaledResource(document, kind, namespace, name, node)
            for (kind, namespace, name), (document, node) in sorted(self._objects.items(), key=lambda one: one[0])
            if kind in {SCALED_OBJECT, SCALED_JOB}
        ]

    def get(self, kind: str, namespace: str, name: str) -> Node | None:
        """An object, if it was read."""
        nested = self._objects.get((kind, namespace, name))
        return None if nested is None else nested[1]

    def config_value(self, namespace: str, name: str, key: str) -> str | None:
        """A text of a ConfigMap, if it was read."""
        value = get_map(self.get("ConfigMap", namespace, name) or {}, "data").get(key)
        return None if value is None else str(value)

    def secret_value(self, namespace: str, name: str, key: str) -> str | None:
        """A text of a Secret, if it was read. Whoever asks must never write it, unless it is a word of a fixed list."""
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
    """The map at a path; empty where there is none."""
    for name in path:
        nested = node.get(name)
        if not isinstance(nested, Mapping):
            return {}
        node = nested
    return node


def list_maps(node: Node, name: str) -> list[Node]:
    """The maps of a list; empty where there is none."""
    nested = node.get(name)
    return [one for one in nested if isinstance(one, Mapping)] if isinstance(nested, list) else []
