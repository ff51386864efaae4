"""The parts of an object that field managers of ours own, as texts that compare. Pure.

An apply leaves an object unchanged if and only if what the manager owns is what it desires. So only
this part of an object is kept, not the object: of a Node with 10 kB these are a few labels.
Source and format: see `ownership`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

_HEAD: Final = frozenset({"apiVersion", "kind"})
_IDENTITY: Final = frozenset({"name", "namespace"})


class ObservedObject(NamedTuple):
    """An object as Toponaut sees it: whose it is, and the parts that Toponaut owns."""

    name: str
    """`NAMESPACE/NAME`, or the name alone."""
    uid: str
    parts: Mapping[str, str]
    """By field manager, as `find_owned_parts` renders them; empty if nothing of it is ours."""


def find_owned_parts(document: Mapping[str, Any], managers: Collection[str]) -> dict[str, str]:
    """Return the part of a decoded object that each manager has applied, by manager.

    A manager that applied nothing has no entry. Equal to `render_part` of what it applied last, if
    nobody has changed it since. Cost: O(fields that the managers own).
    """
    metadata = document.get("metadata")
    rows = metadata.get("managedFields") if isinstance(metadata, Mapping) else None
    found: dict[str, str] = {}
    for row in rows if isinstance(rows, Sequence) else ():
        if not isinstance(row, Mapping) or row.get("subresource"):
            continue
        manager, fields = row.get("manager"), row.get("fieldsV1")
        if manager in managers and row.get("operation") == "Apply" and isinstance(fields, Mapping):
            part = _select_owned(document, fields) if any(map(_is_field, fields)) else {}
            found[str(manager)] = render_part(part if isinstance(part, Mapping) else {})
    return found


def render_part(document: Mapping[str, Any]) -> str:
    """Return the content of an object as one line of JSON: without its kind and its name."""
    content = {key: value for key, value in document.items() if key not in _HEAD}
    metadata = content.get("metadata")
    if isinstance(metadata, Mapping):
        content["metadata"] = {
            key: value for key, value in metadata.items() if key not in _IDENTITY
        }
    pruned = _prune(content)
    return json.dumps(pruned, sort_keys=True, separators=(",", ":"))


def _select_owned(value: object, fields: Mapping[str, Any]) -> object:
    """Return the part of a value that `fieldsV1` names; a list is owned as a whole."""
    inner = {key[2:]: below for key, below in fields.items() if _is_field(key)}
    if not inner or not isinstance(value, Mapping):
        return value
    return {
        key: _select_owned(value[key], below if isinstance(below, Mapping) else {})
        for key, below in inner.items()
        if key in value
    }


def _is_field(key: str) -> bool:
    return key.startswith("f:")


def _prune(value: object) -> object:
    """Return a value without empty objects, which own nothing."""
    if not isinstance(value, Mapping):
        return value
    pruned = {key: _prune(below) for key, below in value.items()}
    return {key: below for key, below in pruned.items() if below != {}}
