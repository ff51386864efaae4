"""The JSON schemas of documents that Toponaut reads, writes and prints, and their fields.

Documents that people write are pydantic models; the report, which machines write, is a msgspec
model. The descriptions of fields are the docstrings below them in a model: msgspec does not read
docstrings, and pydantic would read them at import, which would cost every command 30 ms.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args, get_type_hints

import msgspec
from msgspec import Struct, structs

if TYPE_CHECKING:
    from pydantic import BaseModel

Model: TypeAlias = "type[BaseModel | Struct]"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
SCHEMAS: Final = {
    "fabric": "generator.objects.fabric:FabricDocument",
    "planes": "generator.objects.plane_config:PlanesFile",
    "report": "topology.reports.neighbor_report:NeighborReport",
    "request": "generator.placement.wire:Document",
    "reservation": "generator.objects.reservation:PlacementReservation",
    "tree": "generator.objects.tree_document:TreeDocument",
}
"""The model of each schema: its module and its class."""


def load_model(name: str) -> Model:
    """Return the model of a schema."""
    module, _, found = SCHEMAS[name].partition(":")
    model: Model = getattr(importlib.import_module(module), found)
    return model


def build_schema(name: str) -> dict[str, Any]:
    """Return a schema, with the descriptions of its fields."""
    model = load_model(name)
    return add_field_docs(schema_of(model), model)


def schema_of(model: Model) -> dict[str, Any]:
    """Return the schema of a model."""
    if not issubclass(model, Struct):
        return model.model_json_schema(by_alias=True)
    definitions: dict[str, Any] = msgspec.json.schema(model)["$defs"]
    for row in _walk(definitions):
        if "enum" in row:
            row["type"] = "string"  # msgspec leaves it to the values
        if isinstance(row.get("description"), str):
            row["description"] = inspect.cleandoc(row["description"])
    return {**definitions.pop(model.__name__), "$defs": definitions}


def _walk(value: object) -> Iterator[dict[str, Any]]:
    """Yield every object in a schema."""
    if isinstance(value, dict):
        yield value
        for field in value.values():
            yield from _walk(field)
    elif isinstance(value, list):
        for row in value:
            yield from _walk(row)


def render_schema(name: str) -> str:
    """Return a schema as indented JSON; `docs/schema/` holds the same text."""
    return json.dumps({"$schema": DIALECT, **build_schema(name)}, indent=2, sort_keys=True) + "\n"


def add_field_docs(schema: dict[str, Any], model: Model) -> dict[str, Any]:
    """Add the field descriptions of a model to its JSON schema in place, and return it.

    A description already in the schema stays.
    """
    classes = {found.__name__: found for found in _find_models(model, set())}
    _describe(schema, model)
    for name, definition in schema.get("$defs", {}).items():
        if name in classes:
            _describe(definition, classes[name])
    return schema


def resolve_field(document: Mapping[str, Any], field: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema behind references, optional values and lists; an object before text."""
    forms = [*_resolve_forms(document, field)]
    return next((form for form in forms if "properties" in form), forms[0])


def resolve_holder(
    document: Mapping[str, Any], field: Mapping[str, Any], name: str
) -> Mapping[str, Any]:
    """Return the schema as `resolve_field` does, but of the form that has the named field."""
    forms = _resolve_forms(document, field)
    named = (form for form in forms if name in form.get("properties", {}))
    return next(named, resolve_field(document, field))


def _resolve_forms(
    document: Mapping[str, Any], field: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield the schema of each form that a field may have, without null."""
    while True:
        if "$ref" in field:
            field = document["$defs"][field["$ref"].rpartition("/")[2]]
        elif "anyOf" in field:
            for row in field["anyOf"]:
                if row.get("type") != "null":
                    yield from _resolve_forms(document, row)
            return
        elif len(field.get("allOf", ())) == 1:
            field = field["allOf"][0]
        elif field.get("type") == "array" and isinstance(field.get("items"), Mapping):
            field = field["items"]
        elif field.get("type") == "object" and isinstance(
            field.get("additionalProperties"), Mapping
        ):
            field = field["additionalProperties"]
        else:
            yield field
            return


def describe_type(document: Mapping[str, Any], field: Mapping[str, Any]) -> str:
    """Return the type as people write it: `string`, `list of object`, `map of integer`."""
    if "$ref" in field:
        return describe_type(document, document["$defs"][field["$ref"].rpartition("/")[2]])
    if "anyOf" in field:
        kinds = [
            describe_type(document, row) for row in field["anyOf"] if row.get("type") != "null"
        ]
        return " or ".join(dict.fromkeys(kinds))
    if len(field.get("allOf", ())) == 1:
        return describe_type(document, field["allOf"][0])
    if field.get("type") == "array":
        items = field.get("items")
        return f"list of {describe_type(document, items)}" if isinstance(items, Mapping) else "list"
    inner = field.get("additionalProperties")
    if field.get("type") == "object" and isinstance(inner, Mapping):
        return f"map of {describe_type(document, inner)}"
    return str(field.get("type", "any"))


def _find_models(model: Model, seen: set[type]) -> Iterator[Model]:
    """Yield a model and all models in its fields, each once."""
    from pydantic import BaseModel

    seen.add(model)
    yield model
    for annotation in _annotations(model):
        pending: list[Any] = [annotation]
        while pending:
            kind = pending.pop()
            pending.extend(get_args(kind))
            is_model = isinstance(kind, type) and issubclass(kind, (BaseModel, Struct))
            if is_model and kind not in seen:
                yield from _find_models(kind, seen)


def _annotations(model: Model) -> Iterator[Any]:
    """Yield the types of the fields of a model."""
    if issubclass(model, Struct):
        yield from get_type_hints(model).values()
    else:
        yield from (field.annotation for field in model.model_fields.values())


def _wire_names(model: Model) -> dict[str, str | None]:
    """Return the name on the wire of each field of a model, if it is another one."""
    if issubclass(model, Struct):
        return {field.name: field.encode_name for field in structs.fields(model)}
    return {name: field.alias for name, field in model.model_fields.items()}


def _describe(definition: dict[str, Any], model: Model) -> None:
    from pydantic import BaseModel

    fields, wire_names = definition.get("properties", {}), _wire_names(model)
    for base in reversed(model.__mro__):
        if base in (BaseModel, Struct) or not issubclass(base, (BaseModel, Struct)):
            continue
        for name, text in _read_docstrings(base):
            row = fields.get(name) or fields.get(wire_names.get(name))
            if row is not None:
                row.setdefault("description", text)


def _read_docstrings(model: type) -> Iterator[tuple[str, str]]:
    """Yield (field, docstring below it) of a class, without those that it inherits."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    for field, below in pairwise(body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            yield field.target.id, inspect.cleandoc(str(below.value.value))
