"""One Kubernetes object as an output renders it, and the names that Kubernetes accepts.

Loads little else: the options of commands check names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.kube.resources import Resource

MAX_OBJECT_NAME: Final = 253
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")


def is_object_name(text: str) -> bool:
    """Return whether Kubernetes accepts the text as the name of an object (DNS-1123 subdomain).

    Such a name has no slash and no blank and starts with a letter or digit, so it is safe in a
    path.
    """
    return len(text) <= MAX_OBJECT_NAME and _SUBDOMAIN.match(text) is not None


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class OwnedObject(NamedTuple):
    """An object, or the part of an object, for server-side apply."""

    resource: Resource
    """The kind of the object."""
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
        "apiVersion": row.resource.api_version,
        "kind": row.resource.kind,
        "metadata": metadata,
        **row.fields,
    }
