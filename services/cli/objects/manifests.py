"""Documents -> manifests: objects as they shall be, checked against what the API takes; every fault with its line."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from lagscale.domain.tenancy import is_name, suggest_names
from lagscale.errors import FieldError
from services.cli.objects.documents import KeyPath, SourceDocument, ValueFromResolver
from services.cli.objects.kinds import (
    BINDING,
    KINDS_BY_NAME,
    TENANT,
    ObjectKind,
    ObjectRef,
    build_binding_name,
    describe_unknown_kind,
)
from services.cli.objects.schemas import ApiSchemas, Spec, format_policy_value

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
        valid_alone: it has no faults of its own.
    """

    ref: ObjectRef
    spec: Spec
    document: SourceDocument
    has_secrets: bool = False
    valid_alone: bool = True

    def build_error(self, key_path: KeyPath, text: str) -> FieldError:
        """A fault of it at a way in its document, as in spec.policy.lagThreshold."""
        field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in key_path).lstrip(".")
        return FieldError(f"{self.document.locate(key_path)}: {self.ref}: {field or 'document'}", text)

    def build_field_error(self, field: str, text: str) -> FieldError:
        """A fault that the API found, by the field's name in its answer, as in policy.lagThreshold."""
        steps: list[str | int] = [int(step) if step.isdecimal() else step for step in field.split(".") if step]
        key_path: KeyPath = ("metadata", "name") if field == "name" else ("spec", *steps)
        return self.build_error(key_path, text)


@dataclass(frozen=True, slots=True)
class DeclaredObjects:
    """What the files declare.

    Attributes:
        manifests: in the order in which they need each other.
        complete: of no document it is unknown which object it means.
    """

    manifests: Sequence[Manifest]
    complete: bool


def parse_manifests(
    documents: Iterable[SourceDocument], schemas: ApiSchemas, environ: Mapping[str, str], field_errors: list[FieldError]
) -> DeclaredObjects:
    """The objects of the documents.

    Args:
        documents: of all files.
        schemas: what the API takes.
        environ: for `valueFrom`.
        field_errors: takes every fault of every document; those of reading them are in it.
    """
    reader = _ManifestParser(schemas, ValueFromResolver(environ, field_errors), field_errors)
    complete = not field_errors
    by_ref: dict[ObjectRef, Manifest] = {}
    for document in documents:
        manifest = reader.manifest(document)
        if manifest is None:
            complete = False
            continue
        first = by_ref.setdefault(manifest.ref, manifest)
        if first is not manifest:
            field_errors.append(
                manifest.build_error((), f"is declared at {first.document.locate()} already; keep one of the two")
            )
    return DeclaredObjects(sorted(by_ref.values(), key=lambda one: one.ref.sort_key), complete)


def read_refs(
    documents: Iterable[SourceDocument], environ: Mapping[str, str], field_errors: list[FieldError]
) -> list[ObjectRef]:
    """Which objects the documents mean, whatever else they say of them: what `delete -f` needs."""
    by_ref = set()
    for document in documents:
        # Of a spec only a binding's names the object; a secret that is not at hand is no hindrance.
        of_binding = isinstance(document.value, dict) and document.value.get("kind") == BINDING.name
        spec = ValueFromResolver(environ, field_errors).resolve_spec(document) if of_binding else None
        by_ref.add(_parse_ref(document, spec, field_errors))
    return sorted((ref for ref in by_ref if ref is not None), key=lambda ref: ref.sort_key)


@dataclass(frozen=True, slots=True)
class _ManifestParser:
    schemas: ApiSchemas
    references: ValueFromResolver
    field_errors: list[FieldError]

    def manifest(self, document: SourceDocument) -> Manifest | None:
        before = len(self.field_errors)
        spec = self.references.resolve_spec(document)
        ref = _parse_ref(document, spec, self.field_errors)
        if ref is None:
            return None
        if not isinstance(spec, dict):
            self.field_errors.append(FieldError(f"{document.locate(('spec',))}: {ref}: spec", "must be a mapping"))
            return None
        kind = ref.kind
        has_secrets = document.value["metadata"].get("hasSecrets") is True
        manifest = Manifest(ref, self.schemas.split_lists(kind, spec), document, has_secrets)
        for key_path, text in self.schemas.field_errors(kind, manifest.spec):
            self.field_errors.append(manifest.build_error(("spec", *key_path), text))
        return manifest if len(self.field_errors) == before else replace(manifest, valid_alone=False)


