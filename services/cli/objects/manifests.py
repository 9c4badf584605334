"""Manifests: parsed from documents and validated against the API's schemas, and built from the objects of the API."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ruamel.yaml.scalarstring import LiteralScalarString

from lagscale.domain.tenancy import NAME_FORM, is_name
from lagscale.errors import FieldError
from services.cli.objects.documents import KeyPath, SourceDocument, resolve_spec
from services.cli.objects.kinds import (
    BINDING,
    KINDS_BY_NAME,
    TENANT,
    ObjectKind,
    ObjectRef,
    build_binding_name,
    describe_unknown_name,
)
from services.cli.objects.schemas import ApiSchemas, Spec, format_policy_value
from services.cli.output import dump_yaml

API_VERSION = "lagscale/v1"
_TOP = ("apiVersion", "kind", "metadata", "spec")
_METADATA = ("name", "tenant", "hasSecrets")
_NAMESPACE = "objects belong to a tenant, not to a namespace: set metadata.tenant, and bind namespaces with a Binding"
#: Longer lines of exported YAML are folded.
_WIDTH = 120


@dataclass(frozen=True, slots=True)
class Manifest:
    """Desired state of one object.

    Attributes:
        ref: the object.
        spec: the body of the API request, without the name.
        document: its source.
        has_secrets: exported from a cluster with stored secrets.
        valid_alone: the manifest itself has no errors.
    """

    ref: ObjectRef
    spec: Spec
    document: SourceDocument
    has_secrets: bool = False
    valid_alone: bool = True

    def build_error(self, key_path: KeyPath, text: str) -> FieldError:
        """An error at a path of the document, as in spec.policy.lagThreshold."""
        field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in key_path).lstrip(".")
        return FieldError(f"{self.document.locate(key_path)}: {self.ref}: {field or 'document'}", text)

    def build_field_error(self, field: str, text: str) -> FieldError:
        """An error that the API reported, by its field, as in policy.lagThreshold."""
        steps: list[str | int] = [int(step) if step.isdecimal() else step for step in field.split(".") if step]
        key_path: KeyPath = ("metadata", "name") if field == "name" else ("spec", *steps)
        return self.build_error(key_path, text)


@dataclass(frozen=True, slots=True)
class DeclaredObjects:
    """The objects of all files.

    Attributes:
        manifests: in dependency order.
        complete: the object of every document could be identified.
    """

    manifests: Sequence[Manifest]
    complete: bool


def parse_manifests(
    documents: Iterable[SourceDocument], schemas: ApiSchemas, environ: Mapping[str, str], field_errors: list[FieldError]
) -> DeclaredObjects:
    """The objects of the documents. `field_errors` receives all errors; it contains those of reading the files."""
    complete = not field_errors
    by_ref: dict[ObjectRef, Manifest] = {}
    for document in documents:
        manifest = _parse_manifest(document, schemas, environ, field_errors)
        if manifest is None:
            complete = False
            continue
        first = by_ref.setdefault(manifest.ref, manifest)
        if first is not manifest:
            field_errors.append(
                manifest.build_error((), f"duplicate object, already declared at {first.document.locate()}")
            )
    return DeclaredObjects(sorted(by_ref.values(), key=lambda one: one.ref.sort_key), complete)


def read_refs(
    documents: Iterable[SourceDocument], environ: Mapping[str, str], field_errors: list[FieldError]
) -> list[ObjectRef]:
    """The objects of the documents, whether valid or not: what `delete -f` needs."""
    by_ref = set()
    for document in documents:
        # Only the spec of a binding identifies the object; unresolved secrets of others do not matter.
        of_binding = isinstance(document.value, dict) and document.value.get("kind") == BINDING.name
        spec = resolve_spec(document, environ, field_errors) if of_binding else None
        by_ref.add(_parse_ref(document, spec, field_errors))
    return sorted((ref for ref in by_ref if ref is not None), key=lambda ref: ref.sort_key)


def _parse_manifest(
    document: SourceDocument, schemas: ApiSchemas, environ: Mapping[str, str], field_errors: list[FieldError]
) -> Manifest | None:
    before = len(field_errors)
    spec = resolve_spec(document, environ, field_errors)
    ref = _parse_ref(document, spec, field_errors)
    if ref is None:
        field_errors += _check_unidentified(document, spec, schemas)
        return None
    if not isinstance(spec, dict):
        field_errors.append(FieldError(f"{document.locate(('spec',))}: {ref}: spec", "must be a mapping"))
        return None
    has_secrets = document.value["metadata"].get("hasSecrets") is True
    manifest = Manifest(ref, schemas.split_lists(ref.kind, spec), document, has_secrets)
    for key_path, text in schemas.field_errors(ref.kind, manifest.spec):
        field_errors.append(manifest.build_error(("spec", *key_path), text))
    return manifest if len(field_errors) == before else replace(manifest, valid_alone=False)


def _check_unidentified(document: SourceDocument, spec: Any, schemas: ApiSchemas) -> Iterator[FieldError]:
    """Errors in the spec too, so that those of metadata do not hide them."""
    kind = _find_kind(document.value) if isinstance(document.value, dict) else None
    if kind is None or not isinstance(spec, dict) or "spec" not in document.value:
        return
    for key_path, text in schemas.field_errors(kind, schemas.split_lists(kind, spec)):
        path: KeyPath = ("spec", *key_path)
        yield FieldError(f"{document.locate(path)}: {'.'.join(map(str, path))}", text)


def _find_kind(value: Any) -> ObjectKind | None:
    """The kind of a document of Lagscale."""
    return KINDS_BY_NAME.get(value["kind"]) if isinstance(value.get("kind"), str) else None


def _parse_ref(document: SourceDocument, spec: Any, field_errors: list[FieldError]) -> ObjectRef | None:
    """The object of a document; None, with errors, if it cannot be identified."""
    value = document.value
    before = len(field_errors)

    def add_error(key_path: KeyPath, text: str) -> None:
        field = ".".join(map(str, key_path)) or "document"
        field_errors.append(FieldError(f"{document.locate(key_path)}: {field}", text))

    if not isinstance(value, dict):
        add_error((), "must be a mapping with kind, metadata and spec")
        return None
    kind = _find_kind(value)
    if str(value.get("apiVersion", "")).startswith("keda.sh/"):
        text = (
            "is an object of KEDA: apply it with `kubectl apply`, or convert its kafka triggers with `lagscale import`"
        )
        add_error(("kind",), f"{value.get('kind')} {text}")
        return None
    if kind is None:
        text = (
            "is required"
            if value.get("kind") is None
            else describe_unknown_name(str(value["kind"]), KINDS_BY_NAME, "unknown kind")
        )
        add_error(("kind",), text)
    if value.get("apiVersion", API_VERSION) != API_VERSION:
        add_error(("apiVersion",), f"must be {API_VERSION}, or omitted")
    for name in value:
        if name not in _TOP:
            add_error((name,), describe_unknown_name(name, _TOP, "unknown field"))
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        add_error(("metadata",), "is required, with the name and the tenant")
        return None
    for name in metadata:
        if name == "namespace":
            add_error(("metadata", name), _NAMESPACE)
        elif name not in _METADATA:
            add_error(("metadata", name), describe_unknown_name(name, _METADATA, "unknown field"))
    if kind is None:
        return None
    ref = _parse_ref_name(kind, metadata, spec, add_error)
    return ref if len(field_errors) == before else None


def _parse_ref_name(kind: ObjectKind, metadata: dict[str, Any], spec: Any, add_error: Any) -> ObjectRef | None:
    """The object by name and tenant of its metadata; a binding is identified by its spec."""
    needed = ("name",) if kind is TENANT else ("tenant",) if kind is BINDING else ("name", "tenant")
    for field in _METADATA[:2]:
        text = metadata.get(field)
        if text is None and field in needed:
            add_error(("metadata", field), "is required")
        elif text is not None and not (isinstance(text, str) and (is_name(text) or field not in needed)):
            add_error(("metadata", field), f"{NAME_FORM}{'' if isinstance(text, str) else '; quote it'}")
    if not isinstance(metadata.get("hasSecrets", False), bool):
        add_error(("metadata", "hasSecrets"), "must be true or false")
    if kind is TENANT:
        if metadata.get("tenant") not in {None, metadata.get("name")}:
            add_error(("metadata", "tenant"), "must be the tenant's own name, or omitted")
        return ObjectRef(kind, str(metadata.get("name")))
    if kind is BINDING:
        return ObjectRef(kind, str(metadata.get("tenant")), build_binding_name(spec if isinstance(spec, dict) else {}))
    return ObjectRef(kind, str(metadata.get("tenant")), str(metadata.get("name")))


def build_manifest(ref: ObjectRef, answer: Mapping[str, Any], schemas: ApiSchemas) -> dict[str, Any]:
    """The manifest of an object of the API: without defaults and without secrets.

    `metadata.hasSecrets` marks stored secrets, so that `apply` does not create a cluster without them.
    """
    metadata: dict[str, Any] = {} if ref.kind is BINDING else {"name": ref.name or ref.tenant}
    if ref.kind is not TENANT:
        metadata["tenant"] = ref.tenant
    spec = schemas.normalize_spec(ref.kind, answer)
    if answer.get("hasSecrets"):
        metadata["hasSecrets"] = True
    elif answer.get("secretReferences"):
        # References are not secret. With stored secrets they cannot be exported: given secrets replace all of them.
        spec["secrets"] = answer["secretReferences"]
    for name in ("policy", "policyDefaults", "policyLimits"):
        if name in spec:
            spec[name] = _simplify(spec[name])
    return {"apiVersion": API_VERSION, "kind": ref.kind.name, "metadata": metadata, "spec": spec}


def dump_manifests(manifests: Sequence[Mapping[str, Any]]) -> str:
    """Manifests as YAML, one document each."""
    return dump_yaml([_use_literal_blocks(one) for one in manifests], width=_WIDTH, explicit_start=True)


def dump_json(manifests: Sequence[Mapping[str, Any]]) -> str:
    """Manifests as JSON: one object alone, several as a `List`."""
    if len(manifests) == 1:
        return json.dumps(manifests[0], indent=2)
    return json.dumps({"apiVersion": API_VERSION, "kind": "List", "items": manifests}, indent=2)


def _simplify(text: Any) -> Any:
    """Values of a policy as numbers and booleans, if they are stored as the same text."""
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
    """The same with strings of several lines, such as certificates, as literal blocks."""
    if isinstance(value, Mapping):
        return {name: _use_literal_blocks(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_use_literal_blocks(item) for item in value]
    return LiteralScalarString(value) if isinstance(value, str) and "\n" in value else value
