"""The fields of every kind of manifest, from the schemas that its API server has.

A line of a list is a path and a type: `spec.tasks[].minAvailable integer`. `[]` stands for the
items of a list, `{}` for the values of a mapping with any keys. Pod templates, the specs of pods
and the metadata of objects are one type each, and so is a type inside itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.repository import ROOT

LISTS: Final = ROOT / "fixtures" / "kinds"
TEMPLATE, POD_SPEC, METADATA, ITSELF = "PodTemplateSpec", "PodSpec", "ObjectMeta", "itself"
_DEFINITIONS: Final = {
    "io.k8s.api.core.v1.PodTemplateSpec": TEMPLATE,
    "io.k8s.api.core.v1.PodSpec": POD_SPEC,
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": METADATA,
}
Schema = Mapping[str, Any]


def list_files(folder: Path) -> dict[str, list[str]]:
    """Return the lines of each kind's list, by its name: `Job.batch`."""
    found: dict[str, set[str]] = {}
    for file in sorted(folder.iterdir()):
        rows = _read_crds(file) if file.suffix == ".yaml" else _read_openapi(file)
        for name, lines in rows:
            found.setdefault(name, set()).update(lines)
    return {name: sorted(lines) for name, lines in found.items()}


def _read_crds(file: Path) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield the kind of a CRD with the fields of each of its versions."""
    crd = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["spec"]
    name = f"{crd['names']['kind']}.{crd['group']}"
    for version in crd["versions"]:
        yield name, _list_object(version["schema"]["openAPIV3Schema"], {})


def _read_openapi(file: Path) -> Iterator[tuple[str, Iterator[str]]]:
    schemas = json.loads(file.read_text(encoding="utf-8"))["components"]["schemas"]
    for title, schema in schemas.items():
        kinds = schema.get("x-kubernetes-group-version-kind", ())
        if len(kinds) == 1 and "spec" in schema.get("properties", {}):
            yield f"{kinds[0]['kind']}.{kinds[0]['group'] or 'core'}", _list_object(schema, schemas)
        elif title in _DEFINITIONS:
            yield _DEFINITIONS[title], _walk(schema, "", schemas)


def _list_object(schema: Schema, schemas: Schema) -> Iterator[str]:
    for key, part in schema["properties"].items():
        if key not in {"apiVersion", "kind", "metadata", "status"}:
            yield from _walk(part, key, schemas)


def _walk(
    schema: Schema, path: str, schemas: Schema, around: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Yield the fields at a path and below; `around` are the definitions that the path is in."""
    rows = [schema, *schema.get("allOf", ())]
    definition = next((row["$ref"].rpartition("/")[2] for row in rows if "$ref" in row), "")
    known = _DEFINITIONS.get(definition) or (ITSELF if definition in around else "")
    known = known or _find_known(schema.get("properties", {}))
    if known and path:
        yield f"{path} {known}"
        return
    around |= {definition} if definition else set()
    schema = schemas[definition] if definition else schema
    if "properties" in schema:
        for key, part in schema["properties"].items():
            yield from _walk(part, f"{path}.{key}".lstrip("."), schemas, around)
    elif "items" in schema:
        yield from _walk(schema["items"], f"{path}[]", schemas, around)
    elif isinstance(schema.get("additionalProperties"), Mapping):
        yield from _walk(schema["additionalProperties"], f"{path}{{}}", schemas, around)
    else:
        yield f"{path} {_name_type(schema)}"


def _find_known(parts: Schema) -> str:
    if {"containers", "restartPolicy"} <= parts.keys():
        return POD_SPEC
    inner = parts.get("spec", {}).get("properties", {})
    return TEMPLATE if "metadata" in parts and _find_known(inner) == POD_SPEC else ""


def _name_type(schema: Schema) -> str:
    if "oneOf" in schema or "x-kubernetes-int-or-string" in schema:
        return "quantity"
    values = "|".join(str(value) for value in schema.get("enum", ()))
    return f"{schema.get('type', 'any')}{':' if values else ''}{values}"
