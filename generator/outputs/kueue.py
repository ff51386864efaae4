"""Renders Kueue's Topology: the label keys of the tiers, coarse to fine, then the host name.

With the host name as the last level, Kueue lets the other levels be edited, replaces failed nodes
one by one, and respects taints.

Source: kueue.x-k8s.io/v1beta2 of Kueue 0.19, apis/kueue/v1beta2/topology_types.go and
resourceflavor_types.go; v1beta1 has the same fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from generator.outputs.node_labels import list_level_keys
from generator.outputs.owned_object import OwnedObject
from topology.model.errors import ConfigError

API_VERSION: Final = "kueue.x-k8s.io/v1beta2"
MAX_FLAVOR_LABELS: Final = 8


class FlavorSpec(NamedTuple):
    """A ResourceFlavor over the nodes with some labels."""

    name: str
    node_labels: Mapping[str, str]
    """What selects its nodes; Kueue wants at least one label beside a topology."""


def render_kueue_objects(
    keys: Sequence[str],
    *,
    name: str,
    flavor: FlavorSpec | None = None,
    api_version: str = API_VERSION,
) -> tuple[OwnedObject, ...]:
    """Return the Topology and, if asked for, a ResourceFlavor, in the order of creation.

    Args:
        keys: the label keys of the tiers, lowest tier first.
        name: the name of the Topology.
        flavor: the flavor that uses the Topology.
        api_version: the newest version that the cluster serves.

    Raises:
        ConfigError: there are more levels or labels than Kueue takes, or a flavor without labels.
    """
    levels = [{"nodeLabel": key} for key in list_level_keys(keys)]
    objects = [OwnedObject(api_version, "Topology", name, {"spec": {"levels": levels}})]
    if flavor is not None:
        if not 1 <= len(flavor.node_labels) <= MAX_FLAVOR_LABELS:
            raise ConfigError(
                f"a ResourceFlavor with a topology has 1 to {MAX_FLAVOR_LABELS} node labels, "
                f"not {len(flavor.node_labels)}"
            )
        spec = {"nodeLabels": dict(sorted(flavor.node_labels.items())), "topologyName": name}
        objects.append(OwnedObject(api_version, "ResourceFlavor", flavor.name, {"spec": spec}))
    return tuple(objects)
