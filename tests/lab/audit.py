"""The API server's audit log: one JSON line per request, with its user and verb."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
    ],
}
_REVIEWS = frozenset({"tokenreviews", "selfsubjectreviews", "subjectaccessreviews"})


class Write(NamedTuple):
    """One request that may have changed something."""

    verb: str
    resource: str
    """With its subresource, such as `fabrics/status`."""
    name: str
    code: int


def read_writes(log: str, user: str) -> list[Write]:
    """Return what a user has changed or tried to change; dry runs and reviews apart."""
    rows = (json.loads(line) for line in log.splitlines())
    return [_write_of(row) for row in rows if _is_write(row, user)]


def _is_write(row: Mapping[str, Any], user: str) -> bool:
    # Whom the server does not know has no name there.
    return (
        row["user"].get("username") == user
        and "dryRun=" not in row["requestURI"]
        and row["objectRef"]["resource"] not in _REVIEWS
    )


def _write_of(row: Mapping[str, Any]) -> Write:
    target = row["objectRef"]
    parts = (target["resource"], target.get("subresource", ""))
    resource = "/".join(part for part in parts if part)
    return Write(row["verb"], resource, target.get("name", ""), row["responseStatus"]["code"])
