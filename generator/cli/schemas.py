"""The JSON schemas of documents that Toponaut reads, writes and prints, and their fields.

The descriptions of fields are the docstrings below them in a model. pydantic can add them to every
model when it is imported, which would cost every command 30 ms.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel

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


def load_model(name: str) -> type[BaseModel]:
    """Return the model of a schema."""
    module, _, found = SCHEMAS[name].partition(":")
    model: type[BaseModel] = getattr(importlib.import_module(module), found)
    return model


def build_schema(name: str) -> dict[str, Any]:
    """Return a schema, with the descriptions of its fields."""
    model = load_model(name)
    return add_field_docs(model.model_json_schema(by_alias=True), model)


def render_schema(name: str) -> str:
    """Return a schema as indented JSON; `docs/schema/` holds the same text."""
    return json.dumps({"$schema": DIALECT, **build_schema(name)}, indent=2, sort_keys=True) + "\n"


def add_field_docs(schema: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a model with the descriptions of its fields; it is changed.

    A description that the schema has already stays.
    """
    classes = {found.__name__: found for found in _find_models(model, set())}
    _describe(schema, model)
    for name, definition in schema.get("$defs", {}).items():
        if name in classes:
            _describe(definition, classes[name])
    return schema


def resolve_field(document: Mapping[str, Any], field: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema behind references, optional values and lists; an object before a text."""
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


def _find_models(model: type[BaseModel], seen: set[type]) -> Iterator[type[BaseModel]]:
    """Yield a model and all models in its fields, each once."""
    from pydantic import BaseModel

    seen.add(model)
    yield model
    for field in model.model_fields.values():
        pending: list[Any] = [field.annotation]
        while pending:
            kind = pending.pop()
            pending.extend(get_args(kind))
            is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
            if is_model and kind not in seen:
                yield from _find_models(kind, seen)


def _describe(definition: dict[str, Any], model: type[BaseModel]) -> None:
    from pydantic import BaseModel

    fields = definition.get("properties", {})
    for base in reversed(model.__mro__):
        if base is BaseModel or not issubclass(base, BaseModel):
            continue
        for name, text in _read_docstrings(base):
            field = model.model_fields.get(name)
            row = fields.get(name) or fields.get(field.alias if field is not None else None)
            if row is not None:
                row.setdefault("description", text)


def _read_docstrings(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield (field, docstring below it) of a class, without those that it inherits."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    for field, below in pairwise(body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            yield field.target.id, inspect.cleandoc(str(below.value.value))
