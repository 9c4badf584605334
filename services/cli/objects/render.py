"""Objects as the API shows them -> manifests that declare the same, as YAML or JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from services.cli.objects.kinds import BINDING, TENANT, ObjectRef
from services.cli.objects.manifests import API_VERSION
from services.cli.objects.schemas import ApiSchemas, format_policy_value

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
