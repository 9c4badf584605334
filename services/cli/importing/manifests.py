"""The objects of all manifests by kind, namespace and name, and what KEDA scales among them. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.cli.importing.documents import Document, Read, Unreadable, plain

SCALED_OBJECT, SCALED_JOB = "ScaledObject", "ScaledJob"
KAFKA_TYPES = ("kafka", "apache-kafka")
Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scaled:
    """A ScaledObject or ScaledJob; `node` is without comments, those are in the document."""

    document: Document
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
        return inner(self.node, "spec")

    @property
    def triggers(self) -> Sequence[Any]:
        """The triggers; empty where they are no list."""
        found = self.spec.get("triggers")
        return found if isinstance(found, list) else []

    @property
    def annotations(self) -> Node:
        """The annotations."""
        return inner(inner(self.node, "metadata"), "annotations")

    def kafka(self) -> list[int]:
        """Places of the triggers that are to be converted."""
        found = enumerate(self.triggers)
        return [number for number, one in found if isinstance(one, Mapping) and one.get("type") in KAFKA_TYPES]


class Manifests:
    """All objects that were read. Of an object that is there twice the last one counts, as for `kubectl apply`."""

    def __init__(self, found: Sequence[Read], namespace: str) -> None:
        """Take the documents, and the namespace of those that name none."""
        self.unreadable = [one for one in found if isinstance(one, Unreadable)]
        self.twice: list[str] = []
        self._objects: dict[tuple[str, str, str], tuple[Document, Node]] = {}
        for one in found:
            if isinstance(one, Document):
                self._add(one, namespace)

    def _add(self, document: Document, namespace: str) -> None:
        node = plain(document.node)
        metadata = inner(node, "metadata")
        kind, name = str(node.get("kind") or ""), str(metadata.get("name") or "")
        space = "" if kind == "ClusterTriggerAuthentication" else str(metadata.get("namespace") or namespace)
        if kind in {SCALED_OBJECT, SCALED_JOB} and not name:
            self.unreadable.append(Unreadable(document.where, f"the {kind} has no metadata.name"))
            return
        key = (kind, space, name)
        if key in self._objects and kind in {SCALED_OBJECT, SCALED_JOB}:
            before = self._objects[key][0].where
            self.twice.append(f"{kind} {space}/{name} stands in {before} and in {document.where}; the last one counts")
        self._objects[key] = (document, node)

    def scaled(self) -> list[Scaled]:
        """What KEDA scales, in a stable order."""
        return [
            Scaled(document, kind, namespace, name, node)
            for (kind, namespace, name), (document, node) in sorted(self._objects.items(), key=lambda one: one[0])
            if kind in {SCALED_OBJECT, SCALED_JOB}
        ]

    def get(self, kind: str, namespace: str, name: str) -> Node | None:
        """An object, if it was read."""
        found = self._objects.get((kind, namespace, name))
        return None if found is None else found[1]

    def config_value(self, namespace: str, name: str, key: str) -> str | None:
        """A text of a ConfigMap, if it was read."""
        value = inner(self.get("ConfigMap", namespace, name) or {}, "data").get(key)
        return None if value is None else str(value)

    def secret_value(self, namespace: str, name: str, key: str) -> str | None:
        """A text of a Secret, if it was read. Whoever asks must never write it, unless it is a word of a fixed list."""
        secret = self.get("Secret", namespace, name) or {}
        open_text = inner(secret, "stringData").get(key)
        if open_text is not None:
            return str(open_text)
        coded = inner(secret, "data").get(key)
        if coded is None:
            return None
        try:
            return base64.b64decode(str(coded), validate=True).decode()
        except ValueError:  # Neither base64 nor UTF-8.
            return None


def inner(node: Node, *path: str) -> Node:
    """The map at a path; empty where there is none."""
    for name in path:
        found = node.get(name)
        if not isinstance(found, Mapping):
            return {}
        node = found
    return node


def rows(node: Node, name: str) -> list[Node]:
    """The maps of a list; empty where there is none."""
    found = node.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
