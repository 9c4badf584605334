"""Request and response schemas of the API, from its own OpenAPI document: the command declares no fields itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from jsonschema import Draft202012Validator, ValidationError  # type: ignore[import-untyped]

from lagscale.domain.policy.keys import KEYS_BY_NAME
from lagscale.domain.tenancy import NAME_FORM, NAME_PATTERN
from lagscale.errors import LagscaleError
from services.cli.objects.documents import KeyPath
from services.cli.objects.kinds import KINDS, ObjectKind, describe_unknown_name

Spec = dict[str, Any]

_TYPE_NAMES = {
    "string": "a string", "integer": "an integer", "number": "a number", "boolean": "true or false",
    "array": "a list", "object": "a mapping", "null": "null",
}  # fmt: skip
_PATTERNS = {f"^{NAME_PATTERN.pattern}$": NAME_FORM}
#: Keyword of a schema -> its error, with the keyword's value.
_CONSTRAINTS = {
    "minimum": "must be at least {:g}", "maximum": "must be at most {:g}",
    "minLength": "must have at least {} character(s)", "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} item(s)", "maxItems": "must have at most {} items",
}  # fmt: skip
#: Mappings with policy keys; their values may be strings, numbers or booleans.
_POLICIES = ("policy", "policyDefaults")
_LIMITS = "policyLimits"
#: Never compared and never printed, whatever the API returns.
_SECRET_FIELDS = frozenset({"secrets"})
#: Parameters of the API that turn off slow probes of a cluster.
_PREFLIGHT_PARAMETERS = frozenset({"preflight", "validate"})
_EMPTY: tuple[Any, ...] = (None, "", [], {})


class ApiSchemas:
    """The schemas of all kinds."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Parse an OpenAPI document.

        Raises:
            LagscaleError: it is not that of a Lagscale API with all kinds.
        """
        try:
            self._all = document["components"]["schemas"]
            self._input_schemas = {kind.name: self._all[kind.input_schema] for kind in KINDS}
            self._output_schemas = {kind.name: self._all[kind.output_schema] for kind in KINDS}
            self._write_operations = {kind.name: document["paths"][kind.route][kind.method] for kind in KINDS}
        except (KeyError, TypeError) as error:
            raise LagscaleError(
                "The OpenAPI document at LAGSCALE_API_URL is not that of this version of Lagscale."
            ) from error
        self._validators = {
            name: Draft202012Validator({**_without_name(schema), "components": {"schemas": self._all}})
            for name, schema in self._input_schemas.items()
        }

    def fields(self, kind: ObjectKind) -> Mapping[str, Any]:
        """The fields of a spec: name -> schema."""
        return {name: schema for name, schema in self._input_schemas[kind.name]["properties"].items() if name != "name"}

    def write_only_fields(self, kind: ObjectKind) -> frozenset[str]:
        """Fields that the API accepts and never returns."""
        fields = frozenset(self.fields(kind))
        return (fields - frozenset(self._output_schemas[kind.name]["properties"])) | (fields & _SECRET_FIELDS)

    def supports_dry_run(self, kind: ObjectKind) -> bool:
        """Whether the API supports a dry run for this kind."""
        return "dryRun" in self._parameters(kind)

    def query(self, kind: ObjectKind, *, dry_run: bool, preflight: bool) -> str:
        """The query of a write. A dry run changes nothing, and leaves probes of the network to the change itself."""
        parts = ["dryRun=true"] if dry_run else []
        if dry_run or not preflight:
            parts += [f"{name}=false" for name in sorted(_PREFLIGHT_PARAMETERS & self._parameters(kind))]
        return "?" + "&".join(parts) if parts else ""

    def _parameters(self, kind: ObjectKind) -> frozenset[str]:
        return frozenset(one["name"] for one in self._write_operations[kind.name].get("parameters", ()))

    @property
    def max_bulk_changes(self) -> int:
        """The maximum number of monitors in one bulk request; 1 if the API has no such request."""
        items = self._all.get("ChangesIn", {}).get("properties", {}).get("items", {})
        return int(items.get("maxItems", 1))

    def field_errors(self, kind: ObjectKind, spec: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
        """Path and text of each error; the text never contains a value."""
        errors = self._validators[kind.name].iter_errors(spec)
        # The library reports each missing field separately, and each report names all required fields.
        yield from dict.fromkeys(found for error in errors for found in self._explain_error(kind, error))
        for name in _POLICIES:
            policy = spec.get(name)
            for key in policy if isinstance(policy, Mapping) else ():
                if key not in KEYS_BY_NAME:
                    yield (name, key), describe_unknown_name(key, KEYS_BY_NAME, "unknown policy key")

    def normalize_spec(self, kind: ObjectKind, spec: Mapping[str, Any]) -> Spec:
        """A spec in canonical form: without defaults, empty values and write-only fields."""
        write_only_fields = self.write_only_fields(kind)
        normalized: Spec = {}
        for name, schema in self.fields(kind).items():
            value = _normalize_value(name, spec.get(name))
            if name not in write_only_fields and value not in _EMPTY and value != schema.get("default"):
                normalized[name] = value
        return normalized

    def split_lists(self, kind: ObjectKind, spec: Mapping[str, Any]) -> Spec:
        """The spec with comma-separated strings split where the API expects a list."""
        fields = self.fields(kind)
        return {
            name: [part.strip() for part in value.split(",") if part.strip()]
            if isinstance(value, str) and name in fields and "array" in set(_list_types(fields[name]))
            else value
            for name, value in spec.items()
        }

    def _explain_error(self, kind: ObjectKind, error: ValidationError) -> Iterator[tuple[KeyPath, str]]:
        key_path: KeyPath = tuple(error.absolute_path)
        constraint = error.validator_value
        if error.validator == "additionalProperties" and constraint is False:
            valid = error.schema.get("properties", {})
            for name in (name for name in error.instance if name not in valid):
                if not key_path and name in {"name", "tenant"}:
                    yield (name,), f"belongs in metadata, not in the spec of a {kind.name}"
                else:
                    yield (*key_path, name), describe_unknown_name(name, valid, "unknown field")
        elif error.validator == "enum" and "propertyNames" in error.schema_path:
            yield (*key_path, error.instance), describe_unknown_name(error.instance, constraint, "unknown field")
        elif error.validator == "enum":
            yield key_path, f"must be one of {', '.join(map(str, constraint))}"
        elif error.validator == "required":
            yield from (((*key_path, name), "is required") for name in constraint if name not in error.instance)
        elif error.validator == "anyOf":
            yield from self._explain_choice(kind, error)
        elif error.validator == "type":
            yield key_path, _expected([constraint] if isinstance(constraint, str) else constraint, error.instance)
        elif error.validator == "pattern":
            yield key_path, _PATTERNS.get(constraint, f"must match {constraint}")
        else:
            yield key_path, _CONSTRAINTS.get(error.validator, "is not valid").format(constraint)

    def _explain_choice(self, kind: ObjectKind, error: ValidationError) -> Iterator[tuple[KeyPath, str]]:
        """The errors of the alternative with the right type, else the types of all alternatives."""
        branches: dict[Any, list[ValidationError]] = {}
        for inner in error.context:
            branches.setdefault(inner.schema_path[0], []).append(inner)
        depth = len(error.absolute_path)
        for inners in branches.values():
            if not any(one.validator == "type" and len(one.absolute_path) == depth for one in inners):
                for one in inners:
                    yield from self._explain_error(kind, one)
                return
        yield tuple(error.absolute_path), _expected(_list_types(error.schema), error.instance)


def _without_name(schema: Mapping[str, Any]) -> dict[str, Any]:
    # The name is in `metadata` only.
    return {**schema, "properties": {name: one for name, one in schema["properties"].items() if name != "name"}}


def _list_types(schema: Mapping[str, Any]) -> Iterator[str]:
    if "type" in schema:
        yield from [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    for part in schema.get("anyOf", ()):
        yield from _list_types(part) if "$ref" not in part else ["object"]


def _expected(kinds: Iterable[str], value: object) -> str:
    expected = [kind for kind in dict.fromkeys(kinds) if kind != "null"]
    text = "must be " + " or ".join(_TYPE_NAMES.get(kind, kind) for kind in expected)
    return f"{text}; quote it" if expected == ["string"] and isinstance(value, int | float) else text


def _normalize_value(name: str, value: Any) -> Any:
    if name in _POLICIES and isinstance(value, Mapping):
        texts = {key: format_policy_value(one) for key, one in value.items()}
        return {key: text for key, text in sorted(texts.items()) if text}
    if name == _LIMITS and isinstance(value, Mapping):
        return {key: _normalize_bounds(bounds) for key, bounds in sorted(value.items())}
    if isinstance(value, list):
        texts_only = all(isinstance(one, str) for one in value)
        return list(dict.fromkeys(one.strip() for one in value)) if texts_only else value
    if isinstance(value, Mapping):
        return {key: _normalize_value("", one) for key, one in value.items() if one is not None and one != ""}
    return value.strip() if isinstance(value, str) else value


def _normalize_bounds(value: Any) -> Any:
    """The limits of a policy key as strings."""
    if isinstance(value, Mapping):
        return {name: _normalize_bounds(item) for name, item in sorted(value.items()) if item is not None}
    return [format_policy_value(item) for item in value] if isinstance(value, list) else format_policy_value(value)


def format_policy_value(value: Any) -> str:
    """The value of a policy key as the API stores it; empty if it is not set."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        # Never with an exponent, which a policy does not accept.
        return format(Decimal(repr(value)).normalize(), "f")
    return "" if value is None else str(value).strip()
