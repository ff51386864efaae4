"""Whether applying an object would change anything, told from the object and who owns its fields.

Pure. Source: Kubernetes, "Server-Side Apply"; the format of `fieldsV1` is that of
sigs.k8s.io/structured-merge-diff: `f:NAME` a field, `k:{…}` an item of a list by its keys,
`v:VALUE` an item of a set, `i:INDEX` one by its place, `.` the thing itself.
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
    """Return whether an apply of `desired` would leave the observed object as it is.

    It would where the object says all of it already, and where the manager owns nothing else:
    a field that it applied once and no longer wants is to be removed.
    """
    fields = _find_owned_fields(observed, field_manager, subresource)
    wanted = {key: value for key, value in desired.items() if key not in _HEAD}
    return fields is not None and _contains(observed, wanted) and _owns_only(fields, wanted)


def _find_owned_fields(
    observed: Mapping[str, Any], manager: str, subresource: str
) -> Mapping[str, Any] | None:
    """Return the fields that the manager has applied, None where it has not."""
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


def _contains(observed: object, wanted: object) -> bool:
    """Return whether what is observed holds what is wanted; lists must be equal in length."""
    if isinstance(wanted, Mapping):
        if not isinstance(observed, Mapping):
            return not wanted and observed is None
        return all(_contains(observed.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        if not isinstance(observed, list):
            return not wanted and observed is None
        return len(wanted) == len(observed) and all(map(_contains, observed, wanted))
    return observed == wanted


def _owns_only(fields: Mapping[str, Any], wanted: object) -> bool:
    """Return whether every owned field is one that is wanted."""
    for key, inner in fields.items():
        if key == ".":
            continue
        found = _find_wanted(key, wanted)
        if found is None:
            return False
        if isinstance(inner, Mapping) and inner and not _owns_only(inner, found[0]):
            return False
    return True


def _find_wanted(key: str, wanted: object) -> tuple[object] | None:
    """Return what a key of `fieldsV1` stands for within what is wanted, None where it is not."""
    kind, _, name = key.partition(":")
    if kind == "f" and isinstance(wanted, Mapping):
        return (wanted[name],) if name in wanted else None
    if not isinstance(wanted, list):
        return None
    if kind == "k":
        keys = json.loads(name)
        items = (item for item in wanted if isinstance(item, Mapping))
        return next(((one,) for one in items if keys.items() <= one.items()), None)
    if kind == "v":
        value = json.loads(name)
        return (value,) if value in wanted else None
    return None
