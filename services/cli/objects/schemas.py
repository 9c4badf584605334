"""What the API takes and answers, from its own OpenAPI document: the command knows no field that the API does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from jsonschema import Draft202012Validator, ValidationError  # type: ignore[import-untyped]

from lagscale.domain.policy.keys import KEYS_BY_NAME
from lagscale.domain.tenancy import NAME_PATTERN, suggest_names
from lagscale.errors import LagscaleError
from services.cli.objects.documents import KeyPath
from services.cli.objects.kinds import KINDS, ObjectKind

Spec = dict[str, Any]

_NAMES = {
    "string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "array": "a list", "object": "a mapping", "null": "null",
}  # fmt: skip
_PATTERNS = {f"^{NAME_PATTERN.pattern}$": "must be 1 to 63 of a-z, 0-9 and -, with no - at either end"}
#: What a keyword of the schema asks for, of which its own value is all that needs to be said.
_TEXTS = {
    "minimum": "must be at least {:g}", "maximum": "must be at most {:g}",
    "minLength": "must have at least {} character(s)", "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} entry", "maxItems": "must have at most {} entries",
    "enum": "must be one of {}",
}  # fmt: skip
#: Mappings whose keys are those of a policy; their values mean the same as texts and as numbers.
_POLICIES = ("policy", "policyDefaults")
_LIMITS = "policyLimits"
#: Never compared and never shown, whatever an API answers.
_SECRET_FIELDS = frozenset({"secrets"})
#: Switches of the API for looks at a cluster that take their time.
_PREFLIGHT_SWITCHES = frozenset({"preflight", "validate"})
_EMPTY: tuple[Any, ...] = (None, "", [], {})


class ApiSchemas:
    """The bodies of every kind."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Read an OpenAPI document.

        Raises:
            LagscaleError: it is not that of a Lagscale that knows all kinds.
        """
        try:
            self._all = document["components"]["schemas"]
            self._input_schemas = {kind.name: self._all[kind.input_schema] for kind in KINDS}
            self._output_schemas = {kind.name: self._all[kind.output_schema] for kind in KINDS}
            self._write_operations = {kind.name: document["paths"][kind.route][kind.method] for kind in KINDS}
        except (KeyError, TypeError) as wrong:
            raise LagscaleError(
                "The OpenAPI document at LAGSCALE_API_URL is not that of a Lagscale of this version."
            ) from wrong
        self._validators = {
            name: Draft202012Validator({**_without_name(schema), "components": {"schemas": self._all}})
            for name, schema in self._input_schemas.items()
        }

    def fields(self, kind: ObjectKind) -> Mapping[str, Any]:
        """What a spec may hold: name -> schema."""
        return {name: schema for name, schema in self._input_schemas[kind.name]["properties"].items() if name != "name"}

    def write_only_fields(self, kind: ObjectKind) -> frozenset[str]:
        """What the API takes and never shows again."""
        fields = frozenset(self.fields(kind))
        return (fields - frozenset(self._output_schemas[kind.name]["properties"])) | (fields & _SECRET_FIELDS)

    def supports_dry_run(self, kind: ObjectKind) -> bool:
        """Whether the API can tell what a change would come to, without making it."""
        return "dryRun" in self._parameters(kind)

    def query(self, kind: ObjectKind, *, dry_run: bool, preflight: bool) -> str:
        """The query of a write.

        Args:
            kind: what is written.
            dry_run: only ask what it would come to; what looks at the network is then left to the change itself.
            preflight: look at the network.
        """
        parts = ["dryRun=true"] if dry_run else []
        if dry_run or not preflight:
            parts += [f"{name}=false" for name in sorted(_PREFLIGHT_SWITCHES & self._parameters(kind))]
        return "?" + "&".join(parts) if parts else ""

    def _parameters(self, kind: ObjectKind) -> frozenset[str]:
        return frozenset(one["name"] for one in self._write_operations[kind.name].get("parameters", ()))

    @property
    def max_bulk_changes(self) -> int:
        """How many monitors one bulk request takes; 1 where there are none."""
        items = self._all.get("ChangesIn", {}).get("properties", {}).get("items", {})
        return int(items.get("maxItems", 1))

    def field_errors(self, kind: ObjectKind, spec: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
        """The way to each fault and its text, which never holds a value."""
        errors = self._validators[kind.name].iter_errors(spec)
        # The library tells of each missing field in an error of its own, which names all that are needed.
        yield from dict.fromkeys(told for error in errors for told in self._explain_error(kind, error))
        for name in _POLICIES:
            policy = spec.get(name)
            for key in policy if isinstance(policy, Mapping) else ():
                if key not in KEYS_BY_NAME:
                    yield (name, key), _describe_unknown_key(key, KEYS_BY_NAME, "is no key of a policy")

    def normalize_spec(self, kind: ObjectKind, spec: Mapping[str, Any]) -> Spec:
        """A spec in the one form in which equal ones are equal: no defaults, nothing empty, nothing hidden."""
        write_only_fields = self.write_only_fields(kind)
        normalized: Spec = {}
        for name, schema in self.fields(kind).items():
            value = _normalize_value(name, spec.get(name))
            if name not in write_only_fields and value not in _EMPTY and value != schema.get("default"):
                normalized[name] = value
        return normalized

    def split_lists(self, kind: ObjectKind, spec: Mapping[str, Any]) -> Spec:
        """The spec with lists where the API takes a comma list too."""
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
            for name in error.instance:
                if name not in valid:
                    yield (
                        (*key_path, name),
                        _explain_misplaced(kind, key_path, name) or _describe_unknown_key(name, valid, "is not known"),
                    )
        elif error.validator == "required":
            yield from (((*key_path, name), "must be given") for name in constraint if name not in error.instance)
        elif error.validator == "anyOf":
            yield from self._explain_choice(kind, error)
        elif error.validator == "type":
            yield key_path, _expected([constraint] if isinstance(constraint, str) else constraint, error.instance)
        elif error.validator == "pattern":
            yield key_path, _PATTERNS.get(constraint, f"must match {constraint}")
        else:
            yield key_path, _TEXTS.get(error.validator, "is not as the API takes it").format(constraint)

    def _explain_choice(self, kind: ObjectKind, error: ValidationError) -> Iterator[tuple[KeyPath, str]]:
        """The faults of the one alternative that is meant, else which kinds there are to choose from."""
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
    # The name stands in `metadata`; twice is once too often.
    return {**schema, "properties": {name: one for name, one in schema["properties"].items() if name != "name"}}


def _list_types(schema: Mapping[str, Any]) -> Iterator[str]:
    if "type" in schema:
        yield from [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    for part in schema.get("anyOf", ()):
        yield from _list_types(part) if "$ref" not in part else ["object"]


def _expected(kinds: Iterable[str], value: object) -> str:
    expected = [kind for kind in dict.fromkeys(kinds) if kind != "null"]
    text = "must be " + " or ".join(_NAMES.get(kind, kind) for kind in expected)
    return f"{text}; put it in quotes" if expected == ["string"] and isinstance(value, int | float) else text


def _explain_misplaced(kind: ObjectKind, key_path: KeyPath, name: str) -> str | None:
    return (
        f"stands in metadata, not in the spec of a {kind.name}" if not key_path and name in {"name", "tenant"} else None
    )


def _describe_unknown_key(name: str, valid: Iterable[str], text: str) -> str:
    names = sorted(valid)
    # Names here are camelCase, and a slip is often one of case.
    near = suggest_names(name, [one.lower() for one in names], 1)
    meant = [one for one in names if near and one.lower() == near[0]]
    return f"{text}; did you mean {meant[0]}?" if meant else f"{text}; known are {', '.join(names)}"


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
    """The bounds of a policy's key as texts."""
    if isinstance(value, Mapping):
        return {name: _normalize_bounds(item) for name, item in sorted(value.items()) if item is not None}
    return [format_policy_value(item) for item in value] if isinstance(value, list) else format_policy_value(value)


def format_policy_value(value: Any) -> str:
    """The value of a policy's key as the API stores it; empty for one that is not given."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        # Never in the exponent's form, which the policy's language does not know.
        return format(Decimal(repr(value)).normalize(), "f")
    return "" if value is None else str(value).strip()
