"""What a schema lets through, as one nested value: of a model, and of a CRD.

Only what decides is in it: types, limits, patterns, closed sets, what must be there. Titles,
descriptions, defaults and everything that only Kubernetes knows are not.
"""

import re._parser as patterns  # type: ignore[import-not-found]  # knows how wide a match can be
from collections.abc import Iterator, Mapping
from typing import Any, Final

Shape = dict[str, Any]
_KEPT: Final = (
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
)
_SERVERS: Final = frozenset({"apiVersion", "kind", "metadata"})
"""Fields of an object's root, which the server checks itself."""


def shape_of_model(schema: Mapping[str, Any]) -> Shape:
    """Return what the JSON schema of a whole object accepts."""
    return _rootless(_of_model(schema, schema.get("$defs", {})))


def shape_of_crd(crd: Mapping[str, Any]) -> Shape:
    """Return what the only version of a CRD accepts."""
    return _rootless(_of_crd(root_schema(crd)))


def root_schema(crd: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of the only version of a CRD."""
    (version,) = crd["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


def differences(ours: object, theirs: object, path: str = "") -> list[str]:
    """Return a line for each place where two shapes differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [
            line
            for key in sorted({*ours, *theirs})
            for line in differences(ours.get(key), theirs.get(key), f"{path}.{key}")
        ]
    return [] if ours == theirs else [f"{path}: {ours!r} in the model, {theirs!r} in the CRD"]


def walk(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every schema within a CRD's schema, with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from walk(inner, f"{path}.{name}")
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from walk(schema["additionalProperties"], f"{path}{{}}")


def _rootless(shape: Shape) -> Shape:
    properties = {key: one for key, one in shape["properties"].items() if key not in _SERVERS}
    required = [key for key in shape["required"] if key not in _SERVERS]
    return {"properties": properties, "required": required}


def _of_model(schema: Mapping[str, Any], named: Mapping[str, Any]) -> Shape:
    if "$ref" in schema:
        return _of_model(named[schema["$ref"].rpartition("/")[2]], named)
    if "anyOf" in schema:
        (one,) = (each for each in schema["anyOf"] if each != {"type": "null"})
        return _of_model(one, named)
    if "const" in schema:
        return {"type": "string", "enum": [schema["const"]]}
    shape = _inner(schema, lambda inner: _of_model(inner, named))
    if "pattern" in shape:
        shape.setdefault("maxLength", patterns.parse(shape["pattern"]).getwidth()[1])
    if "exclusiveMaximum" in schema:
        shape["maximum"] = schema["exclusiveMaximum"] - 1
    if "exclusiveMinimum" in schema:
        shape |= {"minimum": schema["exclusiveMinimum"], "exclusiveMinimum": True}
    return shape


def _of_crd(schema: Mapping[str, Any]) -> Shape:
    shape = _inner(schema, _of_crd)
    if schema.get("exclusiveMinimum"):
        shape["exclusiveMinimum"] = True
    if schema["type"] == "integer" and shape.pop("format", None) != "int64":
        shape["format"] = "not int64"
    return shape


def _inner(schema: Mapping[str, Any], of: Any) -> Shape:  # noqa: ANN401 - one of the two above
    shape: Shape = {"type": schema["type"]}
    shape |= {key: schema[key] for key in _KEPT if key in schema}
    if "enum" in schema:
        shape["enum"] = sorted(schema["enum"])
    if "items" in schema:
        shape["items"] = of(schema["items"])
    if "properties" in schema:
        shape["properties"] = {key: of(one) for key, one in schema["properties"].items()}
        shape["required"] = sorted(schema.get("required", ()))
    elif schema["type"] == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        shape["values"] = of(schema["additionalProperties"])
    return shape
