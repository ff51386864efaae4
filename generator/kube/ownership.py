"""Says whether a server-side apply would change an object, from its content and field ownership.

Pure. Source: Kubernetes, "Server-Side Apply"; the format of `fieldsV1` is that of
sigs.k8s.io/structured-merge-diff: `f:NAME` a field, `k:{…}` an item of a list by its keys,
`v:VALUE` an item of a set, `i:INDEX` an item by its index, `.` the object itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

_HEAD: Final = frozenset({"apiVersion", "kind"})


def is_applied(
    desired: Mapping[str, Any],
    observed: Mapping[str, Any],
    *,
    field_manager: str,
    subresource: str = "",
) -> bool:
    """Return whether an apply of `desired` would leave the observed object unchanged.

    It would if the object already has all desired fields and the manager owns no other field: an
    apply removes a field that the manager applied earlier and no longer desires.
    """
    fields = _find_owned_fields(observed, field_manager, subresource)
    content = {key: value for key, value in desired.items() if key not in _HEAD}
    return fields is not None and _contains(observed, content) and _owns_only(fields, content)


def _find_owned_fields(
    observed: Mapping[str, Any], manager: str, subresource: str
) -> Mapping[str, Any] | None:
    """Return the fields that the manager has applied, or None if it has applied none."""
    metadata = observed.get("metadata")
    rows = metadata.get("managedFields") if isinstance(metadata, Mapping) else None
    for row in rows if isinstance(rows, Sequence) else ():
        if (
            isinstance(row, Mapping)
            and (row.get("manager"), row.get("operation")) == (manager, "Apply")
            and row.get("subresource", "") == subresource
        ):
            fields = row.get("fieldsV1")
            return fields if isinstance(fields, Mapping) else {}
    return None


def _contains(observed: object, desired: object) -> bool:
    """Return whether an observed value contains the desired one; lists must have equal lengths."""
    if isinstance(desired, Mapping):
        if not isinstance(observed, Mapping):
            return not desired and observed is None
        return all(_contains(observed.get(key), value) for key, value in desired.items())
    if isinstance(desired, list):
        if not isinstance(observed, list):
            return not desired and observed is None
        return len(desired) == len(observed) and all(map(_contains, observed, desired))
    return observed == desired


def _owns_only(fields: Mapping[str, Any], desired: object) -> bool:
    """Return whether every owned field is a desired field."""
    for key, inner in fields.items():
        if key == ".":
            continue
        selected = _find_desired(key, desired)
        if selected is None:
            return False
        if isinstance(inner, Mapping) and inner and not _owns_only(inner, selected[0]):
            return False
    return True


def _find_desired(key: str, desired: object) -> tuple[object] | None:
    """Return the desired value that a key of `fieldsV1` selects, in a tuple; None without one."""
    kind, _, name = key.partition(":")
    if kind == "f" and isinstance(desired, Mapping):
        return (desired[name],) if name in desired else None
    if not isinstance(desired, list):
        return None
    if kind == "k":
        keys = json.loads(name)
        items = (item for item in desired if isinstance(item, Mapping))
        return next(((item,) for item in items if keys.items() <= item.items()), None)
    if kind == "v":
        value = json.loads(name)
        return (value,) if value in desired else None
    return None
