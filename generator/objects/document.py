"""Parts of a document that Kubernetes or a person wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def mapping_at(parent: object, *keys: str) -> Mapping[str, Any]:
    """Return the mapping at a path of keys; an empty one if it is absent or is not a mapping."""
    for key in keys:
        parent = parent.get(key) if isinstance(parent, Mapping) else None
    return parent if isinstance(parent, Mapping) else {}


def rows_at(parent: object, *keys: str) -> list[Mapping[str, Any]]:
    """Return the mappings in the list at a path of keys; none if it is absent or is not a list."""
    *path, last = keys
    rows = mapping_at(parent, *path).get(last)
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def condition_of(document: object, kind: str) -> Mapping[str, Any]:
    """Return the condition of a type in the status of an object; an empty one without it."""
    rows = rows_at(document, "status", "conditions")
    return next((row for row in rows if row.get("type") == kind), {})
