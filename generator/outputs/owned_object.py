"""One Kubernetes object as an output renders it: the fields that Toponaut owns, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class OwnedObject(NamedTuple):
    """An object, or the part of an object, for server-side apply."""

    api_version: str
    kind: str
    name: str
    fields: Mapping[str, Any] = _NOTHING
    """The top-level fields beside the metadata, such as `spec` or `data`."""
    namespace: str = ""
    """Empty for a kind without namespaces."""
    labels: Mapping[str, str] = _NOTHING
    annotations: Mapping[str, str] = _NOTHING


def render_object(row: OwnedObject) -> dict[str, Any]:
    """Return the manifest of an object, with its fields in the usual order."""
    metadata: dict[str, Any] = {"name": row.name}
    if row.namespace:
        metadata["namespace"] = row.namespace
    if row.labels:
        metadata["labels"] = dict(row.labels)
    if row.annotations:
        metadata["annotations"] = dict(row.annotations)
    return {
        "apiVersion": row.api_version,
        "kind": row.kind,
        "metadata": metadata,
        **row.fields,
    }