def _parse_ref(document: SourceDocument, spec: Any, field_errors: list[FieldError]) -> ObjectRef | None:
    """Which object a document means; None, with its faults, if that cannot be told."""
    value = document.value
    before = len(field_errors)

    def add_error(key_path: KeyPath, text: str) -> None:
        field = ".".join(map(str, key_path)) or "document"
        field_errors.append(FieldError(f"{document.locate(key_path)}: {field}", text))

    if not isinstance(value, dict):
        add_error((), "must be a mapping with kind, metadata and spec")
        return None
    kind = KINDS_BY_NAME.get(value["kind"]) if isinstance(value.get("kind"), str) else None
    if kind is None:
        text = "must be given" if value.get("kind") is None else describe_unknown_kind(str(value["kind"]))
        add_error(("kind",), text)
    if value.get("apiVersion", API_VERSION) != API_VERSION:
        add_error(("apiVersion",), f"must be {API_VERSION}, or left out")
    for name in value:
        if name not in _TOP:
            add_error((name,), _describe_unknown_key(name, _TOP))
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        add_error(("metadata",), "must be given, with the name and the tenant")
        return None
    for name in metadata:
        if name not in _METADATA:
            add_error(("metadata", name), _describe_unknown_key(name, _METADATA))
    if kind is None:
        return None
    ref = _parse_ref_name(kind, metadata, spec, add_error)
    return ref if len(field_errors) == before else None


def _parse_ref_name(kind: ObjectKind, metadata: dict[str, Any], spec: Any, add_error: Any) -> ObjectRef | None:
    """The name and the tenant of the metadata; a binding is named by its spec."""
    needed = ("name",) if kind is TENANT else ("tenant",) if kind is BINDING else ("name", "tenant")
    for field in _METADATA[:2]:
        text = metadata.get(field)
        if text is None and field in needed:
            add_error(("metadata", field), "must be given")
        elif text is not None and not (isinstance(text, str) and (is_name(text) or field not in needed)):
            add_error(("metadata", field), f"{_NAME}{'' if isinstance(text, str) else '; put it in quotes'}")
    if not isinstance(metadata.get("hasSecrets", False), bool):
        add_error(("metadata", "hasSecrets"), "must be true or false")
    if kind is TENANT:
        if metadata.get("tenant") not in {None, metadata.get("name")}:
            add_error(("metadata", "tenant"), "must be the tenant's own name, or left out")
        return ObjectRef(kind, str(metadata.get("name")))
    if kind is BINDING:
        return ObjectRef(kind, str(metadata.get("tenant")), build_binding_name(spec if isinstance(spec, dict) else {}))
    return ObjectRef(kind, str(metadata.get("tenant")), str(metadata.get("name")))


def _describe_unknown_key(name: str, valid: Sequence[str]) -> str:
    near = suggest_names(name, [one.lower() for one in valid], 1)
    meant = [one for one in valid if near and one.lower() == near[0]]
    return f"is not known; did you mean {meant[0]}?" if meant else f"is not known; known are {', '.join(valid)}"


_WIDTH = 120


def build_manifest(ref: ObjectRef, answer: Mapping[str, Any], schemas: ApiSchemas) -> dict[str, Any]:
    """What declares this object: nothing that is the API's default, and no secret.

    `metadata.hasSecrets` says that secrets are stored, so that `apply` does not make a cluster without them.
    """
    metadata: dict[str, Any] = {} if ref.kind is BINDING else {"name": ref.name or ref.tenant}
    if ref.kind is not TENANT:
        metadata["tenant"] = ref.tenant
    spec = schemas.normalize_spec(ref.kind, answer)
    if answer.get("hasSecrets"):
        metadata["hasSecrets"] = True
    elif answer.get("secretReferences"):
        # Where a secret stands is no secret. Beside stored ones it cannot be told: what is given replaces all of them.
        spec["secrets"] = answer["secretReferences"]
    for name in ("policy", "policyDefaults", "policyLimits"):
        if name in spec:
            spec[name] = _simplify(spec[name])
    return {"apiVersion": API_VERSION, "kind": ref.kind.name, "metadata": metadata, "spec": spec}


def as_yaml(manifests: Sequence[Mapping[str, Any]]) -> str:
    """A document each."""
    yaml = YAML()
    yaml.width = _WIDTH
    yaml.explicit_start = True
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump_all([_use_literal_blocks(one) for one in manifests], stream)
    return stream.getvalue()


def as_json(manifests: Sequence[Mapping[str, Any]]) -> str:
    """One object as it is, several as a `List`."""
    if len(manifests) == 1:
        return json.dumps(manifests[0], indent=2)
    return json.dumps({"apiVersion": API_VERSION, "kind": "List", "items": manifests}, indent=2)


def _simplify(text: Any) -> Any:
    """Values of a policy as people write them, if that is stored as the same text."""
    if isinstance(text, Mapping):
        return {name: _simplify(item) for name, item in text.items()}
    if isinstance(text, list):
        return [_simplify(item) for item in text]
    if text in {"true", "false"}:
        return text == "true"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if format_policy_value(number) == text:
            return number
    return text


def _use_literal_blocks(value: Any) -> Any:
    """The same with certificates as blocks of lines."""
    if isinstance(value, Mapping):
        return {name: _use_literal_blocks(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_use_literal_blocks(item) for item in value]
    return LiteralScalarString(value) if isinstance(value, str) and "\n" in value else value
