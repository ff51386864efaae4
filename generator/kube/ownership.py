"""Which part of an object field managers of ours own, and whether an apply would change it. Pure.

An apply leaves an object unchanged if and only if what the manager owns is what it desires. So only
this part of most objects is kept, as a text that can be compared: of a Node with 10 kB, it is a few
labels. Source: Kubernetes, "Server-Side Apply"; the format of `fieldsV1` is that of
sigs.k8s.io/structured-merge-diff: `f:NAME` a field, `k:{…}` an item of a list by its keys,
`v:VALUE` an item of a set, `.` the object itself. A list without items in `fieldsV1` is owned as a
whole.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

_HEAD: Final = frozenset({"apiVersion", "kind"})
_IDENTITY: Final = frozenset({"name", "namespace"})
_EMPTY: Final[tuple[object, ...]] = ({}, [], None)


def is_applied(
    desired: Mapping[str, Any],
    observed: Mapping[str, Any],
    *,
    field_manager: str,
    subresource: str = "",
) -> bool:
    """Return whether an apply of `desired` would leave the observed object unchanged."""
    owned = find_owned_parts(observed, {field_manager}, subresource)
    return owned.get(field_manager) == render_part(desired)


def find_owned_parts(
    document: Mapping[str, Any], managers: Collection[str], subresource: str = ""
) -> dict[str, str]:
    """Return the part of a decoded object that each manager has applied, by manager.

    A manager that applied nothing has no entry. Equal to `render_part` of what it applied last, if
    nobody has changed it since. Cost: O(fields that the managers own).
    """
    metadata = document.get("metadata")
    rows = metadata.get("managedFields") if isinstance(metadata, Mapping) else None
    parts: dict[str, str] = {}
    for row in rows if isinstance(rows, Sequence) else ():
        if not isinstance(row, Mapping) or row.get("subresource", "") != subresource:
            continue
        manager, fields = row.get("manager"), row.get("fieldsV1")
        if manager in managers and row.get("operation") == "Apply" and isinstance(fields, Mapping):
            part = _select_owned(document, fields) if fields else {}
            parts[str(manager)] = render_part(part if isinstance(part, Mapping) else {})
    return parts


def render_part(document: Mapping[str, Any]) -> str:
    """Return the content of an object as one line of JSON: without its kind and its name."""
    content = {key: value for key, value in document.items() if key not in _HEAD}
    metadata = content.get("metadata")
    if isinstance(metadata, Mapping):
        content["metadata"] = {
            key: value for key, value in metadata.items() if key not in _IDENTITY
        }
    return json.dumps(_prune(content), sort_keys=True, separators=(",", ":"))


def _select_owned(value: object, fields: Mapping[str, Any]) -> object:
    """Return the part of a value that `fieldsV1` names."""
    if not fields:
        return value
    if isinstance(value, Mapping):
        named = ((key[2:], below) for key, below in fields.items() if key.startswith("f:"))
        return {key: _select_owned(value[key], below) for key, below in named if key in value}
    if not isinstance(value, list):
        return value
    words = [json.loads(key[2:]) for key in fields if key.startswith("v:")]
    keys = [(json.loads(key[2:]), below) for key, below in fields.items() if key.startswith("k:")]
    owned = []
    for item in value:
        part = item if item in words else _select_item(item, keys)
        if item in words or part is not None:
            owned.append(part)
    return owned


def _select_item(item: object, keys: Sequence[tuple[dict[str, Any], Mapping[str, Any]]]) -> object:
    """Return the owned part of an item of a list; None if none of it is owned."""
    if not isinstance(item, Mapping):
        return None
    below = next((below for key, below in keys if key.items() <= item.items()), None)
    return None if below is None else _select_owned(item, below)


def _prune(value: object) -> object:
    """Return a value without the empty fields of its objects, which count as absent."""
    if isinstance(value, list):
        return [_prune(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    pruned = {key: _prune(below) for key, below in value.items()}
    return {key: below for key, below in pruned.items() if below not in _EMPTY}
