"""What uses the objects that a scheduler does not let change: they are replaced once unused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.kube.resources import Resource
from generator.objects.document import mapping_at
from generator.publish.kinds import (
    KAI_POD_GROUPS,
    KAI_TOPOLOGIES,
    KUEUE_TOPOLOGIES,
    OLDER_VERSIONS,
    RESOURCE_FLAVORS,
)
from generator.store.output_objects import OutputObjects
from topology.model.errors import KubeInUse, show


class _User(NamedTuple):
    """A kind of objects that name those of another kind."""

    resource: Resource
    find_name: Callable[[Mapping[str, Any]], object]
    """Returns the name that an object's spec refers to."""


_USERS: Final[Mapping[Resource, _User]] = MappingProxyType(
    {
        KAI_TOPOLOGIES: _User(
            KAI_POD_GROUPS, lambda spec: mapping_at(spec, "topologyConstraint").get("topology")
        ),
        KUEUE_TOPOLOGIES: _User(RESOURCE_FLAVORS, lambda spec: spec.get("topologyName")),
    }
)
_UNCHANGEABLE: Final = 422
"""What a server answers to such a change."""
REPLACEABLE: Final = frozenset(_USERS)
"""The kinds whose objects are deleted and created again where they cannot change."""


def require_unused(objects: OutputObjects, resource: Resource, name: str) -> None:
    """Refuse to replace an object that others name.

    Raises:
        KubeInUse: one of them, which the message names, refers to it.
        KubeError: they cannot be listed.
    """
    user = _USERS[resource]
    versions = OLDER_VERSIONS.get(user.resource, ())
    for found in objects.list_once(user.resource, versions):
        if user.find_name(mapping_at(found, "spec")) == name:
            shown = show(str(mapping_at(found, "metadata").get("name", "")), 253)
            raise KubeInUse(
                f"its levels cannot change while the {user.resource.kind} {shown} uses it",
                status=_UNCHANGEABLE,
            )
