"""Documents -> manifests: objects as they shall be, checked against what the API takes; every fault with its line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lagscale.domain.tenancy import is_name, near_names
from lagscale.errors import Fault
from services.cli.objects.documents import Document, Way
from services.cli.objects.kinds import BINDING, BY_NAME, TENANT, Kind, Ref, binding_name, unknown_kind
from services.cli.objects.references import References
from services.cli.objects.schemas import Schemas, Spec

API_VERSION = "lagscale/v1"
_TOP = ("apiVersion", "kind", "metadata", "spec")
_METADATA = ("name", "tenant", "hasSecrets")
_NAME = "must be 1 to 63 of a-z, 0-9 and -, with no - at either end"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object as it shall be.

    Attributes:
        ref: which.
        spec: the API's body, without the name.
        document: where it stands.
        has_secrets: it came from an export of a cluster whose secrets are stored.
        sound: it has no faults of its own.
    """

    ref: Ref
    spec: Spec
    document: Document
    has_secrets: bool = False
    sound: bool = True

    def fault(self, way: Way, text: str) -> Fault:
        """A fault of it at a way in its document, as in spec.policy.lagThreshold."""
        field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in way).lstrip(".")
        return Fault(f"{self.document.place(way)}: {self.ref}: {field or 'document'}", text)

    def fault_of_field(self, field: str, text: str) -> Fault:
        """A fault that the API found, by the field's name in its answer, as in policy.lagThreshold."""
        steps: list[str | int] = [int(step) if step.isdecimal() else step for step in field.split(".") if step]
        way: Way = ("metadata", "name") if field == "name" else ("spec", *steps)
        return self.fault(way, text)


@dataclass(frozen=True, slots=True)
class Declared:
    """What the files declare.

    Attributes:
        manifests: in the order in which they need each other.
        complete: of no document it is unknown which object it means.
    """

    manifests: Sequence[Manifest]
    complete: bool


def declared(
    documents: Iterable[Document], schemas: Schemas, environ: Mapping[str, str], faults: list[Fault]
) -> Declared:
    """The objects of the documents.

    Args:
        documents: of all files.
        schemas: what the API takes.
        environ: for `valueFrom`.
        faults: takes every fault of every document; those of reading them are in it.
    """
    reader = _Reader(schemas, References(environ, faults), faults)
    complete = not faults
    found: dict[Ref, Manifest] = {}
    for document in documents:
        manifest = reader.manifest(document)
        if manifest is None:
            complete = False
            continue
        first = found.setdefault(manifest.ref, manifest)
        if first is not manifest:
            faults.append(manifest.fault((), f"is declared at {first.document.place()} already; keep one of the two"))
    return Declared(sorted(found.values(), key=lambda one: one.ref.rank), complete)


def named(documents: Iterable[Document], environ: Mapping[str, str], faults: list[Fault]) -> list[Ref]:
    """Which objects the documents mean, whatever else they say of them: what `delete -f` needs."""
    found = set()
    for document in documents:
        # Of a spec only a binding's names the object; a secret that is not at hand is no hindrance.
        of_binding = isinstance(document.value, dict) and document.value.get("kind") == BINDING.name
        spec = References(environ, faults).resolved_spec(document) if of_binding else None
        found.add(_ref(document, spec, faults))
    return sorted((ref for ref in found if ref is not None), key=lambda ref: ref.rank)


@dataclass(frozen=True, slots=True)
class _Reader:
    schemas: Schemas
    references: References
    faults: list[Fault]

    def manifest(self, document: Document) -> Manifest | None:
        before = len(self.faults)
        spec = self.references.resolved_spec(document)
        ref = _ref(document, spec, self.faults)
        if ref is None:
            return None
        if not isinstance(spec, dict):
            self.faults.append(Fault(f"{document.place(('spec',))}: {ref}: spec", "must be a mapping"))
            return None
        kind = ref.kind
        has_secrets = document.value["metadata"].get("hasSecrets") is True
        manifest = Manifest(ref, self.schemas.listed(kind, spec), document, has_secrets)
        for way, text in self.schemas.faults(kind, manifest.spec):
            self.faults.append(manifest.fault(("spec", *way), text))
        return manifest if len(self.faults) == before else replace(manifest, sound=False)


def _ref(document: Document, spec: Any, faults: list[Fault]) -> Ref | None:
    """Which object a document means; None, with its faults, if that cannot be told."""
    value = document.value
    before = len(faults)

    def fault(way: Way, text: str) -> None:
        field = ".".join(map(str, way)) or "document"
        faults.append(Fault(f"{document.place(way)}: {field}", text))

    if not isinstance(value, dict):
        fault((), "must be a mapping with kind, metadata and spec")
        return None
    kind = BY_NAME.get(value["kind"]) if isinstance(value.get("kind"), str) else None
    if kind is None:
        text = "must be given" if value.get("kind") is None else unknown_kind(str(value["kind"]))
        fault(("kind",), text)
    if value.get("apiVersion", API_VERSION) != API_VERSION:
        fault(("apiVersion",), f"must be {API_VERSION}, or left out")
    for name in value:
        if name not in _TOP:
            fault((name,), _unknown(name, _TOP))
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        fault(("metadata",), "must be given, with the name and the tenant")
        return None
    for name in metadata:
        if name not in _METADATA:
            fault(("metadata", name), _unknown(name, _METADATA))
    if kind is None:
        return None
    ref = _named(kind, metadata, spec, fault)
    return ref if len(faults) == before else None


def _named(kind: Kind, metadata: dict[str, Any], spec: Any, fault: Any) -> Ref | None:
    """The name and the tenant of the metadata; a binding is named by its spec."""
    needed = ("name",) if kind is TENANT else ("tenant",) if kind is BINDING else ("name", "tenant")
    for field in _METADATA[:2]:
        text = metadata.get(field)
        if text is None and field in needed:
            fault(("metadata", field), "must be given")
        elif text is not None and not (isinstance(text, str) and (is_name(text) or field not in needed)):
            fault(("metadata", field), f"{_NAME}{'' if isinstance(text, str) else '; put it in quotes'}")
    if not isinstance(metadata.get("hasSecrets", False), bool):
        fault(("metadata", "hasSecrets"), "must be true or false")
    if kind is TENANT:
        if metadata.get("tenant") not in {None, metadata.get("name")}:
            fault(("metadata", "tenant"), "must be the tenant's own name, or left out")
        return Ref(kind, str(metadata.get("name")))
    if kind is BINDING:
        return Ref(kind, str(metadata.get("tenant")), binding_name(spec if isinstance(spec, dict) else {}))
    return Ref(kind, str(metadata.get("tenant")), str(metadata.get("name")))


def _unknown(name: str, known: Sequence[str]) -> str:
    near = near_names(name, [one.lower() for one in known], 1)
    meant = [one for one in known if near and one.lower() == near[0]]
    return f"is not known; did you mean {meant[0]}?" if meant else f"is not known; known are {', '.join(known)}"
